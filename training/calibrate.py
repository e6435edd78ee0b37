"""From scores to log-likelihood ratios, and from a false-accept rate to a threshold.

python3 calibrate.py train TRAIN.npz COHORT.npy CHECKPOINT OUT.json [SET.npz …]   fitted on training speakers, held against DEV
python3 calibrate.py dev TRAIN.npz COHORT.npy CHECKPOINT OUT.json SET.npz …       fitted on DEV, figures cross-validated over speakers

All tables are table.py's. The ratio is a sum of a few terms, each a weight times the product of two features (README.md), fitted by
logistic regression in which every condition and both kinds of trial weigh the same. The thresholds are read off impostors and
drawn on with an exponential tail. Training speakers have one session each, and many sound alike to each other (children, one
room): what they teach is too careful by far (LOG.md). So what ships is fitted on DEV, and the figures are those of
speakers it was not fitted on."""
import hashlib, json, os, sys
import numpy as np
from scipy.optimize import minimize
import measure, networks, trials

NEAREST = 200
FEATURES = ["one", "cosine", "snorm", "znorm", "tnorm", "templateSpeech", "probeSpeech", "leastSpeech", "templateSnr", "probeSnr", "leastSnr", "templateWideness", "probeWideness", "leastWideness", "widenessDifference"]
TERMS = [("one", "one"), ("cosine", "one"), ("leastSpeech", "one"), ("leastWideness", "one"), ("widenessDifference", "one"), ("cosine", "leastWideness")]  # no s-norm, no SNR: LOG.md
SESSIONS = ("cvau-dev", "wuw-dev")  # sets with sessions: thresholds come from these
FITTED = ("clean", "gsm", "noise10", "cut2")  # conditions fitted on
FOLDS = 4
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


