"""python3 rates.py MODEL.vvm OUT.vvm SCORES.json KIND…: how high genuine speech reaches in the attack checks, on sources that were left out of training: what their
false-alarm rates are kept by.

SCORES.json: `npm run bench:accuracy -- --spoof --scores SCORES.json --corpora LEFT --model MODEL.vvm`, LEFT by `extract.py … left`, or several files by a comma; all lines and lengths
together, every source weighing the same. What a recording reaches is its ratio less what its reliability leaves open; the tenth that reaches highest is taken for an
exponential tail, and moved up to what 99 of 100 draws of sources stay below, because few sources were heard and the next one is another. Leaving each
source out in turn shows what rate a target of 1 % comes to. Said beside it: the ratio that these recordings would give; KIND+ratio sets that of KIND to it first.
OUT may be MODEL; only the descriptions of the sections KIND change.
"""
import json, os, sys
from collections import defaultdict

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
from export import section
from insert import opened, parts, written
from train import platt

TARGET, TOP = 0.01, 0.1
DRAWS = 2000  # of sources, with replacement
ERRORS = 2.326  # standard errors that 99 of 100 stay below
LEAST = 1  # of thresholds, as src/engine/voice-engine.ts has it


def even(rows):
    """Weights with which every system and source counts the same."""
    sizes = defaultdict(int)
    for r in rows:
        sizes[r["label"], r["system"]] += 1
    return np.array([1 / sizes[r["label"], r["system"]] for r in rows])


def tail(reach, weight):
    """location, scale of P(reach > location + scale · x) = exp(-x), by the highest tenth."""
    order = np.argsort(-reach)
    share = np.cumsum(weight[order]) / weight.sum()
    at = int(np.searchsorted(share, TOP))
    top, w, edge = reach[order[:at]], weight[order[:at]], reach[order[at]]
    scale = float(((top - edge) * w).sum() / w.sum())
    return float(edge + scale * np.log(TOP)), scale


def kept(reach, weight, source):
    """The same, moved up by ERRORS standard errors of what it reaches at TARGET, by drawing sources."""
    rows, random = [np.flatnonzero(source == s) for s in sorted(set(source))], np.random.default_rng(1)
    drawn = (np.concatenate([rows[i] for i in random.integers(len(rows), size=len(rows))]) for _ in range(DRAWS))
    reached = [location - scale * np.log(TARGET) for location, scale in (tail(reach[some], weight[some]) for some in drawn)]
    location, scale = tail(reach, weight)
    return location + ERRORS * float(np.std(reached)), scale


def fitted(kind, rows, with_ratio):
    """-> location, scale, and what the ratio becomes: slope, offset"""
    rows = [r for r in rows if r["kind"] == kind and r["reliability"] > 0 and r["label"] in ("genuine", "attack", "replay")]
    llr, attack, weight = np.array([r["llr"] for r in rows]), np.array([r["label"] != "genuine" for r in rows]), even(rows)
    slope, offset = platt(llr, attack.astype(float), weight)
    print(f"{kind}: by these recordings the ratio were {slope:.2f} · itself + {offset:.2f}")
    if not with_ratio:
        slope, offset = 1, 0
    reach, source, line = slope * llr + offset - np.array([r["leftOpen"] for r in rows]), np.array([r["system"] for r in rows]), np.array([r["condition"] for r in rows])
    at = lambda some: (lambda location, scale: location - scale * np.log(TARGET))(*kept(reach[some], weight[some], source[some]))
    location, scale = kept(reach[~attack], weight[~attack], source[~attack])
    bound, share = max(LEAST, at(~attack)), lambda some: 100 * np.average(reach[some] > bound, weights=weight[some])
    print(f"   genuine reaches {bound:.2f} at {100 * TARGET:.0f} %, scale {scale:.2f}")
    for name in dict.fromkeys(line):
        print(f"   {name:12s} above it: genuine {share(~attack & (line == name)):.1f} %, attacks {share(attack & (line == name)):.0f} %")
    met = {s: 100 * np.mean(reach[~attack & (source == s)] > at(~attack & (source != s))) for s in sorted(set(source[~attack])) if (~attack & (source == s)).sum() >= 20}
    print("   left out, %:", {str(s): round(float(v), 1) for s, v in met.items()}, f"mean {np.mean(list(met.values())):.2f}")
    return location, scale, slope, offset


def main(source, out, scores, *kinds):
    rows = [row for path in scores.split(",") for row in json.load(open(path))]
    header, sections = opened(source)
    for kind, _, ratio in (k.partition("+") for k in kinds):
        description, tensors = parts(sections[kind])
        location, scale, slope, offset = fitted(kind, rows, ratio == "ratio")
        a, b = description["calibration"]
        sections[kind] = section({**description, "calibration": [slope * a, slope * b + offset], "genuine": dict(location=location, scale=scale)}, tensors)
    written(out, header, sections)


if __name__ == "__main__":
    main(*sys.argv[1:])
