"""python3 table.py BANK PUBLISHED CHECKPOINT OUT: embeddings and measured quality of training and DEV speech under every condition,
weights rounded to int8: all that cohort.py, calibrate.py and the model card's figures need.

OUT/train.npz   e [condition, segment, 256] f16, q [condition, segment, 3] (net speech s, SNR dB, bandwidth Hz), who, corpus, pitch
OUT/dev-*.npz   the same for each DEV set in the order of its list, and `windows`: models embedded in windows of several lengths
OUT/speakers.npz  one embedding for each training speaker, up to three clean segments
"""
import multiprocessing as mp, sys
import numpy as np, torch, torch.nn.functional as F
import conditions, networks
from adapt import DEVICE, RATE, is_train, load_bank, place
from augment import Augment

TRAIN = ["clean", "mulaw", "gsm", "noise10", "noise5", "cut2", "cut1", "place", "call"]
DEV = ["clean", "mulaw", "gsm", "amr4", "opus", "noise10", "noise5", "cut2", "cut1"]
SEGMENT, LEAST, OF_SPEAKER, WINDOWS = 4 * RATE, 4, 6, (2, 3, 4, 6, 12)
NOISE = conditions.synthetic_noise()


def prepared(job):
    kind, i, x = job
    y = conditions.through(kind, x, i, NOISE).astype(np.float32)
    return y, conditions.quality(y), conditions.pitch(y) if kind == "clean" else 0.0


@torch.no_grad()
def embed(voice, speech):
    out, by_length = [None] * len(speech), {}
    for i, x in enumerate(speech):
        by_length.setdefault(len(x), []).append(i)
    for ids in by_length.values():
        for o in range(0, len(ids), 256):
            for i, e in zip(ids[o : o + 256], voice(torch.from_numpy(np.stack([speech[i] for i in ids[o : o + 256]])).float().to(DEVICE)).cpu().numpy()):
                out[i] = e
    return np.stack(out)


def collect(voice, pool, kinds, speech, given={}):
    """given: condition -> speech already made."""
    e, q, pitch = [], [], None
    for kind in kinds:
        jobs = [("clean" if kind in given else kind, i, x) for i, x in enumerate(given.get(kind, speech))]
        done = pool.map(prepared, jobs, chunksize=32)
        e.append(embed(voice, [d[0] for d in done]).astype(np.float16))
        q.append(np.array([d[1] for d in done], np.float32))
        pitch = np.array([d[2] for d in done], np.float32) if kind == "clean" else pitch
    return dict(kinds=kinds, e=np.stack(e), q=np.stack(q), pitch=pitch)


def cut(bank, rows):
    return [(bank[r["p"] : r["p"] + min(r["n"], SEGMENT)].cpu().numpy() / 32768).astype(np.float32) for r in rows]


def train_table(voice, pool, bank, out):
    rows, plain, coded = load_bank(bank, is_train)
    names = {k: i for i, k in enumerate(sorted({(r["c"], r["s"]) for r in rows}))}
    corpora = {c: i for i, c in enumerate(sorted({r["c"] for r in rows}))}
    of = {}
    for r in rows:
        of.setdefault((r["c"], r["s"]), []).append(r)
    chosen = [r for rs in of.values() if len(long := [r for r in rs if r["n"] >= SEGMENT]) >= LEAST for r in long[:: max(1, len(long) // OF_SPEAKER)][:OF_SPEAKER]]
    speech = cut(plain, chosen)
    torch.manual_seed(3)
    augment, spoilt = Augment(plain, load_bank(bank, lambda n: n == "esc50")[1], DEVICE, rooms=300 if DEVICE == "cuda" else 3, telephone=0.0), []
    with torch.no_grad():
        for o in range(0, len(speech), 256):
            x = torch.from_numpy(np.stack(speech[o : o + 256])).to(DEVICE)
            spoilt += list(augment(x, torch.zeros(len(x), 1, dtype=torch.bool, device=DEVICE)).cpu().numpy())
    got = collect(voice, pool, TRAIN, speech, {"place": spoilt, "call": cut(coded, chosen)})
    np.savez(out + "/train-q.npz", **{k: v for k, v in got.items() if k != "e"}, who=[names[r["c"], r["s"]] for r in chosen], corpus=[corpora[r["c"]] for r in chosen])
    half = len(TRAIN) // 2
    np.save(out + "/train-e0.npy", got["e"][:half])
    np.save(out + "/train-e1.npy", got["e"][half:])
    first = [r for rs in of.values() for r in rs[:3] if r["n"] >= RATE]
    e = embed(voice, cut(plain, first))
    who = np.array([names[r["c"], r["s"]] for r in first])
    mean = np.zeros((len(names), e.shape[1]), np.float32)
    np.add.at(mean, who, e)
    np.savez(out + "/speakers.npz", e=(mean / np.linalg.norm(mean, axis=1, keepdims=True).clip(1e-9)).astype(np.float16), corpus=[corpora[c] for c, _ in names], names=sorted(corpora))
    print("train table", len(chosen), "segments", len(set(who)), "speakers", flush=True)


def windowed(voice, x, seconds):
    """The mean of equal windows no longer than `seconds`."""
    parts = np.array_split(x, max(1, round(len(x) / (seconds * RATE))))
    return embed(voice, [p[: min(map(len, parts))] for p in parts]).mean(0)


def dev_table(voice, pool, bank, out):
    import trials

    rows, plain, _ = load_bank(bank, lambda n: n.startswith("dev"))
    tables = {}
    for name in sorted({r["c"] for r in rows}):
        speech = cut(plain, [r for r in rows if r["c"] == name])
        got = collect(voice, pool, DEV, speech)
        _, models, _ = trials.trials(name)
        if name in ("cvau-dev", "wuw-dev"):
            got["windows"] = np.stack([[windowed(voice, np.concatenate([speech[k] for k in ks]), w) for ks in models] for w in WINDOWS])
            got["short"] = np.stack([[windowed(voice, x, w) for x in speech] for w in (1, 2)])
        tables.update({f"{name}/{k}": v for k, v in got.items()})
    np.savez(out + "/dev.npz", **tables)
    print("dev table", flush=True)


def main(bank, published, checkpoint, out):
    voice = networks.quantize(networks.load("adapted", published, checkpoint)).to(DEVICE)
    with mp.Pool() as pool:
        dev_table(voice, pool, bank, out)
        train_table(voice, pool, bank, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
