"""python3 calibrate.py TRAIN.npz COHORT.npy CHECKPOINT OUT.json [DEV-SET.npz …]: from scores to log-likelihood ratios.

Trials are made of table.py's training rows: every enrollment (three segments, clean or through a call) against every test of
every condition. The ratio is a sum of a few terms, each a weight times the product of two features (README.md lists them), fitted by
logistic regression in which every condition and both kinds of trial weigh the same. The thresholds are read off the impostors
and drawn on with an exponential tail. Without DEV tables that is all; with them, each DEV set is scored with what the training
speakers taught, and the result printed."""
import json, sys
import numpy as np
from scipy.optimize import minimize
import measure, networks, trials

NEAREST = 200
FEATURES = ["one", "cosine", "snorm", "znorm", "tnorm", "templateSpeech", "probeSpeech", "leastSpeech", "templateSnr", "probeSnr", "leastSnr", "templateWideness", "probeWideness", "leastWideness", "widenessDifference"]
TERMS = [("one", "one"), ("cosine", "one"), ("cosine", "leastSpeech"), ("leastSpeech", "one"), ("cosine", "leastSnr"), ("leastSnr", "one"), ("leastWideness", "one"), ("cosine", "leastWideness"), ("widenessDifference", "one"), ("snorm", "one"), ("snorm", "leastWideness")]
RATES = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6]
MEASURED = 0.001  # rates below are extrapolated


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def mapped(checkpoint):
    """The checkpoint's linear map: inner embedding -> unit embedding."""
    w = networks.weights(checkpoint)
    weight, bias = networks.quantized(w["fc.weight"]).numpy(), w["fc.bias"].numpy()
    return lambda e: unit(e @ weight.T + bias)


def near(x, cohort, nearest=NEAREST):
    """Mean and deviation of each voice's best cohort scores."""
    best = -np.partition(-(x @ cohort.T), nearest, 1)[:, :nearest]
    return best.mean(1), best.std(1, ddof=1)


def features(t, p, cohort):
    """t, p: (embeddings [n, d], quality [n, 3]) of the two sides of n trials -> [n, features] as the engine makes them."""
    (te, tq), (pe, pq) = t, p
    cosine = (te * pe).sum(1)
    return assemble(cosine, near(te, cohort), near(pe, cohort), tq, pq)


def assemble(cosine, t_near, p_near, tq, pq):
    z, n = (cosine - t_near[0]) / t_near[1], (cosine - p_near[0]) / p_near[1]
    speech = [np.log(np.clip(q[:, 0], 0.25, 60)) for q in (tq, pq)]
    snr = [np.clip(q[:, 1], -5, 40) / 10 for q in (tq, pq)]
    wide = [np.clip((q[:, 2] - 3600) / 3400, 0, 1) for q in (tq, pq)]
    return np.stack([np.ones_like(cosine), cosine, (z + n) / 2, z, n, *speech, np.minimum(*speech), *snr, np.minimum(*snr), *wide, np.minimum(*wide), np.abs(wide[0] - wide[1])], 1)


def products(x, terms):
    return np.stack([x[:, FEATURES.index(a)] * x[:, FEATURES.index(b)] for a, b in terms], 1)


def template(e, q):
    """Several recordings of one session as one: mean embedding, speech added up, SNR and bandwidth averaged."""
    return unit(e.mean(0)), np.array([q[:, 0].sum(), q[:, 1].mean(), q[:, 2].mean()])


def train_trials(path, to_unit, cohort):
    """-> features, same, stratum (enrollment condition × test condition), speakers of both sides"""
    d = np.load(path)
    e, q, s, k, p = to_unit(d["e"]), d["q"], d["speaker"], d["condition"], d["place"]
    out = []
    for enrolled in ("clean", "call"):
        who = np.unique(s)
        models = [template(e[m], q[m]) for m in ((s == w) & (k == enrolled) & (p < 3) for w in who)]
        me, mq = np.stack([m[0] for m in models]), np.stack([m[1] for m in models])
        m_near = near(me, cohort)
        for tested in np.unique(k[p == 3]):
            ix = np.flatnonzero((p == 3) & (k == tested))
            t_near = near(e[ix], cohort)
            a, b = np.meshgrid(np.arange(len(who)), np.arange(len(ix)), indexing="ij")
            a, b = a.ravel(), b.ravel()
            x = assemble((me @ e[ix].T).ravel(), (m_near[0][a], m_near[1][a]), (t_near[0][b], t_near[1][b]), mq[a], q[ix][b])
            out.append((x, (who[a] == s[ix][b]).astype(int), np.full(len(a), f"{enrolled}/{tested}"), who[a], s[ix][b]))
    return [np.concatenate(column) for column in zip(*out)]


