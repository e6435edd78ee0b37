"""python3 export.py CHECKPOINT.pt SPEECH OUT.vvm [--voice-class voice_class.json] [--calibration calibration.json]
[--section NAME=folder …] [--window-seconds 4] [--family vivavoce-1] [--training-data name …]

Turns a checkpoint (networks.Adapted: `n.*`, `fc.*`; or resnet.ResNet34: `stem.*`, `blocks.*`, `fc.*`) into the model file that the engine
reads (src/engine/model-file.ts).
CHECKPOINT may also be a model file: then its network is taken as it is, SPEECH is not read, and the sections are put beside it.
SPEECH is a folder of speech the activations are calibrated on: .npy features [frames][80], or .wav.

How numbers are held. Activations are i16. What enters a convolution is rectified and clamped to 12 bits; what only enters
elementwise passes uses all 16. Every channel has a step of its own, folded into the weights that read it. Weights are i8 (i16 in
the 2-D front and the last map, which are small and decide much), one scale for each output. Because every channel's step
may be chosen, rows and columns of a weight matrix are balanced first, so that no channel wastes the 8 bits of the others.
A rounding error is made good by the weights not yet rounded, as far as the inputs are correlated (`rounded`).
"""
import argparse, glob, hashlib, json, os, struct
import numpy as np, torch
from folded import DILATIONS, LAYERS, Folded
from networks import FLOOR, KaldiFbank, weights

ACTIVATION_HIGH, CONCATENATION_HIGH, FEATURE_STEP = 4095, 32767, 1 / 1024
BYTE, WORD = 127, 1023  # largest weights
QUAD = 8  # so many times the sums of 3 x 3 convolutions stay below 2^31 (assembly/nn/quad-convolution.ts)
MARGIN = 1.3  # over the largest activation seen
HEADROOM = 2.0  # the same for what has bits to spare
BALANCED = 0.9  # share of the channels that get the step they would like
DAMPING = 0.01
BLOCK = 96
FRONT_END = {"rateHz": 16000, "frameSamples": 400, "shiftSamples": 160, "bins": 80, "lowHz": 20, "highHz": 8000, "preemphasis": 0.97, "window": "povey", "fftPoints": 512, "floor": 2.0**-23, "relativeFloor": FLOOR, "mean": "removed over the window"}


def features(folder, window="povey"):
    """Every recording of the folder as [frames][80], in the order of names; .npy is taken as it is."""
    front = KaldiFbank(FLOOR, window)
    for path in sorted(glob.glob(folder + "/**/*", recursive=True)):
        if path.endswith(".npy"):
            yield torch.from_numpy(np.load(path).astype(np.float32))
        elif path.endswith(".wav"):
            import audio

            x, rate = audio.read(open(path, "rb").read())
            yield front(torch.from_numpy(audio.resample(x[: 10 * rate], rate))[None])[0]


class Seen:
    """What enters each layer, over all speech: the peak of every channel, and second moments for the rounding of weights. `rows_of(name, x)`
    gives the layer's inputs [inputs][positions], or None where its weights are rounded to the nearest."""

    def __init__(self, rows_of):
        self.peak, self.moment, self.rows_of = {}, {}, rows_of

    def __call__(self, name, x):
        peak = x.reshape(len(x), -1).abs().amax(1)
        self.peak[name] = torch.maximum(self.peak[name], peak) if name in self.peak else peak
        rows = self.rows_of(name, x)
        if rows is not None:
            moment = (rows @ rows.T).double()
            self.moment[name] = self.moment[name] + moment if name in self.moment else moment
        return x


def campplus_rows(name, x):
    if not name.endswith((".bottleneck", ".linear", ".local", "tdnn", ".squeeze", ".excite", "dense")):
        return None
    flat, (taps, dilation, stride) = x.reshape(len(x), -1), taps_of(name)
    return flat if taps == 1 else torch.cat([flat[:, k * dilation : flat.shape[1] - (taps - 1 - k) * dilation : stride] for k in range(taps)])


def taps_of(name):
    """Taps, dilation, stride of a 1-D layer."""
    if name == "tdnn":
        return 5, 1, 2
    if name.endswith(".local"):
        return 3, DILATIONS[int(name[5]) - 1], 1
    return 1, 1, 1


def balanced(matrix, peaks, high):
    """Steps of the input channels: columns of `matrix` [outputs][channels] (largest weight of each) as even as the peaks allow."""
    m = matrix / matrix.amax(1, keepdim=True).clamp(min=1e-12)
    wanted = 1 / m.amax(0).clamp(min=1e-3)  # larger where the weights are small
    floor = peaks * MARGIN / high
    scale = torch.quantile(floor / wanted, BALANCED)
    return torch.maximum(wanted * scale, floor).clamp(min=1e-12)


