"""python3 calibrate.py DEV VOICES.jsonl COHORT.npy OUT.json: from scores to log-likelihood ratios, and from a false-accept rate to a threshold.

DEV: extract.py's output; VOICES: what the engine made of it, the cache that `npm run bench:accuracy` leaves (embeddings and measured quality of every
recording under every condition). So the calibration sees the very numbers it will be used on.

The ratio is a sum of a few terms, each a weight times the product of two features (README.md), fitted by logistic regression in which
every condition and both kinds of trial weigh the same. What one impostor in ten and one in a hundred exceed is fitted as well, each
such a sum of terms of the quality alone; thresholds are read off impostors in steps from the one to the other, and drawn on with an exponential tail.
Fitted on DEV, because training speakers have one session each and many sound alike (LOG.md); the figures printed are cross-validated, those of
speakers it was not fitted on."""
import base64, hashlib, json, sys
import numpy as np
from scipy.optimize import minimize
import measure, trials

NEAREST = 200
FEATURES = ["one", "cosine", "snorm", "znorm", "tnorm", "templateSpeech", "probeSpeech", "leastSpeech", "templateSnr", "probeSnr", "leastSnr", "templateWideness", "probeWideness", "leastWideness", "widenessDifference"]
TERMS = [  # no s-norm, no SNR; speech counts where the template is wide: LOG.md
    ("one", "one"), ("cosine", "one"), ("templateSpeech", "templateWideness"), ("probeSpeech", "templateWideness"),
    ("leastWideness", "one"), ("widenessDifference", "one"), ("cosine", "leastWideness"), ("cosine", "probeSpeech"),
]
STRANGERS = [("one", "one"), ("leastWideness", "one"), ("widenessDifference", "one"), ("templateSpeech", "one"), ("probeSpeech", "one")]
LEAST_STEP = 0.5  # from one stranger in ten to one in a hundred
ENOUGH = 4000  # impostors of a stratum that these two are fitted on
SETS = ("cvau-dev", "wuw-dev", "gsc-dev")
SESSIONS = ("cvau-dev", "wuw-dev")  # sets with sessions
CLEAN = "as recorded"
FITTED = (CLEAN, "G.711 µ-law", "GSM 06.10", "noise 10 dB", "cut to 2 s")  # conditions fitted on
FOLDS = 4
RATES = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6]
MEASURED = 0.001  # rates below are extrapolated


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def near(x, cohort, nearest=NEAREST):
    """Mean and deviation of each voice's best cohort scores."""
    best = -np.partition(-(x @ cohort.T), nearest, 1)[:, :nearest]
    return best.mean(1), best.std(1, ddof=1)


def assemble(cosine, t_near, p_near, tq, pq):
    z, n = (cosine - t_near[0]) / t_near[1], (cosine - p_near[0]) / p_near[1]
    speech = [np.log(np.clip(q[:, 0], 0.5, 16)) for q in (tq, pq)]
    snr = [np.clip(q[:, 1], -5, 20) / 10 for q in (tq, pq)]
    wide = [np.clip((q[:, 2] - 4000) / 3000, 0, 1) for q in (tq, pq)]
    return np.stack([np.ones_like(cosine), cosine, (z + n) / 2, z, n, *speech, np.minimum(*speech), *snr, np.minimum(*snr), *wide, np.minimum(*wide), np.abs(wide[0] - wide[1])], 1)


def products(x, terms):
    return np.stack([x[:, FEATURES.index(a)] * x[:, FEATURES.index(b)] for a, b in terms], 1)


def number(value, missing):
    return missing if value is None else value


def read_voices(path):
    """-> {(sha256 of the file, condition): (embedding, speech s, SNR dB, bandwidth Hz)} of recordings with enough speech"""
    out = {}
    for line in open(path):
        voice = json.loads(line)
        file, _, condition = voice["key"].split(" ", 2)
        if voice["embedding"]:
            m = voice["measures"]
            out[file, condition] = np.frombuffer(base64.b64decode(voice["embedding"]), "<f4"), m["netSpeechSeconds"], number(m["snrDb"], 15.0), number(m["bandwidthHz"], 4000.0)
    return out


