"""python3 extract.py MIRROR WAVS OUT [left|said]: writes DEV, what the attack networks are measured on and never trained on. left: what they are calibrated on instead:
the galleries that choices are made on, the corpora that training leaves out (run.sh), and of the others the voices that it holds out. said: what is chosen by beside LEFT: speech that
VITS voices made of text, which its gallery publishes as MP3, and LEFT's genuine speech through the same MP3.

OUT/<system>/<n>.wav as published (mono, 16 bits, the file's own rate) and OUT/list.tsv: file, genuine or attack, system. Genuine: the DEV speech corpora and
recorded speech of the galleries' pages. At most 120 files of a system. WAVS: synthesize.py's and kokoro.py's output. Every genuine
recording is also there replayed (system replay): a loudspeaker that training never drew (filters of another kind, another distortion), then a
measured room of GoogleChromeLabs/web-audio-samples, at the recording's own rate.
"""
import os, random, subprocess, sys, zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
from scipy.signal import butter, fftconvolve, sosfilt
import audio, corpora, sources

MOST, SPEAKERS, CLIPS, SECONDS = 120, 60, 2, 8
# Rooms, plates and spaces a loudspeaker may stand in; the others of the folder are effects.
LEFT_OUT = "persian", "dspspeech", "arabic"  # corpora, as run.sh says
ROOMS = "binaural cardiod diffusor echo-chamber kitchen omni spatialized super-ceiling".split()


def speakers(name):
    """Up to two recordings of a speaker, short takes joined."""
    takes, chance, measured = {}, random.Random(name), name in corpora.DEV
    repo, _ = {**corpora.TRAIN, **corpora.DEV}[name]
    for sha, speaker, session in corpora.rows(name):
        if measured or name in LEFT_OUT or zlib.crc32(f"{name}/{speaker}".encode()) % 10 == 0:  # train.held_out
            takes.setdefault(speaker, {}).setdefault(session if measured and name != "fsdd" else "", []).append(sha)
    for speaker in chance.sample(sorted(takes), min(SPEAKERS, len(takes))):
        sessions = takes[speaker]
        for session in chance.sample(sorted(sessions), min(CLIPS, len(sessions))):
            parts, rate = [], 0
            for data in corpora.blobs(repo, sessions[session][:12]):
                got = data and (audio.read_mulaw(data) if name == "wuw-dev" else audio.read(data))
                if got:
                    parts.append(got[0])
                    rate = got[1]
                if sum(map(len, parts)) > SECONDS * rate:
                    break
            if parts:
                yield "genuine", name, np.concatenate(parts)[: SECONDS * rate], rate


def galleries(mirror, wavs, split):
    rows = [r for r in [*sources.galleries(mirror), *sources.synthesized(wavs)] if r[0] == split]
    random.Random(7).shuffle(rows)
    made = {}
    for _, label, system, _, read in rows:
        if made.get(system, 0) < (MOST if split == "dev" else 24 if label == "attack" else 60) and (got := audio.read(read())):
            made[system] = made.get(system, 0) + 1
            yield label, system, got[0][: SECONDS * got[1]], got[1]


def mp3(x, rate):
    """Through MP3 as rhasspy/piper-samples has it: 22.05 kHz, or 16 where the voice has no more, at a variable rate of 58 to 70 kbit/s."""
    to = 22050 if rate >= 22050 else 16000
    raw = (np.clip(x, -1, 1) * 32767).astype("<i2").tobytes()
    coded = subprocess.run(["ffmpeg", "-v", "error", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "-", "-ar", str(to), "-codec:a", "libmp3lame", "-qscale:a", "2", "-f", "mp3", "-"], input=raw, capture_output=True, check=True).stdout
    return audio.read(coded)


