"""Trains one attack network on a bank (bank.py).

python3 train.py BANK OUT KIND [--steps N] [--seed N] [--without GROUP,GROUP] [--options JSON]

KIND: synthetic or playback. Half of a batch is genuine. Of the attacks half are copies of the very clips beside them, on the same way to the
detector, so that nothing but the vocoder tells the two apart; the other half are drawn by family, so that no large gallery decides. A tenth of
the voices is left out, to follow the run and to calibrate. --without leaves whole groups of attacks out and measures on them: choices are
made by that, never on DEV. OUT.pt and OUT.json are written as soon as the network is done.
"""
import argparse, json, math, time, zlib
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from network import FLOOR, Attack, prepared
from rates import eer

D = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GROUPS = {"kokoro": "kokoro", "hibari": "kokoro", "hifigan-predicted": "hifigan", "espeak": "classic", "flite": "classic", "festival": "classic", "nanotts": "classic", "openjtalk": "classic",
          "world": "parametric", "codec2": "parametric"}  # fmt: skip
OPTIONS = dict(rate=2e-3, decay=0.05, size=256, mixup=0.3, copies=0.5, bands=12, top=0.3, times=20, contrast=0.12, drop=0.3, floor=FLOOR)


def group(family):
    return GROUPS.get(family, family.split("-")[0] if family.startswith(("tacotron", "e1tts")) else family)


def held_out(row):
    """By voice: a corpus's speaker, an engine's voice, a page of a gallery."""
    key = row["key"] if row["pair"] >= 0 else row["key"].rsplit("/", 1)[0]
    return zlib.crc32(key.encode()) % 10 == 0


