"""Does the way of speaking tell synthetic speech (LOG.md 30)?

python3 prosody.py speech MIRROR WAVS TRAIN          training speech in the form of extract.py: takes of one voice joined up to 8 s, genuine and attacks alike
python3 prosody.py features FOLDER FEATURES.npz [1]  of TRAIN, LEFT or DEV, as recorded and through G.711 (1: as recorded alone)
python3 prosody.py table TRAIN.npz LEFT.npz,LEFT.json     .json: `bench:accuracy -- --spoof --conditions none,g711 --lengths all --scores`
Needs numpy, scipy, soundfile, scikit-learn. Speech is heard at 8 kHz, from 60 to 3600 Hz, at one level and no deeper than 43 dB below its loud parts: band, level and floor tell corpora apart.
"""
import json, multiprocessing, os, random, sys, warnings
from collections import defaultdict
from functools import partial
from zlib import crc32

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dct, irfft, rfft
from scipy.linalg import solve_toeplitz
from scipy.signal import butter, find_peaks, lfilter, sosfiltfilt
import audio, corpora, sources
from extract import LEFT_OUT, SECONDS

RATE, FLOOR = 8000, 43
# Speakers and recordings of each.
GENUINE = {"librispeech-100": (251, 1), "librispeech-3": (3, 30), "russian": (5, 25), "hindi": (3, 15), "speechocean": (120, 1), "iban": (23, 4), "malayalam": (114, 1), "commonvoice-5": (84, 2), "audiomnist": (50, 1), "alphanumeric": (60, 1), "speechcommands": (100, 1)}  # fmt: skip
FILES = {"tacotron": 24, "genuine": 400}  # of a page of google/tacotron, of all recordings on its pages; of other systems 60
WINDOW = np.hanning(320)
EDGES, BINS = 700 * np.expm1(np.linspace(np.log1p(60 / 700), np.log1p(3600 / 700), 23)), np.arange(257) * RATE / 512
BANK = np.stack([np.maximum(0, np.minimum((BINS - l) / (m - l), (h - BINS) / (h - m))) for l, m, h in zip(EDGES, EDGES[1:], EDGES[2:])]).astype(np.float32)


def voices(name, chance):
    """Takes of each speaker that neither LEFT nor DEV has."""
    takes, (speakers, most) = defaultdict(list), GENUINE[name]
    for sha, speaker, _ in corpora.rows(name):
        if name not in LEFT_OUT and crc32(f"{name}/{speaker}".encode()) % 10:
            takes[speaker].append(sha)
    for speaker in chance.sample(sorted(takes), min(speakers, len(takes))):
        chosen = chance.sample(takes[speaker], min(len(takes[speaker]), 12 * most))
        for shas in (chosen[i::most] for i in range(most)):
            yield "genuine", name, (data for data in corpora.blobs(corpora.TRAIN[name][0], shas) if data)


def galleries(mirror, wavs, chance):
    rows = [r for r in [*sources.galleries(mirror), *sources.synthesized(wavs)] if r[0] == "train"]
    chance.shuffle(rows)
    count, takes = defaultdict(int), defaultdict(list)
    for _, label, system, key, read in rows:
        count[system] += 1
        if count[system] <= FILES.get("genuine" if label == "genuine" else system.split("-")[0], 60):
            takes[label, system, os.path.dirname(key) if "+" not in key else key].append(read)
    for (label, system, _), reads in takes.items():
        for some in (reads[i : i + 3] for i in range(0, len(reads), 3)) if len(reads) > 3 else ([read] for read in reads):
            yield label, system, (read() for read in some)


