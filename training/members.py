"""python3 members.py MIRROR DEV: writes speech of the training speakers as DEV/members/SET/SPEAKER/INDEX.wav (16-bit PCM at the corpus's own
rate): up to four segments of about 4 s a speaker. They are the other voices of a list (`npm run bench:accuracy -- --open-set`) and impostors
for calibrate.py: DEV has too few people for either. Of the largest set, whose speakers have a few seconds each, every speaker has one segment."""
import hashlib, os, sys
from collections import defaultdict
import numpy as np, soundfile
import audio, corpora
from trials import SECONDS, hashed

SEGMENTS, LEAST = 4, 1.5  # of one speaker; the shortest, in seconds


def segments(repo, blobs):
    """Trimmed speech of one speaker in pieces of about 4 s, and its rate."""
    held, seconds, out, rate = [], 0.0, [], None
    for data in corpora.blobs(repo, blobs):
        got = data and audio.read(data)
        if not got or (rate and got[1] != rate):
            continue
        rate = got[1]
        x = audio.trim(*got)
        while len(x) and len(out) < SEGMENTS:
            part, x = x[: int((SECONDS - seconds) * rate) + 1], x[int((SECONDS - seconds) * rate) + 1 :]
            held.append(part)
            seconds += len(part) / rate
            if seconds >= SECONDS:
                out.append(np.concatenate(held))
                held, seconds = [], 0.0
        if len(out) == SEGMENTS:
            break
    if seconds >= LEAST and len(out) < SEGMENTS:
        out.append(np.concatenate(held))
    return out, rate


def extract(name, out):
    speakers, written = defaultdict(list), 0
    for blob, speaker, _ in corpora.rows(name):
        speakers[speaker].append(blob)
    for speaker, blobs in speakers.items():
        blobs.sort(key=lambda b: hashlib.sha256(b.encode()).hexdigest())
        found, rate = segments(corpora.TRAIN[name][0], blobs)
        folder = f"{out}/members/{name}/{hashed(name, speaker)}"
        for i, x in enumerate(found):
            os.makedirs(folder, exist_ok=True)
            soundfile.write(f"{folder}/{i}.wav", x, rate, subtype="PCM_16")
        written += len(found)
    print(f"{name:16s} speakers {len(speakers):5d} segments {written:5d}", flush=True)


if __name__ == "__main__":
    corpora.MIRROR, out = sys.argv[1:3]
    for name in corpora.TRAIN:
        extract(name, out)
