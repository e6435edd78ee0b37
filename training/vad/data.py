"""Training material for the voice-activity network: sequences of log-mel features with Silero's opinion of each frame.

    MIRROR=… SILERO=silero_vad_v6.onnx MUSIC=folder-of-ogg SYNTHESIZED=folder [SEED=7] python data.py OUT.npz HOURS [dev | hold]

Speech comes from TRAIN of ../corpora.py (blobs of bare git repositories), noise from ESC-50 and from generators, music from
free game soundtracks. `dev` takes speech from DEV and other noise clips instead: never trained on, and the hold music of
Debian's asterisk-moh-opsound-wav stays out of both (it is what is measured on).
`hold` is for train.py's HOLD, without labels: what the network heard well before it learnt of voice over IP, as the engine brings it.
The label of a frame is the mean of Silero's probability on the mixture and on the clean speech; material without speech is 0.
"""
import io, os, random, sys
from math import gcd
import numpy as np, onnxruntime, soundfile
from scipy.signal import butter, fftconvolve, firwin, lfilter, resample, resample_poly, sosfilt

sys.path.insert(0, os.environ.get("CORPORA", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")))
sys.argv, arguments = sys.argv[:1], sys.argv[1:]
import corpora

RATE, SECONDS = 16000, 12
LENGTH = RATE * SECONDS
SEED = int(os.environ.get("SEED", 7))
rng = np.random.default_rng(SEED)
random.seed(SEED)


def to16k(x, rate):
    g = gcd(rate, RATE)
    return x if rate == RATE else resample_poly(x, RATE // g, rate // g).astype(np.float32)


def decode(data, mulaw=False):
    if mulaw:
        u = ~np.frombuffer(data, np.uint8)
        m = ((((u & 15).astype(np.int32) << 3) + 0x84) << ((u >> 4) & 7)) - 0x84
        return to16k((np.where(u & 0x80, -m, m) / 32768).astype(np.float32), 8000)
    try:
        x, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError:
        return None
    return to16k(x.mean(1), rate) if len(x) > rate // 4 else None


def speech(sets, per_set):
    """A pool of clean utterances, the same number of draws from each set, each speaker about equally."""
    pool = []
    for name, (repo, _) in sets.items():
        if not os.path.isdir(corpora.git_dir(repo)):
            print("missing", repo)
            continue
        by = {}
        for blob, who, _ in corpora.rows(name):
            by.setdefault(who, []).append(blob)
        who, n, budget = list(by), 0, per_set
        draws = (random.choice(by[random.choice(who)]) for _ in range(20000))
        for data in corpora.blobs(repo, draws):
            x = data and decode(data, name.startswith("wuw"))
            if x is None or np.abs(x).max() < 1e-3:
                continue
            x = x[: RATE * 20]
            pool.append(x / np.sqrt((x**2).mean() + 1e-9) * 0.05)
            n += 1
            budget -= len(x) / RATE
            if budget < 0:
                break
        print(name, n, "utterances", flush=True)
    return pool


def esc50(dev):
    """Environmental sounds; what people's throats make is left out, since Silero and taste differ on it."""
    human = {"20", "21", "22", "23", "24", "25", "26", "28"}
    repo, rows = corpora.NOISE["esc50"][0], corpora.rows("esc50")
    rows = [blob for blob, kind, clip in rows if kind not in human and (clip[0] == "5") == dev]
    random.shuffle(rows)
    decoded = (decode(data) for data in corpora.blobs(repo, rows[: 200 if dev else 900]))
    pool = [x for x in decoded if x is not None and np.abs(x).max() > 1e-3]
    print("esc50", len(pool), flush=True)
    return pool


def music(dev):
    paths = [os.path.join(folder, name) for folder, _, names in sorted(os.walk(os.environ["MUSIC"])) for name in sorted(names)]
    paths = [p for i, p in enumerate(paths) if p.endswith((".ogg", ".opus", ".mp3")) and (i % 10 == 0) == dev]
    random.shuffle(paths)
    out = []
    for path in paths[: 20 if dev else 260]:
        try:
            info = soundfile.info(path)
            for _ in range(2):
                start = int(rng.integers(0, max(1, info.frames - 13 * info.samplerate)))
                x, rate = soundfile.read(path, start=start, frames=13 * info.samplerate, dtype="float32", always_2d=True)
                x = to16k(x.mean(1), rate)
                if len(x) >= LENGTH and np.sqrt((x**2).mean()) > 1e-3:
                    out.append(x[:LENGTH])
        except soundfile.LibsndfileError as e:
            print(path, e)
    print("music", len(out), flush=True)
    return out


def synthesized():
    """Voices of test/voice.ts, as 16 kHz f32 files in SYNTHESIZED (other speakers than the tests take); none when it is not set."""
    folder = os.environ.get("SYNTHESIZED")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".f32")) if folder else []
    return [np.fromfile(f"{folder}/{n}", "<f4") for n in names]


def coloured(n):
    kind = rng.integers(0, 5)
    x = rng.standard_normal(n).astype(np.float32)
    if kind == 1:
        x = lfilter([1], [1, -0.9], x)
    elif kind == 2:
        x = lfilter([1], [1, -0.99], x)
    elif kind == 3:  # hum and its harmonics over noise
        f, t = rng.choice([50, 60, 100]), np.arange(n) / RATE
        x = 0.3 * x + sum(np.sin(2 * np.pi * f * k * t) * rng.random() * 3 for k in range(1, 6))
    elif kind == 4:  # slowly swelling
        x = x * (0.2 + np.abs(np.interp(np.arange(n), np.linspace(0, n, 12), rng.standard_normal(12))))
    return x.astype(np.float32)


def tones(n):
    """Dial, ring, busy and DTMF tones, sweeps, chords, beeps."""
    t, x, at = np.arange(n) / RATE, np.zeros(n, np.float32), 0
    style = rng.integers(0, 5)
    while at < n:
        length = int(RATE * [rng.uniform(0.05, 0.25), rng.uniform(0.3, 2), rng.uniform(2, 8), rng.uniform(0.1, 0.6), rng.uniform(0.5, 4)][style])
        gap = int(RATE * [rng.uniform(0.03, 0.3), rng.uniform(0.2, 3), 0.0, rng.uniform(0, 0.1), rng.uniform(0, 1)][style])
        part = t[at : at + length]
        if style == 0:
            fs = [rng.choice([697, 770, 852, 941]), rng.choice([1209, 1336, 1477, 1633])]
        elif style == 1:
            fs = list(rng.choice([350, 400, 425, 440, 450, 480, 620, 950, 1400, 1800, 2100], rng.integers(1, 3), False))
        elif style == 2:
            fs = list(rng.uniform(80, 4000, rng.integers(1, 3)))
        elif style == 3:
            base = 110 * 2 ** (rng.integers(0, 36) / 12)
            fs = [base * k for k in range(1, rng.integers(2, 9))]
        else:
            fs = []
            a, b = rng.uniform(100, 3800, 2)
            x[at : at + length] += np.sin(2 * np.pi * np.cumsum(np.linspace(a, b, len(part))) / RATE)
        decay = np.exp(-(part - part[0]) * rng.choice([0, 0, 4, 10])) if len(part) else part
        for i, f in enumerate(fs):
            x[at : at + length] += decay * np.sin(2 * np.pi * f * part + rng.uniform(0, 6)) / (1 + (style == 3) * i)
        at += length + gap
    return x


def cut_above(hz):
    """A low-pass, steep or gentle, deep or shallow: what is left above it tells equipment apart."""
    taps = firwin(2 * int(rng.integers(24, 160)) + 1, hz, window=("kaiser", rng.uniform(3, 9)), fs=RATE)
    return lambda x: fftconvolve(x, taps, "same")


def cut_below(rate, share=0.5, lowest=50):
    """A high-pass of a microphone or a telephone, or none: voice over IP and files keep the low frequencies."""
    if rng.random() < 1 - share:
        return lambda x: x
    filters = butter(int(rng.integers(1, 5)), rng.uniform(lowest, 350), "high", fs=rate, output="sos")
    return lambda x: sosfilt(filters, x)


def engine_filter():
    """The taps of assembly/dsp/resample-table.ts for 8 kHz: nothing is left of the images, so the upper bins lie at the floor."""
    half, beta = 112, 0.1102 * (86 - 8.7)
    t = np.arange(-half, half + 1)
    taps = np.sinc(0.95 * t / 2) * np.kaiser(2 * half + 1, beta)
    return taps / taps.sum()


def coded(x, how):
    """Through a codec at 8 kHz; libsndfile has the real ones."""
    if how is None:
        return x
    file = io.BytesIO()
    soundfile.write(file, np.clip(x, -1, 1), 8000, subtype=how, format="WAV")
    file.seek(0)
    return soundfile.read(file)[0][: len(x)]


def telephone(*lows):
    """8 kHz, with and without the low frequencies, through a codec, and back to 16 kHz as the engine or as others do it."""
    low, band = cut_below(8000, *lows), cut_above(rng.uniform(3300, 3950))
    how = [None, "PCM_16", "ULAW", "ALAW", "GSM610"][rng.choice(5, p=[0.1, 0.2, 0.25, 0.25, 0.2])]
    up = [lambda y: resample_poly(y, 2, 1, window=engine_filter()), lambda y: resample_poly(y, 2, 1), lambda y: resample(y, 2 * len(y))][
        rng.choice(3, p=[0.6, 0.25, 0.15])
    ]
    return lambda x: up(coded(low(band(x)[::2]), how)).astype(np.float32)


def line():
    """A way from the microphone to the engine: 8 kHz, a band limit below 8 kHz in 16 kHz, or all of it."""
    which = rng.random()
    if which < 0.55:
        return telephone()
    low, band = cut_below(RATE), cut_above(rng.uniform(3400, 7900)) if which < 0.78 else lambda x: x
    return lambda x: low(band(x)).astype(np.float32)


def room(x):
    n = int(RATE * rng.uniform(0.1, 0.6))
    h = rng.standard_normal(n) * np.exp(-6.9 * np.arange(n) / n) * rng.uniform(0.02, 0.12)
    h[0] = 1
    return fftconvolve(x, h)[: len(x)].astype(np.float32)


class Silero:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.net = onnxruntime.InferenceSession(path, options)

    def __call__(self, x):
        """[n, samples] at 16 kHz -> [n, chunks of 512] probabilities"""
        n, chunks = len(x), x.shape[1] // 512
        state, context, out = np.zeros((2, n, 128), np.float32), np.zeros((n, 64), np.float32), np.zeros((n, chunks), np.float32)
        for c in range(chunks):
            part = x[:, c * 512 : c * 512 + 512]
            p, state = self.net.run(None, {"input": np.concatenate([context, part], 1), "state": state, "sr": np.array(RATE, np.int64)})
            out[:, c], context = p[:, 0], part[:, -64:]
        return out


def unheard(x):
    return np.zeros((len(x), x.shape[1] // 512), np.float32)


def logmel(x):
    """[n, samples] in -1..1 -> [n, frames, 80], as the kernels do it."""
    mel = lambda f: 1127 * np.log(1 + f / 700)
    edges, at = np.linspace(mel(20), mel(8000), 82), mel(np.arange(257) * RATE / 512)
    bank = np.stack([np.maximum(0, np.minimum((at - l) / (c - l), (r - at) / (r - c))) for l, c, r in zip(edges, edges[1:], edges[2:])])
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    f = np.lib.stride_tricks.sliding_window_view(x, 400, 1)[:, ::160].astype(np.float32)
    f = f - f.mean(2, keepdims=True)
    f = np.concatenate([f[..., :1] * 0.03, f[..., 1:] - 0.97 * f[..., :-1]], 2) * window
    return np.log(np.maximum(np.abs(np.fft.rfft(f, 512)) ** 2 @ bank.T, 1.1920929e-07)).astype(np.float32)


def per_frame(p, frames):
    """Silero's chunk that contains the middle of each 25 ms frame."""
    chunk = (np.arange(frames) * 160 + 200) // 512
    return p[:, np.minimum(chunk, p.shape[1] - 1)]


def main():
    out, hours = arguments[0], float(arguments[1])
    dev, hold = "dev" in arguments[2:], "hold" in arguments[2:]
    people = speech(corpora.DEV if dev else {k: v for k, v in corpora.TRAIN.items() if k not in ("malayalam", "alphanumeric")}, hours * 260)
    people += synthesized()
    noises, songs, silero = esc50(dev), music(dev), unheard if hold else Silero(os.environ["SILERO"])
    features, labels, kinds = [], [], []
    count, batch = int(hours * 3600 / SECONDS), 32
    for start in range(0, count, batch):
        clean, dirty, talks = np.zeros((batch, LENGTH), np.float32), np.zeros((batch, LENGTH), np.float32), np.ones(batch, bool)
        kind = np.zeros(batch, np.int8)
        for b in range(batch):
            what = rng.random()
            if what < 0.62:
                at = int(RATE * max(0, rng.uniform(-0.5, 1.5)))
                while at < LENGTH:
                    x = people[rng.integers(len(people))]
                    x = x[: LENGTH - at] * 10 ** (rng.normal(0, 3) / 20)
                    clean[b, at : at + len(x)] += x
                    at += len(x) + int(RATE * rng.exponential(0.5 if rng.random() < 0.7 else 2.5))
                # Three in ten are as good as without noise, half of those quite.
                snr, kind[b] = [rng.uniform(-8, 20), rng.uniform(20, 45), rng.uniform(45, 80), np.inf][rng.choice(4, p=[0.45, 0.25, 0.15, 0.15])], 0
                if rng.random() < 0.3:
                    clean[b] = room(clean[b])
            else:
                talks[b], snr, kind[b] = False, 0, 1
            which = rng.random()
            if not talks[b] and which < 0.45:
                n, kind[b] = songs[rng.integers(len(songs))], 2
            elif not talks[b] and which < 0.62:
                n = tones(LENGTH) + 10 ** rng.uniform(-4, -1) * coloured(LENGTH)
            elif which < 0.35:
                n = coloured(LENGTH)
            elif which < 0.4 and talks[b]:
                n = songs[rng.integers(len(songs))]
            else:
                n = np.concatenate([noises[rng.integers(len(noises))] for _ in range(4)])
                n = np.resize(n, LENGTH) + 1e-3 * np.abs(n).max() * coloured(LENGTH)
            n = n / np.sqrt((n**2).mean() + 1e-12)
            level = 0.05 * np.sqrt(np.mean(clean[b] ** 2) / 0.0025 + 1e-12) if talks[b] else 0.05
            x = clean[b] + n[:LENGTH] * level * 10 ** (-snr / 20)
            gain = 10 ** (rng.uniform(-28, 14) / 20)
            way = telephone(1, 200) if hold and rng.random() < 0.7 else cut_below(RATE) if hold else line()
            x, clean[b] = way(x * gain), way(clean[b])
            if rng.random() < 0.5:
                x = np.round(x * 32768) / 32768
            dirty[b] = np.clip(x, -1, 1)
        peak = np.sqrt((dirty**2).mean(1, keepdims=True) + 1e-10)
        heard = silero(np.clip(dirty * np.minimum(1 / peak * 0.05, 30), -1, 1))
        truth = silero(np.clip(clean, -1, 1))
        f = logmel(dirty)
        frames = f.shape[1]
        y = 0.5 * per_frame(heard, frames) + 0.5 * per_frame(truth, frames)
        y[~talks] = 0
        features.append(f.astype(np.float16))
        labels.append(np.stack([y, per_frame(heard, frames), per_frame(truth, frames)], 2).astype(np.float16))
        kinds.append(kind)
        print(start, "of", count, "speech", (y > 0.5).mean().round(3), "teachers agree", ((heard > 0.5) == (truth > 0.5))[talks].mean().round(3), "false", (heard > 0.5)[~talks].mean().round(3), flush=True)
    np.savez(out, features=np.concatenate(features), labels=np.concatenate(labels), kinds=np.concatenate(kinds))


if __name__ == "__main__":
    main()
