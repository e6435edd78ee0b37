"""The attack network: a small 2-D front over each of its pictures of the speech and a 1-D tail, made of nothing but the engine's kernels.

Pictures ("fronts"), a hundred frames a second:
mel      80 log-mel bins, as the speaker network's
linear   80 bands of equal width: the upper half of the spectrum in as much detail as the lower
short    four frames of 4 ms in place of one of 25 ms, 32 bins of 250 Hz: pulses of the voice one by one
"""
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

# Channels after each plane, by what is looked for: a loudspeaker is heard in a coarse picture, a vocoder's traces are finer.
# Two networks look for synthetic speech, a narrow one and a wide one: their mean is the score.
CHANNELS = {"narrow": (16, 24, 40, 40), "wide": (16, 32, 64, 64), "playback": (8, 16, 16, 16)}
LONG = ((1, 1), (1, 2), (1, 2), (1, 2))  # strides over time and bins: 80 -> 80 -> 40 -> 20 -> 10 bins
STRIDES = {"mel": LONG, "linear": LONG, "short": ((1, 1), (2, 2), (2, 2), (1, 2))}  # 32 -> 32 -> 16 -> 8 -> 4
BINS = {"mel": 10, "linear": 10, "short": 4}  # that a front leaves
# channels in, out, stride over time, stride over bins
PLANES = {kind: {front: tuple((i, o, *s) for i, o, s in zip((1, *c), c, strides)) for front, strides in STRIDES.items()} for kind, c in CHANNELS.items()}
WIDE = {kind: {front: bins * c[-1] for front, bins in BINS.items()} for kind, c in CHANNELS.items()}  # channels that a front gives
# channels out, taps, dilation, stride
TAIL = {"narrow": ((80, 3, 1, 2), (64, 3, 2, 1), (64, 3, 4, 1)), "wide": ((128, 3, 1, 2), (96, 3, 2, 1), (96, 3, 4, 1)), "playback": ((48, 3, 1, 2), (32, 3, 2, 1), (32, 3, 4, 1))}
HIDDEN = 32
FRONTS = {"narrow": ("linear", "short"), "wide": ("linear", "short"), "playback": ("mel",)}  # that assembly/spoof reads


class Fronts(nn.Module):
    """Speech at 16 kHz [batch][samples] -> {front: [batch][frames][bins]}; the mel bins are the engine's: 25/10 ms, povey window, pre-emphasis,
    512-point FFT, log power."""

    def __init__(self, names=("mel",)):
        super().__init__()
        self.names = names
        mel = lambda f: 1127 * np.log(1 + f / 700)
        bins = np.arange(256) * 16000 / 512
        for name, scale in (("mel", mel), ("linear", lambda f: f)):
            edges, at = np.linspace(scale(20), scale(8000), 82), scale(bins)
            m = np.zeros((80, 257), np.float32)
            m[:, :256] = np.stack([np.maximum(0, np.minimum((at - l) / (c - l), (r - at) / (r - c))) for l, c, r in zip(edges, edges[1:], edges[2:])])
            self.register_buffer(name, torch.tensor(m))
        self.register_buffer("window", torch.hann_window(400, periodic=False) ** 0.85)
        self.register_buffer("brief", torch.hann_window(64, periodic=False))

    def forward(self, x):
        f = x.unfold(1, 400, 160)
        frames = f.shape[1]
        f = f - f.mean(2, keepdim=True)
        f = torch.cat([f[..., :1] * 0.03, f[..., 1:] - 0.97 * f[..., :-1]], 2) * self.window
        power, out = torch.fft.rfft(f, 512).abs().pow(2), {}
        for name in self.names:
            if name == "short":  # the middle of each long frame
                y = F.pad(x[:, 1:] - 0.97 * x[:, :-1], (1, 0))[:, 100:].unfold(1, 64, 40)[:, : 4 * frames] * self.brief
                out[name] = torch.log(torch.fft.rfft(y, 64).abs().pow(2)[..., 1:].clamp(min=1.1920929e-07))
            else:
                out[name] = torch.log((power @ getattr(self, name).T).clamp(min=1.1920929e-07))
        return out


