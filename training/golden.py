"""The shipped model against the float network it was made from.

python3 golden.py parity CHECKPOINT.pt MODEL.vvm SPEECH     cosine of the engine's embedding and PyTorch's, over a folder of speech
python3 golden.py rates CHECKPOINT.pt MODEL.vvm DEV         EER on the frozen lists by the engine's embeddings and by PyTorch's, of the same frames
python3 golden.py write CHECKPOINT.pt MODEL.vvm OUT.json    PyTorch's embeddings of synthesized voices, for the tests

The engine is the built one (`npm run build`); SPEECH as in export.py. `parity` and `rates` exit with an error below the bar.
"""
import hashlib, json, os, struct, subprocess, sys
import numpy as np, torch
import evaluate, measure
from export import features, network_of
from folded import Folded
from networks import FLOOR, KaldiFbank, weights
from residual import Walk

EMBED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench/nn/embed.mjs")
MEDIAN, WORST, APART, VOICES, LONGEST = 0.997, 0.99, 0.1, (1, 2, 3), 600


def truth_of(checkpoint):
    """The float network, and the window its features are under."""
    state = weights(checkpoint)
    return (Walk(state), "hamming") if "stem.weight" in state else (Folded(state), "povey")


def engine(model, recordings):
    data = b"".join(struct.pack("<I", len(x)) + x.numpy().astype("<f4").tobytes() for x in recordings)
    out = subprocess.run(["node", EMBED, model], input=data, stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(out, "<f4").reshape(len(recordings), -1)


def parity(checkpoint, model, speech):
    net, window = truth_of(checkpoint)
    recordings = [x[:LONGEST] for x in features(speech, window) if len(x) >= 50]
    truth = np.stack([net(x).numpy() for x in recordings])
    cosine = (truth * engine(model, recordings)).sum(1)
    print(f"{len(cosine)} recordings: cosine median {np.median(cosine):.5f}, tenth {np.quantile(cosine, 0.1):.5f}, worst {cosine.min():.5f}")
    if np.median(cosine) < MEDIAN or cosine.min() < WORST:
        raise SystemExit(f"below the bar of {MEDIAN} and {WORST}")


def rates(checkpoint, model, dev):
    (net, window), missed = truth_of(checkpoint), []
    front = KaldiFbank(FLOOR, window)
    for name in ("cvau-dev", "wuw-dev", "gsc-dev"):
        _, models, rows, speech = evaluate.segments(dev, name)
        heard = [front(torch.from_numpy(x).float()[None])[0][:LONGEST] for x in speech]
        eer = lambda found: measure.eer(evaluate.score(found, found, models, rows), rows[:, 0])
        ours, truth = eer(engine(model, heard)), eer(np.stack([net(x).numpy() for x in heard]))
        print(f"{name}: {len(heard)} segments, {len(rows)} trials, EER {ours:.2f} % by the engine, {truth:.2f} % by PyTorch", flush=True)
        if abs(ours - truth) > APART:
            missed.append(name)
    if missed:
        raise SystemExit(f"further apart than {APART}: {', '.join(missed)}")


def write(checkpoint, model, out):
    (net, window), rows = truth_of(checkpoint), []
    front = KaldiFbank(FLOOR, window)
    for seed in VOICES:
        samples = subprocess.run(["node", EMBED, "--voice", str(seed)], stdout=subprocess.PIPE, check=True).stdout
        x = front(torch.from_numpy(np.frombuffer(samples, "<f4").copy())[None])[0]
        embedding = net(x).numpy()
        print(f"voice {seed}: cosine to the engine {float((embedding * engine(model, [x])[0]).sum()):.5f}")
        rows.append({"voice": seed, "embedding": [round(float(v), 5) for v in embedding]})
    json.dump({"revision": hashlib.sha256(network_of(model)).hexdigest(), "voices": rows}, open(out, "w"), separators=(",", ":"))
    open(out, "a").write("\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"parity": parity, "rates": rates, "write": write}[sys.argv[1]](*sys.argv[2:])
