"""python3 pack.py MIRROR OUT [name …]: packs training speech and noise as OUT/NAME.bin and NAME.json (Opus, 16 kHz, 24 kbit/s,
about 10 MiB an hour), at most 180 s a speaker, in chunks of 4.5 s and more. Packed, a day of speech travels to an accelerator
in minutes; the chunk's teacher embedding is its label, so a chunk never mixes speakers.
python3 pack.py --dev DEV OUT packs extract.py's segments."""
import hashlib, json, os, sys
from collections import defaultdict
import numpy as np, soundfile
import audio, corpora, trials
from codec import Opus

CHUNK, LONGEST = int(4.5 * audio.RATE), 20 * audio.RATE
MOST, MOST_NOISE = 180 * audio.RATE, 60 * audio.RATE  # of one speaker, of one class of noise


def utterances(name, speaker, items):
    """Trimmed and levelled speech of one speaker, in an order that does not follow the text."""
    items = sorted(items, key=lambda item: hashlib.md5((speaker + item[1] + item[0]).encode()).hexdigest())
    repo, used, most = {**corpora.TRAIN, **corpora.NOISE}[name][0], 0, MOST_NOISE if name in corpora.NOISE else MOST
    for data in corpora.blobs(repo, (blob for blob, _ in items)):
        got = data and audio.read(data)
        if not got or len(got[0]) < got[1] // 10:
            continue
        x = audio.resample(*got)
        x = (x if name in corpora.NOISE else audio.trim(x))[:LONGEST]
        if not len(x):
            continue
        yield audio.level(x)
        used += len(x)
        if used > most:
            return


def chunks(parts):
    held = []
    for x in parts:
        held.append(x)
        if sum(map(len, held)) > CHUNK:
            yield np.concatenate(held)
            held = []
    if held and sum(map(len, held)) > 0.4 * audio.RATE:
        yield np.concatenate(held)


def pack(name, out):
    speakers, coder, index, offset = defaultdict(list), Opus(24000), [], 0
    for blob, speaker, session in corpora.rows(name):
        speakers[speaker].append((blob, session))
    with open(f"{out}/{name}.bin.part", "wb") as f:
        for speaker in sorted(speakers):
            for x in chunks(utterances(name, speaker, speakers[speaker])):
                lengths, raw = coder.encode(x)
                f.write(raw)
                index.append(dict(c=name, s=speaker, off=offset, n=len(x), lens=lengths))
                offset += len(raw)
    json.dump(index, open(f"{out}/{name}.json", "w"), separators=(",", ":"))
    os.rename(f"{out}/{name}.bin.part", f"{out}/{name}.bin")
    print(f"{name:16s} {len(speakers):5d} speakers {len(index):6d} chunks {sum(r['n'] for r in index) / audio.RATE / 3600:5.2f} h {offset / 2**20:6.1f} MiB", flush=True)


def pack_dev(dev, out):
    """extract.py's segments, in the order of the lists and at a higher rate, so that a run can be followed where it runs."""
    coder, index, offset = Opus(40000), [], 0
    with open(f"{out}/dev.bin", "wb") as f:
        for name in corpora.DEV:
            for key in trials.trials(name)[0]:
                x = audio.resample(*soundfile.read("{}/{}/{}/{}/{}.wav".format(dev, name, *key), dtype="float32"))
                lengths, raw = coder.encode(x)
                f.write(raw)
                index.append(dict(c=name, s=key[0], off=offset, n=len(x), lens=lengths))
                offset += len(raw)
    json.dump(index, open(f"{out}/dev.json", "w"), separators=(",", ":"))
    print(f"dev {len(index)} segments {offset / 2**20:.1f} MiB")


if __name__ == "__main__":
    if sys.argv[1] == "--dev":
        pack_dev(*sys.argv[2:4])
        raise SystemExit
    corpora.MIRROR, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    for name in sys.argv[3:] or [*corpora.TRAIN, *corpora.NOISE]:
        pack(name, out)
