"""The networks of the recipe: waveform in, embedding out. The CAM++ graph is 3D-Speaker's (published.py brings it); ECAPA-TDNN is
written here, its attribute names following the published checkpoint's keys."""
import math, os, sys
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from resnet import ResNet34

RATE, WIDTH = 16000, 256
PUBLISHED = ("campplus", "ecapa", "resnet34")
EPSILON = 1.1920929e-07  # floor of a mel power, samples in -1..1
FLOOR = 1e-6  # of the adapted network: added to every mel power, as a share of the mean power


class KaldiFbank(nn.Module):
    """CAM++, ResNet34 and the shipped engine: samples in -1..1, frames of 400 every 160 (none padded), frame mean removed, pre-emphasis
    0.97, Povey window (ResNet34: Hamming), 512-point power spectrum, 80 triangles in mel from 20 to 8000 Hz, natural logarithm of
    max(power, 2^-23), then the mean over time of each bin removed. No dither. What ships adds `floor` times the window's mean power to each
    power first: bands in which nothing was recorded (a telephone's above 4 kHz) then say nothing, whatever a resampler left there."""

    def __init__(self, floor=0.0, window="povey"):
        super().__init__()
        self.floor = floor
        mel = lambda f: 1127 * np.log(1 + f / 700)
        edges, at = np.linspace(mel(20), mel(8000), 82), mel(np.arange(256) * RATE / 512)
        bank = np.zeros((80, 257), np.float32)
        bank[:, :256] = [np.maximum(0, np.minimum((at - l) / (c - l), (r - at) / (r - c))) for l, c, r in zip(edges, edges[1:], edges[2:])]
        self.register_buffer("mel", torch.tensor(bank), persistent=False)
        shape = torch.hamming_window(400, periodic=False) if window == "hamming" else torch.hann_window(400, periodic=False) ** 0.85
        self.register_buffer("window", shape, persistent=False)

    def forward(self, x):
        f = x.unfold(1, 400, 160)
        f = f - f.mean(2, keepdim=True)
        f = torch.cat([f[..., :1] * 0.03, f[..., 1:] - 0.97 * f[..., :-1]], 2) * self.window
        s = torch.fft.rfft(f, 512)
        power = ((s.real**2 + s.imag**2) @ self.mel.T).clamp(min=EPSILON)
        y = torch.log(power + self.floor * power.mean((1, 2), keepdim=True))
        return y - y.mean(1, keepdim=True)


class DecibelFbank(nn.Module):
    """ECAPA: 400-point spectrum, Hamming, centred, decibels no lower than 80 below the peak, mean over time removed."""

    def __init__(self):
        super().__init__()
        edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82) / 2595) - 1)
        slope = (np.linspace(0, 8000, 201)[None] - edges[1:-1, None]) / np.diff(edges)[:-1, None]
        self.register_buffer("mel", torch.tensor(np.maximum(0, np.minimum(slope + 1, 1 - slope)).astype(np.float32)), persistent=False)
        self.register_buffer("window", torch.hamming_window(400), persistent=False)

    def forward(self, x):
        s = torch.stft(x, 400, 160, 400, self.window, center=True, pad_mode="constant", return_complex=True)
        y = 10 * torch.log10(((s.real**2 + s.imag**2).transpose(1, 2) @ self.mel.T).clamp(min=1e-10))
        y = torch.maximum(y, y.amax((1, 2), keepdim=True) - 80)
        return y - y.mean(1, keepdim=True)


class Conv(nn.Module):
    def __init__(self, i, o, k, d=1):
        super().__init__()
        self.conv, self.pad = nn.Conv1d(i, o, k, dilation=d), d * (k - 1) // 2

    def forward(self, x):
        return self.conv(F.pad(x, (self.pad, self.pad), mode="reflect") if self.pad else x)


class Norm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.BatchNorm1d(c)

    def forward(self, x):
        return self.norm(x)


class Tdnn(nn.Module):
    def __init__(self, i, o, k, d=1):
        super().__init__()
        self.conv, self.norm = Conv(i, o, k, d), Norm(o)

    def forward(self, x):
        return self.norm(F.relu(self.conv(x)))


