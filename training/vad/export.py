"""Writes the taught weights, or the mean of several runs', as AssemblyScript data:

    python export.py WEIGHTS.npz[,MORE.npz] ../../assembly/quality/voice-activity-weights.ts
"""
import sys
import numpy as np

runs = [np.load(p) for p in sys.argv[1].split(",")]
w = {k: np.mean([run[k] for run in runs], 0) for k in runs[0]}
hidden = len(w["denseBias"])
assert w["dense"].shape == (hidden, 80) and w["recurrent"].shape == (3 * hidden, hidden) and hidden % 8 == 0
rows = [(w[k], np.abs(w[k]).max(1, keepdims=True) / 127 + 1e-12) for k in ("dense", "input", "recurrent")]
weights = np.concatenate([np.round(m / s).astype(int).ravel() for m, s in rows])
scales = np.concatenate([s.ravel() for _, s in rows])
biases = np.concatenate([w[k].ravel() for k in ("denseBias", "inputBias", "recurrentBias", "out", "outBias")])


def table(values):
    lines, line = [], " "
    for v in values:
        if len(line) + len(v) > 138:
            lines.append(line)
            line = " "
        line += " " + v + ","
    return "\n".join([*lines, line])


with open(sys.argv[2], "w") as f:
    f.write("/** Weights of the voice-activity network, written by training/vad/export.py. Matrices are int8 with one scale per row. */\n\n")
    f.write(f"export const HIDDEN: i32 = {hidden};\n")
    f.write("export const WEIGHTS: usize = memory.data<i8>([\n" + table([str(v) for v in weights]) + "\n]);\n")
    f.write("export const SCALES: usize = memory.data<f32>([\n" + table([f"{v:.7e}" for v in scales]) + "\n], 16);\n")
    f.write("export const BIASES: usize = memory.data<f32>([\n" + table([f"{v:.7e}" for v in biases]) + "\n], 16);\n")
