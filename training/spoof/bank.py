"""Builds what the attack networks are trained on, on the accelerator: features of every clip and copy, each on several ways to the detector.

python3 bank.py DATA BANK [--hifigan FOLDER] [--seconds 60] [--views 4]      DATA: pack.py's output; codec libraries as ../codec.py says

BANK/synthetic.pt and BANK/playback.pt: features f16 [rows][318][80] of net speech (log-mel, mean not removed), frames of net speech in each,
and what each row is. A copy takes the same ways as its original, drawn with the same seeds.
"""
import argparse, ctypes as C, glob, json, multiprocessing, os, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn.functional as F
import codec, vocoders
from channel import Channel, RATE
from network import LogMel

D = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CLIP = int(3.2 * RATE)
STEP = 16 / 32768  # of the samples in the pack: copies get the same
CODED = ("gsm", "amr7", "amr4", "opus", "opus-narrow", "opus-good")


class _Info(C.Structure):
    _fields_ = [("frames", C.c_int64), ("rate", C.c_int), ("channels", C.c_int), ("format", C.c_int), ("sections", C.c_int), ("seekable", C.c_int)]


def decode(job):
    """A stretch of a shard -> rows and clips."""
    shard, lo, hi = job
    lib = codec.library("libsndfile.so.1")
    lib.sf_open.restype, lib.sf_open.argtypes = C.c_void_p, [C.c_char_p, C.c_int, C.POINTER(_Info)]
    lib.sf_readf_float.restype, lib.sf_readf_float.argtypes = C.c_int64, [C.c_void_p, C.c_void_p, C.c_int64]
    lib.sf_close.argtypes = [C.c_void_p]
    rows, raw, path = json.load(open(shard + ".json"))[lo:hi], open(shard + ".bin", "rb"), f"/dev/shm/clip-{os.getpid()}.flac"
    clips = np.zeros((len(rows), CLIP), np.float32)
    for row, clip in zip(rows, clips):
        raw.seek(row["off"])
        open(path, "wb").write(raw.read(row["bytes"]))
        handle = lib.sf_open(path.encode(), 0x10, C.byref(_Info()))
        lib.sf_readf_float(handle, clip.ctypes.data, CLIP)
        lib.sf_close(handle)
    return rows, clips


_coders = {}


def coded(job):
    kind, clips = job
    if not _coders:
        _coders.update({k: codec.telephone(k) for k in ("gsm", "amr7", "amr4")})
        _coders.update({"opus": codec.Opus(12000, codec.WIDE, voip=True, complexity=2), "opus-narrow": codec.Opus(8000, codec.NARROW, voip=True, complexity=2), "opus-good": codec.Opus(24000, codec.WIDE, voip=True, complexity=2)})
    out = np.zeros_like(clips)
    for x, y in zip(clips, out):
        z = _coders[kind](x)[:CLIP]
        y[: len(z)] = z
    return out


def net_speech(features):
    """Frames as the engine's voice activity keeps them, roughly: loud ones and their surroundings, threshold and reach drawn for each clip.
    Kept frames move together; what is missing at the end is filled with the clip's own beginning."""
    b, t, _ = features.shape
    energy = torch.logsumexp(features, 2)
    loud = energy.quantile(0.95, 1, keepdim=True) - torch.empty(b, 1, device=features.device).uniform_(4.5, 8.5)  # 20 to 37 dB
    keep = (energy > loud).float()[:, None]
    reach = torch.randint(0, 3, (b, 1), device=features.device)
    near = [F.max_pool1d(keep, 2 * r + 1, 1, r)[:, 0] for r in (2, 6, 14)]
    keep = torch.where(reach == 0, near[0], torch.where(reach == 1, near[1], near[2])) > 0
    count = keep.sum(1)
    order = torch.argsort((~keep).int(), dim=1, stable=True)
    at = torch.arange(t, device=features.device)[None] % count[:, None].clamp(min=1)
    return features.gather(1, order.gather(1, at)[..., None].expand(-1, -1, features.shape[2])).half(), count.int()


class Bank:
    def __init__(self):
        self.features, self.counts, self.rows = [], [], []

    def add(self, x, front, rows):
        f, n = net_speech(front(x))
        self.features.append(f.cpu())
        self.counts.append(n.cpu())
        self.rows += rows

    def save(self, path):
        torch.save(dict(features=torch.cat(self.features), counts=torch.cat(self.counts), rows=self.rows), path)
        print(path, len(self.rows), "rows", flush=True)


