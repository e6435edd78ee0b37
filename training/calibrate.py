"""python3 calibrate.py DEV VOICES.jsonl OUT.json [WITHOUT]: from scores to log-likelihood ratios, and from a false-accept rate to a threshold.

DEV: extract.py's output; VOICES: what the engine made of it (`node bench/voices.mjs`): embeddings and measured quality of every recording
under every condition. So the calibration sees the very numbers it will be used on.

The ratio is a sum of a few terms, each a weight times the product of two features (README.md), fitted by logistic regression in which every
set and both kinds of trial weigh the same. atanh of impostors' cosine is normal in its upper tail; where one in ten and one in a hundred of them lie is
fitted by quantile regression, and center and spread follow. How quality moves impostors is read off within sets alone: between sets, quality and population
are confounded, and what is fitted there fails on the next set (LOG.md 22).

Prints the figures of every set with the calibration fitted without it: that is what other sets may expect. WITHOUT: a folder for those calibrations, one for
each set, for `npm run bench:accuracy -- --open-set`."""
import base64, hashlib, itertools, json, os, sys
from collections import Counter
import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm
import measure, trials

FEATURES = ["one", "cosine", "templateSpeech", "probeSpeech", "leastSpeech", "templateSnr", "probeSnr", "leastSnr", "templateBandwidth", "probeBandwidth", "leastBandwidth", "bandwidthDifference"]
TERMS = [  # of the template's quality nothing: candidates of one call keep the order of their cosines (LOG.md 22)
    ("one", "one"), ("cosine", "one"), ("probeBandwidth", "one"), ("cosine", "probeBandwidth"), ("probeSpeech", "one"), ("cosine", "probeSpeech"),
]
# Slopes, within sets; the level is over all. The last two together are the bandwidth of the wider side: of it, which two sets alone tell, half (LOG.md 28).
IMPOSTORS = [("templateSpeech", "one"), ("probeSpeech", "one"), ("leastBandwidth", "one"), ("bandwidthDifference", "one")]
BANDWIDTH_SHARE = 0.5
SHARES = (0.9, 0.99)
ENOUGH = 3000  # trials of a kind and a stratum that are fitted on
LEAST_SPREAD = 0.05
SETS = {"cvau-dev": 1.0, "wuw-dev": 1.0, "hv-dev": 1.0, "gsc-dev": 1.0, "fsdd": 0.3}  # six speakers say less
SESSIONS = ("cvau-dev", "wuw-dev")  # sets whose sessions are one person each beyond doubt
CLEAN, MULAW = "as recorded", "G.711 µ-law"
TESTED = (CLEAN, MULAW, "GSM 06.10", "noise 10 dB", "cut to 2 s")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def assemble(cosine, tq, pq):
    speech = [np.log(np.clip(q[:, 0], 0.5, 16)) for q in (tq, pq)]
    snr = [np.clip(q[:, 1], -5, 20) / 10 for q in (tq, pq)]
    band = [np.clip((q[:, 2] - 4000) / 3000, 0, 1) for q in (tq, pq)]
    return np.stack([np.ones_like(cosine), cosine, *speech, np.minimum(*speech), *snr, np.minimum(*snr), *band, np.minimum(*band), np.abs(band[0] - band[1])], 1)


def products(x, terms):
    return np.stack([x[:, FEATURES.index(a)] * x[:, FEATURES.index(b)] for a, b in terms], 1)


def fisher(x):
    return np.arctanh(np.clip(x[:, 1], -0.9999, 0.9999))


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


def template(voices):
    """Segments of one session as one: embeddings averaged by their speech, speech added up, SNR and bandwidth averaged by it."""
    e, speech, snr, band = map(np.array, zip(*voices))
    return unit((e * speech[:, None]).sum(0)), np.array([speech.sum(), (snr * speech).sum() / speech.sum(), (band * speech).sum() / speech.sum()])


