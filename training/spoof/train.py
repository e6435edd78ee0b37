"""Trains attack networks on a bank (bank.py), several at once on the same batches.

python3 train.py BANK OUT KIND [--fronts mel,linear,linear+short] [--seconds N] [--seed N] [--start FILE.pt[,FILE.pt]] [--teachers FILE.pt,FILE.pt] [--rooms FILE.pt] [--without FAMILY,FAMILY] [--options JSON]

KIND: narrow or wide, which detect synthetic speech, teacher and whisper, far larger ones (teacher.py, whisper.py), slim, a smaller one (slim.py), campplus (campplus.py), or playback. --teachers: networks whose scores are
learnt in place of labels, but for a share of `labels`; a slim network also learns the outputs of the first teacher's stages (`away`), slim and campplus what a teacher pools (`hint`). Half of a batch is genuine. Of the attacks half are copies of the very clips beside them, on the same way to the
detector, so that nothing but the vocoder tells the two apart (or the clips themselves, altered on the spot: `made` of them); the other half are drawn by family,
so that no large gallery decides. A tenth of
the voices is left out, to follow the run and to calibrate. --without leaves whole groups of attacks out and measures on them, and corpora of genuine speech. Choices are made by
that and on what sources.py calls `choose`, never on DEV. --start: weights to begin with (widen.py); several slim networks, one for each file, learn on the same batches. OUT-<fronts>.pt (OUT-<file>.pt of a slim network) and .json are written as soon as the networks are done,
OUT-before-<fronts>.pt every fifth of the time. What is kept is the mean of the weights over the last steps. Option `sharp`: how far sharpness-aware minimisation looks (LOG.md 25); 0: it is not used, a step costs half. Option `rivals`: decoders that learn to pass (rivals.py), which alter a share of what is `made`. Option `spoken`: what is made of text or said again (respoken.py)
is told from all else, and what a decoder leaves tells nothing: genuine clips come as they are or copied by decoders, and so do synthesizers' (LOG.md 32). Option `said`: of the attacks that are no copies, the share that networks made of text (0: as their families weigh).
"""
import argparse, contextlib, glob, json, math, os, re, time, zlib
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from altered import KINDS, altered
from channel import Channel, mulaw
from campplus import Campplus
from network import FLOOR, Attack, Fronts, prepared, restored
from rivals import Rivals
from slim import Slim, shape_of
from teacher import Teacher
from vocoders import levelled, resampled
from whisper import Whisper

D = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GROUPS = {"kokoro": "kokoro", "hibari": "kokoro", "espeak": "classic", "flite": "classic", "festival": "classic", "nanotts": "classic", "openjtalk": "classic",
          "world": "parametric", "codec2": "parametric", "hifigan-16": "hifigan", "hifigan-varied": "hifigan"}  # fmt: skip
COLUMNS = {32: 4}  # of a frame, where a picture of so many bins has several
REACHES = 2, 6, 29  # frames around loud ones that are kept too
SURE = 1.0  # least score, on the right side, that a teacher's is taken for
OPTIONS = dict(rate=2e-3, decay=0.05, size=256, mixup=0.3, copies=0.5, made=0.0, blend=0.3, blends=("magnitudes",), clean=0.7, line=0.15, speed=0.12, coded=0.2, apart=0.5, told=0.15, bands=0.15, top=0.25, times=20, contrast=0.12, drop=0.3, floor=FLOOR, labels=0.3, hint=0.5, away=1.0, slow=0.2, sharp=0.0, rivals=(), spoken=False, said=0.0)


SAID = "piper", "kokoro", "dittli"  # groups of networks that make speech of text


def group(family):
    return GROUPS.get(family, family.split("-")[0] if family.startswith(("tacotron", "e1tts", "codec-", "spectral", "said-", "piper-")) else family)


def held_out(row):
    """By voice: a corpus's speaker, an engine's voice, a page of a gallery."""
    key = row["key"] if row["copied"] or row["label"] == "genuine" else row["key"].rsplit("/", 1)[0]
    return zlib.crc32(key.encode()) % 10 == 0


