"""Teaches the voice-activity network (a dense layer, a gated recurrent unit, one output) and writes its weights.

    [PEAK=6e-3 KEEP=1 SILENT=1.5] python train.py TRAIN.npz[,MORE.npz] DEV.npz EPOCHS WEIGHTS.npz [HIDDEN [START [HOLD.npz[,MORE.npz]]]]

START is a file of weights, or ../../assembly/quality/voice-activity-weights.ts itself. On the sequences of HOLD not Silero but START
is the teacher: what it says there shall stay; KEEP times as many of them are drawn in a pass as there are others. SILENT is the weight
of sequences without speech.
The answer for a frame comes DELAY frames later, so that a word's beginning is not guessed from its first 25 ms.
"""
import os, re, sys, time
import jax, jax.numpy as jnp, numpy as np, optax

DELAY, BINS, SILENCE = 8, 80, -15.942385
parts, dev = [np.load(p) for p in sys.argv[1].split(",")], np.load(sys.argv[2])
features, labels, kinds = (np.concatenate([part[k] for part in parts]) for k in ("features", "labels", "kinds"))
labels = labels[..., 0]
epochs, out = int(sys.argv[3]), sys.argv[4]
hidden = int(sys.argv[5]) if len(sys.argv) > 5 else 32
rng = np.random.default_rng(1)
kept = np.concatenate([np.load(p)["features"] for p in sys.argv[7].split(",")]) if len(sys.argv) > 7 else features[:0]


def read(path):
    """Weights as train.py or as export.py wrote them."""
    if path.endswith(".npz"):
        return {k: jnp.asarray(v) for k, v in np.load(path).items()}
    tables = re.findall(r"\(\[\n(.*?)\n\]", open(path).read(), re.S)
    whole, scales, biases = (np.array(t.replace(",", " ").split(), np.float32) for t in tables)
    shapes = {"dense": (hidden, BINS), "input": (3 * hidden, hidden), "recurrent": (3 * hidden, hidden)}
    rest = {"denseBias": (hidden,), "inputBias": (3 * hidden,), "recurrentBias": (3 * hidden,), "out": (hidden,), "outBias": ()}
    p = {}
    for name, (rows, columns) in shapes.items():
        p[name], whole = whole[: rows * columns].reshape(rows, columns) * scales[:rows, None], whole[rows * columns :]
        scales = scales[rows:]
    for name, shape in rest.items():
        n = int(np.prod(shape))
        p[name], biases = biases[:n].reshape(shape), biases[n:]
    return {k: jnp.asarray(v) for k, v in p.items()}


def start(key):
    k = jax.random.split(key, 4)
    g = lambda k, o, i: jax.random.normal(k, (o, i)) / np.sqrt(i)
    return {
        "dense": g(k[0], hidden, BINS), "denseBias": jnp.zeros(hidden),
        "input": g(k[1], 3 * hidden, hidden), "inputBias": jnp.zeros(3 * hidden),
        "recurrent": g(k[2], 3 * hidden, hidden), "recurrentBias": jnp.zeros(3 * hidden),
        "out": g(k[3], 1, hidden)[0], "outBias": jnp.zeros(()),
    }


def logits(p, x):
    """[batch, frames, 80] log-mel -> [batch, frames]; frame t speaks of frame t - DELAY."""
    x = jax.nn.relu((x + 8.0) * 0.25 @ p["dense"].T + p["denseBias"])
    gates = x @ p["input"].T + p["inputBias"]

    def step(h, g):
        r = h @ p["recurrent"].T + p["recurrentBias"]
        reset = jax.nn.sigmoid(g[:, :hidden] + r[:, :hidden])
        keep = jax.nn.sigmoid(g[:, hidden : 2 * hidden] + r[:, hidden : 2 * hidden])
        new = jnp.tanh(g[:, 2 * hidden :] + reset * r[:, 2 * hidden :])
        h = keep * h + (1 - keep) * new
        return h, h

    _, h = jax.lax.scan(step, jnp.zeros((x.shape[0], hidden)), gates.transpose(1, 0, 2))
    return h.transpose(1, 0, 2) @ p["out"] + p["outBias"]


