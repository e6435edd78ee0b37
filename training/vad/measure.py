"""DEV recordings with Silero's opinion of every frame, for measure.mjs: MIRROR=… SILERO=… MUSIC=… python measure.py FOLDER

Speech of each DEV set is strung together with pauses; noise is added at 20 and 5 dB below the level of Silero's speech frames. Also written:
noise, tones, DTMF and music without any speech; the music is what Debian's asterisk-moh-opsound-wav plays to callers on hold.
"""
import glob, json, os, sys
import numpy as np, soundfile

folder = sys.argv[1]
sys.argv = [sys.argv[0], "unused", "0", "dev"]
import data
from data import RATE, Silero, coloured, esc50, per_frame, rng, speech, telephone, to16k, tones

os.makedirs(folder, exist_ok=True)
silero, index = Silero(os.environ["SILERO"]), []
noises = esc50(True)
SECONDS = 30


def write(name, group, x, labels=None):
    x = np.clip(x, -1, 1).astype("<f4")
    x.tofile(f"{folder}/{name}.f32")
    frames = (len(x) - 400) // 160 + 1
    if labels is not None:
        (per_frame(labels, frames)[0] > 0.5).astype(np.uint8).tofile(f"{folder}/{name}.u8")
    index.append({"name": name, "group": group, "labels": labels is not None})


def background(n):
    kind = rng.integers(0, 3)
    if kind == 0:
        return rng.standard_normal(n)
    if kind == 1:
        return coloured(n)
    clips = np.concatenate([noises[rng.integers(len(noises))] for _ in range(n // RATE // 4 + 2)])
    return np.resize(clips, n) + 1e-4


for name, row in data.corpora.DEV.items():
    pool = speech({name: row}, 120)
    for take in range(3):
        x, at = np.zeros(SECONDS * RATE, np.float32), RATE // 2
        while at < len(x):
            part = pool[rng.integers(len(pool))][: len(x) - at]
            x[at : at + len(part)] += part
            at += len(part) + int(RATE * rng.uniform(0.2, 1.2))
        on = np.repeat(silero(x[None])[0] > 0.5, 512)
        power = np.mean(x[: len(on)][on] ** 2)
        write(f"{name}-{take}-clean", f"{name} clean", x, silero(x[None]))
        for snr in (20, 5):
            n = background(len(x))
            y = (x + n * np.sqrt(power / np.mean(n**2) / 10 ** (snr / 10))).astype(np.float32)
            write(f"{name}-{take}-{snr}", f"{name} {snr} dB", y, silero(y[None]))
            write(f"{name}-{take}-{snr}-quiet", f"{name} {snr} dB at -50", y * 10 ** (-24 / 20), silero(y[None]))

for i in range(6):
    for group, x in (("noise", background(SECONDS * RATE)), ("tones", tones(SECONDS * RATE))):
        x = x / np.sqrt(np.mean(x**2)) * 10 ** (rng.uniform(-40, -15) / 20)
        write(f"{group}-{i}", group, x.astype(np.float32), silero(x[None].astype(np.float32)))
for i, path in enumerate(sorted(glob.glob("/usr/share/asterisk/moh/*.wav"))):
    x, rate = soundfile.read(path, dtype="float32", always_2d=True)
    x = to16k(x.mean(1), rate)[: 60 * RATE]
    write(f"hold-{i}", "hold music", x, silero(x[None]))
json.dump(index, open(f"{folder}/index.json", "w"))