FLOOR = 10.0  # 43 dB


def prepared(features, floor=FLOOR):
    """What the network takes: nothing further below the loud than `floor`, measured from the mean over frames of each frame's loudest bin (so that
    what lies below lines and rooms, and the empty half of a telephone band, tells nothing), and the mean over time removed."""
    level = features.amax(2).mean(1)[:, None, None]
    x = torch.maximum(features, level - floor)
    return x - x.mean(1, keepdim=True)


class Attack(nn.Module):
    """families: that a second head tells apart while training, so that what is learnt of one vocoder is not taken for all there is."""

    def __init__(self, kind, fronts, drop=0.3, families=0):
        super().__init__()
        self.kind, self.names = kind, fronts
        plane = lambda i, o, t, s: nn.Sequential(nn.Conv2d(i, o, 3, (t, s), 1, bias=False), nn.BatchNorm2d(o))
        self.fronts = nn.ModuleList(nn.ModuleList(plane(*p) for p in PLANES[kind][name]) for name in fronts)
        self.tail, channels = nn.ModuleList(), sum(WIDE[kind][name] for name in fronts)
        for o, k, d, s in TAIL[kind]:
            self.tail.append(nn.Sequential(nn.Conv1d(channels, o, k, s, d * (k - 1) // 2, d, bias=False), nn.BatchNorm1d(o)))
            channels = o
        self.hidden, self.out = nn.Linear(2 * channels, HIDDEN), nn.Linear(HIDDEN, 1)
        if families:
            self.family = nn.Linear(2 * channels, families)
        self.drop, self.drop_channels = nn.Dropout(drop), nn.Dropout2d(drop / 3)

    def forward(self, features):
        """{front: [batch][frames][bins]} -> logit of attack against genuine."""
        return self.judged(self.pooled(features))

    def judged(self, x):
        return self.out(self.drop(F.relu(self.hidden(x)))).squeeze(1)

    def pooled(self, features):
        """-> mean and deviation over time of the last layer's channels."""
        seen = []
        for name, planes in zip(self.names, self.fronts):
            x = features[name][:, None] / 8  # deviations are a few units: keep the first layer in range
            for plane in planes:
                x = F.relu(plane(x))
            x = self.drop_channels(x)
            seen.append(x.permute(0, 3, 1, 2).flatten(1, 2))  # [batch][bins · channels][frames]: a frame's bins side by side
        x = torch.cat(seen, 1)
        for layer in self.tail:
            x = F.relu(layer(x))
        return torch.cat([x.mean(2), x.float().var(2, correction=0).clamp(min=1e-8).sqrt()], 1)


class Judging(nn.Module):
    """What judges by statistics that it pools: `pooled`, `hidden`, `out` and `drop` are its own."""

    def forward(self, features):
        return self.judged(self.pooled(features))

    def judged(self, x):
        return self.out(self.drop(F.relu(self.hidden(self.drop(x))))).squeeze(1)


def restored(checkpoint):
    """The float network of a checkpoint, whichever it is; a.pt+b.pt: of the mean of their weights."""
    states = [torch.load(path, map_location="cpu") for path in checkpoint.split("+")]
    if "base.positional_embedding" in states[0]:
        from whisper import Whisper

        net = Whisper()
    elif "base.front_conv1_weight" in states[0]:
        from campplus import Campplus

        net = Campplus()
    elif "base.stem.weight" in states[0]:
        from slim import Slim, shape_of
        from teacher import Teacher

        net = Teacher(("linear" if states[0]["is_linear"] else "mel",)) if "is_linear" in states[0] else Slim(*shape_of(states[0]))
    else:
        kind = next(k for k, channels in CHANNELS.items() if channels[-1] == len(states[0]["fronts.0.3.0.weight"]))
        net = Attack(kind, FRONTS[kind])
    net.load_state_dict({k: sum(s[k].float() for s in states) / len(states) if v.is_floating_point() else v for k, v in states[0].items()})
    return net.eval()
