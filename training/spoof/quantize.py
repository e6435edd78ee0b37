"""python3 quantize.py CHECKPOINT.pt SPEECH OUT: an attack network as a folder that insert.py takes.

Several checkpoints joined by + are the mean of their weights. CHECKPOINT.json beside each (train.py writes both) gives the
log-likelihood ratio, until rates.py fits it.
SPEECH: a folder of .wav at 16 kHz the activations are calibrated on. Batch norms are folded, weights are i8 with one scale for each output
(i16 for the first layers and the two small maps), as in ../export.py; activations 12 bits with one step for all channels of a layer, so that speech
unlike SPEECH has room.
"""
import glob, json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn.functional as F
import audio
from export import ACTIVATION_HIGH, BYTE, CONCATENATION_HIGH, FEATURE_STEP, MARGIN, QUAD, WORD, rounded
from network import FRONTS, HIDDEN, PLANES, WIDE, Fronts, prepared, restored

INPUT_SCALE = 8  # network.py divides the features by this
ATTACKS = {"narrow": "synthetic", "wide": "synthetic", "playback": "playback"}
ARCHITECTURES = {"synthetic": "attack-3", "playback": "attack-1"}


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
    for name, layer, in_step in (("hidden", net.hidden, before.repeat(2)), ("out", net.out, torch.ones(HIDDEN))):
        weight, bias = layer.weight.detach() * in_step, layer.bias.detach()
        if name == "out":  # outputs come in fours
            weight, bias = F.pad(weight, (0, 0, 0, 3)), F.pad(bias, (0, 3))
        q, s = rounded(weight, 32767)
        put(name + ".weight", q, np.int16)
        put(name + ".gain", s, np.float32)
        put(name + ".bias", bias, np.float32)
    return out


def main(checkpoint, speech, out):
    net = restored(checkpoint)
    attack = ATTACKS[net.kind]
    calibration = np.mean([json.load(open(path.removesuffix(".pt") + ".json"))["calibration"] for path in checkpoint.split("+")], 0).tolist()
    os.makedirs(out, exist_ok=True)
    written = tensors(net, peaks(net, features(speech, net.names)))
    for name, array in written:
        np.save(f"{out}/{name}.npy", array)
    json.dump([name for name, _ in written], open(out + "/order.json", "w"))
    json.dump({"architecture": ARCHITECTURES[attack], "attack": attack, "calibration": calibration}, open(out + "/description.json", "w"))
    print(net.kind, sum(a.nbytes for _, a in written), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:4])
