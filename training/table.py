"""python3 table.py KIND PACK DEV PUBLISHED CHECKPOINT OUT.npz [processes]: embeddings and measured quality under many conditions, weights
rounded to int8. All that cohort.py, calibrate.py and the card's figures need; they never touch audio themselves.

KIND train: for each of some hundred training speakers, three segments that enroll and one that tests, the former clean and
through a call, the latter under every condition; speakers: one segment of each training speaker, for the cohort;
dev: the segments of the frozen lists under every condition. PACK: pack.py's output; DEV: extract.py's.

A row of the table is one recording: e (the network's inner 192-d unit embedding, before the linear map), q (net speech s, SNR dB,
bandwidth Hz), pitch Hz, and its key: speaker, condition, place (0..2 enroll, 3 tests; in dev the number of the segment)."""
import glob, json, multiprocessing as mp, os, sys
import numpy as np, torch, torch.nn.functional as F
import codec, conditions, networks

RATE, SEGMENT = 16000, 64000
TESTS = ["clean", "mulaw", "gsm", "noise10", "call", "cut2", "cut1"]
DEV = os.environ.get("CONDITIONS", "clean,mulaw,gsm,noise10,cut2,cut1").split(",")
SPEAKERS, NOISE, voice = int(os.environ.get("SPEAKERS", "320")), conditions.synthetic_noise(), None


def shards(pack):
    """-> {(corpus, speaker): [(shard, row)]}"""
    of = {}
    for path in sorted(glob.glob(pack + "/*.json")):
        name = os.path.basename(path)[:-5]
        if name not in ("esc50", "dev"):
            for r in json.load(open(path)):
                of.setdefault((name, r["s"]), []).append((path[:-5], r))
    return of


def speech(shard, r, seconds=SEGMENT):
    raw = np.memmap(shard + ".bin", np.uint8, "r")[r["off"] : r["off"] + sum(r["lens"])]
    return codec.Opus(24000).decode(bytes(raw), r["lens"], r["n"])[:seconds].astype(np.float32) / 32768


def under(kind, x, seed):
    if kind != "call":
        return conditions.through(kind, x, seed, NOISE).astype(np.float32)
    from bank import line, noisy, within

    chance = np.random.RandomState(seed)
    return line(within(noisy(x, NOISE, chance)), chance).astype(np.float32)


@torch.no_grad()
def inner(pieces):
    """Inner embeddings; pieces of one length go together."""
    out, by_length = [None] * len(pieces), {}
    for i, x in enumerate(pieces):
        by_length.setdefault(len(x), []).append(i)
    for ids in by_length.values():
        x = voice.front(torch.from_numpy(np.stack([pieces[i] for i in ids])))
        with torch.autocast("cpu", torch.bfloat16):
            e = F.normalize(voice.network.n(x).float())
        for i, row in zip(ids, e.numpy()):
            out[i] = row
    return np.stack(out)


def rows(made):
    """made: [(speaker, condition, place, samples)] -> table rows"""
    e = inner([x for *_, x in made])
    return [(s, k, p, row, conditions.quality(x), conditions.pitch(x) if k == "clean" else 0.0) for (s, k, p, x), row in zip(made, e)]


def train_rows(job):
    number, items = job
    x = [speech(*item) for item in items]
    made = [(number, k, p, under(k, x[p], number * 7 + p)) for k in ("clean", "call") for p in range(3)]
    return rows(made + [(number, k, 3, under(k, x[3], number * 7 + 5)) for k in TESTS])


def speaker_rows(job):
    number, items = job
    return rows([(number, "clean", 0, speech(*items[0]))])


def dev_rows(job):
    import audio, soundfile

    number, paths = job
    x = []
    for path in paths:
        got, rate = soundfile.read(path, dtype="float32")
        x.append(audio.resample(got, rate))
    return rows([(number + i, k, number + i, under(k, piece, number + i)) for i, piece in enumerate(x) for k in DEV])


def jobs(kind, pack, dev):
    if kind == "dev":
        import trials

        name = os.environ["SET"]
        paths = ["{}/{}/{}/{}/{}.wav".format(dev, name, *k) for k in trials.trials(name)[0]]
        return dev_rows, [(i, paths[i : i + 8]) for i in range(0, len(paths), 8)]
    of = list(shards(pack).values())
    if kind == "train":
        long = [[item for item in items if item[1]["n"] >= SEGMENT] for items in of]
        long = [items for items in long if len(items) >= 4]
        pick = np.random.RandomState(5).permutation(len(long))[:SPEAKERS]
        return train_rows, [(int(i), [long[i][j] for j in np.linspace(0, len(long[i]) - 1, 4).astype(int)]) for i in pick]
    of = [[max(items, key=lambda item: min(item[1]["n"], SEGMENT))] for items in of]
    return speaker_rows, [(i, items) for i, items in enumerate(of) if items[0][1]["n"] >= 1.5 * RATE]


def start(published, checkpoint):
    global voice
    torch.set_num_threads(1)
    voice = networks.quantize(networks.load("adapted", published, checkpoint))
    voice.network.n.head = voice.network.n.head.to(memory_format=torch.channels_last)


def main(kind, pack, dev, published, checkpoint, out, processes="2"):
    work, todo = jobs(kind, pack, dev)
    part, of = map(int, os.environ.get("PART", "0/1").split("/"))
    todo = todo[part::of]
    found = []
    with mp.Pool(int(processes), start, (published, checkpoint)) as pool:
        for i, part in enumerate(pool.imap_unordered(work, todo)):
            found += part
            if i % 50 == 49:
                print(kind, i + 1, "of", len(todo), flush=True)
    found.sort(key=lambda r: r[:3])
    s, k, p, e, q, pitch = zip(*found)
    np.savez(out, speaker=s, condition=k, place=p, e=np.stack(e).astype(np.float32), q=np.array(q, np.float32), pitch=np.array(pitch, np.float32))


if __name__ == "__main__":
    main(*sys.argv[1:])
