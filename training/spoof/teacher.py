"""A speaker network that was taught to hear synthetic speech: far too large to ship, it teaches smaller ones (LOG.md 18).

The base is the published ResNet34 (../resnet.py), which has heard thousands of voices over many microphones; what its four stages say, the early
ones too (what a vocoder leaves is finer than a voice), decides together.
"""
import os, sys

import torch, torch.nn as nn, torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from network import Judging
from resnet import BLOCKS, CHANNELS, ResNet34

BANDS, HIDDEN = 10, 64
ENDS = [sum(BLOCKS[: k + 1]) - 1 for k in range(len(BLOCKS))]  # the last block of each stage


class Teacher(Judging):
    def __init__(self, fronts, drop=0.3, families=0):
        super().__init__()
        (self.picture,) = self.names = fronts
        self.register_buffer("is_linear", torch.tensor(self.picture == "linear"))
        self.base = ResNet34()
        del self.base.fc
        width = 2 * BANDS * sum(CHANNELS)
        self.norm, self.hidden, self.out = nn.LayerNorm(width), nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, 1)
        if families:
            self.family = nn.Linear(width, families)
        self.drop = nn.Dropout(drop)

    def pooled(self, features):
        """-> mean and deviation over time of every stage's channels, in ten bands."""
        x, said = F.relu(self.base.stem(features[self.picture].transpose(1, 2)[:, None])), []
        for k, block in enumerate(self.base.blocks):
            x = block(x)
            if k in ENDS:
                y = x.float().unflatten(2, (BANDS, -1)).mean(3)
                said += [y.mean(3).flatten(1), y.var(3, correction=0).clamp(min=1e-8).sqrt().flatten(1)]
        return self.norm(torch.cat(said, 1))
