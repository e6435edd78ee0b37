"""The attack network: a small 2-D front over 80 log-mel bins and a 1-D tail, made of nothing but the engine's kernels. About 130,000 parameters and
35 million multiplications for a second of speech, a fifteenth of the speaker network."""
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

PLANES = ((1, 16, 1), (16, 24, 2), (24, 32, 2), (32, 32, 2))  # channels in, out, stride over bins: 80 -> 80 -> 40 -> 20 -> 10
TAIL = ((320, 80, 3, 1, 2), (80, 64, 3, 2, 1), (64, 64, 3, 4, 1))  # channels in, out, taps, dilation, stride
HIDDEN = 32


class LogMel(nn.Module):
    """The engine's front end: 25/10 ms, povey window, pre-emphasis, 512-point FFT, 80 mels, log power. The network wants the mean over time removed."""

    def __init__(self):
        super().__init__()
        mel = lambda f: 1127 * np.log(1 + f / 700)
        edges, at = np.linspace(mel(20), mel(8000), 82), mel(np.arange(256) * 16000 / 512)
        m = np.zeros((80, 257), np.float32)
        m[:, :256] = np.stack([np.maximum(0, np.minimum((at - l) / (c - l), (r - at) / (r - c))) for l, c, r in zip(edges, edges[1:], edges[2:])])
        self.register_buffer("mel", torch.tensor(m))
        self.register_buffer("window", torch.hann_window(400, periodic=False) ** 0.85)

    def forward(self, x):
        f = x.unfold(1, 400, 160)
        f = f - f.mean(2, keepdim=True)
        f = torch.cat([f[..., :1] * 0.03, f[..., 1:] - 0.97 * f[..., :-1]], 2) * self.window
        return torch.log((torch.fft.rfft(f, 512).abs().pow(2) @ self.mel.T).clamp(min=1.1920929e-07))


FLOOR = 10.0  # 43 dB


def prepared(features, floor=FLOOR):
    """What the network takes: nothing further below the loud than `floor`, measured from the mean over frames of each frame's loudest bin (so that
    what lies below lines and rooms, and the empty half of a telephone band, tells nothing), and the mean over time removed."""
    level = features.amax(2).mean(1)[:, None, None]
    x = torch.maximum(features, level - floor)
    return x - x.mean(1, keepdim=True)


class Attack(nn.Module):
    def __init__(self, drop=0.3):
        super().__init__()
        self.planes = nn.ModuleList(nn.Sequential(nn.Conv2d(i, o, 3, (1, s), 1, bias=False), nn.BatchNorm2d(o)) for i, o, s in PLANES)
        self.tail = nn.ModuleList(nn.Sequential(nn.Conv1d(i, o, k, s, d * (k - 1) // 2, d, bias=False), nn.BatchNorm1d(o)) for i, o, k, d, s in TAIL)
        self.hidden, self.out = nn.Linear(2 * TAIL[-1][1], HIDDEN), nn.Linear(HIDDEN, 1)
        self.drop, self.drop_channels = nn.Dropout(drop), nn.Dropout2d(drop / 3)

    def forward(self, features):
        """[batch][frames][80] -> logit of attack against genuine."""
        x = features[:, None] / 8  # log-mel deviations are a few units: keep the first layer in range
        for plane in self.planes:
            x = F.relu(plane(x))
        x = self.drop_channels(x)
        x = x.permute(0, 3, 1, 2).flatten(1, 2)  # [batch][bins · channels][frames]: a frame's bins side by side
        for layer in self.tail:
            x = F.relu(layer(x))
        x = torch.cat([x.mean(2), x.float().var(2, correction=0).clamp(min=1e-8).sqrt()], 1)
        return self.out(self.drop(F.relu(self.hidden(x)))).squeeze(1)