class Draw:
    """Rows of a batch."""

    def __init__(self, rows, without):
        keep = [i for i, r in enumerate(rows) if not held_out(r) and group(r["family"]) not in without]
        self.genuine = torch.tensor([i for i in keep if rows[i]["label"] == "genuine"])
        of = {(rows[i]["pair"], rows[i]["view"]): k for k, i in enumerate(self.genuine.tolist())}
        copies = [[] for _ in self.genuine]
        families = {}
        for i in keep:
            r = rows[i]
            if r["label"] == "attack" and r["pair"] >= 0:
                copies[of[r["pair"], r["view"]]].append(i)
            elif r["label"] == "attack":
                families.setdefault(r["family"], []).append(i)
        self.copied = torch.tensor([k for k, c in enumerate(copies) if c])
        most = max((len(c) for c in copies), default=0)
        self.copies = torch.tensor([[c[j % len(c)] for j in range(12 * most)] if c else [0] * 12 * most for c in copies]) if most else None
        self.families = [torch.tensor(v) for v in families.values()]
        sizes = {}
        for name in families:
            sizes[group(name)] = sizes.get(group(name), 0) + 1
        # a group weighs by the root of its families, a family by the root of its clips
        self.weight = torch.tensor([math.sqrt(len(v)) / math.sqrt(sizes[group(name)]) for name, v in families.items()])

    def __call__(self, size, share):
        pairs = 0 if self.copies is None else int(size // 2 * share) if self.families else size // 2
        k = self.copied[torch.randint(0, len(self.copied), (pairs,))] if pairs else torch.zeros(0, dtype=torch.long)
        bad = self.copies[k, torch.randint(0, self.copies.shape[1], (pairs,))] if pairs else k
        good = torch.cat([self.genuine[k], self.genuine[torch.randint(0, len(self.genuine), (size // 2 - pairs,))]])
        if pairs < size // 2:
            chosen = torch.multinomial(self.weight, size // 2 - pairs, replacement=True).tolist()
            bad = torch.cat([bad, torch.stack([self.families[f][torch.randint(0, len(self.families[f]), (1,))[0]] for f in chosen])])
        return torch.cat([good, bad])


def spoilt(x, o):
    """Crops of features with bands and times missing, in a stronger or weaker contrast."""
    b, t, d = len(x), x.shape[1], x.device
    x = prepared(x, o["floor"])
    x = x * (1 + o["contrast"] * (2 * torch.rand(b, 1, 1, device=d) - 1))
    bins, frames = torch.arange(80, device=d)[None, None], torch.arange(t, device=d)[None, :, None]
    for _ in range(2):
        at, wide = torch.randint(0, 78, (b, 1, 1), device=d), torch.randint(0, o["bands"] + 1, (b, 1, 1), device=d)
        x = x.masked_fill((bins >= at) & (bins < at + wide), 0)
        at, wide = torch.randint(0, t, (b, 1, 1), device=d), torch.randint(0, o["times"] + 1, (b, 1, 1), device=d)
        x = x.masked_fill((frames >= at) & (frames < at + wide), 0)
    top = torch.where(torch.rand(b, 1, 1, device=d) < o["top"], torch.randint(45, 80, (b, 1, 1), device=d), 80)
    return x.masked_fill(bins >= top, 0)


@torch.no_grad()
def scores(net, features, floor):
    return torch.cat([net(prepared(x.float(), floor)).float() for x in features.split(256)]).cpu().numpy()


def platt(score, label, weight):
    """a, b of llr = a · score + b, classes weighted evenly: a log-likelihood ratio, not a posterior of this mix."""
    s, y, w = (torch.tensor(v, dtype=torch.float64) for v in (score, label, weight))
    w = torch.where(y > 0, w / (2 * w[y > 0].sum()), w / (2 * w[y <= 0].sum()))
    p = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], max_iter=200)

    def closure():
        optimizer.zero_grad()
        loss = (w * F.softplus(torch.where(y > 0, -1.0, 1.0) * (p[0] * s + p[1]))).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return [float(v) for v in p.detach()]


def measured(net, features, rows, without, floor):
    """EER of each group against held-out genuine speech; groups left out are measured whole."""
    groups = {}
    for i, r in enumerate(rows):
        if r["label"] == "attack" and (held_out(r) or group(r["family"]) in without):
            groups.setdefault(group(r["family"]), []).append(i)
    good = [i for i, r in enumerate(rows) if r["label"] == "genuine" and held_out(r)]
    chance, result = np.random.RandomState(1), {}
    genuine = scores(net, features[torch.tensor(good, device=D)], floor)
    every, labels, weights = [genuine], [np.zeros(len(good))], [np.ones(len(good))]
    for name, index in sorted(groups.items()):
        index = chance.permutation(index)[:800]
        attack = scores(net, features[torch.tensor(index, device=D)], floor)
        result[name] = round(100 * eer(np.concatenate([genuine, attack]), np.concatenate([np.zeros(len(good)), np.ones(len(attack))])), 2)
        if name not in without:
            every, labels, weights = every + [attack], labels + [np.ones(len(attack))], weights + [np.ones(len(attack)) / len(attack)]
    return result, platt(np.concatenate(every), np.concatenate(labels), np.concatenate(weights)) if len(every) > 1 else None


def main(a):
    o = {**OPTIONS, **json.loads(a.options)}
    without = set(filter(None, a.without.split(",")))
    torch.manual_seed(a.seed)
    np.random.seed(a.seed)
    bank = torch.load(f"{a.bank}/{a.kind}.pt", mmap=True, weights_only=False)
    rows, counts = bank["rows"], bank["counts"].to(D)
    draw, features = Draw(rows, without), bank["features"].to(D)
    net, average = Attack(o["drop"]).to(D), Attack(o["drop"]).to(D)
    average.load_state_dict(net.state_dict())
    optimizer, start, size = torch.optim.AdamW(net.parameters(), lr=o["rate"], weight_decay=o["decay"]), time.time(), o["size"]
    y = torch.cat([torch.zeros(size // 2, device=D), torch.ones(size // 2, device=D)])
    total = 0.0
    for step in range(1, a.steps + 1):
        for g in optimizer.param_groups:
            g["lr"] = o["rate"] * min(1, step / 200) * (0.5 * (1 + math.cos(math.pi * step / a.steps)) + 0.002)
        with torch.no_grad():
            index = draw(size, o["copies"]).to(D)
            length = int(np.random.choice([150, 220, 318]))
            at = (torch.rand(size, 1, device=D) * (counts[index][:, None] - length).clamp(min=1)).long() + torch.arange(length, device=D)
            x = spoilt(features[index[:, None], at % features.shape[1]].float(), o)
            label = y * 0.96 + 0.02
            if o["mixup"] and step % 2:
                share = np.random.beta(o["mixup"], o["mixup"])
                other = torch.randperm(size, device=D)
                x, label = x * share + x[other] * (1 - share), label * share + label[other] * (1 - share)
        with torch.autocast(D.type, torch.bfloat16):
            z = net(x)
        loss = F.binary_cross_entropy_with_logits(z.float(), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        with torch.no_grad():
            rate = min(0.998, step / (step + 100))
            for m, n in zip(average.state_dict().values(), net.state_dict().values()):
                m.lerp_(n, 1 - rate) if m.is_floating_point() else m.copy_(n)
            total += loss.detach()
        if step % 500 == 0:
            print(a.out, step, f"loss {float(total) / 500:.3f} {time.time() - start:.0f} s", flush=True)
            total = 0.0
        if without and step in (a.steps // 4, a.steps // 2):
            average.eval()
            print(a.out, step, {k: v for k, v in measured(average, features, rows, without, o["floor"])[0].items() if k in without}, flush=True)
    average.eval()
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in average.state_dict().items()}, a.out + ".pt")
    result, calibration = measured(average, features, rows, without, o["floor"])
    json.dump(dict(kind=a.kind, options=o, steps=a.steps, seed=a.seed, without=sorted(without), eer=result, calibration=calibration), open(a.out + ".json", "w"), indent=1)
    print(a.out, {k: result[k] for k in without & set(result)} or result, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank")
    parser.add_argument("out")
    parser.add_argument("kind")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="")
    parser.add_argument("--options", default="{}")
    main(parser.parse_args())