class Res2Net(nn.Module):
    def __init__(self, c, k, d):
        super().__init__()
        self.blocks = nn.ModuleList([Tdnn(c // 8, c // 8, k, d) for _ in range(7)])

    def forward(self, x):
        first, *rest = x.chunk(8, 1)
        out = [first]
        for block, part in zip(self.blocks, rest):
            out.append(block(part if len(out) == 1 else part + out[-1]))
        return torch.cat(out, 1)


class Squeeze(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.conv1, self.conv2 = Conv(c, h, 1), Conv(h, c, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.conv2(F.relu(self.conv1(x.mean(2, keepdim=True)))))


class SeRes2(nn.Module):
    def __init__(self, c, k, d):
        super().__init__()
        self.tdnn1, self.res2net_block, self.tdnn2, self.se_block = Tdnn(c, c, 1), Res2Net(c, k, d), Tdnn(c, c, 1), Squeeze(c, 128)

    def forward(self, x):
        return self.se_block(self.tdnn2(self.res2net_block(self.tdnn1(x)))) + x


class Pooling(nn.Module):
    def __init__(self, c, a):
        super().__init__()
        self.tdnn, self.conv = Tdnn(c * 3, a, 1), Conv(a, c, 1)

    def forward(self, x):
        m = x.mean(2, keepdim=True)
        s = ((x - m) ** 2).mean(2, keepdim=True).clamp(min=1e-12).sqrt()
        w = self.conv(torch.tanh(self.tdnn(torch.cat([x, m.expand_as(x), s.expand_as(x)], 1)))).softmax(2)
        m = (w * x).sum(2)
        return torch.cat([m, (w * (x - m[..., None]) ** 2).sum(2).clamp(min=1e-12).sqrt()], 1)[..., None]


class Ecapa(nn.Module):
    def __init__(self, c=1024):
        super().__init__()
        self.blocks = nn.ModuleList([Tdnn(80, c, 5)] + [SeRes2(c, 3, d) for d in (2, 3, 4)])
        self.mfa, self.asp, self.asp_bn, self.fc = Tdnn(3 * c, 3 * c, 1), Pooling(3 * c, 128), Norm(6 * c), Conv(6 * c, 192, 1)

    def forward(self, x):
        x, out = x.transpose(1, 2), []
        for block in self.blocks:
            x = block(x)
            out.append(x)
        return self.fc(self.asp_bn(self.asp(self.mfa(torch.cat(out[1:], 1))))).squeeze(2)


class Adapted(nn.Module):
    """CAM++ (`n`) and a linear map (`fc`) of its unit embedding. Batch norms keep the published statistics."""

    def __init__(self, campplus):
        super().__init__()
        self.n, self.fc = campplus, nn.Linear(192, WIDTH)

    def forward(self, features):
        return self.fc(F.normalize(self.n(features).float()))


class Voice(nn.Module):
    """Waveform -> unit embedding: a front end, always in f32, and a network."""

    def __init__(self, front, network):
        super().__init__()
        self.front, self.network = front, network
        self.eval()

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            features = self.front(x.float())
        return F.normalize(self.network(features).float())


def weights(path):
    """A checkpoint's tensors, floating ones as f32."""
    return {k: v.float() if v.is_floating_point() else v for k, v in torch.load(path, map_location="cpu", weights_only=True).items()}


def campplus_graph(folder):
    """folder: published.py's output."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from speakerlab.models.campplus.DTDNN import CAMPPlus

    return CAMPPlus(feat_dim=80, embedding_size=192, memory_efficient=False)


def front(net):
    """The front end of an adapted network."""
    return KaldiFbank(FLOOR, "hamming" if isinstance(net, ResNet34) else "povey")


def load(kind, folder, checkpoint=None):
    """kind: campplus, ecapa or resnet34 as published, or adapted with its checkpoint: of CAM++ or, by its weights' names, of ResNet34."""
    state = weights(checkpoint or os.path.join(folder, kind + ".pt"))
    floor = FLOOR if kind == "adapted" else 0.0
    if kind == "ecapa":
        net, front = Ecapa(), DecibelFbank()
    elif "stem.weight" in state:
        net, front = ResNet34(), KaldiFbank(floor, "hamming")
    else:
        net, front = campplus_graph(folder), KaldiFbank(floor)
        net = Adapted(net) if kind == "adapted" else net
    net.load_state_dict(state)
    return Voice(front, net)


class Fused(nn.Module):
    """Several networks' unit embeddings side by side: the cosine is the mean of theirs, weighted by their shares."""

    def __init__(self, parts):
        """parts: [(voice, share)], shares adding up to 1"""
        super().__init__()
        self.voices, self.shares = nn.ModuleList(v for v, _ in parts), [s for _, s in parts]

    def forward(self, x):
        return torch.cat([math.sqrt(s) * v(x) for v, s in zip(self.voices, self.shares)], 1)


def quantized(w, bits=8):
    """Weights rounded as the engine holds them: symmetric, one scale for each output channel."""
    most = 2 ** (bits - 1) - 1
    scale = w.flatten(1).abs().amax(1).clamp(min=1e-12).reshape(-1, *[1] * (w.dim() - 1)) / most
    return (w / scale).round().clamp(-most, most) * scale


def quantize(net):
    """Rounds every convolution and linear map of a network in place."""
    for module in net.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)):
            module.weight.data = quantized(module.weight.data)
    return net
