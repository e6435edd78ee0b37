"""python3 table.py KIND PACK PUBLISHED CHECKPOINT OUT.npz: embeddings of training speakers, weights rounded to int8. All that
discriminant.py and cohort.py need; they never touch audio.

KIND train: for each of some hundred training speakers, three segments that enroll and one that tests, the former clean and
through a call, the latter under every condition; speakers: one segment of each training speaker, for the cohort. PACK: pack.py's output.

A row of the table is one recording: e (its unit embedding), pitch Hz, and its key:
speaker, condition, place (0..2 enroll, 3 tests)."""
import glob, json, multiprocessing as mp, os, sys
import numpy as np, torch
import codec, conditions, networks

RATE, SEGMENT = 16000, 64000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TESTS = ["clean", "mulaw", "gsm", "noise10", "call", "cut2", "cut1"]
SPEAKERS, NOISE = int(os.environ.get("SPEAKERS", "320")), conditions.synthetic_noise()


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


def rows(made):
    """made: [(speaker, condition, place, samples)] -> with pitch"""
    return [(s, k, p, x, conditions.pitch(x) if k == "clean" else 0.0) for s, k, p, x in made]


def train_rows(job):
    number, items = job
    x = [speech(*item) for item in items]
    made = [(number, k, p, under(k, x[p], number * 7 + p)) for k in ("clean", "call") for p in range(3)]
    return rows(made + [(number, k, 3, under(k, x[3], number * 7 + 5)) for k in TESTS])


def speaker_rows(job):
    number, items = job
    return rows([(number, "clean", 0, speech(*items[0]))])


def jobs(kind, pack):
    of = list(shards(pack).values())
    if kind == "train":
        long = [[item for item in items if item[1]["n"] >= SEGMENT] for items in of]
        long = [items for items in long if len(items) >= 4]
        pick = np.random.RandomState(5).permutation(len(long))[:SPEAKERS]
        return train_rows, [(int(i), [long[i][j] for j in np.linspace(0, len(long[i]) - 1, 4).astype(int)]) for i in pick]
    of = [[max(items, key=lambda item: min(item[1]["n"], SEGMENT))] for items in of]
    return speaker_rows, [(i, items) for i, items in enumerate(of) if items[0][1]["n"] >= 1.5 * RATE]


def load(published, checkpoint):
    return networks.quantize(networks.load("adapted", published, checkpoint)).to(DEVICE)


@torch.no_grad()
def embeddings(voice, pieces, batch=64):
    """Unit embeddings; pieces of one length go together."""
    out, by_length = [None] * len(pieces), {}
    for i, x in enumerate(pieces):
        by_length.setdefault(len(x), []).append(i)
    for ids in by_length.values():
        for o in range(0, len(ids), batch):
            part = ids[o : o + batch]
            e = voice(torch.from_numpy(np.stack([pieces[i] for i in part])).to(DEVICE))
            for i, row in zip(part, e.cpu().numpy()):
                out[i] = row
    return out


def main(kind, pack, published, checkpoint, out):
    work, todo = jobs(kind, pack)
    voice, keys, found, held = load(published, checkpoint), [], [], []

    def embed():
        found.extend(embeddings(voice, [row[3] for row in held]))
        keys.extend(row[:3] + row[4:] for row in held)
        held.clear()

    with mp.get_context("forkserver").Pool(os.cpu_count()) as pool:
        for part in pool.imap(work, todo, chunksize=4):
            held += part
            if len(held) >= 512:
                embed()
    embed()
    s, k, p, pitch = zip(*keys)
    np.savez(out, speaker=s, condition=k, place=p, e=np.stack(found).astype(np.float32), pitch=np.array(pitch, np.float32))


if __name__ == "__main__":
    main(*sys.argv[1:])