def rounded(weight, most, moment=None, least=0.0):
    """weight [outputs][inputs] -> integers and the step of each output, at least `least`. With second moments of the inputs, each column's rounding
    error is pushed onto the columns not yet rounded, so that the sum stays as near as possible (Frantar et al. 2022)."""
    step = torch.maximum(weight.abs().amax(1).clamp(min=1e-12) / most, torch.as_tensor(least))
    if moment is None:
        return torch.round(weight / step[:, None]).clamp(-most, most), step
    h = moment.clone()
    h += torch.eye(len(h), dtype=h.dtype) * (h.diagonal().mean() * DAMPING + 1e-12)
    order = torch.argsort(h.diagonal(), descending=True)
    w, h = weight.double()[:, order], h[order][:, order]
    inverse = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(h)), upper=True)
    q, s, errors = torch.zeros_like(w), step.double(), torch.zeros_like(w)
    for first in range(0, w.shape[1], BLOCK):  # within a block column by column, onto the blocks after it in one product
        last = min(first + BLOCK, w.shape[1])
        for i in range(first, last):
            q[:, i] = torch.round(w[:, i] / s).clamp(-most, most)
            errors[:, i] = (w[:, i] - q[:, i] * s) / inverse[i, i]
            w[:, i + 1 : last] -= errors[:, i : i + 1] * inverse[i, i + 1 : last][None]
        w[:, last:] -= errors[:, first:last] @ inverse[first:last, last:]
    out = torch.empty_like(q)
    out[:, order] = q
    return out.float(), step


def largest(w, high):
    """The largest sum of inputs 0..high, or of inputs -high..high where they may be negative."""
    positive, negative = w.clamp(min=0).sum(1), -w.clamp(max=0).sum(1)
    return high * (positive + negative) if high == CONCATENATION_HIGH else high * torch.maximum(positive, negative)


class Tensors:
    """[(name, array)] in the order in which the engine takes them, from layers {name: (weight, bias)} and what was seen to enter them."""

    def __init__(self, layers, seen):
        self.layers, self.seen, self.out = layers, seen, []

    def put(self, name, array, dtype):
        self.out.append((name, np.ascontiguousarray(np.asarray(array.numpy() if torch.is_tensor(array) else array).astype(dtype))))

    def sums(self, name, step, bias, out_step):
        self.put(name + ".gain", step / out_step, np.float32)
        self.put(name + ".bias", bias / out_step, np.float32)

    def moment(self, name, in_step):
        """Second moments of a layer's inputs in their steps."""
        moment, s = self.seen.moment.get(name), in_step.double()
        return None if moment is None else moment / s[:, None] / s[None]

    def convolution(self, name, weight, in_step, out_step, most, high=ACTIVATION_HIGH, times=1):
        """weight [outputs][taps][run], in_step of each element of a run; `times` the sum must stay below 2^31."""
        scaled = (weight * in_step).reshape(len(weight), -1)
        q, step = rounded(scaled, most, self.moment(name, in_step.repeat(weight.shape[1])), largest(scaled, high) * times / (2**31 * 0.99))
        if largest(q.double(), high).max() * times >= 2**31:
            raise SystemExit(f"{name}: sums may overflow")
        self.put(name + ".weight", q.reshape(weight.shape), np.int8 if most == BYTE else np.int16)
        self.sums(name, step, self.layers[name][1], out_step)

    def dense(self, name, in_step, most, dtype, out_step=1.0):
        weight, bias = self.layers[name]
        q, step = rounded(weight * in_step, most, self.moment(name, in_step))
        self.put(name + ".weight", q, dtype)
        self.sums(name, step, bias, torch.ones(len(bias)) * out_step)


def fine(peaks):
    """Steps of what only enters elementwise passes."""
    return (peaks * HEADROOM / CONCATENATION_HIGH).clamp(min=1e-9)


def stem(weight):
    """A first convolution [outputs][1][3 bins][3 frames]: one channel, so a run is 3 bins and a zero."""
    return torch.cat([weight[:, 0].transpose(1, 2), torch.zeros(len(weight), 3, 1)], 2)


