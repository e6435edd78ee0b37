"""python3 fingerprint.py MIRROR NETWORK.pt…: does genuine speech of the claimed person help (LOG.md 14)? FlashSpeech's page shows prompt, another recording of the same
person, and clones made from that very prompt. Four scores of a probe (the other recording, or a clone) beside the prompt:

alone       the network's score of the probe
less        the same less the prompt's own
far         how far the probe's inner layer (mean and deviation of its channels over time, each by its spread over genuine clips) lies from the prompt's
both        less, and far by its regression on who is who (leave one prompt out)
"""
import collections, os, re, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, torch
import audio, sources
from compare import WINDOW
from network import Fronts, prepared, restored
from train import eer

REPO = "flashspeech+flashspeech.github.io"


@torch.no_grad()
def heard(net, x, fronts):
    """-> score, inner layer: means over windows."""
    x = audio.level(audio.trim(x))
    parts = [p for p in (x[at : at + WINDOW] for at in range(0, max(1, len(x) - WINDOW // 2), WINDOW)) if len(p) >= audio.RATE]
    inner = [net.pooled({k: prepared(v) for k, v in fronts(torch.from_numpy(p.astype(np.float32))[None]).items()}) for p in parts]
    return np.mean([float(net.judged(i)) for i in inner]), np.mean([i[0].numpy() for i in inner], 0)


def main(mirror, *names):
    torch.set_num_threads(1)
    files, fronts = collections.defaultdict(dict), Fronts(("mel", "linear", "short"))
    for sha, path in sources.listing(mirror, REPO):
        if (m := re.match(r"(dataset|dataset_vctk|dataset_acoustic_maintenance)/(\w+)/(\d+)\.wav$", path)) and not sources.DECODED.search(path):
            files[m[1], m[3]][m[2]] = sha
    for name in names:
        net, rows = restored(name), []
        for key, found in files.items():
            prompt, genuine = (next((found.pop(k) for k in kinds if k in found), None) for kinds in (("3s_ref", "ref"), ("truth", "gt")))
            if prompt and genuine:
                enrolled = heard(net, audio.resample(*audio.read(sources.blob(mirror, REPO, prompt))), fronts)
                for system, sha in [("", genuine), *found.items()]:
                    rows.append((key, system, *heard(net, audio.resample(*audio.read(sources.blob(mirror, REPO, sha))), fronts), *enrolled))
                    found[system] = sha
                files[key] = {**found, "3s_ref": prompt, "truth": genuine}
                files[key].pop("", None)
        attack = np.array([bool(r[1]) for r in rows], float)
        spread = np.std([r[5] for r in rows], 0) + 1e-3
        alone = np.array([r[2] for r in rows])
        less = alone - np.array([r[4] for r in rows])
        far = np.array([np.linalg.norm((r[3] - r[5]) / spread) for r in rows])
        both = np.zeros(len(rows))
        for key in {r[0] for r in rows}:
            out = np.array([r[0] == key for r in rows])
            x = np.stack([alone, less, far, np.ones(len(rows))], 1)
            weight = np.where(attack > 0, 1 / attack.sum(), 1 / (1 - attack).sum())[~out, None]
            both[out] = x[out] @ np.linalg.lstsq(x[~out] * weight**0.5, (2 * attack - 1)[~out] * weight[:, 0] ** 0.5, rcond=None)[0]
        above = lambda s: np.mean(s[attack > 0][:, None] > s[attack == 0][None])
        told = {title: f"EER {100 * eer(s, attack):.1f}, clones above genuine {100 * above(s):.1f}" for title, s in (("alone", alone), ("less", less), ("far", far), ("both", both))}
        print(os.path.basename(name), int((1 - attack).sum()), "genuine", int(attack.sum()), "clones", told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
