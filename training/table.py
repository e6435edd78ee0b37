"""python3 table.py PACK PUBLISHED CHECKPOINT OUT.npz: one segment of each training speaker, for voice_class.py: unit embedding (weights
rounded to int8) and pitch in Hz. PACK: pack.py's output."""
import glob, json, os, sys
import numpy as np, torch
import codec, conditions, networks

RATE, SEGMENT, BATCH = 16000, 64000, 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def longest(pack):
    """-> the longest chunk of every speaker who has 1.5 s, as (shard, row)"""
    of = {}
    for path in sorted(glob.glob(pack + "/*.json")):
        name = os.path.basename(path)[:-5]
        if name not in ("esc50", "dev"):
            for r in json.load(open(path)):
                of.setdefault((name, r["s"]), []).append((path[:-5], r))
    best = (max(items, key=lambda item: min(item[1]["n"], SEGMENT)) for items in of.values())
    return [item for item in best if item[1]["n"] >= 1.5 * RATE]


def speech(shard, r):
    raw = np.memmap(shard + ".bin", np.uint8, "r")[r["off"] : r["off"] + sum(r["lens"])]
    return codec.Opus(24000).decode(bytes(raw), r["lens"], r["n"])[:SEGMENT].astype(np.float32) / 32768


@torch.no_grad()
def embeddings(voice, pieces):
    """Unit embeddings; pieces of one length go together."""
    out, by_length = [None] * len(pieces), {}
    for i, x in enumerate(pieces):
        by_length.setdefault(len(x), []).append(i)
    for ids in by_length.values():
        for o in range(0, len(ids), BATCH):
            part = ids[o : o + BATCH]
            e = voice(torch.from_numpy(np.stack([pieces[i] for i in part])).to(DEVICE))
            for i, row in zip(part, e.cpu().numpy()):
                out[i] = row
    return np.stack(out).astype(np.float32)


if __name__ == "__main__":
    pack, published, checkpoint, out = sys.argv[1:]
    voice = networks.quantize(networks.load("adapted", published, checkpoint)).to(DEVICE)
    pieces = [speech(*item) for item in longest(pack)]
    np.savez(out, e=embeddings(voice, pieces), pitch=np.array([conditions.pitch(x) for x in pieces], np.float32))