def files(dev, name):
    """sha256 of every segment of a list, in its order."""
    return [hashlib.sha256(open("{}/{}/{}/{}/{}.wav".format(dev, name, *key), "rb").read()).hexdigest() for key in trials.trials(name)[0]]


def template(voices):
    """Segments of one session as one: embeddings averaged by their speech, speech added up, SNR and bandwidth averaged."""
    e, speech, snr, band = map(np.array, zip(*voices))
    return unit((e * speech[:, None]).sum(0)), np.array([speech.sum(), snr.mean(), band.mean()])


def dev_trials(voices, dev, name, cohort, tested, enrolled=CLEAN):
    """-> features, same, left and right speakers of the trials whose both sides have enough speech"""
    keys, models, rows = trials.trials(name)
    of = files(dev, name)
    made = {m: template(found) for m, ks in enumerate(models) if (found := [voices[of[k], enrolled] for k in ks if (of[k], enrolled) in voices])}
    rows = np.array([r for r in rows if r[1] in made and (of[r[2]], tested) in voices])
    place = {m: i for i, m in enumerate(made)}
    me, mq = (np.stack(part) for part in zip(*made.values()))
    there = sorted({r[2] for r in rows})
    probe = {k: i for i, k in enumerate(there)}
    te, *q = zip(*(voices[of[k], tested] for k in there))
    te, tq = np.stack(te), np.stack(q, 1)
    a, b = np.array([place[m] for m in rows[:, 1]]), np.array([probe[k] for k in rows[:, 2]])
    m_near, t_near = near(me, cohort), near(te, cohort)
    x = assemble((me[a] * te[b]).sum(1), (m_near[0][a], m_near[1][a]), (t_near[0][b], t_near[1][b]), mq[a], tq[b])
    who = np.array([key[0] for key in keys])
    return x, rows[:, 0], who[[models[m][0] for m in rows[:, 1]]], who[rows[:, 2]]