def said(mirror):
    for _, label, system, _, read in sources.said(mirror):
        if got := audio.read(read()):
            yield label, system, got[0][: SECONDS * got[1]], got[1]
    for rows in (galleries(mirror, "", "choose"), *map(speakers, corpora.TRAIN)):
        for label, system, x, rate in rows:
            if label == "genuine":
                x, rate = mp3(x, rate)
                yield label, system + " as MP3", x, rate


def rooms(mirror):
    repo = "GoogleChromeLabs+web-audio-samples"
    for sha, path in sorted(sources.listing(mirror, repo), key=lambda r: r[1]):
        if "/impulse-responses/" in path and os.path.basename(path).startswith(tuple(ROOMS)):
            x, rate = audio.read(sources.blob(mirror, repo, sha))
            x = audio.resample(x, rate)
            x = x[np.argmax(np.abs(x) > np.abs(x).max() / 30) :][: 2 * audio.RATE]
            yield x / np.sqrt((x**2).sum() + 1e-12)


def peak(hz, gain_db, q):
    """A resonance (second order)."""
    a, w = 10 ** (gain_db / 40), 2 * np.pi * hz / audio.RATE
    alpha, c = np.sin(w) / (2 * q), np.cos(w)
    row = np.array([1 + alpha * a, -2 * c, 1 - alpha * a, 1 + alpha / a, -2 * c, 1 - alpha / a])
    return (row / row[3])[None]


def replayed(x, rate, room, chance):
    """A phone's or a computer's loudspeaker and a room."""
    y = audio.resample(x, rate)
    y = sosfilt(butter(chance.choice([2, 3, 4]), chance.uniform(130, 550), "high", fs=audio.RATE, output="sos"), y)
    y = sosfilt(butter(chance.choice([1, 2, 3]), chance.uniform(4200, 7600), "low", fs=audio.RATE, output="sos"), y)
    for _ in range(chance.randrange(2, 6)):
        y = sosfilt(peak(chance.uniform(250, 6500), chance.uniform(-9, 9), chance.uniform(1, 6)), y)
    y = y / (np.abs(y).max() + 1e-9) * chance.uniform(0.3, 1.1)
    y = y - chance.uniform(0, 0.25) * y**3 + chance.uniform(-0.05, 0.05) * y**2
    y = fftconvolve(y, room)[: len(y)]
    y = y + np.random.RandomState(chance.randrange(1 << 30)).randn(len(y)) * y.std() * 10 ** (-chance.uniform(20, 50) / 20)
    y = y / (np.abs(y).max() + 1e-9) * chance.uniform(0.1, 0.9)
    return audio.resample(y.astype(np.float32), audio.RATE, rate)


def main(mirror, wavs, out, left=""):
    corpora.MIRROR = mirror
    count, chance, spaces, wanted = {}, random.Random(11), list(rooms(mirror)), [said(mirror)]
    print(len(spaces), "rooms", flush=True)
    if left != "said":
        wanted = [galleries(mirror, wavs, "choose" if left else "dev"), *map(speakers, corpora.TRAIN if left else ("cvau-dev", "wuw-dev", "fsdd"))]
    os.makedirs(out, exist_ok=True)
    with open(out + "/list.tsv", "w") as table:
        for rows in wanted:
            for label, system, x, rate in rows:
                made = [(label, system, x)]
                if label == "genuine" and left != "said" and (not left or chance.random() < 0.3):
                    made.append(("replay", "replay of " + system, replayed(x, rate, chance.choice(spaces), chance)))
                for label, system, x in made:
                    count[system] = count.get(system, 0) + 1
                    name = f"{system.replace('/', '+').replace(' ', '-')}/{count[system]}.wav"
                    os.makedirs(os.path.dirname(f"{out}/{name}"), exist_ok=True)
                    soundfile.write(f"{out}/{name}", np.clip(x, -1, 1), rate, subtype="PCM_16")
                    table.write(f"{name}\t{label}\t{system}\n")
    for system in sorted(count):
        print(f"{system:40s} {count[system]}")


if __name__ == "__main__":
    main(*sys.argv[1:5])