def speech(mirror, wavs, out):
    corpora.MIRROR, chance, count = mirror, random.Random(30), defaultdict(int)
    os.makedirs(out, exist_ok=True)
    with open(out + "/list.tsv", "w") as table:
        for rows in (galleries(mirror, wavs, chance), *(voices(name, chance) for name in GENUINE)):
            for label, system, takes in rows:
                parts, wanted = [], chance.choice((3, SECONDS))
                for x, rate in filter(None, map(audio.read, takes)):
                    parts.append(audio.resample(x[: SECONDS * rate], rate))
                    if sum(map(len, parts)) > wanted * audio.RATE:
                        break
                if sum(map(len, parts)) > audio.RATE:
                    count[system] += 1
                    name = f"{system}-{label}/{count[system]}.wav"
                    os.makedirs(f"{out}/{system}-{label}", exist_ok=True)
                    soundfile.write(f"{out}/{name}", np.clip(np.concatenate(parts)[: SECONDS * audio.RATE], -1, 1), audio.RATE, subtype="PCM_16")
                    table.write(f"{name}\t{label}\t{system}\n")


def runs(flags, least):
    """[start, end) of every stretch of at least so many."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(a, b) for a, b in edges.reshape(-1, 2) if b - a >= least]


def moment(v, k):
    v = v - v.mean(0)
    return (v**k).mean(0) / ((v * v).mean(0) ** (k / 2) + 1e-12)


def skew(v):
    return moment(v, 3)


def kurtosis(v):
    return moment(v, 4) - 3


def spread(v):
    return [np.mean(v), np.std(v)] if len(v) else [np.nan] * 2


class Heard:
    """One recording: frames every 5 ms with energy, pitch and periodicity, every 10 ms with 21 bands in dB."""

    def __init__(self, x):
        x = sosfiltfilt(butter(4, (60, 3600), "band", fs=RATE, output="sos"), x)
        frames = (sliding_window_view(x, 320)[::40] * WINDOW).astype(np.float32)
        self.db = 10 * np.log10((frames**2).mean(1) + 1e-12)
        self.db = np.maximum(self.db - np.percentile(self.db, 95), -FLOOR)
        self.x, self.speech = x / (x.std() + 1e-9), self.db > -30
        power = np.abs(rfft(frames, 512)) ** 2
        r = irfft(power)[:, :142] / irfft(np.abs(rfft(WINDOW, 512)) ** 2)[:142]
        r = r / (r[:, :1] + 1e-12)
        lag = 20 + np.argmax(r[:, 20:140] - 0.001 * np.arange(20, 140), 1)
        a, b, c = (r[np.arange(len(r)), lag + k] for k in (-1, 0, 1))
        self.period, self.periodic = lag + 0.5 * (a - c) / np.minimum(a - 2 * b + c, -1e-6), b
        pitch, voiced = -np.log(self.period), self.speech & (b > 0.55) & (lag > 20) & (lag < 139)
        voiced[1:] &= np.abs(np.diff(pitch)) < 0.12
        self.voiced, self.pitch = runs(voiced, 10), pitch
        bands = 10 * np.log10(power[::2] @ BANK.T + 1e-12)
        self.bands = np.maximum(bands - np.percentile(bands, 95), -FLOOR)
        self.pauses = runs(self.db < -28, 24)
        self.cepstra = dct(self.bands[self.speech[::2]], norm="ortho")[:, :12]


def pitch(h):
    """Course and fine variation of the pitch; voicing, onsets and ends."""
    parts = [h.pitch[a:b] for a, b in h.voiced]
    if len(parts) < 3:
        return [np.nan] * 20
    every, turn = np.concatenate(parts), np.concatenate([np.diff(p, 2) for p in parts])
    step = np.concatenate([np.diff(p) for p in parts])
    slope = np.array([np.polyfit(np.arange(len(p)), p, 1)[0] for p in parts])
    rest = np.concatenate([p - np.polyval(np.polyfit(np.arange(len(p)), p, 3), np.arange(len(p))) for p in parts if len(p) > 15] or [[np.nan]])
    long, at = np.array([len(p) for p in parts]), np.array([(a + b) / 2 for a, b in h.voiced])
    return [
        every.std(), np.subtract(*np.percentile(every, (90, 10))), skew(every), *np.log(np.percentile(np.abs(step), (50, 90)) + 1e-5), *np.log(np.percentile(np.abs(turn), (50, 90, 98)) + 1e-5),
        np.corrcoef(step[1:], step[:-1])[0, 1], np.log(rest.std() + 1e-5), kurtosis(rest), slope.std(), np.corrcoef(at, [p.mean() for p in parts])[0, 1],
        np.mean([abs(p[0] - p[6]) for p in parts]), np.mean([abs(p[-1] - p[-7]) for p in parts]), np.mean([p[0] - p[6] for p in parts]),
        np.log(long.mean()), long.std() / long.mean(), len(parts) / h.speech.sum(), long.sum() / h.speech.sum(),
    ]  # fmt: skip


def cycles(h):
    """Periods one by one: jitter, shimmer, periodicity at onsets."""
    x, jitter, shimmer, onset = h.x * (np.sign(skew(h.x)) or 1), [], [], []
    for a, b in h.voiced:
        at, end, marks = a * 40 + 160, b * 40 + 160, []
        while at + 160 < end:
            t = int(h.period[min(b - 1, max(a, (at - 160) // 40))])
            low = at + (t * 3 // 4 if marks else 0)
            k = low + int(np.argmax(x[low : at + (t * 5 // 4 if marks else t)]))
            l, m, r = x[k - 1], x[k], x[min(k + 1, len(x) - 1)]
            marks.append((k + 0.5 * (l - r) / min(l - 2 * m + r, -1e-6), max(m, 1e-4)))
            at = k
        if len(marks) > 5:
            place, size = np.array(marks).T
            periods = np.diff(place)
            jitter.extend(np.abs(np.diff(periods, 2)) / periods.mean())
            shimmer.extend(np.abs(np.diff(20 * np.log10(size), 2)))
        onset.append(h.periodic[a : a + 4].mean() - h.periodic[a:b].max())
    if len(jitter) < 20:
        return [np.nan] * 11
    periodic = np.concatenate([h.periodic[a:b] for a, b in h.voiced])
    return [*np.log(np.percentile(jitter, (25, 50, 75)) + 1e-4), *np.log(np.percentile(shimmer, (25, 50, 75)) + 1e-3), *spread(periodic), np.percentile(periodic, 90), *spread(onset)]


def energy(h):
    e, step = h.db[h.speech], np.diff(h.db[::2])[h.speech[::2][1:]]
    late = lambda n: np.corrcoef(h.db[n:], h.db[:-n])[0, 1]
    return [e.std(), skew(e), *np.percentile(np.abs(step), (50, 90)), skew(step), kurtosis(step), late(10), late(20), late(40), late(80)]


def tempo(h):
    """Syllables, pauses, and what is in the pauses (breaths)."""
    smooth = np.convolve(h.db, np.hanning(21) / np.hanning(21).sum(), "same")
    peaks, _ = find_peaks(smooth, height=-25, prominence=3)
    gaps, n = np.diff(peaks), h.speech.sum()
    inner = [(a, b) for a, b in h.pauses if a > 0 and b < len(h.db)]
    spoken = np.array([b - a for a, b in runs(np.convolve(h.speech, np.ones(25), "same") > 0, 20)])
    breath = [np.percentile(h.db[a + 6 : b - 6], 90) - np.percentile(h.db[a + 6 : b - 6], 10) for a, b in inner if b - a > 24]
    return [len(peaks) / n, *(spread(np.log(gaps)) if len(gaps) > 3 else [np.nan] * 2), np.mean(np.abs(np.diff(np.log(gaps)))) if len(gaps) > 4 else np.nan, len(inner) / n, *spread([np.log(b - a) for a, b in inner]), *spread(np.log(spoken)), *spread(breath)]


def modulation(h):
    """Shares of 2 to 45 Hz in the course of six bands."""
    out = []
    for k in range(0, 21, 4):
        course = h.bands[:, k : k + 4].mean(1)
        power = np.mean(np.abs(rfft((p := sliding_window_view(course, 100)[::25]) * np.hanning(100) - (p * np.hanning(100)).mean(1, keepdims=True))) ** 2, 0) if len(course) >= 100 else np.full(51, np.nan)
        parts = np.array([power[a:b].sum() for a, b in ((2, 4), (4, 8), (8, 12), (12, 20), (20, 45))])
        out.extend(np.log(parts / parts.sum()))
    return out


def movement(h):
    """How fast and how unevenly the spectrum's shape (cepstra 1 to 11) moves, and how far."""
    c, step = h.cepstra[:, 1:], np.diff(h.cepstra[:, 1:], axis=0)
    return [*np.log(step.std(0) / (c.std(0) + 1e-6)), *np.log1p(np.maximum(0, kurtosis(step))), *np.log(c.std(0) / (c.std() + 1e-6))]


