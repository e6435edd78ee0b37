"""CAM++'s front and first dense block, which learn to detect synthetic speech (LOG.md 19). Made of what the engine runs as the speaker network's first half, batch norms folded
as ../folded.py folds them: planes over 80 log-mel bins, a time-delay layer, twelve dense layers."""
import os, sys

import torch, torch.nn as nn, torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from folded import SEGMENT, layers
from network import HIDDEN, Judging

LAYERS, FRONT, END = 12, 320, 512
PLANES = [f"front.stage{s}.{i}" for s in (1, 2) for i in (0, 1)]
# name: shapes of weight and bias; of a norm, gain and bias
SHAPES = {
    "front.conv1": ((32, 1, 3, 3), 32), "front.conv2": ((32, 32, 3, 3), 32), "tdnn": ((128, FRONT, 5), 128), "end.norm": ((END,), END),
    **{f"{p}.{c}": ((32, 32, 3, 3), 32) for p in PLANES for c in ("conv1", "conv2")}, **{f"{p}.shortcut": ((32, 32, 1, 1), 32) for p in PLANES[::2]},
    **{f"block1.{i}.{part}": shape for i in range(LAYERS) for part, shape in (
        ("norm", ((128 + 32 * i,), 128 + 32 * i)), ("bottleneck", ((128, 128 + 32 * i, 1), 128)), ("local", ((32, 128, 3), 32)), ("squeeze", ((64, 128), 64)), ("excite", ((32, 64), 32)))},
}  # fmt: skip
inner = lambda name: name.replace(".", "_")


class Campplus(Judging):
    kind, names = "campplus", ("mel",)

    def __init__(self, drop=0.3, families=0, hint=0):
        super().__init__()
        self.base = nn.ParameterDict({inner(f"{name}.{part}"): torch.zeros(shape) for name, shapes in SHAPES.items() for part, shape in zip(("weight", "bias"), shapes)})
        width = 2 * (FRONT + END)
        self.norm, self.hidden, self.out = nn.BatchNorm1d(width, affine=False), nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, 1)
        if families:
            self.family = nn.Linear(width, families)
        if hint:
            self.hint = nn.Linear(width, hint)
        self.drop = nn.Dropout(drop)

    def begin(self, published):
        """published: the state of CAM++ as ../published.py brings it."""
        found = layers({**{"n." + k: v.float() for k, v in published.items()}, "fc.weight": torch.zeros(1, 1), "fc.bias": torch.zeros(1)})
        found["end.norm"] = found["transit1.norm"]
        for name in SHAPES:
            for part, value in zip(("weight", "bias"), found[name]):
                self.base[inner(f"{name}.{part}")].data.copy_(value)

    def of(self, name):
        return self.base[inner(name + ".weight")], self.base[inner(name + ".bias")]

    def pooled(self, features, probe=lambda name, x: x):
        """-> mean and deviation over time of the front's channels and of the block's. `probe(name, x)` as in ../folded.py, for batches."""

        def plane(name, x, stride=1):
            w, b = self.of(name)
            return F.conv2d(x, w, b, stride=(stride, 1), padding=w.shape[2] // 2)

        def line(name, x, **options):
            return F.conv1d(x, *self.of(name), **options)

        def norm(name, x):
            gain, bias = self.of(name)
            return F.relu(probe(name, x) * gain[:, None] + bias[:, None])

        x = F.relu(plane("front.conv1", features["mel"].transpose(1, 2)[:, None]))
        for k, name in enumerate(PLANES):
            stride = 2 - k % 2
            x = probe(name + ".conv1", x)
            h = probe(name + ".conv2", F.relu(plane(name + ".conv1", x, stride)))
            shortcut = x if k % 2 else probe(name + ".shortcut.out", plane(name + ".shortcut", x, stride))
            x = F.relu(plane(name + ".conv2", h) + shortcut)
        x = F.relu(plane("front.conv2", probe("front.conv2", x), 2))
        front = probe("tdnn", x.transpose(1, 2).flatten(1, 2))  # [batch][bins · channels][frames]
        x = F.relu(line("tdnn", front, stride=2, padding=2))
        for i in range(LAYERS):
            name = f"block1.{i}"
            h = probe(name + ".bottleneck", norm(name + ".norm", x))
            h = probe(name + ".local", F.relu(line(name + ".bottleneck", h)))
            segments = F.avg_pool1d(h, SEGMENT, SEGMENT, ceil_mode=True).repeat_interleave(SEGMENT, 2)[..., : h.shape[2]]
            context = probe(name + ".squeeze", h.mean(2, keepdim=True) + segments)
            (w1, b1), (w2, b2) = self.of(name + ".squeeze"), self.of(name + ".excite")
            hidden = probe(name + ".excite", F.relu(w1 @ context + b1[:, None]))
            x = torch.cat([x, line(name + ".local", h, padding=1) * torch.sigmoid(w2 @ hidden + b2[:, None])], 1)
        x = probe("statistics", norm("end.norm", x))
        return self.norm(torch.cat([y for seen in (front.float(), x.float()) for y in (seen.mean(2), seen.var(2, correction=0).clamp(min=1e-8).sqrt())], 1))
