"""python3 compare.py PACK|DEV NETWORK.pt…: EER of float networks before they are rounded.

PACK: pack.py's folder, the galleries that choices are made on. DEV: extract.py's folder, for a look; the figures that are reported are the engine's
(`npm run bench:accuracy -- --spoof`). NETWORK.pt: train.py's; several joined by + are the mean of their weights.
As recorded / through G.711; recordings of DEV are cut to windows of 3.2 s after silence was left out, their score is the mean.
"""
import glob, io, json, os, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # behind this folder: both have a pack.py
import numpy as np, soundfile, torch
import audio
from bank import STEP
from channel import mulaw
from network import Fronts, prepared, restored
from sources import LINEAGE
from train import eer

WINDOW = int(3.2 * audio.RATE)


def packed(folder):
    for path in sorted(glob.glob(folder + "/choose-*.json")):
        raw = open(path[:-5] + ".bin", "rb").read()
        for r in json.load(open(path)):
            x, _ = soundfile.read(io.BytesIO(raw[r["off"] : r["off"] + r["bytes"]]), dtype="int16")
            yield r["label"], r["key"].split("+")[0], x.astype(np.float32) * STEP / 32768


def recorded(folder):
    for row in open(folder + "/list.tsv"):
        file, label, system = row.rstrip("\n").split("\t")
        if label in ("genuine", "attack"):
            x, rate = soundfile.read(f"{folder}/{file}", dtype="float32")
            yield label, system, audio.resample(x, rate)


@torch.no_grad()
def scores(nets, parts, fronts):
    """[parts][networks] of windows of the same length."""
    seen = {k: prepared(v) for k, v in fronts(torch.from_numpy(np.stack(parts).astype(np.float32))).items()}
    return np.stack([net(seen).numpy() for net in nets], 1)


def of_recording(nets, x, fronts):
    """[networks] by the mean over its windows, or None."""
    x = audio.level(audio.trim(x))
    parts = [p for p in (x[at : at + WINDOW] for at in range(0, max(1, len(x) - WINDOW // 2), WINDOW)) if len(p) >= audio.RATE]
    told = [scores(nets, [p], fronts)[0] * len(p) for p in parts]
    return sum(told) / sum(map(len, parts)) if parts else None


def through_line(x):
    return mulaw(torch.from_numpy(audio.level(x[: len(x) // 4 * 4]))[None])[0].numpy()


def main(folder, *names):
    torch.set_num_threads(1)
    nets, fronts, rows = [restored(n) for n in names], Fronts(("linear", "short")), []
    every = int(os.environ.get("EVERY", 1))  # attacks: one in so many, where time is short
    if os.path.exists(folder + "/list.tsv"):
        for label, system, x in recorded(folder):
            lines = [of_recording(nets, v, fronts) for v in (x, through_line(x))] if len(x) >= audio.RATE else [None]
            if all(line is not None for line in lines):
                rows.append((label, system, np.stack(lines)))
    else:
        clips = [c for i, c in enumerate(packed(folder)) if c[0] == "genuine" or i % every == 0]
        for at in range(0, len(clips), 8):
            part = clips[at : at + 8]
            lines = [scores(nets, v, fronts) for v in ([audio.level(x) for _, _, x in part], [through_line(x) for _, _, x in part])]
            rows += [(label, system, np.stack([line[i] for line in lines])) for i, (label, system, _) in enumerate(part)]
    genuine = np.array([r[2] for r in rows if r[0] == "genuine"])
    for title, keep in (("all", lambda s: True), ("never heard", lambda s: not s.startswith(LINEAGE)), *[(s, lambda t, s=s: t == s) for s in sorted({r[1] for r in rows if r[0] == "attack"})]):
        attack = np.array([r[2] for r in rows if r[0] == "attack" and keep(r[1])])
        if len(attack) < 4:
            continue
        label = np.concatenate([np.zeros(len(genuine)), np.ones(len(attack))])
        told = ["/".join(f"{100 * eer(np.concatenate([genuine[:, line, k], attack[:, line, k]]), label):.1f}" for line in (0, 1)) for k in range(len(nets))]
        missed = ["/".join(f"{100 * np.mean(attack[:, line, k] <= np.quantile(genuine[:, line, k], 0.95)):.0f}" for line in (0, 1)) for k in range(len(nets))]
        print(f"{title:36s} {len(attack):4d}  EER {'  '.join(told)}   missed at 5 % {'  '.join(missed)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