def rounded(p):
    """Matrices as they ship: int8 with one scale per row; the gradient passes straight through."""
    def q(w):
        scale = jnp.abs(w).max(-1, keepdims=True) / 127 + 1e-12
        return w + jax.lax.stop_gradient(jnp.round(w / scale) * scale - w)

    return {k: q(v) if v.ndim == 2 else v for k, v in p.items()}


def loss(p, x, y, weight):
    z = logits(rounded(p), x)[:, DELAY:]
    return (weight[:, None] * optax.sigmoid_binary_cross_entropy(z, y)).mean()


count = len(features) + min(int(os.environ.get("KEEP", 1)) * len(features), len(kept))
steps = epochs * (count // 32)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_onecycle_schedule(steps, float(os.environ.get("PEAK", 6e-3)), 0.15), weight_decay=1e-4))


@jax.jit
def update(p, s, x, y, weight, held):
    y = y[:, :-DELAY]
    if len(kept):
        y = jnp.where(held[:, None], jax.nn.sigmoid(logits(rounded(first), x)[:, DELAY:]), y)
    l, g = jax.value_and_grad(loss)(p, x, y, weight)
    g, s = optimizer.update(g, s, p)
    return optax.apply_updates(p, g), s, l


forward = jax.jit(lambda p, x: logits(rounded(p), x))


def report(p):
    z = np.concatenate([np.asarray(forward(p, dev["features"][i : i + 32].astype(np.float32))) for i in range(0, len(dev["features"]), 32)])
    z, y, kinds = z[:, DELAY:], dev["labels"][:, :-DELAY].astype(np.float32), dev["kinds"]
    speech = kinds == 0
    line = []
    for t in (-0.5, 0.0, 0.5, 1.0):
        on = z > t
        line.append(f"[{t:+.1f}] heard {(on == (y[..., 1] > 0.5))[speech].mean():.3f} clean {(on == (y[..., 2] > 0.5))[speech].mean():.3f} noise {on[kinds == 1].mean():.4f} music {on[kinds == 2].mean():.3f}")
    return "  ".join(line)


p = first = read(sys.argv[6]) if len(sys.argv) > 6 else start(jax.random.PRNGKey(0))
s = optimizer.init(p)
weights = np.where(kinds == 0, 1.0, float(os.environ.get("SILENT", 1.5))).astype(np.float32)
none = np.zeros(labels.shape[1:], np.float32)
if len(kept):
    print("before", report(p), flush=True)
for epoch in range(epochs):
    began, total = time.time(), 0
    order = np.concatenate([np.arange(len(features)), len(features) + rng.permutation(len(kept))])[:count]
    order = rng.permutation(order)
    for i in range(0, len(order) - 31, 32):
        pick = np.sort(order[i : i + 32])
        own, held = pick[pick < len(features)], pick >= len(features)
        x = np.concatenate([features[own], kept[pick[held] - len(features)]]).astype(np.float32)
        y = np.concatenate([labels[own].astype(np.float32), np.tile(none, (held.sum(), 1))])
        weight = np.concatenate([weights[own], np.ones(held.sum(), np.float32)])
        # Another gain is a constant in the logarithm; what sinks under the floor stays at it.
        x = np.maximum(x + rng.uniform(-3, 3, (32, 1, 1)).astype(np.float32), SILENCE)
        p, s, l = update(p, s, x, y, weight, held)
        total += float(l)
    if epoch % 4 == 3 or epoch == epochs - 1:
        print(epoch, f"loss {total / (len(order) // 32):.4f} {time.time() - began:.1f} s", report(p), flush=True)
    if epoch % 4 == 3 or epoch == epochs - 1:
        np.savez(out, **{k: np.asarray(v) for k, v in p.items()})