def quantize(net, seen):
    """CAM++ -> [(name, array)]."""
    L, P, made = net.layers, seen.peak, Tensors(net.layers, seen)
    put, convolution, dense = made.put, made.convolution, made.dense

    def plane(name, in_step, out_step):
        weight = L[name][0].permute(0, 3, 2, 1)  # [outputs][time][bin][channel]
        convolution(name, weight.reshape(len(weight), weight.shape[1], -1), in_step.repeat(weight.shape[2]), out_step, WORD, times=QUAD if weight.shape[1] == 3 else 1)

    def norm(name, in_step, out_step):
        gain, bias = L[name]
        put(name + ".gain", torch.round(gain * in_step / out_step * 32768).clamp(-32768, 32767), np.int16)
        put(name + ".bias", torch.round(bias / out_step).clamp(-32768, 32767), np.int16)

    def normed(name, norm_name, in_step, weight):
        """Steps between a norm and the convolution that reads it: Q15 gains must not exceed 1, biases must fit."""
        gain, bias = L[norm_name]
        step = balanced(weight, P[name], ACTIVATION_HIGH)
        return torch.maximum(step, torch.maximum(gain.abs() * in_step * 1.0001, bias.abs() / 32000))

    held = lambda name: (P[name] * MARGIN / ACTIVATION_HIGH).clamp(min=1e-9)

    convolution("front.conv1", stem(L["front.conv1"][0]), torch.full((4,), FEATURE_STEP), held("front.stage1.0.conv1"), WORD, CONCATENATION_HIGH)
    names = ["front.stage1.0", "front.stage1.1", "front.stage2.0", "front.stage2.1"]
    for i, name in enumerate(names):
        x, h = held(name + ".conv1"), held(name + ".conv2")
        y = held(names[i + 1] + ".conv1" if i < 3 else "front.conv2")
        plane(name + ".conv1", x, h)
        added = x
        if name + ".shortcut" in L:
            added = fine(P[name + ".shortcut.out"])
            plane(name + ".shortcut", x, added)
        plane(name + ".conv2", h, y)
        put(name + ".conv2.residual", added / y, np.float32)

    tdnn = L["tdnn"][0].permute(0, 2, 1)
    # all bins of a channel share the step that convolution 2 writes with
    per_channel = (P["tdnn"].reshape(10, 32).amax(0) * MARGIN / ACTIVATION_HIGH).clamp(min=1e-9)
    plane("front.conv2", held("front.conv2"), per_channel)
    concatenated = fine(P["block1.0.norm"])
    convolution("tdnn", tdnn, per_channel.repeat(10), concatenated, BYTE)
    for block, count in enumerate(LAYERS, 1):
        concatenated = fine(P[f"transit{block}.norm"])
        for i in range(count):
            name = f"block{block}.{i}"
            bottleneck, local = L[name + ".bottleneck"][0].permute(0, 2, 1), L[name + ".local"][0].permute(0, 2, 1)
            channels = bottleneck.shape[2]
            hidden = normed(name + ".bottleneck", name + ".norm", concatenated[:channels], bottleneck[:, 0].abs())
            norm(name + ".norm", concatenated[:channels], hidden)
            between = balanced(local.abs().amax(1), P[name + ".local"], ACTIVATION_HIGH)
            convolution(name + ".bottleneck", bottleneck, hidden, between, BYTE)
            convolution(name + ".local", local, between, concatenated[channels : channels + 32], BYTE)
            excited = balanced(L[name + ".excite"][0].abs(), P[name + ".excite"], 1e6)
            dense(name + ".squeeze", between, BYTE, np.int8, excited)
            dense(name + ".excite", excited, BYTE, np.int8)
        linear = L[f"transit{block}.linear"][0].permute(0, 2, 1)
        hidden = normed(f"transit{block}.linear", f"transit{block}.norm", concatenated, linear[:, 0].abs())
        norm(f"transit{block}.norm", concatenated, hidden)
        following = fine(P["block%d.0.norm" % (block + 1)]) if block < 3 else fine(P["out.norm"])
        if block < 3:  # the first channels of the next concatenation
            following = fine(P["transit%d.norm" % (block + 1)])[: len(following)]
        convolution(f"transit{block}.linear", linear, hidden, following, BYTE)
    gain, bias = L["out.norm"]
    step = torch.maximum(fine(P["statistics"]), torch.maximum(gain.abs() * fine(P["out.norm"]) * 1.0001, bias.abs() / 32000))
    norm("out.norm", fine(P["out.norm"]), step)
    dense("dense", step.repeat(2), BYTE, np.int8)
    dense("map", torch.ones(192), 32767, np.int16)
    return made.out


def padded(data):
    return data + b"\0" * (-len(data) % 16)