def dev_trials(path, name, to_unit, cohort, enrolled="clean", tested="clean"):
    d = np.load(path)
    e, q, k = to_unit(d["e"]), d["q"], d["condition"]
    keys, models, rows = trials.trials(name)
    at = {kind: np.flatnonzero(k == kind)[np.argsort(d["place"][k == kind])] for kind in (enrolled, tested)}
    made = [template(e[at[enrolled][ks]], q[at[enrolled][ks]]) for ks in models]
    me, mq = np.stack([m[0] for m in made]), np.stack([m[1] for m in made])
    te, tq = e[at[tested]], q[at[tested]]
    m_near, t_near, a, b = near(me, cohort), near(te, cohort), rows[:, 1], rows[:, 2]
    x = assemble((me[a] * te[b]).sum(1), (m_near[0][a], m_near[1][a]), (t_near[0][b], t_near[1][b]), mq[a], tq[b])
    who = np.array([key[0] for key in keys])
    return x, rows[:, 0], who[[models[m][0] for m in a]], who[b]


def fit(x, same, stratum, terms, ridge=1e-3, prior=0.1):
    """Logistic regression at a prior of a tenth, where decisions are made; every stratum's genuine trials and impostors weigh alike."""
    z = products(x, terms)
    scale = z.std(0) + 1e-9
    scale[0] = 1.0
    y, offset = 2.0 * same - 1, np.log(prior / (1 - prior))
    weight = np.zeros(len(y))
    for g in np.unique(stratum):
        for label, share in ((1, prior), (0, 1 - prior)):
            m = (stratum == g) & (same == label)
            weight[m] = share / max(1, m.sum())
    weight /= weight.sum()
    z = z / scale

    def cost(w):
        margin = y * (z @ w + offset)
        g = -weight * y / (1 + np.exp(np.clip(margin, -50, 50)))
        return (weight * np.logaddexp(0, -margin)).sum() + ridge * (w[1:] ** 2).sum() / 2, z.T @ g + ridge * np.r_[0, w[1:]]

    return minimize(cost, np.zeros(len(terms)), jac=True, method="L-BFGS-B", options=dict(maxiter=500)).x / scale


def thresholds(llr, stratum):
    """The ratio that impostors exceed at a rate, each stratum weighing the same; beyond the last rate that is measured, an exponential tail."""
    order = np.argsort(-llr)
    weight = np.zeros(len(llr))
    for g in np.unique(stratum):
        weight[stratum == g] = 1 / (stratum == g).sum()
    mass = np.cumsum(weight[order]) / weight.sum()
    at = lambda rate: float(llr[order][np.searchsorted(mass, rate)])
    slope = (at(MEASURED) - at(10 * MEASURED)) / np.log(10)
    out = [(r, at(r) if r >= MEASURED else at(MEASURED) + slope * np.log(MEASURED / r)) for r in RATES]
    return [[r, round(t, 4)] for r, t in out]


def threshold_at(table, rate):
    r, t = np.array(table).T
    return np.interp(np.log(rate), np.log(r[::-1]), t[::-1])


def line(title, llr, same, table):
    miss, false = (llr[same == 1] < threshold_at(table, 0.01)).mean(), (llr[same == 0] >= threshold_at(table, 0.01)).mean()
    rare = (llr[same == 0] >= threshold_at(table, 0.001)).mean()
    print(f"{title:28s} EER {measure.eer(llr, same):5.2f}  FNMR@1% {measure.fnmr_at(llr, same):5.1f}  Cllr {measure.cllr(llr, same):.3f} min {measure.min_cllr(llr, same):.3f}  at target 1%: FMR {100 * false:.2f} FNMR {100 * miss:.1f}; at 0.1%: FMR {100 * rare:.3f}", flush=True)


def main(train, cohort, checkpoint, out, *dev):
    to_unit, cohort = mapped(checkpoint), np.load(cohort)
    x, same, stratum, left, right = train_trials(train, to_unit, cohort)
    weights = fit(x, same, stratum, TERMS)
    llr = products(x, TERMS) @ weights
    table = thresholds(llr[same == 0], stratum[same == 0])
    json.dump(dict(terms=[[a, b, round(float(w), 6)] for (a, b), w in zip(TERMS, weights)], thresholds=table, nearest=NEAREST), open(out, "w"), indent=1)
    for g in np.unique(stratum):
        line(g, llr[stratum == g], same[stratum == g], table)
    for path in dev:
        name = path.split("/")[-1][:-4]
        for tested in np.unique(np.load(path)["condition"]):
            x, same, *_ = dev_trials(path, name, to_unit, cohort, "clean", tested)
            line(f"{name} {tested}", products(x, TERMS) @ weights, same, table)


if __name__ == "__main__":
    main(*sys.argv[1:])
