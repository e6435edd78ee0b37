"""A speaker network that learnt to detect synthetic speech: far too large to ship, it teaches smaller ones (LOG.md 18, 19).

The base is the published ResNet34 (../resnet.py), trained on thousands of voices over many microphones; the outputs of all four stages decide together,
also the early ones (traces of a vocoder are finer than a voice).
"""
import os, sys

import torch, torch.nn as nn, torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from network import Judging
from resnet import BLOCKS, CHANNELS, ResNet34

BANDS, HIDDEN = 10, 64


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

    def begin(self, published):
        self.base.load_state_dict(published, strict=False)

    def stages(self, features):
        """-> the plane at the end of each stage."""
        return stages(self.base, features[self.picture], BLOCKS)

    def pooled(self, features):
        """-> mean and deviation over time of every stage's channels, in ten bands."""
        return self.pooled_stages(self.stages(features))

    def pooled_stages(self, planes):
        return self.norm(torch.cat([v for x in planes for v in statistics(x.float().unflatten(2, (BANDS, -1)).mean(3))], 1))


def stages(base, picture, blocks):
    x, out = F.relu(base.stem(picture.transpose(1, 2)[:, None])), []
    ends = [sum(blocks[: k + 1]) - 1 for k in range(len(blocks))]
    for k, block in enumerate(base.blocks):
        x = block(x)
        if k in ends:
            out.append(x)
    return out


def statistics(x):
    """Mean and deviation over time of [batch][channels][bins][frames]."""
    return x.mean(3).flatten(1), x.var(3, correction=0).clamp(min=1e-8).sqrt().flatten(1)
