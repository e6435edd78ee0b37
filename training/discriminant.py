"""python3 discriminant.py TRAIN.npz CHECKPOINT OUT.pt TURN.npy: turns the checkpoint's linear map towards what tells voices apart.

Of table.py's training rows (each speaker clean and through every condition) we know what varies within a speaker and what varies
between speakers. Directions that vary within are made smaller, directions that vary between larger, both far less than a full
discriminant analysis would: a few hundred speakers do not carry that. The result is multiplied into the map, so it costs nothing;
TURN holds it too, for tables made before."""
import sys
import numpy as np, torch
import networks

WITHIN, BETWEEN = (1.0, 0.3), (0.2, 0.4)  # (floor as a share of the mean or of the largest, exponent)


def turn(e, speaker):
    who, index = np.unique(speaker, return_inverse=True)
    means = np.stack([e[index == i].mean(0) for i in range(len(who))])
    within, between = np.cov((e - means[index]).T), np.cov(means.T)
    floor, power = WITHIN
    s, u = np.linalg.eigh(within + floor * np.trace(within) / len(within) * np.eye(len(within)))
    a = (u * s ** (-power / 2)) @ u.T
    s, u = np.linalg.eigh(a @ between @ a)
    floor, power = BETWEEN
    b = (u * (np.maximum(s, 0) + floor * s.max()) ** (power / 2)) @ u.T
    m = b @ a
    return m / np.sqrt((m**2).sum(1).mean())


def main(train, checkpoint, out, turned):
    d, state = np.load(train), networks.weights(checkpoint)
    keep = d["condition"] != "cut1"
    matrix = turn(d["e"][keep], d["speaker"][keep]).astype(np.float32)
    np.save(turned, matrix)
    m = torch.from_numpy(matrix)
    state["fc.weight"], state["fc.bias"] = m @ state["fc.weight"], m @ state["fc.bias"]
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in state.items()}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