def load(bank, spoken):
    """-> rows, i16 [rows][samples], for each row where it lies among the coded (-1: nowhere), coded i16."""
    rows, clips, coded, at, offset = [], [], [], [], 0
    for name in ["genuine", *sorted(os.path.basename(p)[:-5] for p in glob.glob(bank + "/copies-*.json")), "attacks", *sorted(n for n in (os.path.basename(p)[:-5] for p in glob.glob(bank + "/attacks-*.json")) if spoken or not n.startswith("attacks-again-"))]:
        path, found = f"{bank}/{name}.npy", json.load(open(f"{bank}/{name}.json"))
        rows += [dict(r, label="genuine" if name == "genuine" else "attack", copied=r["pair"] >= 0) for r in found]
        clips.append(torch.from_numpy(np.load(path)).to(D))
        place = torch.full((len(found),), -1)
        place[json.load(open(f"{bank}/coded-{name}.json"))] = torch.arange(offset, offset + len(json.load(open(f"{bank}/coded-{name}.json"))))
        coded.append(torch.from_numpy(np.load(f"{bank}/coded-{name}.npy")).to(D))
        at.append(place)
        offset += len(coded[-1])
    return rows, torch.cat(clips), torch.cat(at).to(D), torch.cat(coded)


class Families:
    """Rows by family, drawn more often the less the network finds of them."""

    def __init__(self, named, weight):
        self.rows, self.weight, self.missed = torch.tensor([row for rows in named.values() for row in rows]), weight, torch.ones(len(named))
        self.sizes = torch.tensor([len(rows) for rows in named.values()])
        self.first = self.sizes.cumsum(0) - self.sizes

    def some(self, count):
        """-> rows, the families they are of."""
        chosen = torch.multinomial(self.weight * (self.missed + 0.1), count, replacement=True)
        return self.rows[self.first[chosen] + (torch.rand(count) * self.sizes[chosen]).long()], chosen

    def learn(self, family, loss):
        count = torch.zeros_like(self.missed).index_add_(0, family, torch.ones(len(family)))
        mean = torch.zeros_like(self.missed).index_add_(0, family, loss) / count.clamp(min=1)
        self.missed = torch.where(count > 0, self.missed + 0.03 * (mean.clamp(max=2) - self.missed), self.missed)


