"""python3 quantize.py CHECKPOINT.pt SPEECH OUT [SCALE]: an attack network as a folder that insert.py takes.

Several checkpoints joined by + are the mean of their weights. CHECKPOINT.json beside each (train.py writes both) gives the
log-likelihood ratio, until rates.py fits it.
A slim network (slim.py) is rounded as in ../residual.py; its score is multiplied by SCALE, so that the mean with the narrow network's is the combination chosen (LOG.md 20).
SPEECH: a folder of .wav at 16 kHz the activations are calibrated on. Batch norms are folded, weights are i8 with one scale for each output
(i16 for the first layers and the two small maps), as in ../export.py; activations 12 bits with one step for all channels of a layer, so that speech
unlike SPEECH has room.
"""
import glob, json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn.functional as F
import audio
import residual
from export import ACTIVATION_HIGH, BYTE, CONCATENATION_HIGH, FEATURE_STEP, MARGIN, QUAD, WORD, Seen, rounded
from network import FRONTS, PLANES, WIDE, Fronts, prepared, restored

SHORT = 2047  # the residual network's hidden map: it has many weights, and 12 bits compress better than 16 (10, LOG.md 21, were too few here: 22)
INPUT_SCALE = 8  # network.py divides the features by this
ATTACKS = {"narrow": "synthetic", "slim": "synthetic", "playback": "playback"}
ARCHITECTURES = {(24, 1, 2, 1, 1): "attack-7", (32, 1, 2, 2, 1): "attack-5"}  # of the residual network, as assembly/spoof/config.ts has its shapes; the narrow one beside it has none of its own


def features(folder, names):
    fronts = Fronts(names)
    for path in sorted(glob.glob(folder + "/*.wav")):
        x, rate = audio.read(open(path, "rb").read())
        yield fronts(torch.from_numpy(audio.resample(x, rate))[None])


def folded(layer):
    """A convolution with its batch norm -> weight, bias."""
    conv, norm = layer
    gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return (conv.weight * gain.reshape(-1, *[1] * (conv.weight.dim() - 1))).detach(), (norm.bias - norm.running_mean * gain).detach()


@torch.no_grad()
def peaks(net, speech):
    """The largest activation of every channel after each layer: {"linear.plane0": …, "tail0": …}."""
    seen = {}

    def look(name, x):
        peak = x.transpose(0, 1).flatten(1).amax(1)
        seen[name] = torch.maximum(seen[name], peak) if name in seen else peak

    for pictures in speech:
        wide = []
        for front, planes in zip(net.names, net.fronts):
            x = prepared(pictures[front])[:, None] / INPUT_SCALE
            for i, plane in enumerate(planes):
                x = F.relu(plane(x))
                look(f"{front}.plane{i}", x)
            wide.append(x.permute(0, 3, 1, 2).flatten(1, 2))
        x = torch.cat(wide, 1)
        for i, layer in enumerate(net.tail):
            x = F.relu(layer(x))
            look(f"tail{i}", x)
    return seen


