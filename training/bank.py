"""python3 bank.py DATA OUT: decodes pack.py's shards in DATA on every core into OUT: the speech as it was packed and a
copy that has been through a telephone or a voice-over-IP line, two thirds of the copies in a noisy or echoing place first.
Coding after the noise is what calls do; doing it here, once, keeps the accelerator free."""
import glob, json, multiprocessing as mp, os, sys
import numpy as np
import codec

RATE, SLICE = 16000, 120
LINES = ["mulaw", "alaw", "gsm", "gsm", "amr7", "amr5", "amr4", "amr2", "amr0", "opus", "opus", "tandem"]


def noisy(x, noise, chance):
    """Speech in a place: a decaying echo and a recording of noise, or neither."""
    if chance.rand() < 0.35:
        n = int(RATE * chance.uniform(0.1, 0.5))
        echo = chance.randn(n) * np.exp(-6.9 * np.arange(n) / n) * chance.uniform(0.02, 0.15)
        echo[0] = 1
        size = len(x) + n
        x = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(echo, size), size)[: len(x)]
    if chance.rand() < 0.5:
        at = chance.randint(0, max(1, len(noise) - len(x)))
        n = np.resize(noise[at : at + len(x)], len(x)).astype(np.float32)
        x = x + n * np.sqrt((x**2).mean() / ((n**2).mean() + 1e-9)) * 10 ** (-chance.uniform(3, 25) / 20)
    return x


def within(x):
    return (x / max(1.0, np.abs(x).max() / 0.95)).astype(np.float32)


def line(x, chance):
    kind = LINES[chance.randint(len(LINES))]
    if kind == "opus":
        band = [codec.NARROW, codec.NARROW, codec.MEDIUM, codec.WIDE][chance.randint(4)]
        return codec.Opus(int(chance.choice([6000, 8000, 12000, 16000, 24000])), band, voip=True, complexity=0)(x)
    if kind == "tandem":  # a mobile call into a landline
        return codec.telephone(f"amr{chance.randint(8)}")(codec.telephone(["gsm", "mulaw"][chance.randint(2)])(x))
    return codec.telephone(kind)(x)


def unpack(job):
    shard, lo, hi, noise = job
    decoder, chance = codec.Opus(24000), np.random.RandomState(lo)
    rows, raw = json.load(open(shard + ".json"))[lo:hi], np.memmap(shard + ".bin", np.uint8, "r")
    noise = np.load(noise, mmap_mode="r") if noise else None
    plain, coded = [], []
    for r in rows:
        x = decoder.decode(bytes(raw[r["off"] : r["off"] + sum(r["lens"])]), r.pop("lens"), r["n"])
        y = x
        if noise is not None:
            y = x.astype(np.float32) / 32768
            y = line(within(noisy(y, noise, chance)), chance)
            y = np.clip(np.round(y * 32768), -32768, 32767).astype(np.int16)
        r["n"] = min(len(x), len(y))
        plain.append(x[: r["n"]])
        coded.append(y[: r["n"]])
    return rows, np.concatenate(plain), np.concatenate(coded)



def whole(shard):
    """How many chunks a shard has; none while it is still arriving."""
    try:
        rows = json.load(open(shard + ".json"))
        return len(rows) if os.path.getsize(shard + ".bin") == rows[-1]["off"] + sum(rows[-1]["lens"]) else 0
    except (OSError, ValueError):
        return 0


def build(data, out):
    """Shards not yet done, noise first (the copies need it). DEV shards get no copy."""
    os.makedirs(out, exist_ok=True)
    shards = sorted((p[:-5] for p in glob.glob(data + "/*.json")), key=lambda p: "esc50" not in p)
    for shard in shards:
        name = os.path.basename(shard)
        if os.path.exists(f"{out}/{name}.json") or not (n := whole(shard)):
            continue
        noise = f"{out}/esc50.plain.npy" if name != "esc50" and not name.startswith("dev") else None
        with mp.Pool() as pool:
            parts = pool.map(unpack, [(shard, i, min(n, i + SLICE), noise) for i in range(0, n, SLICE)], chunksize=1)
        np.save(f"{out}/{name}.plain.npy", np.concatenate([p[1] for p in parts]))
        if noise:
            np.save(f"{out}/{name}.coded.npy", np.concatenate([p[2] for p in parts]))
        json.dump([r for p in parts for r in p[0]], open(f"{out}/{name}.json", "w"))
        print("bank", name, n, flush=True)


if __name__ == "__main__":
    build(*sys.argv[1:3])
