"""python3 voice_class.py SPEAKERS.npz VOICE_CLASS.json: the voice-class axis. SPEAKERS: table.py's rows.

`axis` is the direction of the embedding along which the training speakers' pitch rises (ridge regression on its logarithm; timbre that
goes with pitch comes along), `quantiles` 101 percentiles of the training speakers on it: a voice's class is where it falls among them."""
import json, sys
import numpy as np


def axis_of(e, pitch, ridge=1.0):
    x, y = e - e.mean(0), np.log(pitch)
    w = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (y - y.mean()))
    return w / np.linalg.norm(w)


def main(speakers, voice_class):
    d = np.load(speakers)
    e, pitch = d["e"], d["pitch"]
    known = np.flatnonzero(pitch > 0)
    fold = np.arange(len(known)) % 5
    held = np.concatenate([e[known[fold == f]] @ axis_of(e[known[fold != f]], pitch[known[fold != f]]) for f in range(5)])
    truth = np.concatenate([np.log(pitch[known[fold == f]]) for f in range(5)])
    axis = axis_of(e[known], pitch[known])
    json.dump(dict(axis=[round(float(v), 6) for v in axis], quantiles=[round(float(v), 6) for v in np.percentile(e @ axis, np.arange(101))]), open(voice_class, "w"))
    print(f"axis against log pitch of held-out speakers: correlation {np.corrcoef(held, truth)[0, 1]:.3f} ({len(known)} speakers)")


if __name__ == "__main__":
    main(*sys.argv[1:])
