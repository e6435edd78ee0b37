"""Figures of ISO/IEC 30107-3: APCER by attack system, BPCER, and the equal error rate."""
import numpy as np


def eer(score, attack):
    order = np.argsort(score)
    y = attack[order]
    miss, false = np.cumsum(y) / y.sum(), 1 - np.cumsum(1 - y) / (1 - y).sum()
    i = np.argmin(np.abs(miss - false))
    return float((miss[i] + false[i]) / 2)


def wilson(k, n, z=1.96):
    """The 95 % interval of a rate."""
    if n == 0:
        return [0.0, 1.0]
    p, d = k / n, 1 + z * z / n
    centre, half = (p + z * z / (2 * n)) / d, z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    return [float(max(0, centre - half)), float(min(1, centre + half))]


def report(rows, score, bpcer=0.05):
    """Pooled EER, and APCER of every system at the threshold where 5 % of genuine clips are refused."""
    attack = np.array([r["label"] == "attack" for r in rows], float)
    threshold = np.quantile(score[attack == 0], 1 - bpcer)
    out = dict(eer=round(100 * eer(score, attack), 2), genuine=int((attack == 0).sum()), attacks=int(attack.sum()), apcer={})
    for system in sorted({r["system"] for r in rows if r["label"] == "attack"}):
        mine = np.array([r["system"] == system for r in rows])
        missed = int((score[mine] <= threshold).sum())
        out["apcer"][system] = dict(clips=int(mine.sum()), apcer=round(missed / mine.sum(), 3), interval=[round(v, 3) for v in wilson(missed, int(mine.sum()))])
    return out