class Sets:
    """Trials of the DEV sets, with both sides as the engine heard them."""

    def __init__(self, voices, dev):
        self.voices, self.lists, self.files = voices, {}, {}
        for name in SETS:
            self.lists[name] = trials.trials(name)
            self.files[name] = [hashlib.sha256(open("{}/{}/{}/{}/{}.wav".format(dev, name, *key), "rb").read()).hexdigest() for key in self.lists[name][0]]

    def trials(self, name, enrolled, tested, segments):
        """-> features, same; None where too few recordings were heard under these conditions"""
        (_, models, rows), of, heard = self.lists[name], self.files[name], self.voices
        enrolling = {m: ks[:segments] for m, ks in enumerate(models) if all((of[k], enrolled) in heard for k in ks[:segments])}
        rows = np.array([r for r in rows if r[1] in enrolling and (of[r[2]], tested) in heard])
        if len(rows) < 500 or not 20 < rows[:, 0].sum() < len(rows) - 500:
            return None
        made = {m: template([heard[of[k], enrolled] for k in enrolling[m]]) for m in np.unique(rows[:, 1])}
        probe = {k: heard[of[k], tested] for k in np.unique(rows[:, 2])}
        e, f = np.stack([made[m][0] for m in rows[:, 1]]), np.stack([probe[k][0] for k in rows[:, 2]])
        return assemble((e * f).sum(1), np.stack([made[m][1] for m in rows[:, 1]]), np.array([probe[k][1:] for k in rows[:, 2]])), rows[:, 0]

    def strata(self):
        """-> {(set, enrolled, tested, segments): (features, same)}: clean enrollments against every condition, calls against calls, one segment and all three"""
        out = {}
        for name, (enrolled, tested), segments in itertools.product(SETS, [*((CLEAN, c) for c in TESTED), (MULAW, MULAW)], (1, 3)):
            if segments == 1 and name == "gsc-dev":  # one enrolls there
                continue
            if found := self.trials(name, enrolled, tested, segments):
                out[name, enrolled, tested, segments] = found
        return out

    def triples(self):
        """The three enrollment segments of a session of every speaker (one session each, so that foreign means foreign)."""
        out = []
        for name in SESSIONS:
            (keys, models, _), of, first = self.lists[name], self.files[name], {}
            for ks in models:
                if all((of[k], CLEAN) in self.voices for k in ks):
                    first.setdefault(keys[ks[0]][0], [self.voices[of[k], CLEAN][0] for k in ks])
            out += first.values()
        return np.stack(out)


def drawn(strata, kinds):
    """-> features, same, weight, set: at most ENOUGH trials of each kind and stratum; every set weighs as SETS says, its strata and kinds the same."""
    chance, count, out = np.random.RandomState(1), Counter(key[0] for key in strata), []
    for key, (x, same) in strata.items():
        for kind in kinds:
            some = chance.permutation(np.flatnonzero(same == kind))[:ENOUGH]
            out.append((x[some], same[some], np.full(len(some), SETS[key[0]] / len(some) / count[key[0]]), np.full(len(some), key[0])))
    x, same, weight, name = (np.concatenate(column) for column in zip(*out))
    return x, same, weight / weight.sum(), name


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


def quantile(z, y, weight, share, smooth=0.02, ridge=1e-5):
    """Weights of the columns of z (the first is constant) whose sum exceeds `share` of y: a smoothed quantile regression."""
    scale = z.std(0) + 1e-9
    scale[0] = 1.0
    z = z / scale

    def cost(w):
        above = y - z @ w
        g = share - 1 / (1 + np.exp(np.clip(above / smooth, -50, 50)))
        return (weight * (share * above + smooth * np.logaddexp(0, -above / smooth))).sum() + ridge * (w[1:] ** 2).sum() / 2, -z.T @ (weight * g) + ridge * np.r_[0, w[1:]]

    return minimize(cost, np.r_[np.quantile(y, share), np.zeros(z.shape[1] - 1)], jac=True, method="L-BFGS-B", options=dict(maxiter=300)).x / scale


