"""The table of WADA-SNR (Kim and Stern, Interspeech 2008): for speech with gamma-distributed amplitude (shape 0.4) in Gaussian noise,
ln E|z| - E ln|z| at -20, -19, … 60 dB. Prints the numbers of assembly/quality/wada.ts.
"""
import numpy as np
from scipy.special import digamma, gammaln, roots_genlaguerre, erf

SHAPE = 0.4
# s = exp(u) turns the singularity at 0 into a smooth integrand.
u = np.linspace(-60, np.log(60), 400001)
s = np.exp(u)
weight = np.exp(SHAPE * u - s - gammaln(SHAPE))
weight /= weight.sum()
# E ln|m + n| of a unit normal n, on a grid of m, by integrating over n; smooth in m.
n = np.linspace(-9, 9, 36001)
phi = np.exp(-n * n / 2)
phi /= phi.sum()
grid = np.concatenate([[0], np.exp(np.linspace(-8, np.log(400), 700))])
log_grid = np.array([np.sum(phi * np.log(np.maximum(np.abs(m + n + 1.3e-5), 1e-12))) for m in grid])
table = []
for db in range(-20, 61):
    sigma = np.sqrt(SHAPE * (SHAPE + 1) / 10 ** (db / 10))
    m = s / sigma
    mean = np.sum(weight * sigma * (np.sqrt(2 / np.pi) * np.exp(-m * m / 2) + m * erf(m / np.sqrt(2))))
    logs = np.where(m < 300, np.interp(m, grid, log_grid), np.log(np.maximum(m, 1)))
    table.append(np.log(mean) - np.sum(weight * (logs + np.log(sigma))))
assert abs(table[0] - 0.4098) < 2e-3  # Gaussian alone: ln sqrt(2/pi) - E ln|n| = 0.40939
assert np.all(np.diff(table) > 0)
print("clean", np.log(SHAPE) - digamma(SHAPE))
print(", ".join(f"{v:.5f}" for v in table))