class Draw:
    """Rows of a batch: genuine, then attacks, copies opposite their originals."""

    def __init__(self, rows, without, ways, spoken, said):
        keep = [i for i, r in enumerate(rows) if not held_out(r) and not (spoken and re.search("reconstruct|specinvert", r["family"])) and not {group(r["family"]), r["key"].split("/")[0]} & without]
        genuine, copies, families, sizes, self.decoded = {}, {}, {}, {}, {}
        for i in keep:
            r = rows[i]
            if r["label"] == "genuine":
                genuine.setdefault(r["key"].split("/")[0], []).append(i)
            elif spoken and r["copied"] and not r["family"].startswith("said-"):
                genuine.setdefault(r["key"].split("/")[0], []).append(i)
                self.decoded.setdefault(r["pair"], []).append(i)
            elif r["copied"]:
                copies.setdefault(r["family"], []).append((r["pair"], i))
            else:
                families.setdefault(r["family"], []).append(i)
        for name in families:
            sizes[group(name)] = sizes.get(group(name), 0) + 1
        # a corpus weighs by the root of its clips, and recordings of galleries' pages more: they are what attacks come beside;
        # a group weighs by the root of its families, a family by the root of its clips
        self.genuine = Families(genuine, torch.tensor([math.sqrt(len(v)) * (3 if c == "pages" or c.startswith("librispeech") else 1) for c, v in genuine.items()]))
        self.copies = Families(copies, torch.ones(len(copies)))
        self.families = Families(families, torch.tensor([math.sqrt(len(v)) / math.sqrt(sizes[group(name)]) for name, v in families.items()]))
        of_text = torch.tensor([group(name) in SAID for name in families])
        for some, share in ((of_text, said), (~of_text, 1 - said)):
            if said and some.any():
                self.families.weight[some] *= share / self.families.weight[some].sum()
        self.ways = Families({kind: [k] for k, kind in enumerate(ways)}, torch.ones(len(ways)))

    def __call__(self, size, share, made):
        """-> rows of genuine clips, rows of the attacks opposite, how many of the first are copies, behind them how many are clips that are altered, in
        which way, and what `learn` needs."""
        pairs = int(size // 2 * share)
        made = int(pairs * made)
        alone = size // 2 - pairs
        (two, copied), (whole, _), (good, corpus), (bad, family) = self.copies.some(pairs - made), self.genuine.some(max(1, made)), self.genuine.some(alone), self.families.some(alone)
        whole, way = whole[:made], int(self.ways.some(1)[0])
        if self.decoded:  # opposite what is said again: mostly what a decoder made of the original
            two = torch.stack([torch.tensor([np.random.choice(self.decoded.get(i, [i])) if np.random.rand() < 0.8 else i for i in two[:, 0].tolist()]), two[:, 1]], 1)
        return torch.cat([two[:, 0], whole, good]), torch.cat([two[:, 1], whole, bad]), pairs - made, made, way, (copied, corpus, family, torch.full((made,), way))

    def learn(self, of, good, bad):
        """The losses of a batch."""
        copied, corpus, family, ways = of
        pairs = len(copied) + len(ways)
        self.genuine.learn(corpus, good[pairs:])
        self.copies.learn(copied, bad[: len(copied)])
        self.ways.learn(ways, bad[len(copied) : pairs])
        self.families.learn(family, bad[pairs:])


def net_speech(features, below=None, reach=None):
    """Frames as the engine's voice activity keeps them, roughly: loud ones (at most `below` under the loudest) and their surroundings (`reach`, of REACHES). Where these are not given they are drawn for
    each clip of the first half of the batch, the same for the clip opposite.
    -> for each place of a clip the frame that moves there, kept ones in turn, again and again; how many are kept."""
    b, t, _ = features.shape
    drawn = lambda x: x.repeat(2, 1)
    energy = torch.logsumexp(features, 2)
    below = drawn(torch.empty(b // 2, 1, device=features.device).uniform_(4.5, 8.5)) if below is None else below  # 20 to 37 dB
    keep = (energy > energy.quantile(0.95, 1, keepdim=True) - below).float()[:, None]
    reach = drawn(torch.randint(0, 3, (b // 2, 1), device=features.device)) if reach is None else torch.full((b, 1), reach, device=features.device)
    near = [F.max_pool1d(keep, 2 * r + 1, 1, r)[:, 0] for r in REACHES]
    keep = torch.where(reach == 0, near[0], torch.where(reach == 1, near[1], near[2])) > 0
    order, count = torch.argsort((~keep).int(), dim=1, stable=True), keep.sum(1)
    return order.gather(1, torch.arange(t, device=features.device)[None] % count[:, None].clamp(min=1)), count


def placed(features, order):
    """Frames in a new order; a picture with several columns a frame moves them together."""
    b, _, bins = features.shape
    many = COLUMNS.get(bins, 1)
    x = features.reshape(b, -1, many * bins)
    return x.gather(1, order[..., None].expand(-1, -1, many * bins)).reshape(b, -1, bins)


class Material:
    """Batches of pictures of speech on its way to the detector."""

    def __init__(self, bank, kind, fronts, without, rooms, o, rivals):
        self.rows, self.clips, self.at, self.coded = load(bank, o["spoken"])
        self.rivals, self.ways = rivals, (*KINDS, *(rivals.names if rivals else ()))
        self.draw, self.kind, self.o = Draw(self.rows, without, self.ways, o["spoken"], o["said"]), kind, o
        self.genuine = torch.tensor([i for i, r in enumerate(self.rows) if r["label"] == "genuine"], device=D)
        self.channel = Channel(self.clips[self.genuine].float() / 32768, D, rooms)
        named = sorted({r["family"] for r in self.rows if r["label"] == "attack"})
        self.families = 1 + len(named) + len(self.ways)
        self.family = torch.tensor([1 + named.index(r["family"]) if r["label"] == "attack" else 0 for r in self.rows], device=D)
        self.wanted, self.fronts = fronts, Fronts(tuple({"mel", *fronts})).to(D)  # mel bins tell speech from silence

    def speech(self, index, coded):
        """`coded`: which of them come through a codec, where there is such a copy."""
        at = self.at[index]
        x = torch.where(((at >= 0) & coded)[:, None], self.coded[at.clamp(min=0)], self.clips[index])
        return levelled(x.float() / 32768)

    def way(self, x, replayed):
        """A part as it is or over a clean line, the rest through rooms, backgrounds, lines. Opposite rows go the same way, but for a loudspeaker on
        it, which is in `replayed` [rows][1] of them: 1 is always."""
        c, half = self.channel, len(x) // 2
        part = lambda share: torch.randperm(half, device=D)[: max(1, round(half * share)), None].add(torch.tensor([0, half], device=D)).T.reshape(-1)
        rough, line = part(1 - self.o["clean"]), part(self.o["line"])
        plain = x * 10 ** (c.uniform(len(x), -12, 12) / 20)
        plain = plain.clamp(-1, 1) + c.noise(*x.shape) * 10 ** (c.uniform(len(x), -110, -75) / 20)
        if self.kind == "playback":
            plain = torch.where(replayed == 1, c.replay(plain), plain)
        plain = plain.index_copy(0, line, mulaw(plain[line]))
        y = c.others_background(c.near_speech(x[rough], 0.7 if self.kind == "playback" else 0.5), 0.35)
        y = torch.where(c.chance(len(y), replayed[rough]), c.replay(y), y)  # callers and attacks alike may use a loudspeaker
        return plain.index_copy(0, rough, c.call(y))

    @torch.no_grad()
    def pictures(self, good, bad, copies=0, made=0, way=0):
        """Rows -> {front: [good + bad][318 (times columns)][bins]}, frames kept. Of the first `copies` a part gets back some of its original; the
        `made` behind them are their originals, altered in the way `way`."""
        half, speed = len(good), 1 + self.o["speed"] * float(2 * torch.rand(1) - 1)
        coded = torch.rand(half, device=D) < self.o["coded"]
        coded[copies : copies + made] = False
        x = self.speech(torch.cat([good, bad]).to(D), coded.repeat(2))
        original, attack = x[:half], x[half:]  # views
        some = torch.randperm(copies, device=D)[: round(copies * self.o["blend"])]
        if len(some):
            attack[some] = torch.where(coded[some, None], attack[some], blend(attack[some], original[some], np.random.choice(self.o["blends"])))
        if made:
            whole = original[copies : copies + made]
            attack[copies : copies + made] = altered(whole, KINDS[way]) if way < len(KINDS) else self.rivals.copies(whole, way - len(KINDS))
        replayed = torch.full((2 * half, 1), 0.1, device=D)
        if self.kind == "playback":
            replayed[:half], replayed[half:] = 0, 1
        found = self.fronts(self.way(at_speed(x, speed), replayed))
        order, count = net_speech(found["mel"])
        return {k: placed(found[k], order) for k in self.wanted}, count

    def batch(self, size):
        """-> pictures, frames kept, families of the rows, what `Draw.learn` needs."""
        good, bad, copies, made, way, of = self.draw(size, self.o["copies"], self.o["made"] if self.kind != "playback" else 0)
        families = self.family[torch.cat([good, bad]).to(D)]
        families[len(good) + copies : len(good) + copies + made] = self.families - len(self.ways) + way
        if self.kind == "playback":
            return *self.pictures(good, good.clone() if torch.rand(1) < 0.67 else bad), families, of
        return *self.pictures(good, bad, copies, made, way), families, of


class Teachers:
    """The mean of what several networks say, each in units of its own mean distance from zero, and what the stages of the large ones say."""

    def __init__(self, checkpoints):
        """A checkpoint that is named twice counts twice."""
        self.nets = [restored(c).to(D) for c in dict.fromkeys(checkpoints)]
        self.weights = torch.tensor([[float(checkpoints.count(c))] for c in dict.fromkeys(checkpoints)], device=D)
        self.hints = sum(net.hidden.in_features for net in self.nets if isinstance(net, Teacher))
        self.fronts = {f for net in self.nets for f in net.names}
        self.units = torch.zeros(len(self.nets), 1, device=D)

    @torch.no_grad()
    def __call__(self, x):
        with torch.autocast(D.type, torch.bfloat16):
            self.planes = self.nets[0].stages(x) if isinstance(self.nets[0], Teacher) else None
            pooled = [net.pooled_stages(self.planes) if k == 0 and self.planes else net.pooled(x) for k, net in enumerate(self.nets)]
            said = torch.stack([net.judged(p).float() for net, p in zip(self.nets, pooled)])
        hint = [p.float() for net, p in zip(self.nets, pooled) if isinstance(net, Teacher)]
        now = said.abs().mean(1, keepdim=True)
        self.units = torch.where(self.units > 0, self.units + 0.02 * (now - self.units), now)
        weight = self.weights / self.units
        return (said * weight).sum(0) * self.units.mean() / self.weights.sum(), torch.cat(hint, 1) if hint else None


def at_speed(x, speed):
    """Faster or slower, pitch and all, so that what a vocoder leaves has no place of its own in the spectrum. As long as before."""
    samples = x.shape[1]
    y = resampled(x, int(samples / speed) // 64 * 64)
    return torch.cat([y, y[:, : samples - y.shape[1]]], 1) if y.shape[1] < samples else y[:, :samples]


def blend(x, original, kind):
    """A copy with a part of its original: what is left of the vocoder is finer, and the worst of a poor one is gone.

    magnitudes   a share of the original's, in every copy another
    phases       the original's: what is left is the copy's magnitudes
    bands        the original's but for one band, a quarter to all of the spectrum
    spliced      the original but for one stretch, six to nine tenths of the clip
    """
    if kind == "spliced":
        length = 0.6 + 0.3 * torch.rand(len(x), 1, device=x.device)
        begin = torch.rand(len(x), 1, device=x.device) * (1 - length)
        at = torch.linspace(0, 1, x.shape[1], device=x.device)[None]
        inside = ((at - begin).minimum(begin + length - at) * x.shape[1] / 160).clamp(0, 1)  # 10 ms from one to the other
        return inside * x + (1 - inside) * original
    points = int(np.random.choice([256, 512, 1024]))
    window = torch.hann_window(points, device=x.device)
    a, b = (torch.stft(v, points, points // 4, points, window, return_complex=True) for v in (x, original))
    if kind == "magnitudes":
        share = torch.rand(len(x), 1, 1, device=x.device)
        y = a * ((b.abs() + 1e-5) / (a.abs() + 1e-5)) ** share
    elif kind == "phases":
        y = b * ((a.abs() + 1e-5) / (b.abs() + 1e-5))
    else:
        wide = 0.25 + 0.75 * torch.rand(len(x), 1, 1, device=x.device)
        low = torch.rand(len(x), 1, 1, device=x.device) * (1 - wide)
        at = torch.linspace(0, 1, a.shape[1], device=x.device)[None, :, None]
        y = torch.where((at >= low) & (at <= low + wide), a, b)
    return torch.istft(y, points, points // 4, points, window, length=x.shape[1])


def cropped(x, kept, length):
    """The same stretch of every picture."""
    at = (torch.rand(len(kept), 1, device=D) * (kept[:, None] - length).clamp(min=1)).long() + torch.arange(length, device=D)
    return {k: placed(v, at % 318) for k, v in x.items()}


def spoilt(x, o):
    """Bands and times missing, in a stronger or weaker contrast."""
    b, t, bins, d = *x.shape, x.device
    x = prepared(x, o["floor"])
    x = x * (1 + o["contrast"] * (2 * torch.rand(b, 1, 1, device=d) - 1))
    bin_at, frames = torch.arange(bins, device=d)[None, None], torch.arange(t, device=d)[None, :, None]
    for _ in range(2):
        at, wide = torch.randint(0, bins - 2, (b, 1, 1), device=d), torch.randint(0, int(o["bands"] * bins) + 1, (b, 1, 1), device=d)
        x = x.masked_fill((bin_at >= at) & (bin_at < at + wide), 0)
        at, wide = torch.randint(0, t, (b, 1, 1), device=d), torch.randint(0, o["times"] * COLUMNS.get(bins, 1) + 1, (b, 1, 1), device=d)
        x = x.masked_fill((frames >= at) & (frames < at + wide), 0)
    top = torch.where(torch.rand(b, 1, 1, device=d) < o["top"], torch.randint(bins // 2, bins, (b, 1, 1), device=d), bins)
    return x.masked_fill(bin_at >= top, 0)


def eer(score, attack):
    y = attack[np.argsort(score)]
    miss, false = np.cumsum(y) / y.sum(), 1 - np.cumsum(1 - y) / (1 - y).sum()
    i = np.argmin(np.abs(miss - false))
    return float((miss[i] + false[i]) / 2)


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


@torch.no_grad()
def measured(nets, material, without, most=250):
    """Each network's EER of each group against held-out genuine speech on the training's ways, and its calibration; groups left out are measured whole."""
    rows, groups = material.rows, {}
    for i, r in enumerate(rows):
        if r["label"] == "attack" and (held_out(r) or group(r["family"]) in without):
            groups.setdefault(group(r["family"]), []).append(i)
    good = [i for i, r in enumerate(rows) if r["label"] == "genuine" and held_out(r)]
    chance = np.random.RandomState(1)
    torch.manual_seed(99)
    names = list(groups) if material.kind != "playback" else ["replay"]
    found = {name: {n: [] for n in names + ["genuine"]} for name in nets}
    for n in names:
        bad = chance.permutation(groups[n])[:most] if n != "replay" else chance.permutation(good)[:most]
        for o in range(0, len(bad), 128):
            part = torch.tensor(bad[o : o + 128])
            x, _ = material.pictures(torch.tensor(chance.choice(good, len(part))), part)
            for name, net in nets.items():
                z = net({k: prepared(v, material.o["floor"]) for k, v in x.items()}).float().cpu().numpy()
                found[name]["genuine"].append(z[: len(part)])
                found[name][n].append(z[len(part) :])
    out = {}
    for name, f in found.items():
        genuine = np.concatenate(f["genuine"])
        attacks = {n: np.concatenate(f[n]) for n in names}
        rates = {n: round(100 * eer(np.concatenate([genuine, a]), np.concatenate([np.zeros(len(genuine)), np.ones(len(a))])), 1) for n, a in sorted(attacks.items())}
        heard = [a for n, a in attacks.items() if n not in without]
        score = np.concatenate([genuine, *heard])
        label = np.concatenate([np.zeros(len(genuine)), *[np.ones(len(a)) for a in heard]])
        weight = np.concatenate([np.ones(len(genuine)), *[np.ones(len(a)) / len(a) for a in heard]])
        out[name] = rates, platt(score, label, weight) if heard else None
    return out


@torch.no_grad()
def chosen_by(nets, bank, material):
    """EER in all and page by page on the galleries that choices are made on, as recorded and through G.711."""
    out, rows, clips = {name: {} for name in nets}, [], []
    for part in ("choose-genuine", "choose-attacks"):
        found = json.load(open(f"{bank}/{part}.json"))
        rows += [(r["key"].split("+")[0], part == "choose-attacks") for r in found]
        clips.append(np.load(f"{bank}/{part}.npy"))
    x, attack, page = levelled(torch.from_numpy(np.concatenate(clips)).to(D).float() / 32768), np.array([r[1] for r in rows]), np.array([r[0] for r in rows])
    for line, through in (("plain", lambda x: x), ("G.711", mulaw)):
        scores = {name: [] for name in nets}
        for part in x.split(128):
            found = material.fronts(through(part))
            for name, net in nets.items():
                scores[name].append(net({k: prepared(v, material.o["floor"]) for k, v in found.items() if k in net.names}).float().cpu().numpy())
        for name in nets:
            s = np.concatenate(scores[name])
            rate = lambda keep: round(100 * eer(s[keep], attack[keep].astype(float)), 1)
            out[name][line] = dict(all=rate(attack >= 0), **{p: rate(page == p) for p in sorted(set(page)) if attack[page == p].sum() > 20})
    return out


@contextlib.contextmanager
def uphill(net, far):
    """The weights moved so far along the gradient that they have, and back: sharpness-aware minimisation learns by the gradient that is met there (LOG.md 25)."""
    weights = [p for p in net.parameters() if p.grad is not None]
    with torch.no_grad():
        gradients = [p.grad for p in weights]
        length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        steps = torch._foreach_mul(gradients, far / (length + 1e-12))
        torch._foreach_add_(weights, steps)
    yield
    with torch.no_grad():
        torch._foreach_sub_(weights, steps)


def save(nets, out):
    """As quantize.py reads them: without the head that only training has."""
    for name, net in nets.items():
        torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items() if not k.startswith(("family.", "hint."))}, f"{out}-{name}.pt")


def main(a):
    o = {**OPTIONS, **json.loads(a.options)}
    without, start = set(filter(None, a.without.split(","))), time.time()
    torch.manual_seed(a.seed)
    np.random.seed(a.seed)
    torch.set_num_threads(4)  # several of these run side by side: more threads would wait for each other for minutes
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    kinds = {name: tuple(name.split("+")) for name in a.fronts.split(",")}
    starts = dict.fromkeys(kinds, a.start)
    if a.kind == "slim":
        starts = {os.path.basename(path).removesuffix(".pt"): path for path in a.start.split(",")}
        kinds = dict.fromkeys(starts, ("mel",))
    state_of = lambda path: {k: v.float() if v.is_floating_point() else v for k, v in torch.load(path, map_location="cpu").items()}
    teachers = Teachers(a.teachers.split(",")) if a.teachers else None
    rivals = Rivals(o["rivals"], os.path.dirname(a.bank), D) if o["rivals"] else None
    material = Material(a.bank, a.kind, tuple(sorted({f for k in kinds.values() for f in k} | (teachers.fronts if teachers else set()))), without, a.rooms, o, rivals)
    heads = material.families if a.kind not in ("playback", "slim") and o["told"] else 0
    hints = teachers.hints if teachers and a.kind in ("slim", "campplus") and o["hint"] else 0
    kinds_of = dict(teacher=lambda name: Teacher(kinds[name], o["drop"], heads), whisper=lambda name: Whisper(o["drop"], heads), slim=lambda name: Slim(*shape_of(state_of(starts[name])), o["drop"], hints), campplus=lambda name: Campplus(o["drop"], heads, hints))
    made = kinds_of.get(a.kind, lambda name: Attack(a.kind, kinds[name], o["drop"], heads))
    nets = {name: made(name).to(D, memory_format=torch.channels_last) for name in kinds}
    averages = {name: made(name).to(D) for name in kinds}
    if a.start:
        for name, net in nets.items():
            state = state_of(starts[name])
            if hasattr(net, "begin") and state.keys() - net.state_dict().keys():  # another network's
                net.begin(state)
            else:
                net.load_state_dict(state, strict=False)
    optimizers = {}
    for name, net in nets.items():
        averages[name].load_state_dict(net.state_dict())
        base = set(net.base.parameters()) if hasattr(net, "base") else set()  # is held nearer to where it began
        groups = [dict(params=[p for p in net.parameters() if p not in base], share=1.0), dict(params=list(base), share=o["slow"])]
        optimizers[name] = torch.optim.AdamW([g for g in groups if g["params"]], lr=o["rate"], weight_decay=o["decay"], fused=D.type == "cuda")
    pairs_of = lambda name: [(m, n) for m, n in zip(averages[name].state_dict().values(), nets[name].state_dict().values()) if n.is_floating_point()]
    follow = {name: [list(side) for side in zip(*pairs_of(name))] for name in nets}
    print(a.out, len(material.rows), f"clips, {time.time() - start:.0f} s", flush=True)
    speech = levelled(material.clips[[i for i, r in enumerate(material.rows) if r["label"] == "genuine" and not held_out(r)]].float() / 32768) if rivals else None
    half = o["size"] // 2
    y, total, step, start = torch.cat([torch.zeros(half, device=D), torch.ones(half, device=D)]), {name: 0.0 for name in nets}, 0, time.time()
    pairs, saved, heard = int(half * o["copies"]), 0, None

    def loss_of(net, x, label, families):
        """-> the loss and the scores. families: None for clips that are mixed, of which nothing but the label is known."""
        with torch.autocast(D.type, torch.bfloat16):
            planes = net.stages(x) if a.kind == "slim" and teachers else None
            pooled = net.pooled_stages(planes) if planes else net.pooled(x)
            z = net.judged(pooled).float()
        loss = F.binary_cross_entropy_with_logits(z, label)
        if teachers:
            loss = o["labels"] * loss + (1 - o["labels"]) * F.smooth_l1_loss(z, told)
        if hints:
            loss = loss + o["hint"] * F.mse_loss(net.hint(pooled.float()), hint)
        if planes and teachers.planes and o["away"]:
            loss = loss + o["away"] * net.away(planes, teachers.planes)
        if heads and families is not None:
            loss = loss + o["told"] * F.cross_entropy(net.family(pooled.float()), families)
        if o["apart"] and pairs and families is not None:  # a copy further than its original
            loss = loss + o["apart"] * F.softplus(1 - z[half : half + pairs] + z[:pairs]).mean()
        return loss, z.detach()

    while (done := (time.time() - start) / a.seconds) < 1:
        step += 1
        with torch.no_grad():
            x, kept, families, of = material.batch(o["size"])
            x = cropped(x, kept, int(np.random.choice([150, 220, 318])))
            x, label, mixed = {k: spoilt(v, o) for k, v in x.items()}, y * 0.96 + 0.02, o["mixup"] and step % 2
            if mixed:
                share, other = np.random.beta(o["mixup"], o["mixup"]), torch.randperm(o["size"], device=D)
                x, label = {k: v * share + v[other] * (1 - share) for k, v in x.items()}, label * share + label[other] * (1 - share)
            told, hint = teachers(x) if teachers else (None, None)
            if teachers:  # are not followed where they are wrong
                told = torch.where(label > 0.9, told.clamp(min=SURE), torch.where(label < 0.1, told.clamp(max=-SURE), told))
        missed = torch.zeros(2 * half, device=D)
        for name, net in nets.items():
            for g in optimizers[name].param_groups:
                g["lr"] = g["share"] * o["rate"] * min(1, step / 200) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
            lost = lambda: loss_of(net, x, label, None if mixed else families)
            optimizers[name].zero_grad(set_to_none=True)
            loss, z = lost()
            loss.backward()
            if o["sharp"]:
                with uphill(net, o["sharp"]):
                    optimizers[name].zero_grad(set_to_none=True)
                    lost()[0].backward()
            if not mixed and a.kind != "playback":
                missed = missed + F.binary_cross_entropy_with_logits(z, y, reduction="none") / len(nets)
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            optimizers[name].step()
            with torch.no_grad():
                rate = min(0.998, step / (step + 100))
                torch._foreach_lerp_(*follow[name], 1 - rate)
                total[name] += loss.detach()
        if rivals:
            rivals.learn(speech, step % len(rivals.names), [averages[name].eval() for name in nets], material.fronts)
        if not mixed and a.kind != "playback":
            if heard:  # the losses of two steps ago: they are here by now, so that nothing waits for the accelerator
                if heard[2]:
                    heard[2].synchronize()
                material.draw.learn(heard[0], *heard[1].chunk(2))
            heard = of, missed.to("cpu", non_blocking=True), torch.cuda.current_stream().record_event() if D.type == "cuda" else None
        if done * 5 > saved + 1:
            saved += 1
            save(averages, f"{a.out}-before")
        if step % 250 == 0:
            print(a.out, step, f"{time.time() - start:.0f} s", {k: round(float(v) / 250, 3) for k, v in total.items()}, flush=True)
            total = {name: 0.0 for name in nets}
            if rivals:
                print(a.out, "passed", dict(zip(rivals.names, rivals.passed.tolist())), flush=True)
    save(averages, a.out)
    for net in averages.values():
        net.eval()
    choose = chosen_by(averages, a.bank, material) if a.kind != "playback" and os.path.exists(a.bank + "/choose-genuine.json") else {}
    for name, found in choose.items():
        print(a.out, name, found, flush=True)
    for name, (rates, calibration) in measured(averages, material, without).items():
        json.dump(dict(kind=a.kind, fronts=name, choose=choose.get(name), options=o, steps=step, seed=a.seed, without=sorted(without), eer=rates, calibration=calibration), open(f"{a.out}-{name}.json", "w"), indent=1)
        print(a.out, name, step, rates, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bank")
    parser.add_argument("out")
    parser.add_argument("kind", choices=("narrow", "wide", "teacher", "whisper", "slim", "campplus", "playback"))
    parser.add_argument("--fronts", default="mel")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", default="")
    parser.add_argument("--teachers", default="")
    parser.add_argument("--rooms", default="", help="of channel.py")
    parser.add_argument("--without", default="")
    parser.add_argument("--options", default="{}")
    main(parser.parse_args())