def impostors(strata):
    """-> weights of center and spread over [one, *IMPOSTORS]. Slopes with a level for each set; then one level for all of them."""
    x, _, weight, name = drawn(strata, (0,))
    u, z, one = fisher(x), products(x, IMPOSTORS), np.ones((len(x), 1))
    merged = np.c_[z[:, :2], z[:, 2:].sum(1)]
    own = np.stack([name == s for s in np.unique(name)[1:]], 1).astype(float)
    lines = []
    for share in SHARES:
        found = quantile(np.hstack([one, merged, own]), u, weight, share)[1:4] * (1, 1, BANDWIDTH_SHARE)
        slopes = found[[0, 1, 2, 2]]
        lines.append(np.r_[quantile(one, u - z @ slopes, weight, share), slopes])
    low, high = norm.ppf(SHARES)
    spread = (lines[1] - lines[0]) / (high - low)
    return lines[0] - low * spread, spread


def threshold(x, where, rate):
    """What impostors' atanh cosine exceeds at this rate."""
    z = products(x, [("one", "one"), *IMPOSTORS])
    return z @ where[0] + np.maximum(z @ where[1], LEAST_SPREAD) * norm.ppf(1 - rate)


def fit(strata):
    x, same, weight, _ = drawn(strata, (0, 1))
    return logistic(products(x, TERMS), same, weight, 1e-3), impostors(strata)


def reliability(strata, where):
    """How likely a genuine speaker is accepted at a false-accept rate of 1 %, from the quality alone. Each set has a level of its own in the
    fit, and their mean is kept: that one set is harder than another says nothing about quality."""
    x, _, weight, name = drawn(strata, (1,))
    terms = [("one", "one"), ("leastSpeech", "one"), ("leastSnr", "one"), ("bandwidthDifference", "one")]
    own = np.stack([name == s for s in np.unique(name)[1:]], 1).astype(float)
    weights = logistic(np.hstack([products(x, terms), own]), (fisher(x) >= threshold(x, where, 0.01)).astype(int), weight, 1e-5)
    weights[0] += weights[len(terms) :].sum() / len(np.unique(name))
    return named(terms, weights[: len(terms)])


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


def line(key, x, same, weights, where):
    name, enrolled, tested, segments = key
    llr, u = products(x, TERMS) @ weights, fisher(x)
    cells = []
    for rate in (0.01, 0.001):
        t = threshold(x, where, rate)
        met, missed = (u >= t)[same == 0].mean(), (u < t)[same == 1].mean()
        oracle = (u[same == 1] <= np.quantile(u[same == 0], 1 - met)).mean()
        cells.append(f"target {100 * rate:g} %: FMR {100 * met:.3f} FNMR {100 * missed:.1f} (oracle {100 * oracle:.1f})")
    print(f"{name:8s} {enrolled:11s} > {tested:11s} {segments} {int(same.sum()):4d} genuine EER {measure.eer(u, same):5.2f} FNMR at FMR 1 % {measure.fnmr_at(u, same):4.1f} Cllr {measure.cllr(llr, same):.3f} of least {measure.min_cllr(llr, same):.3f}  {'  '.join(cells)}", flush=True)


def named(terms, weights):
    return [[a, b, round(float(w), 6)] for (a, b), w in zip(terms, weights)]


def section(strata, weights, where, agreed):
    return dict(
        terms=named(TERMS, weights), reliability=reliability(strata, where),
        impostors={what: named([("one", "one"), *IMPOSTORS], w) for what, w in zip(("center", "spread"), where)},
        consistency=agreed[0], speakers=dict(cosine=agreed[1], seconds=2),
    )


def main(dev, voices, out, without=None):
    sets = Sets(read_voices(voices), dev)
    strata, agreed = sets.strata(), agreement(sets.triples())
    for left_out in SETS:
        others = {key: found for key, found in strata.items() if key[0] != left_out}
        fitted = fit(others)
        for key, (x, same) in strata.items():
            if key[0] == left_out:
                line(key, x, same, *fitted)
        if without:
            os.makedirs(without, exist_ok=True)
            json.dump(section(others, *fitted, agreed), open(f"{without}/{left_out}.json", "w"), indent=1)
    json.dump(section(strata, *fit(strata), agreed), open(out, "w"), indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