def main(a):
    start = time.time()
    said = lambda *what: print(f"{time.time() - start:6.1f} s", *what, flush=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(3)
    chance = np.random.RandomState(3)
    pool = multiprocessing.Pool()
    jobs = [(s[:-5], i, i + 40) for s in sorted(glob.glob(a.data + "/train-*.json")) for i in range(0, len(json.load(open(s))), 40)]
    parts = pool.map(decode, jobs, chunksize=1)
    rows, clips = [r for p in parts for r in p[0]], np.concatenate([p[1] for p in parts])
    said(len(rows), "clips decoded")
    is_genuine = np.array([r["label"] == "genuine" for r in rows])
    genuine, attacks = torch.from_numpy(clips[is_genuine]).to(D), torch.from_numpy(clips[~is_genuine]).to(D)
    about, attack_rows = [r for r in rows if r["label"] == "genuine"], [r for r in rows if r["label"] == "attack"]
    keys = [r["key"] for r in about]

    # Copies of every genuine clip: sets of (family, first, last, samples).
    half, copied = len(genuine) // 256 * 128, []  # whole batches, so that a copy meets the seeds of its original
    makers = [("spectral", vocoders.Spectral(256), slice(0, half)), ("spectral", vocoders.Spectral(200), slice(half, None)),
              ("codec", vocoders.Codec(size=24, steps=2), slice(0, half)), ("codec", vocoders.Codec((2, 4, 4, 8), 48, 4, upsample=True), slice(half, None))]  # fmt: skip
    for family, net, part in makers:
        net, steps, loss = vocoders.train_vocoder(net.to(D), genuine, a.seconds / len(makers))
        said(family, steps, f"steps, loss {loss:.2f}, distance {float(vocoders.spectral_distance(vocoders.copies(net, genuine[:64]), genuine[:64])):.2f}")
        copied.append((family, part, vocoders.copies(net, genuine[part], family == "spectral" and part.start == 0)))
    copied.append(("griffin-lim", slice(0, half), vocoders.griffin_lim(genuine[:half], chance)))
    said("Griffin-Lim")
    if a.hifigan:
        copied.append(("hifigan", slice(half, None), vocoders.hifigan(a.hifigan, genuine[half:])))
        copied.append(("hifigan-predicted", slice(0, half), vocoders.hifigan(a.hifigan, genuine[:half], predicted=True)))
        said("HiFi-GAN")

    # The same through codecs: one kind for each stretch of 64 genuine clips and for their copies.
    kinds = chance.choice(CODED, len(genuine) // 64 + 1)
    coded_of = lambda x, first: [(kinds[(first + o) // 64], x[o : o + 64].cpu().numpy()) for o in range(0, len(x), 64)]
    copied = [(family, part, torch.round(x.clamp(-1, 1) / STEP) * STEP) for family, part, x in copied]
    groups = [("genuine", slice(0, len(genuine)), genuine)] + copied
    todo = [coded_of(x, part.start) for _, part, x in groups] + [[(k, attacks[o : o + 64].cpu().numpy()) for o, k in zip(range(0, len(attacks), 64), chance.choice(CODED, len(attacks) // 64 + 1))]]
    flat = pool.map(coded, [j for t in todo for j in t], chunksize=1)
    lines = []
    for t in todo:
        lines.append(torch.from_numpy(np.concatenate(flat[: len(t)])).to(D))
        flat = flat[len(t) :]
    pool.close()
    said("codecs")

    front, channel = LogMel().to(D), Channel(genuine, D)
    synthetic, playback = Bank(), Bank()

    def way(x, line, seed, view, background):
        torch.manual_seed(seed)
        x = vocoders.levelled(line if view % 4 == 3 else x)
        x = channel.others_background(channel.near_speech(x), background)
        x = torch.where(torch.rand(len(x), 1, device=D) < 0.1, channel.replay(x), x)  # callers and attacks alike may use a loudspeaker
        return channel.call(x)

    for view in range(a.views):
        for (family, part, x), line in zip(groups, lines):
            first = part.start
            for o in range(0, len(x), 128):
                y = x[o : o + 128]
                described = [dict(label="genuine" if family == "genuine" else "attack", family=family, key=keys[first + o + i], pair=first + o + i, view=view) for i in range(len(y))]
                synthetic.add(way(y, line[o : o + 128], 100_000 * view + (first + o) // 128, view, 0.35), front, described)
        for repeat in range(2):  # fewer clips, more ways
            for o in range(0, len(attacks), 128):
                described = [dict(label="attack", family=r["system"], key=r["key"], pair=-1, view=view) for r in attack_rows[o : o + 128]]
                synthetic.add(way(attacks[o : o + 128], lines[-1][o : o + 128], 100_000 * view + 50_000 + 1000 * repeat + o // 128, view, 0.6), front, described)
    said("synthetic")
    torch.cuda.empty_cache()
    synthetic.save(a.bank + "/synthetic.pt")
    for view in range(a.views + 2):
        for o in range(0, len(genuine), 128):
            x = vocoders.levelled(lines[0][o : o + 128] if view == 3 else genuine[o : o + 128])
            described = [dict(label="genuine", family="genuine", key=keys[o + i], pair=o + i, view=view) for i in range(len(x))]
            torch.manual_seed(300_000 + 1000 * view + o // 128)
            playback.add(channel.call(channel.near_speech(x, 0.7)), front, described)
            source = x if view % 3 else vocoders.levelled(attacks[torch.randint(0, len(attacks), (len(x),), device=D)])
            playback.add(channel.call(channel.replay(source)), front, [dict(r, label="attack", family="replay") for r in described])
    said("playback")
    playback.save(a.bank + "/playback.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("bank")
    parser.add_argument("--hifigan", default="")
    parser.add_argument("--seconds", type=float, default=100, help="for the four vocoders of our own together")
    parser.add_argument("--views", type=int, default=4)
    main(parser.parse_args())
