"""python3 pack.py MIRROR WAVS OUT: packs genuine speech and attacks as OUT/<split>-<k>.bin (FLAC clips) + .json.

Every clip, genuine or attack, goes through the same steps: 16 kHz, trimmed, one level, 3.2 s, FLAC. So nothing of a file's format, rate or
loudness tells the classes apart. WORLD and codec2 copy-synthesis of genuine training speech is made here too; HiFi-GAN's on the accelerator.
"""
import io, json, os, random, subprocess, sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
import audio, corpora, sources

CLIP = int(3.2 * audio.RATE)
SHARD = 15 << 20
MOST = {"train": 160, "dev": 120}  # clips of one system (a page of google/tacotron is a system)
GENUINE_TRAIN, WORLD, CODEC2 = 2600, 350, 150


def clips(samples, rate, most=2):
    x = audio.trim(audio.resample(samples, rate))
    x = x[: len(x) // CLIP * CLIP] if len(x) >= CLIP else np.tile(x, -(-CLIP // max(1, len(x))))[:CLIP] if len(x) > CLIP // 2 else x[:0]
    return [audio.level(c) for c in x.reshape(-1, CLIP)[:most]]


class Writer:
    def __init__(self, out, split):
        self.out, self.split, self.shard, self.rows, self.data, self.count = out, split, 0, [], bytearray(), 0

    def add(self, label, system, key, x):
        blob = io.BytesIO()
        soundfile.write(blob, np.clip(x, -1, 1), audio.RATE, format="FLAC", subtype="PCM_16")
        self.rows.append(dict(label=label, system=system, key=key, off=len(self.data), bytes=len(blob.getvalue())))
        self.data += blob.getvalue()
        self.count += 1
        if len(self.data) > SHARD:
            self.flush()

    def flush(self):
        if self.rows:
            open(f"{self.out}/{self.split}-{self.shard}.bin", "wb").write(self.data)
            json.dump(self.rows, open(f"{self.out}/{self.split}-{self.shard}.json", "w"))
            self.shard, self.rows, self.data = self.shard + 1, [], bytearray()


def corpus(name, most_speakers, chance):
    """Up to two clips a speaker, short takes joined."""
    takes = defaultdict(list)
    repo, _ = {**corpora.TRAIN, **corpora.DEV}[name]
    for sha, speaker, _ in corpora.rows(name):
        takes[speaker].append(sha)
    for speaker in chance.sample(sorted(takes), min(most_speakers, len(takes))):
        chosen, parts = chance.sample(takes[speaker], min(8, len(takes[speaker]))), []
        for data in corpora.blobs(repo, chosen):
            got = data and (audio.read_mulaw(data) if name == "wuw-dev" else audio.read(data))
            if got:
                parts.append(audio.resample(*got))
            if sum(map(len, parts)) > 3 * CLIP:
                break
        if parts:
            yield from ((f"{name}/{speaker}", x) for x in clips(np.concatenate(parts), audio.RATE))


def world(x):
    import pyworld

    x = x.astype(np.float64)
    f0, t = pyworld.harvest(x, audio.RATE)
    return pyworld.synthesize(f0, pyworld.cheaptrick(x, f0, t, audio.RATE), pyworld.d4c(x, f0, t, audio.RATE), audio.RATE)[:CLIP].astype(np.float32)


def codec2(x, mode):
    pcm = (np.clip(audio.resample(x, audio.RATE, 8000), -1, 1) * 32767).astype(np.int16).tobytes()
    bits = subprocess.run(["c2enc", mode, "-", "-"], input=pcm, capture_output=True, check=True).stdout
    out = subprocess.run(["c2dec", mode, "-", "-"], input=bits, capture_output=True, check=True).stdout
    y = audio.resample(np.frombuffer(out, np.int16).astype(np.float32) / 32768, 8000, audio.RATE)
    return np.pad(y, (0, max(0, CLIP - len(y))))[:CLIP]


def main(mirror, wavs, out):
    corpora.MIRROR = mirror
    os.makedirs(out, exist_ok=True)
    chance = random.Random(7)
    writers = {split: Writer(out, split) for split in ("train", "dev")}
    genuine = []
    for name in corpora.TRAIN:
        genuine += corpus(name, 160, chance)
    chance.shuffle(genuine)
    genuine = genuine[:GENUINE_TRAIN]
    for key, x in genuine:
        writers["train"].add("genuine", "genuine", key, x)
    for key, x in genuine[:WORLD]:
        writers["train"].add("attack", "world", key, audio.level(world(x)))
    for i, (key, x) in enumerate(genuine[WORLD : WORLD + CODEC2]):
        writers["train"].add("attack", "codec2", key, audio.level(codec2(x, ["3200", "2400", "1300"][i % 3])))
    print("genuine", writers["train"].count, flush=True)
    for name in ("cvau-dev", "wuw-dev", "fsdd"):
        for key, x in corpus(name, 60, chance):
            writers["dev"].add("genuine", name, key, x)
    rows = list(sources.galleries(mirror)) + list(sources.synthesized(wavs))
    chance.shuffle(rows)
    made = defaultdict(int)
    for split, label, system, key, read in rows:
        if label == "attack" and made[system] >= MOST[split]:
            continue
        got = audio.read(read())
        for x in clips(*got) if got else []:
            if label == "genuine" and split == "train":
                continue
            writers[split].add(label, system, key, x)
            made[system] += 1
    for w in writers.values():
        w.flush()
    for system in sorted(made):
        print(f"{system:48s} {made[system]}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
