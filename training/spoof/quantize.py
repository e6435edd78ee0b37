"""python3 quantize.py CHECKPOINT.pt CALIBRATION.json SPEECH OUT: an attack network as a folder that ../export.py takes with --section NAME=OUT.

SPEECH: a folder of .wav at 16 kHz the activations are calibrated on. Batch norms are folded, weights are i8 with one scale for each output
(i16 for the first layer and the two small maps), activations 12 bits with a step for each channel, as in ../export.py.
CALIBRATION.json: summary.json of train.py; the entry of the checkpoint's name gives the log-likelihood ratio.
"""
import glob, json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn.functional as F
import audio
from export import ACTIVATION_HIGH, BYTE, CONCATENATION_HIGH, FEATURE_STEP, MARGIN, QUAD, WORD, rounded
from network import HIDDEN, PLANES, TAIL, Attack, LogMel, prepared

INPUT_SCALE = 8  # network.py divides the features by this


def features(folder):
    front = LogMel()
    for path in sorted(glob.glob(folder + "/*.wav")):
        x, rate = audio.read(open(path, "rb").read())
        yield front(torch.from_numpy(audio.resample(x, rate))[None])


def folded(net):
    """Every convolution with its batch norm -> (weight, bias)."""
    for conv, norm in [*net.planes, *net.tail]:
        gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        yield (conv.weight * gain.reshape(-1, *[1] * (conv.weight.dim() - 1))).detach(), (norm.bias - norm.running_mean * gain).detach()


@torch.no_grad()
def peaks(net, speech):
    """The largest activation of every channel after each layer, and of the pooled statistics' inputs."""
    seen = [torch.zeros(1)] * (len(PLANES) + len(TAIL))
    for x in speech:
        x = prepared(x)[:, None] / INPUT_SCALE
        for i, plane in enumerate(net.planes):
            x = F.relu(plane(x))
            seen[i] = torch.maximum(seen[i], x.amax((0, 2, 3)))
        x = x.permute(0, 3, 1, 2).flatten(1, 2)
        for i, layer in enumerate(net.tail, len(PLANES)):
            x = F.relu(layer(x))
            seen[i] = torch.maximum(seen[i], x.amax((0, 2)))
    return seen


def tensors(net, seen):
    out = []
    put = lambda name, array, dtype: out.append((name, np.ascontiguousarray(array.numpy().astype(dtype))))
    step = lambda peak, high: (peak * MARGIN / high).clamp(min=1e-9)

    def convolution(name, weight, bias, in_step, out_step, most, high=ACTIVATION_HIGH, times=1):
        """weight [outputs][taps][run], in_step of each element of a run; `times` the sum must fit."""
        q, s = rounded((weight * in_step).reshape(len(weight), -1), most)
        if (q.abs().sum(1) * high * times).max() >= 2**31:
            raise SystemExit(f"{name}: sums may overflow")
        put(name + ".weight", q.reshape(weight.shape), np.int8 if most == BYTE else np.int16)
        put(name + ".gain", s / out_step, np.float32)
        put(name + ".bias", bias / out_step, np.float32)

    layers = list(folded(net))
    for i, (channels, outputs, _) in enumerate(PLANES):
        weight, bias = layers[i]
        weight = weight.permute(0, 2, 3, 1)  # [outputs][time][bin][channel]
        if i == 0:  # one channel: a run is 3 bins and a zero
            weight = torch.cat([weight.reshape(outputs, 3, 3), torch.zeros(outputs, 3, 1)], 2) / INPUT_SCALE
            convolution("plane0", weight, bias, torch.full((4,), FEATURE_STEP), step(seen[0], ACTIVATION_HIGH), WORD, CONCATENATION_HIGH)
        else:
            convolution(f"plane{i}", weight.reshape(outputs, 3, 3 * channels), bias, step(seen[i - 1], ACTIVATION_HIGH).repeat(3), step(seen[i], ACTIVATION_HIGH), BYTE, times=QUAD)
    for i, (channels, outputs, taps, _, _) in enumerate(TAIL):
        at = len(PLANES) + i
        weight, bias = layers[at]
        before = step(seen[at - 1], ACTIVATION_HIGH)
        weight = weight.permute(0, 2, 1)  # [outputs][taps][bin · channel], bins outermost as network.py flattens them
        convolution(f"tail{i}", weight, bias, before.repeat(10) if i == 0 else before, step(seen[at], ACTIVATION_HIGH), BYTE)
    last = step(seen[-1], ACTIVATION_HIGH)
    for name, layer, in_step in (("hidden", net.hidden, last.repeat(2)), ("out", net.out, torch.ones(HIDDEN))):
        weight, bias = layer.weight.detach() * in_step, layer.bias.detach()
        if name == "out":  # outputs come in fours
            weight, bias = F.pad(weight, (0, 0, 0, 3)), F.pad(bias, (0, 3))
        q, s = rounded(weight, 32767)
        put(name + ".weight", q, np.int16)
        put(name + ".gain", s, np.float32)
        put(name + ".bias", bias, np.float32)
    return out


def main(checkpoint, summary, speech, out):
    net = Attack()
    net.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in torch.load(checkpoint, map_location="cpu").items()})
    net.eval()
    kind = os.path.basename(checkpoint).removesuffix(".pt")
    os.makedirs(out, exist_ok=True)
    written = tensors(net, peaks(net, features(speech)))
    for name, array in written:
        np.save(f"{out}/{name}.npy", array)
    json.dump([name for name, _ in written], open(out + "/order.json", "w"))
    json.dump({"architecture": "attack-1", "attack": kind, "calibration": json.load(open(summary))[kind]["calibration"]}, open(out + "/description.json", "w"))
    print(kind, sum(a.nbytes for _, a in written), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:5])
