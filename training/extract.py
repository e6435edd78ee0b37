"""python3 extract.py MIRROR OUT: writes every DEV segment of the frozen lists as OUT/SET/SPEAKER/SESSION/INDEX.wav (16-bit PCM
at the corpus's own rate; the mu-law calls decoded at 8 kHz) and OUT/SET.trials.txt, lines of `label enroll,enroll,enroll test`
with paths relative to OUT. Any tool that reads WAV can then repeat our figures."""
import os, sys
from collections import defaultdict
import numpy as np, soundfile
import corpora, trials


def extract(name, out):
    full = defaultdict(list)
    for blob, _, _ in corpora.rows(name):
        full[blob[:12]].append(blob)
    for speaker, _, session, index, blobs in trials.lines(name):
        parts = list(trials.speech(name, [full[b][0] for b in blobs]))
        rate = parts[0][1]
        x = np.concatenate([x for x, _ in parts])[: int(trials.SECONDS * rate)]
        folder = f"{out}/{name}/{speaker}/{session}"
        os.makedirs(folder, exist_ok=True)
        soundfile.write(f"{folder}/{index}.wav", x, rate, subtype="PCM_16")
    keys, models, rows = trials.trials(name)
    path = lambda k: "{}/{}/{}/{}.wav".format(name, *keys[k])
    with open(f"{out}/{name}.trials.txt", "w") as f:
        for label, m, k in rows:
            f.write(f"{label} {','.join(map(path, models[m]))} {path(k)}\n")


if __name__ == "__main__":
    corpora.MIRROR, out = sys.argv[1:3]
    for name in corpora.DEV:
        extract(name, out)
        print(name, flush=True)
