"""The frozen DEV trial lists. `python3 trials.py MIRROR [name …]` made trials/NAME.txt once, before anything was adapted; they do not change.

A segment is about 4 s of trimmed speech of one session (four one-second words in gsc-dev): whole utterances in the order of
their hash, cut at 4 s. A line of a list is `speaker group session segment blob,blob,…`, all but the blobs hashed or counted;
blobs are the first 12 digits of git ids. From the lines follow the trials: a session's first three segments enroll (in
gsc-dev its first), every segment of every other session tests, and two speakers of one group (spellings that may be
one person) are never held against each other."""
import hashlib, os, sys
from collections import defaultdict
import numpy as np
import corpora

FOLDER = os.path.join(corpora.HERE, "trials")
SECONDS, LEAST, SEGMENTS = 4.0, 3.0, 8  # a segment's length, the shortest kept, the most of one session
ENROLL = {"gsc-dev": 1}  # segments that enroll; elsewhere three


def hashed(*words):
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:8]


def session_of(name, session, blob):
    """Where the corpus has no sessions its utterances are split in two by hash."""
    return session if name in ("cvau-dev", "wuw-dev", "hv-dev") else str(int(hashlib.sha256(blob.encode()).hexdigest(), 16) % 2)


def speech(name, blobs):
    """Trimmed speech of each blob and its rate."""
    import audio  # reading needs libraries that following a run on the accelerator does not

    for data in corpora.blobs(corpora.DEV[name][0], blobs):
        x, rate = audio.read_mulaw(data) if name == "wuw-dev" else audio.read(data)
        yield audio.trim(x, rate), rate


def segments(name, blobs):
    """Blobs of one session -> groups that make up a segment each."""
    out, held, seconds = [], [], 0.0
    for blob, (x, rate) in zip(blobs, speech(name, blobs)):
        if len(x) < 0.2 * rate:
            continue
        held.append(blob)
        seconds += len(x) / rate
        if len(held) == 4 if name == "gsc-dev" else seconds >= SECONDS:
            out.append(held)
            held, seconds = [], 0.0
        if len(out) == SEGMENTS:
            break
    else:
        if name != "gsc-dev" and seconds >= LEAST:
            out.append(held)
    return out


def freeze(name):
    sessions, groups = defaultdict(list), corpora.wuw_groups() if name == "wuw-dev" else {}
    for blob, speaker, session in corpora.rows(name):
        sessions[speaker, session_of(name, session, blob)].append(blob)
    lines = []
    for (speaker, session), blobs in sessions.items():
        blobs.sort(key=lambda b: hashlib.sha256(b.encode()).hexdigest())
        s = hashed(name, speaker)
        for i, held in enumerate(segments(name, blobs)):
            lines.append(f"{s} {hashed(name, groups[speaker]) if groups else s} {hashed(name, speaker, session)} {i} {','.join(b[:12] for b in held)}")
    with open(f"{FOLDER}/{name}.txt", "w") as f:
        f.write("\n".join(sorted(lines)) + "\n")


def lines(name):
    """-> [(speaker, group, session, index, [blob, …])]"""
    for line in open(f"{FOLDER}/{name}.txt"):
        speaker, group, session, index, blobs = line.split()
        yield speaker, group, session, int(index), blobs.split(",")


def trials(name):
    """-> (keys of the segments, models as [segment numbers], rows of (label, model, segment number)); a key is (speaker, session, index)."""
    rows = [(s, g, e, i) for s, g, e, i, _ in lines(name)]
    enroll, sessions = ENROLL.get(name, 3), defaultdict(list)
    for k, (s, _, e, _) in enumerate(rows):
        sessions[s, e].append(k)
    models = [ks[:enroll] for ks in sessions.values() if len(ks) >= enroll]
    out = []
    for m, ks in enumerate(models):
        s, g, e, _ = rows[ks[0]]
        for k, (s2, g2, e2, _) in enumerate(rows):
            if e2 != e and (s2 == s or g2 != g):
                out.append((int(s2 == s), m, k))
    return [(s, e, i) for s, _, e, i in rows], models, np.array(out)


if __name__ == "__main__":
    corpora.MIRROR = sys.argv[1]
    os.makedirs(FOLDER, exist_ok=True)
    for name in sys.argv[2:] or corpora.DEV:
        freeze(name)
        keys, models, rows = trials(name)
        print(f"{name:9s} speakers {len({k[0] for k in keys}):4d} sessions {len({k[:2] for k in keys}):4d} segments {len(keys):5d} models {len(models):4d} genuine {rows[:, 0].sum():5d} impostor {(1 - rows[:, 0]).sum():6d}")
