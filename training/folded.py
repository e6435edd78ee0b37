"""The shipped network as the engine runs it: batch norms folded into the convolutions before them, channels last, one name per
layer. `Folded` computes it in f32 and shows every activation to a probe; export.py turns it into integers."""
import torch, torch.nn.functional as F

EPSILON = 1e-5
LAYERS, DILATIONS, SEGMENT = (12, 24, 16), (1, 2, 2), 100


def affine(state, name):
    """A batch norm as gain and bias."""
    gain = state.get(name + ".weight", 1.0) / torch.sqrt(state[name + ".running_var"] + EPSILON)
    return gain, state.get(name + ".bias", 0.0) - state[name + ".running_mean"] * gain


def after(weight, norm):
    """A convolution followed by a batch norm, as one convolution with a bias."""
    gain, bias = norm
    return weight * gain.reshape(-1, *[1] * (weight.dim() - 1)), bias


def layers(state):
    """A checkpoint (`n.*` CAM++, `fc.*` the map) -> {name: (weight or gain, bias)}. Weights of planes are [out][in][bin][time]."""
    s, out = {k: v.double() for k, v in state.items() if v.is_floating_point()}, {}
    conv = lambda name, at, norm: out.__setitem__(name, after(s[at + ".weight"], affine(s, norm)))
    conv("front.conv1", "n.head.conv1", "n.head.bn1")
    for stage in (1, 2):
        for i in (0, 1):
            name, at = f"front.stage{stage}.{i}", f"n.head.layer{stage}.{i}"
            conv(name + ".conv1", at + ".conv1", at + ".bn1")
            conv(name + ".conv2", at + ".conv2", at + ".bn2")
            if i == 0:
                conv(name + ".shortcut", at + ".shortcut.0", at + ".shortcut.1")
    conv("front.conv2", "n.head.conv2", "n.head.bn2")
    conv("tdnn", "n.xvector.tdnn.linear", "n.xvector.tdnn.nonlinear.batchnorm")
    # the checkpoint flattens [channel][bin], the engine [bin][channel]
    weight, bias = out["tdnn"]
    out["tdnn"] = weight.reshape(128, 32, 10, 5).transpose(1, 2).reshape(128, 320, 5), bias
    for block, count in enumerate(LAYERS, 1):
        for i in range(count):
            name, at = f"block{block}.{i}", f"n.xvector.block{block}.tdnnd{i + 1}"
            out[name + ".norm"] = affine(s, at + ".nonlinear1.batchnorm")
            conv(name + ".bottleneck", at + ".linear1", at + ".nonlinear2.batchnorm")
            local = s[at + ".cam_layer.linear_local.weight"]
            out[name + ".local"] = local, torch.zeros(len(local), dtype=local.dtype)
            for ours, theirs in ("squeeze", "linear1"), ("excite", "linear2"):
                out[f"{name}.{ours}"] = s[f"{at}.cam_layer.{theirs}.weight"][:, :, 0], s[f"{at}.cam_layer.{theirs}.bias"]
        at = f"n.xvector.transit{block}"
        out[f"transit{block}.norm"] = affine(s, at + ".nonlinear.batchnorm")
        linear = s[at + ".linear.weight"]
        out[f"transit{block}.linear"] = linear, torch.zeros(len(linear), dtype=linear.dtype)
    out["out.norm"] = affine(s, "n.xvector.out_nonlinear.batchnorm")
    dense, bias = after(s["n.xvector.dense.linear.weight"][:, :, 0], affine(s, "n.xvector.dense.nonlinear.batchnorm"))
    out["dense"] = dense, bias
    out["map"] = s["fc.weight"], s["fc.bias"]
    return {name: (w.float(), b.float()) for name, (w, b) in out.items()}


class Folded:
    def __init__(self, state):
        self.layers = layers(state)

    @torch.no_grad()
    def __call__(self, features, probe=lambda name, x: x):
        """Log-mel features [frames][80], mean removed or not -> unit embedding [256]. `probe(name, x)` sees, and may replace, what
        enters each layer ([channels][…]); its name is the layer's, and for sums the name of what is added."""
        L = self.layers

        def plane(name, x, stride=1):
            w, b = L[name]
            return F.conv2d(x[None], w, b, stride=(stride, 1), padding=w.shape[2] // 2)[0]

        def line(name, x, **options):
            w, b = L[name]
            return F.conv1d(x[None], w, b, **options)[0]

        def norm(name, x):
            gain, bias = L[name]
            return F.relu(probe(name, x) * gain[:, None] + bias[:, None])

        x = (features - features.mean(0)).T[None]
        x = F.relu(plane("front.conv1", x))
        for stage in (1, 2):
            for i in (0, 1):
                name, stride = f"front.stage{stage}.{i}", 2 - i
                x = probe(name + ".conv1", x)
                h = probe(name + ".conv2", F.relu(plane(name + ".conv1", x, stride)))
                shortcut = x if i else probe(name + ".shortcut.out", plane(name + ".shortcut", x, stride))
                x = F.relu(plane(name + ".conv2", h) + shortcut)
        x = F.relu(plane("front.conv2", probe("front.conv2", x), 2))
        x = probe("tdnn", x.transpose(0, 1).reshape(320, -1))
        x = F.relu(line("tdnn", x, stride=2, padding=2))
        for block, count in enumerate(LAYERS, 1):
            dilation = DILATIONS[block - 1]
            for i in range(count):
                name = f"block{block}.{i}"
                h = probe(name + ".bottleneck", norm(name + ".norm", x))
                h = probe(name + ".local", F.relu(line(name + ".bottleneck", h)))
                segments = F.avg_pool1d(h[None], SEGMENT, SEGMENT, ceil_mode=True)[0].repeat_interleave(SEGMENT, 1)[:, : h.shape[1]]
                context = probe(name + ".squeeze", h.mean(1, keepdim=True) + segments)
                (w1, b1), (w2, b2) = L[name + ".squeeze"], L[name + ".excite"]
                hidden = probe(name + ".excite", F.relu(w1 @ context + b1[:, None]))
                x = torch.cat([x, line(name + ".local", h, padding=dilation, dilation=dilation) * torch.sigmoid(w2 @ hidden + b2[:, None])])
            h = probe(f"transit{block}.linear", norm(f"transit{block}.norm", x))
            x = line(f"transit{block}.linear", h)
        x = probe("statistics", norm("out.norm", x))
        x = probe("dense", torch.cat([x.mean(1), x.std(1)]))
        x = F.normalize(L["dense"][0] @ x + L["dense"][1], dim=0)
        return F.normalize(L["map"][0] @ x + L["map"][1], dim=0)
