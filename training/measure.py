"""Error rates and calibration costs of a set of trials (words of ISO/IEC 19795-1 and of NIST's evaluations)."""
import numpy as np


def rates(scores, same):
    """-> FMR and FNMR at every threshold, thresholds ascending: a trial matches where its score is above."""
    order = np.argsort(scores, kind="stable")
    y = same[order].astype(float)
    return 1 - np.cumsum(1 - y) / (1 - y).sum(), np.cumsum(y) / y.sum()


def eer(scores, same):
    fmr, fnmr = rates(scores, same)
    i = np.argmin(np.abs(fnmr - fmr))
    return 50 * (fnmr[i] + fmr[i])


def fnmr_at(scores, same, fmr=0.01):
    """FNMR % at the threshold that lets `fmr` of the impostors through."""
    return 100 * (scores[same == 1] <= np.quantile(scores[same == 0], 1 - fmr)).mean()


def cllr(llr, same):
    """Cost of log-likelihood ratios (natural logarithm) in bits; 1 is knowing nothing."""
    return (np.logaddexp(0, -llr[same == 1]).mean() + np.logaddexp(0, llr[same == 0]).mean()) / 2 / np.log(2)


def min_cllr(scores, same):
    """Cllr after the best monotone calibration (pool adjacent violators)."""
    order = np.lexsort((-same, scores))  # ties: genuine first, so that they are pooled
    y = same[order].astype(float)
    value, weight = [], []
    for v in y:
        value.append(v)
        weight.append(1.0)
        while len(value) > 1 and value[-2] >= value[-1]:
            w = weight[-2] + weight[-1]
            value[-2:] = [(value[-2] * weight[-2] + value[-1] * weight[-1]) / w]
            weight[-2:] = [w]
    p = np.repeat(value, np.array(weight, int))
    with np.errstate(divide="ignore"):
        llr = np.log(p) - np.log1p(-p) - np.log(y.sum() / (1 - y).sum())
    return cllr(llr, y)


def interval(statistic, scores, same, left, right, rounds=200, seed=0):
    """95 % interval of a statistic, speakers drawn with replacement; left, right: the speakers of a trial's two sides."""
    chance, who = np.random.RandomState(seed), np.unique(np.concatenate([left, right]))
    a, b = np.searchsorted(who, left), np.searchsorted(who, right)
    out = []
    for _ in range(rounds):
        count = np.bincount(chance.randint(0, len(who), len(who)), minlength=len(who))
        times = np.where(same == 1, count[a], count[a] * count[b])
        pick = np.repeat(np.arange(len(scores)), times)
        if 0 < same[pick].sum() < len(pick):
            out.append(statistic(scores[pick], same[pick]))
    return np.percentile(out, [2.5, 97.5])
