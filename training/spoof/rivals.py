"""Decoders that learn to pass while the networks learn to tell them (LOG.md 30): each copies genuine speech, is drawn to the original's spectrum and away from what the networks call an attack."""
import os

import torch, torch.nn as nn, torch.nn.functional as F

import bank
from network import prepared
from vocoders import levelled, spectral_distance

RATE, CLIPS, SAMPLES, WEIGHT = 2e-4, 16, 24000, 1.0
PREDICTED = 0.3  # from a spectrum as an acoustic model would give it


class Rivals:
    def __init__(self, names, folder, device):
        """names: of bank.MAKERS, trained by `bank.py train`. folder: of run.sh, with hifigan/ and nets/."""
        self.names, self.makers, self.optimizers, self.passed = names, [], [], torch.zeros(len(names), device=device)
        for family, kind, options, *_ in (m for name in names for m in bank.MAKERS if m[0] == name):
            net = bank.maker(kind, options, folder + "/hifigan").to(device)
            net.load_state_dict(torch.load(f"{folder}/nets/{family}.pt", map_location=device))
            self.makers.append(net.train())
            self.optimizers.append(torch.optim.AdamW(net.parameters(), lr=RATE, betas=(0.8, 0.95)))

    @torch.no_grad()
    def copies(self, x, k):
        return levelled(self.makers[k](x, bool(torch.rand(1) < PREDICTED)))

    def learn(self, speech, k, judges, fronts):
        """A step of one of them. judges: the networks, whose weights stay; speech: genuine clips to draw from."""
        some, at = torch.randint(0, len(speech), (CLIPS,), device=speech.device), int(torch.randint(0, speech.shape[1] - SAMPLES, (1,)))
        x = speech[some, at : at + SAMPLES]
        y = self.makers[k](x, bool(torch.rand(1) < PREDICTED))
        seen = fronts(levelled(y))
        score = torch.stack([judge({name: prepared(seen[name]) for name in judge.names}).float() for judge in judges]).mean(0)
        loss = spectral_distance(y, x) + WEIGHT * F.softplus(score).mean()
        self.optimizers[k].zero_grad(set_to_none=True)
        loss.backward(inputs=list(self.makers[k].parameters()))
        nn.utils.clip_grad_norm_(self.makers[k].parameters(), 5.0)
        self.optimizers[k].step()
        self.passed[k].lerp_((score.detach() < 0).float().mean(), 0.02)

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        for name, maker in zip(self.names, self.makers):
            torch.save({k: v.half() if v.is_floating_point() else v for k, v in maker.state_dict().items()}, f"{folder}/{name}.pt")