def logistic(z, same, weight, offset, ridge):
    """Weights of the columns of z (the first is constant) by weighted logistic regression."""
    scale = z.std(0) + 1e-9
    scale[0] = 1.0
    z, y, weight = z / scale, 2.0 * same - 1, weight / weight.sum()

    def cost(w):
        margin = y * (z @ w + offset)
        g = -weight * y / (1 + np.exp(np.clip(margin, -50, 50)))
        return (weight * np.logaddexp(0, -margin)).sum() + ridge * (w[1:] ** 2).sum() / 2, z.T @ g + ridge * np.r_[0, w[1:]]

    return minimize(cost, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B", options=dict(maxiter=500)).x / scale


def fit(x, same, stratum, terms, ridge=1e-3, prior=0.1):
    """The ratio's weights, at a prior of a tenth, where decisions are made; every stratum's genuine trials and impostors weigh alike."""
    weight = np.zeros(len(same))
    for g in np.unique(stratum):
        for label, share in ((1, prior), (0, 1 - prior)):
            m = (stratum == g) & (same == label)
            weight[m] = share / max(1, m.sum())
    return logistic(products(x, terms), same, weight, np.log(prior / (1 - prior)), ridge)


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


def reliability(x, same, stratum, accepted):
    """How likely a genuine speaker is accepted at a false-accept rate of 1 %, from the quality alone."""
    m = same == 1
    terms = [("one", "one"), ("leastSpeech", "one"), ("leastSnr", "one"), ("widenessDifference", "one")]
    _, index, count = np.unique(stratum[m], return_inverse=True, return_counts=True)
    weights = logistic(products(x[m], terms), accepted[m].astype(int), 1 / count[index], 0.0, 1e-5)
    return [[a, b, round(float(w), 4)] for (a, b), w in zip(terms, weights)]


def agreement(triples, to_unit):
    """Cosines inside one session: a third segment with the mean of two others, and with one other. triples: [session, 3, inner].
    -> the levels where as many foreign segments stay above as own ones fall below: (consistency, speakers)"""
    x, out = to_unit(triples), []
    for other in (unit(x[:, :2].mean(1)), x[:, 0]):
        s = x[:, 2] @ other.T
        own, foreign = np.diag(s), s[~np.eye(len(s), dtype=bool)]
        levels = np.linspace(0, 1, 501)
        v = levels[int(np.argmin([abs((own < v).mean() - (foreign >= v).mean()) for v in levels]))]
        out.append(round(float(v), 3))
        print(f"one session: own below {v:.3f}: {100 * (own < v).mean():.2f} %, foreign above: {100 * (foreign >= v).mean():.2f} %")
    return out


def dev_triples(paths):
    """The three enrollment segments of every session (one session a speaker, so that foreign means foreign)."""
    out = []
    for path in paths:
        name = set_of(path)
        if name in SESSIONS:
            d = np.load(path)
            clean = d["e"][d["condition"] == "clean"][np.argsort(d["place"][d["condition"] == "clean"])]
            keys, models, _ = trials.trials(name)
            first = {keys[ks[0]][0]: ks for ks in reversed(models)}
            out += [clean[ks] for ks in first.values()]
    return np.stack(out)


def set_of(path):
    return os.path.basename(path)[:-4]


def threshold_at(table, rate):
    r, t = np.array(table).T
    return np.interp(np.log(rate), np.log(r[::-1]), t[::-1])


def line(title, llr, same, high, rare):
    c, least = measure.cllr(llr, same), measure.min_cllr(llr, same)
    miss, false, seldom = (llr < high)[same == 1].mean(), (llr >= high)[same == 0].mean(), (llr >= rare)[same == 0].mean()
    print(f"{title:18s} EER {measure.eer(llr, same):5.2f}  FNMR at FMR 1 % {measure.fnmr_at(llr, same):5.1f}  Cllr {c:.3f} of least {least:.3f}  target 1 %: FMR {100 * false:.2f} FNMR {100 * miss:.1f}  target 0.1 %: FMR {100 * seldom:.3f}", flush=True)


def dev_table(paths, to_unit, cohort):
    """-> features, same, stratum (set and condition), left and right speakers, of all DEV sets and conditions"""
    out = []
    for path in paths:
        for tested in np.unique(np.load(path)["condition"]):
            x, same, left, right = dev_trials(path, set_of(path), to_unit, cohort, "clean", tested)
            out.append((x, same, np.full(len(same), f"{set_of(path)} {tested}"), left, right))
    return [np.concatenate(column) for column in zip(*out)]


def fit_dev(x, same, stratum):
    fitted = np.isin([g.split()[1] for g in stratum], FITTED)
    weights = fit(x[fitted], same[fitted], stratum[fitted], TERMS)
    m = fitted & (same == 0) & np.isin([g.split()[0] for g in stratum], SESSIONS)
    return weights, thresholds(products(x[m], TERMS) @ weights, stratum[m])


def fold_of(speaker):
    return int(hashlib.sha256(speaker.encode()).hexdigest(), 16) % FOLDS


def cross_validate(x, same, stratum, left, right):
    """Figures on speakers that neither weights nor thresholds have seen: a fold's models against everyone."""
    folds = {s: fold_of(s) for s in np.unique(np.concatenate([left, right]))}
    a, b = np.array([folds[s] for s in left]), np.array([folds[s] for s in right])
    llr, high, rare = (np.zeros(len(same)) for _ in range(3))
    for k in range(FOLDS):
        seen, test = (a != k) & (b != k), a == k
        weights, table = fit_dev(x[seen], same[seen], stratum[seen])
        llr[test] = products(x[test], TERMS) @ weights
        high[test], rare[test] = threshold_at(table, 0.01), threshold_at(table, 0.001)
    for g in np.unique(stratum):
        m = stratum == g
        line(g, llr[m], same[m], high[m], rare[m])


def write(out, weights, table, trust, levels):
    terms = [[a, b, round(float(w), 6)] for (a, b), w in zip(TERMS, weights)]
    json.dump(dict(terms=terms, reliability=trust, thresholds=table, nearest=NEAREST, consistency=levels[0], speakers=dict(cosine=levels[1], seconds=2)), open(out, "w"), indent=1)


def main(kind, train, cohort, checkpoint, out, *dev):
    to_unit, cohort = mapped(checkpoint), np.load(cohort)
    if kind == "dev":
        x, same, stratum, left, right = dev_table(dev, to_unit, cohort)
        cross_validate(x, same, stratum, left, right)
        weights, table = fit_dev(x, same, stratum)
        levels = agreement(dev_triples(dev), to_unit)
    else:
        x, same, stratum, left, right = train_trials(train, to_unit, cohort)
        weights = fit(x, same, stratum, TERMS)
        table = thresholds(products(x, TERMS)[same == 0] @ weights, stratum[same == 0])
        d = np.load(train)
        levels = agreement(d["e"][(d["condition"] == "clean") & (d["place"] < 3)].reshape(-1, 3, d["e"].shape[1]), to_unit)
        high, rare = (np.array([threshold_at(table, r)]) for r in (0.01, 0.001))
        for path in dev:
            for tested in np.unique(np.load(path)["condition"]):
                dx, y, *_ = dev_trials(path, set_of(path), to_unit, cohort, "clean", tested)
                line(f"{set_of(path)} {tested}", products(dx, TERMS) @ weights, y, high.repeat(len(y)), rare.repeat(len(y)))
    accepted = products(x, TERMS) @ weights >= threshold_at(table, 0.01)
    write(out, weights, table, reliability(x, same, stratum, accepted), levels)


if __name__ == "__main__":
    main(*sys.argv[1:])