def logistic(z, same, weight, ridge):
    """Weights of the columns of z (the first is constant) by weighted logistic regression."""
    scale = z.std(0) + 1e-9
    scale[0] = 1.0
    z, y, weight = z / scale, 2.0 * same - 1, weight / weight.sum()

    def cost(w):
        margin = y * (z @ w)
        g = -weight * y / (1 + np.exp(np.clip(margin, -50, 50)))
        return (weight * np.logaddexp(0, -margin)).sum() + ridge * (w[1:] ** 2).sum() / 2, z.T @ g + ridge * np.r_[0, w[1:]]

    return minimize(cost, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B", options=dict(maxiter=500)).x / scale


def fit(x, same, stratum, terms, ridge=1e-3):
    """The ratio's weights; every stratum weighs the same, and in it genuine trials as much as impostors."""
    weight = np.zeros(len(same))
    for g in np.unique(stratum):
        for label in (0, 1):
            m = (stratum == g) & (same == label)
            weight[m] = 1 / max(1, m.sum())
    return logistic(products(x, terms), same, weight, ridge)


def evenly(stratum):
    """Weights under which every stratum counts the same."""
    _, index, count = np.unique(stratum, return_inverse=True, return_counts=True)
    return 1 / (count[index] * len(count))


def quantile(z, y, weight, share, smooth=0.1, ridge=1e-4):
    """Weights of the columns of z (the first is constant) whose sum exceeds `share` of y: a smoothed quantile regression."""
    scale = z.std(0) + 1e-9
    scale[0] = 1.0
    z = z / scale

    def cost(w):
        above = y - z @ w
        g = share - 1 / (1 + np.exp(np.clip(above / smooth, -50, 50)))
        return (weight * (share * above + smooth * np.logaddexp(0, -above / smooth))).sum() + ridge * (w[1:] ** 2).sum() / 2, -z.T @ (weight * g) + ridge * np.r_[0, w[1:]]

    return minimize(cost, np.r_[np.quantile(y, share), np.zeros(z.shape[1] - 1)], jac=True, method="L-BFGS-B", options=dict(maxiter=300)).x / scale


def strangers(x, llr, stratum):
    """-> weights of the ratio that one impostor in ten exceeds, and of that which one in a hundred does"""
    weight = evenly(stratum)
    some = np.random.RandomState(1).rand(len(llr)) < ENOUGH * len(np.unique(stratum)) * weight
    z, y, weight = products(x[some], STRANGERS), llr[some], evenly(stratum[some])
    return quantile(z, y, weight, 0.9), quantile(z, y, weight, 0.99)


def among(x, llr, where):
    """Where a ratio lies among those of strangers who are heard this well: 0 where one in ten exceeds it, 1 where one in a hundred does."""
    ten, hundred = (products(x, STRANGERS) @ w for w in where)
    return (llr - ten) / np.maximum(hundred - ten, LEAST_STEP)


def thresholds(score, stratum):
    """What impostors exceed at a rate, each stratum weighing the same; beyond the last rate that is measured, an exponential tail."""
    order = np.argsort(-score)
    mass = np.cumsum(evenly(stratum)[order])
    at = lambda rate: float(score[order][np.searchsorted(mass, rate)])
    slope = (at(MEASURED) - at(10 * MEASURED)) / np.log(10)
    out = [(r, at(r) if r >= MEASURED else at(MEASURED) + slope * np.log(MEASURED / r)) for r in RATES]
    return [[r, round(t, 4)] for r, t in out]


def reliability(x, same, stratum, accepted):
    """How likely a genuine speaker is accepted at a false-accept rate of 1 %, from the quality alone. Each set has a level of its own in the
    fit, and their mean is kept: that one set is harder than another says nothing about quality."""
    m = same == 1
    terms = [("one", "one"), ("leastSpeech", "one"), ("leastSnr", "one"), ("widenessDifference", "one")]
    own = np.stack([[g.startswith(name) for g in stratum[m]] for name in SETS[1:]], 1).astype(float)
    weights = logistic(np.hstack([products(x[m], terms), own]), accepted[m].astype(int), evenly(stratum[m]), 1e-5)
    weights[0] += weights[len(terms) :].sum() / len(SETS)
    return [[a, b, round(float(w), 4)] for (a, b), w in zip(terms, weights)]


def agreement(triples):
    """Cosines inside one session, triples: [session, 3, dimensions]. -> (consistency: a third segment with the mean of two others, below which
    one own segment in a hundred falls; speakers: two segments, the level where as many foreign ones stay above as own ones fall below)"""
    levels, out = np.linspace(0, 1, 501), []
    for what, other in (("with the mean of two", unit(triples[:, :2].mean(1))), ("with one other", triples[:, 0])):
        s = triples[:, 2] @ other.T
        own, foreign = np.diag(s), s[~np.eye(len(s), dtype=bool)]
        even = levels[int(np.argmin([abs((own < v).mean() - (foreign >= v).mean()) for v in levels]))]
        v = even if out else np.percentile(own, 1)
        out.append(round(float(v), 3))
        print(f"a segment {what} of its session ({len(s)} sessions): own below {v:.3f} {100 * (own < v).mean():.2f} %, foreign above {100 * (foreign >= v).mean():.2f} %")
    return out


def dev_triples(voices, dev):
    """The three enrollment segments of a session of every speaker (one session each, so that foreign means foreign)."""
    out = []
    for name in SESSIONS:
        keys, models, _ = trials.trials(name)
        of, first = files(dev, name), {}
        for ks in models:
            if all((of[k], CLEAN) in voices for k in ks):
                first.setdefault(keys[ks[0]][0], [voices[of[k], CLEAN][0] for k in ks])
        out += first.values()
    return np.stack(out)


def threshold_at(table, rate):
    r, t = np.array(table).T
    return np.interp(np.log(rate), np.log(r[::-1]), t[::-1])


def line(title, cosine, llr, standing, same, high, rare):
    c, least = measure.cllr(llr, same), measure.min_cllr(llr, same)
    miss, false, seldom = (standing < high)[same == 1].mean(), (standing >= high)[same == 0].mean(), (standing >= rare)[same == 0].mean()
    print(f"{title:28s} EER {measure.eer(llr, same):5.2f} (cosine {measure.eer(cosine, same):.2f})  FNMR at FMR 1 % {measure.fnmr_at(llr, same):5.1f}  Cllr {c:.3f} of least {least:.3f}  target 1 %: FMR {100 * false:.2f} FNMR {100 * miss:.1f}  target 0.1 %: FMR {100 * seldom:.3f}", flush=True)


def dev_table(voices, dev, cohort):
    """-> features, same, stratum (set, condition), left and right speakers, of all DEV sets and conditions"""
    out = []
    for name in SETS:
        for tested in sorted({condition for _, condition in voices}):
            x, same, left, right = dev_trials(voices, dev, name, cohort, tested)
            out.append((x, same, np.full(len(same), f"{name}: {tested}"), left, right))
    return [np.concatenate(column) for column in zip(*out)]


def fit_dev(x, same, stratum):
    fitted = np.isin([g.split(": ")[1] for g in stratum], FITTED)
    weights = fit(x[fitted], same[fitted], stratum[fitted], TERMS)
    m = fitted & (same == 0)
    llr = products(x[m], TERMS) @ weights
    where = strangers(x[m], llr, stratum[m])
    return weights, where, thresholds(among(x[m], llr, where), stratum[m])


def fold_of(speaker):
    return int(hashlib.sha256(speaker.encode()).hexdigest(), 16) % FOLDS


def cross_validate(x, same, stratum, left, right):
    """Figures on speakers that neither weights nor thresholds have seen: a fold's models against everyone."""
    folds = {s: fold_of(s) for s in np.unique(np.concatenate([left, right]))}
    a, b = np.array([folds[s] for s in left]), np.array([folds[s] for s in right])
    llr, standing, high, rare = (np.zeros(len(same)) for _ in range(4))
    for k in range(FOLDS):
        seen, test = (a != k) & (b != k), a == k
        weights, where, table = fit_dev(x[seen], same[seen], stratum[seen])
        llr[test] = products(x[test], TERMS) @ weights
        standing[test] = among(x[test], llr[test], where)
        high[test], rare[test] = threshold_at(table, 0.01), threshold_at(table, 0.001)
    for g in np.unique(stratum):
        m = stratum == g
        line(g, x[m, FEATURES.index("cosine")], llr[m], standing[m], same[m], high[m], rare[m])


def named(terms, weights):
    return [[a, b, round(float(w), 6)] for (a, b), w in zip(terms, weights)]


def main(dev, voices, cohort, out):
    voices, cohort = read_voices(voices), np.load(cohort)
    x, same, stratum, left, right = dev_table(voices, dev, cohort)
    cross_validate(x, same, stratum, left, right)
    weights, where, table = fit_dev(x, same, stratum)
    accepted = among(x, products(x, TERMS) @ weights, where) >= threshold_at(table, 0.01)
    consistency, speakers = agreement(dev_triples(voices, dev))
    calibration = dict(
        terms=named(TERMS, weights), reliability=reliability(x, same, stratum, accepted),
        strangers=dict(oneInTen=named(STRANGERS, where[0]), oneInHundred=named(STRANGERS, where[1])), thresholds=table,
        nearest=NEAREST, consistency=consistency, speakers=dict(cosine=speakers, seconds=2),
    )
    json.dump(calibration, open(out, "w"), indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
