"""python3 blend.py PUBLISHED OUT.pt CHECKPOINT=share [CHECKPOINT=share …]: the mean of the published network's weights and of adapted ones;
the published network has the share that is left, the linear map is the adapted ones' alone.

Adapting on a few thousand voices teaches phones and rooms and forgets some of the 200,000 voices the base network heard.
On the line between the two, both are kept: telephone speech is better half way than at either end (LOG.md)."""
import sys
import torch
import networks


def blend(published, parts):
    """parts: [(state, share)]"""
    base = networks.weights(published + ("/resnet34.pt" if "stem.weight" in parts[0][0] else "/campplus.pt"))
    left, total = 1 - sum(share for _, share in parts), sum(share for _, share in parts)
    out = {}
    for key, value in parts[0][0].items():
        if not value.is_floating_point():
            out[key] = value
        elif key.startswith("fc."):
            out[key] = sum(share / total * state[key] for state, share in parts) if total else parts[0][0][key]
        else:
            out[key] = left * base[key.removeprefix("n.")] + sum(share * state[key] for state, share in parts)
    return out


if __name__ == "__main__":
    parts = [(networks.weights(path), float(share)) for path, _, share in (word.partition("=") for word in sys.argv[3:])]
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in blend(sys.argv[1], parts).items()}, sys.argv[2])
