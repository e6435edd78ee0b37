"""python3 widen.py MODEL.vvm SPEECH OUT.pt [narrow]: the narrow network for synthetic speech of a model file as the beginning of a wider one (network.py's shapes): the channels it
has as they are, new ones beside them that hardly count yet; or narrow as it is. A run from there goes on where the last one ended.

SPEECH: a bank's genuine.npy, or a folder of .wav; batch norms, which the model file has folded, are set by it anew.
"""
import glob, json, os, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn.functional as F
from export import FEATURE_STEP
from network import HIDDEN, PLANES, TAIL, Attack, Fronts, prepared

FRONTS, INPUT_SCALE, FAINT = ("linear", "short"), 8, 0.1


def section(path, name):
    """{tensor: values} of a section of a model file."""
    data = open(path, "rb").read()
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    at = next(s for s in header["sections"] if s["name"] == name)
    part = data[at["offset"] : at["offset"] + at["bytes"]]
    described = json.loads(part[16 : 16 + struct.unpack_from("<I", part, 0)[0]])
    kinds = {"i8": "<i1", "i16": "<i2", "f32": "<f4"}
    return {t["name"]: torch.tensor(np.frombuffer(part, kinds[t["dtype"]], t["bytes"] // np.dtype(kinds[t["dtype"]]).itemsize, t["offset"]).reshape(t["shape"]).astype(np.float32)) for t in described["tensors"]}


def clips(path):
    if path.endswith(".npy"):
        return torch.from_numpy(np.load(path, mmap_mode="r")[:48].copy()).float() / 32768
    import audio

    heard = [audio.resample(*audio.read(open(p, "rb").read()))[: int(3.2 * audio.RATE)] for p in sorted(glob.glob(path + "/*.wav"))]
    return torch.from_numpy(np.stack([x for x in heard if len(x) == int(3.2 * audio.RATE)][:48]))


def spread(weight, like, rows, columns):
    """`weight` [outputs][inputs]… in the places `rows` and `columns` of a new layer's weights `like`; what is new is faint in outputs that are old."""
    out = like.clone()
    old = torch.zeros(like.shape[0], dtype=torch.bool)
    old[rows] = True
    out[old] *= FAINT
    out[rows[:, None], columns[None]] = weight
    return out


@torch.no_grad()
def normed(layer, x, bias, rows):
    """Sets a layer's batch norm so that its old outputs are what they were (the weights as they stand, plus `bias`) on x. -> its activations."""
    conv, norm = layer
    y = conv(x)
    dims = [0, *range(2, y.dim())]
    mean, var = y.mean(dims), y.var(dims, correction=0)
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(var)
    norm.weight.data[rows] = torch.sqrt(var[rows] + norm.eps)
    norm.bias.data[rows] = mean[rows] + bias
    return F.relu(norm(y))


@torch.no_grad()
def widened(tensors, speech, kind):
    net = Attack(kind, FRONTS).eval()
    pictures, seen, places, steps = Fronts(FRONTS)(speech), [], [], []
    offset = 0
    for front, planes in zip(net.names, net.fronts):
        x, before, step = prepared(pictures[front])[:, None] / INPUT_SCALE, torch.arange(1), FEATURE_STEP / INPUT_SCALE
        for i, plane in enumerate(planes):
            q, gain, bias = (tensors[f"{front}.plane{i}.{n}"] for n in ("weight", "gain", "bias"))
            outputs = len(q)
            rows = torch.arange(outputs)
            w = q.reshape(outputs, 3, -1)[:, :, :3].reshape(outputs, 3, 3, 1) if i == 0 else q.reshape(outputs, 3, 3, -1)
            w = w.permute(0, 3, 1, 2) * gain.reshape(-1, 1, 1, 1) / step
            loud = 1 / (F.conv2d(x[:, before], w, stride=plane[0].stride, padding=1).std() + 1e-9)  # activations near 1
            plane[0].weight.copy_(spread(w * loud, plane[0].weight, rows, before))
            x, before, step = normed(plane, x, bias * loud, rows), rows, loud
        bins, wide = x.shape[3], x.shape[1]
        places.append(offset + (torch.arange(bins)[:, None] * wide + before).reshape(-1))
        steps.append(torch.full((len(places[-1]),), float(step)))
        offset += bins * wide
        seen.append(x.permute(0, 3, 1, 2).flatten(1, 2))
    x, before, step = torch.cat(seen, 1), torch.cat(places), torch.cat(steps)
    for i, layer in enumerate(net.tail):
        q, gain, bias = (tensors[f"tail{i}.{n}"] for n in ("weight", "gain", "bias"))
        rows = torch.arange(len(q))
        w = q.reshape(len(q), 3, -1).permute(0, 2, 1) * gain.reshape(-1, 1, 1) / step[None, :, None]
        loud = 1 / (F.conv1d(x[:, before], w, stride=layer[0].stride, padding=layer[0].padding, dilation=layer[0].dilation).std() + 1e-9)
        layer[0].weight.copy_(spread(w * loud, layer[0].weight, rows, before))
        x, before, step = normed(layer, x, bias * loud, rows), rows, torch.full((len(q),), float(loud))
    channels = TAIL[kind][-1][0]
    for layer, name, columns, scale in ((net.hidden, "hidden", torch.cat([before, channels + before]), step.repeat(2)), (net.out, "out", torch.arange(HIDDEN), torch.ones(HIDDEN))):
        rows = torch.arange(len(layer.weight))
        w = (tensors[name + ".weight"] * tensors[name + ".gain"][:, None])[: len(rows)] / scale
        layer.weight.copy_(spread(w, layer.weight, rows, columns))
        layer.bias.copy_(tensors[name + ".bias"][: len(rows)])
    return net


if __name__ == "__main__":
    net = widened({k.removeprefix("narrow."): v for k, v in section(sys.argv[1], "synthetic").items() if not k.startswith(("wide.", "slim."))}, clips(sys.argv[2]), sys.argv[4] if len(sys.argv) > 4 else "wide")
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}, sys.argv[3])