def harmonics(frame, period):
    """The first eight."""
    one = np.exp(-2j * np.pi / period * (np.arange(320) - 160))
    return np.array([frame := frame * one for _ in range(8)]).sum(1)


def phase(h):
    """Harmonics' phases against the first one's: how steady from frame to frame, and how peaked the residual is."""
    steady, peaked = [], []
    for a, b in h.voiced:
        for i in range(a, b - 2, 8):
            now, later = (harmonics(h.x[j * 40 : j * 40 + 320] * WINDOW, h.period[j]) for j in (i, i + 2))
            turn = np.angle(later / (now + 1e-9))
            steady.append(np.cos(turn - np.arange(1, 9) * turn[0])[1:])
        part = h.x[a * 40 : b * 40 + 320]
        r = np.array([part[: len(part) - k] @ part[k:] for k in range(13)]) * [1.001, *[1] * 12]
        rest = lfilter(np.concatenate([[1], -solve_toeplitz(r[:12], r[1:13])]), 1, part)
        peaked.append((np.log1p(max(0, kurtosis(rest))), abs(skew(rest)), abs(skew(part))))
    return [*np.mean(steady, 0), *np.mean(peaked, 0)] if steady else [np.nan] * 10


def room(h):
    """What lies between the words: how still it is, how it follows the speech before it, whether it is the floor within the speech."""
    quiet = np.zeros(len(h.bands), bool)
    for a, b in h.pauses:
        quiet[a // 2 + 5 : b // 2 - 3] = True
    decay = [np.polyfit(np.arange(16), h.db[a : a + 16], 1)[0] for a, b in h.pauses if a > 0 and b - a >= 24]
    if quiet.sum() < 10:
        return [np.nan] * 4 + spread(decay)
    still, loud = h.bands[quiet], h.bands[h.speech[::2][: len(h.bands)]]
    return [np.corrcoef(still.mean(0), np.percentile(loud, 5, axis=0))[0, 1], np.corrcoef(still.mean(0), loud.mean(0))[0, 1], still.std(0).mean(), np.nanmean(np.corrcoef(still.T)), *spread(decay)]


def drift(h):
    """How the parts of a recording differ."""
    c, n = h.cepstra, len(h.cepstra) // 4
    parts = [c[i * n : (i + 1) * n] for i in range(4)]
    apart = np.std([p.mean(0) for p in parts], 0) / (c.std(0) + 1e-6)
    wide = np.std([np.log(p.std(0) + 1e-6) for p in parts], 0)
    every = [np.concatenate([h.pitch[a:b] for a, b in some]) for some in (h.voiced[: len(h.voiced) // 2], h.voiced[len(h.voiced) // 2 :])] if len(h.voiced) > 3 else []
    return [apart.mean(), *apart[:4], wide.mean(), wide[0], *([abs(np.median(every[0]) - np.median(every[1])), abs(np.log(every[0].std() / every[1].std()))] if every else [np.nan] * 2)]


GROUPS = {pitch: 20, cycles: 11, energy: 10, tempo: 11, modulation: 30, movement: 33, phase: 10, room: 6, drift: 9}  # features of each
WHICH = np.array([group.__name__ for group, n in GROUPS.items() for _ in range(n)])


def mulaw(x):
    y = np.sign(x) * np.log1p(255 * np.abs(x)) / np.log(256)
    y = np.round(y * 127) / 127
    return np.sign(y) * np.expm1(np.abs(y) * np.log(256)) / 255


def measured(path, lines=2):
    """[lines][features], or nothing where there is less than a second of speech."""
    warnings.simplefilter("ignore")
    x = audio.level(audio.resample(*soundfile.read(path, dtype="float32"), RATE)).astype(np.float64)
    out = []
    for y in (x, mulaw(x))[:lines]:
        if len(x) < RATE or (h := Heard(y)).speech.sum() < 150:
            return None
        out.append(np.concatenate([np.array(group(h), float) for group in GROUPS]))
    return out


def features(folder, out, lines=2):
    rows = [row.rstrip("\n").split("\t") for row in open(folder + "/list.tsv")]
    rows = [row for row in rows if row[1] in ("genuine", "coded", "attack")]
    with multiprocessing.Pool(2) as pool:
        found = pool.map(partial(measured, lines=int(lines)), [f"{folder}/{file}" for file, _, _ in rows], chunksize=8)
    width = next(len(f[0]) for f in found if f)
    np.savez(out, x=np.array([f or np.full((int(lines), width), np.nan) for f in found], np.float32), label=[r[1] for r in rows], system=[r[2] for r in rows], heard=[bool(f) for f in found])


# Left out together, so that a model knows neither the family of the attacks nor the corpora of the genuine speech that it judges.
FOLDS = ("tacotron",), ("e1tts", "librispeech"), ("kokoro", "hibari", "commonvoice", "malayalam"), ("piper", "dittli", "russian", "hindi", "iban"), ("espeak", "flite", "festival", "nanotts", "openjtalk", "speechocean", "audiomnist", "alphanumeric", "speechcommands")  # fmt: skip
MATCHED = "tacotron", "e1tts-e1tts", "e1tts-ardit", "e1tts-cosyvoice", "e1tts-ditto", "librispeech-100"  # pages with recordings of their own, and read books beside what was made of read books
# Attacks of LEFT that speak a text; the others are copies and conversions, whose way of speaking is a person's.
SPOKEN = ("espnet/", "makeavoice/base", "makeavoice/large", "makeavoice/medium", "makeavoice/multitask", "makeavoice/ours", "makeavoice/singletask", "makeavoice/spear", "makeavoice/gener")
WEIGHTS, DRAWS = (0, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2), 500


def model(kind, x, attack, source):
    """score(x) of a model in which sources count by the root of their size, and both classes the same."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    _, row, size = np.unique([f"{s}{a}" for s, a in zip(source, attack)], return_inverse=True, return_counts=True)
    weight = size[row] ** -0.5
    for a in (False, True):
        weight[attack == a] *= len(x) / 2 / weight[attack == a].sum()
    if kind == "trees":
        shape = dict(learning_rate=0.1, max_iter=60, max_leaf_nodes=8, min_samples_leaf=40, l2_regularization=5, max_features=0.3)
        return HistGradientBoostingClassifier(**shape, random_state=1).fit(x, attack, sample_weight=weight).decision_function
    centre, scale = np.nanmean(x, 0), np.nanstd(x, 0) + 1e-6
    even = lambda v: np.nan_to_num(np.clip((v - centre) / scale, -4, 4))
    fitted = LogisticRegression(C=0.01, max_iter=2000).fit(even(x), attack, sample_weight=weight)
    return lambda v: fitted.decision_function(even(v))


def opened(path, scores=None):
    """x, attack, source, line and the shipped model's ratio, where both heard speech; the lines one after the other."""
    d = np.load(path)
    lines = d["x"].shape[1]
    keep = np.tile(d["heard"] & (d["label"] != "coded"), lines)
    ratio = np.zeros(len(keep))
    if scores:
        rows = [r for r in json.load(open(scores)) if r["kind"] == "synthetic"]
        assert [r["label"] for r in rows] == [*d["label"]] * lines
        ratio, keep = np.array([r["llr"] for r in rows]), keep & np.array([r["reliability"] > 0 for r in rows])
    every = lambda v: np.tile(v, lines)[keep]
    return np.concatenate(d["x"].swapaxes(0, 1))[keep].astype(float), every(d["label"]) == "attack", every(d["system"]), np.repeat(np.arange(lines), len(d["label"]))[keep], ratio[keep]


def of(source, names):
    return np.array([s.startswith(names) for s in source.tolist()])


def eer(score, attack):
    y = attack[np.argsort(score, kind="stable")]
    miss, false = np.cumsum(y) / y.sum(), 1 - np.cumsum(~y) / (~y).sum()
    i = np.argmin(np.abs(miss - false))
    return 100 * (miss[i] + false[i]) / 2


def found(score, attack, rate):
    return 100 * np.mean(score[attack] > np.quantile(score[~attack], 1 - rate))


def disorder(score, attack, source, line):
    """Pairs of an attack and a recording of the same page and line in the wrong order, %, the mean over pages: where a clip comes from cannot help there."""
    out = []
    for page in sorted({s.split("/")[0] for s in source[attack].tolist()}):
        of_page = np.array([s.replace("-", "").lower().startswith(page) for s in source.tolist()])
        out.extend(np.mean(score[here & attack][:, None] <= score[here & ~attack]) for here in (of_page & (line == k) for k in (0, 1)))
    return 100 * np.mean(out)


def differences(one, other, attack, source):
    """95 % of draws of sources: how the other differs in EER and in what is found at 1 %."""
    rows, chance, got = [np.flatnonzero(source == s) for s in np.unique(source)], np.random.default_rng(1), []
    for _ in range(DRAWS):
        some = np.concatenate([rows[i] for i in chance.integers(len(rows), size=len(rows))])
        got.append([measure(other[some], attack[some]) - measure(one[some], attack[some]) for measure in (eer, partial(found, rate=0.01))])
    return "{:+.1f}..{:+.1f}, {:+.1f}..{:+.1f}".format(*np.percentile(got, (2.5, 97.5), axis=0).T.ravel())


def told(score, attack, line):
    """EER, then what is found at 1 and at 5 % of false alarms, each as recorded and through G.711."""
    by = [(score[line == k], attack[line == k]) for k in (0, 1)]
    return " | ".join(", ".join(f"{measure(*some):.{digits}f}" for some in by) for measure, digits in ((eer, 1), (partial(found, rate=0.01), 0), (partial(found, rate=0.05), 0)))


def table(train, left):
    warnings.simplefilter("ignore")
    x, attack, source, _, _ = opened(train)
    lx, la, ls, line, ratio = opened(*left.split(","))
    everything = np.ones(len(x), bool)
    views = {"LEFT": np.ones(len(la), bool), "spoken text": ~la | of(ls, SPOKEN), "missed": ~la | (ratio < np.quantile(ratio[~la], 0.95))}
    print(f"TRAIN {sum(~attack)} genuine, {sum(attack)} attacks; LEFT over both lines {sum(~la)} genuine, attacks:", ", ".join(f"{name} {sum(la & some)}" for name, some in views.items()))
    print(f"shipped | {told(ratio, la, line)} | {disorder(ratio, la, ls, line):.1f}; spoken text | {told(*(v[views['spoken text']] for v in (ratio, la, line)))}")
    print("features | left out of training | alone: " + ", ".join(views) + ", pairs | weight | beside: EER | at 1 % | at 5 % | pairs | differences")
    for kind, group in (*(("linear", group) for group in ("all", *dict.fromkeys(WHICH))), ("trees", "all")):
        c = (WHICH == group) | (group == "all")
        for name, some in (("all speech", everything), ("matched", of(source, MATCHED))):
            fit = lambda rows: model(kind, x[rows][:, c], attack[rows], source[rows])
            out = [eer(fit(~mine)(x[mine][:, c]), attack[mine]) for mine in (of(source, fold) for fold in FOLDS)] if some is everything else []
            score = fit(some)(lx[:, c])
            weight = min(WEIGHTS, key=lambda w: eer(ratio + w * score, la))
            both, alone = ratio + weight * score, [f"{eer(score[v], la[v]):.0f}" for v in views.values()]
            print(f"{group}, {kind}, {name} | {', '.join(f'{e:.0f}' for e in out)} | {', '.join(alone)}, {disorder(score, la, ls, line):.0f} | {weight} | {told(both, la, line)} | {disorder(both, la, ls, line):.1f} | {differences(ratio, both, la, ls) if weight else ''}", flush=True)


if __name__ == "__main__":
    {"speech": speech, "features": features, "table": table}[sys.argv[1]](*sys.argv[2:])