def text(value, multiple=16):
    data = json.dumps(value, separators=(",", ":")).encode()
    return data + b" " * (-len(data) % multiple)


def section(description, tensors):
    """A section that stands alone: word, description, aligned tensors. Offsets depend on the description's own length."""
    kinds = {np.dtype(np.int8): "i8", np.dtype(np.int16): "i16", np.dtype(np.float32): "f32"}
    head = 0
    while True:
        at, table = 16 + head, []
        for name, array in tensors:
            table.append({"name": name, "dtype": kinds[array.dtype], "shape": list(array.shape), "offset": at, "bytes": array.nbytes})
            at += -(-array.nbytes // 16) * 16
        described = text({**description, "tensors": table})
        if len(described) == head:
            break
        head = len(described)
    return struct.pack("<I12x", head) + described + b"".join(padded(array.tobytes()) for _, array in tensors)


def model_file(family, licence, training_data, sections):
    """{name: bytes} -> the whole file."""
    head = 0
    while True:
        at, table = 16 + head, []
        for name, data in sections.items():
            table.append({"name": name, "offset": at, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
            at += -(-len(data) // 16) * 16
        header = text({"family": family, "licence": licence, "trainingData": training_data, "bytes": at + 32, "sections": table})
        if len(header) == head:
            break
        head = len(header)
    body = b"vivavoce" + struct.pack("<II", 1, head) + header + b"".join(padded(data) for data in sections.values())
    return body + hashlib.sha256(body).digest()


def network_of(path):
    """Section `network` of a model file."""
    data = open(path, "rb").read()
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise SystemExit(f"{path} was altered")
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    entry = next(s for s in header["sections"] if s["name"] == "network")
    return data[entry["offset"] : entry["offset"] + entry["bytes"]]


def quantized(checkpoint, speech, window_seconds, plain):
    """Section `network` of a checkpoint: CAM++ and its map, or a ResNet34 (resnet.py)."""
    import residual

    state, count = weights(checkpoint), 0
    if "stem.weight" in state:
        architecture, window, net, rows_of, write = "resnet34-1", "hamming", residual.Walk(state), residual.rows, residual.quantize
    else:
        architecture, window, net, rows_of, write = "campplus-1", "povey", Folded(state), campplus_rows, quantize
    seen = Seen((lambda name, x: None) if plain else rows_of)
    for x in features(speech, window):
        net(x, seen)
        count += 1
    if not count:
        raise SystemExit(f"no speech in {speech}")
    print(f"calibrated on {count} recordings")
    return section({"architecture": architecture, "dimensions": 256, "windowSeconds": window_seconds, "frontEnd": {**FRONT_END, "window": window}}, write(net, seen))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("speech")
    parser.add_argument("out")
    parser.add_argument("--voice-class")
    parser.add_argument("--calibration")
    parser.add_argument("--section", action="append", default=[], metavar="NAME=FOLDER", help="a further section: FOLDER/description.json and its .npy tensors by name")
    parser.add_argument("--window-seconds", type=float, default=4)
    parser.add_argument("--family", default="vivavoce-1")
    parser.add_argument("--training-data", nargs="*", default=[])
    parser.add_argument("--plain", action="store_true", help="round every weight to nearest, for comparison")
    a = parser.parse_args()

    sections = {"network": network_of(a.checkpoint) if a.checkpoint.endswith(".vvm") else quantized(a.checkpoint, a.speech, a.window_seconds, a.plain)}
    if a.voice_class:
        v = json.load(open(a.voice_class))
        sections["voice-class"] = section({k: x for k, x in v.items() if k not in ("axis", "quantiles")}, [(k, np.array(v[k], np.float32)) for k in ("axis", "quantiles")])
    if a.calibration:
        sections["calibration"] = section(json.load(open(a.calibration)), [])
    for extra in a.section:
        name, folder = extra.split("=", 1)
        tensors = [(t, np.load(f"{folder}/{t}.npy")) for t in json.load(open(folder + "/order.json"))]
        sections[name] = section(json.load(open(folder + "/description.json")), tensors)
    data = model_file(a.family, "Apache-2.0", a.training_data, sections)
    with open(a.out + ".part", "wb") as f:
        f.write(data)
    os.replace(a.out + ".part", a.out)
    print(f"{a.out}: {len(data):,} bytes, revision {hashlib.sha256(sections['network']).hexdigest()[:16]}")
    for name, part in sections.items():
        print(f"  {name:14s} {len(part):9,} bytes")


if __name__ == "__main__":
    main()