def tensors(net, seen):
    out, steps = [], {name: (peak.amax() * MARGIN / ACTIVATION_HIGH).expand_as(peak) for name, peak in seen.items()}
    put = lambda name, array, dtype: out.append((name, np.ascontiguousarray(array.numpy().astype(dtype))))

    def convolution(name, weight, bias, in_step, most, high=ACTIVATION_HIGH, times=1):
        """weight [outputs][taps][run], in_step of each element of a run; `times` the sum must fit."""
        q, s = rounded((weight * in_step).reshape(len(weight), -1), most)
        if (q.abs().sum(1) * high * times).max() >= 2**31:
            raise SystemExit(f"{name}: sums may overflow")
        put(name + ".weight", q.reshape(weight.shape), np.int8 if most == BYTE else np.int16)
        put(name + ".gain", s / steps[name], np.float32)
        put(name + ".bias", bias / steps[name], np.float32)

    for front, planes in zip(net.names, net.fronts):
        for i, (channels, outputs, stride, _) in enumerate(PLANES[net.kind][front]):
            weight, bias = folded(planes[i])
            weight = weight.permute(0, 2, 3, 1)  # [outputs][time][bin][channel]
            if i == 0:  # one channel: a run is 3 bins and a zero
                weight = torch.cat([weight.reshape(outputs, 3, 3), torch.zeros(outputs, 3, 1)], 2) / INPUT_SCALE
                convolution(f"{front}.plane0", weight, bias, torch.full((4,), FEATURE_STEP), WORD, CONCATENATION_HIGH)
            else:
                before = steps[f"{front}.plane{i - 1}"].repeat(3)
                convolution(f"{front}.plane{i}", weight.reshape(outputs, 3, 3 * channels), bias, before, BYTE, times=QUAD if stride == 1 else 1)
    before = []
    for front in net.names:  # bins outermost, as network.py flattens them
        step = steps[f"{front}.plane{len(PLANES[net.kind][front]) - 1}"]
        before.append(step.repeat(WIDE[net.kind][front] // len(step)))
    before = torch.cat(before)
    for i, layer in enumerate(net.tail):
        weight, bias = folded(layer)
        convolution(f"tail{i}", weight.permute(0, 2, 1), bias, before, BYTE)  # [outputs][taps][channel]
        before = steps[f"tail{i}"]
    return out + dense("hidden", net.hidden.weight.detach() * before.repeat(2), net.hidden.bias.detach()) + last(net.out.weight.detach(), net.out.bias.detach())


def last(weight, bias):
    """The map to the score; outputs come in fours."""
    return dense("out", F.pad(weight, (0, 0, 0, 3)), F.pad(bias, (0, 3)))


def dense(name, weight, bias, most=32767):
    q, s = rounded(weight, most)
    return [(f"{name}.{part}", np.ascontiguousarray(v.numpy().astype(t))) for part, v, t in (("weight", q, np.int16), ("gain", s, np.float32), ("bias", bias, np.float32))]


@torch.no_grad()
def slim(net, speech, scale):
    """The tensors of the slim network and its two maps."""
    walk, seen = residual.Walk(net.base.state_dict(), net.blocks), Seen(lambda name, x: residual.rows(name, x, net.blocks))
    for pictures in speech:
        walk.trunk(prepared(pictures["mel"])[0], seen)
    made, steps = residual.trunk(walk, seen)
    deviation = torch.sqrt(net.norm.running_var + net.norm.eps)
    weight, bias = net.hidden.weight / deviation, net.hidden.bias - net.hidden.weight @ (net.norm.running_mean / deviation)
    weight = residual.by_bins(weight)
    hidden = dense("hidden", weight * steps.repeat(weight.shape[1] // len(steps)), bias, SHORT)
    return made.out + hidden + last(net.out.weight * scale, net.out.bias * scale)


def main(checkpoint, speech, out, scale=1):
    net = restored(checkpoint)
    attack = ATTACKS[net.kind]
    calibration = np.mean([json.load(open(path.removesuffix(".pt") + ".json"))["calibration"] for path in checkpoint.split("+")], 0).tolist()
    os.makedirs(out, exist_ok=True)
    heard = features(speech, net.names)
    written = slim(net, heard, float(scale)) if net.kind == "slim" else tensors(net, peaks(net, heard))
    for name, array in written:
        np.save(f"{out}/{name}.npy", array)
    json.dump([name for name, _ in written], open(out + "/order.json", "w"))
    json.dump({"architecture": "attack-1" if attack == "playback" else ARCHITECTURES[net.base.stem.out_channels, *net.blocks] if net.kind == "slim" else None, "attack": attack, "calibration": calibration}, open(out + "/description.json", "w"))
    print(net.kind, sum(a.nbytes for _, a in written), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:5])
