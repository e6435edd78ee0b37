"""How well a published network tells synthesis before any training: a logistic regression over mean and deviation of its layers, on LEFT, each gallery judged by a regression that has not seen it
(LOG.md 24). Minutes on two cores, so a base for a teacher can be tried before accelerator time is spent on it.

python3 probe.py LEFT resnet34 RESNET34.pt      ../resnet.py's
python3 probe.py LEFT distillmos FOLDER         FOLDER: PyPI's distillmos 0.9.1 and xls-r-sqa 0.1.0, unpacked
LEFT: extract.py's folder. One window of 3.2 s from the middle of every recording.
"""
import os, sys, types

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import audio, numpy as np, soundfile, torch
from network import Fronts, prepared
from teacher import BANDS, statistics, stages
from train import eer

CLIP = int(3.2 * audio.RATE)
GALLERIES = {  # genuine recordings of a gallery: its attacks' name
    "autovc-demo": "autovc",
    "bigvgan-demo.github.io": "bigvgan",
    "diffwave-demo.github.io": "diffwave",
    "espnet-tts-sample": "espnet",
    "hifi-gan-demo": "hifigan",
    "Make-A-Voice.github.io": "makeavoice",
}


def resnet34(weights):
    from resnet import BLOCKS, ResNet34

    net, front = ResNet34().eval(), Fronts(("mel",))
    net.load_state_dict(torch.load(weights))
    return lambda x: torch.cat([v for p in stages(net, prepared(front(x)["mel"]), BLOCKS) for v in statistics(p.unflatten(2, (BANDS, -1)).mean(3))], 1)


def distillmos(folder):
    sys.path.insert(0, folder)
    sys.modules["torchaudio"] = types.ModuleType("torchaudio")  # only its command line reads files
    from distillmos import ConvTransformerSQAModel

    net = ConvTransformerSQAModel().eval()
    tail, pooled = net.transformer_pool_attn, lambda z: torch.cat([z.mean(1), z.std(1)], 1)

    def seen(x):
        z = tail.norm_input(net.cnn(x / x.abs().max().clamp(min=1e-8)).flatten(2))
        z = tail.transformer.linear_proj(tail.transformer.norm(z).transpose(1, 2))
        out = [pooled(z)]
        z = z + tail.transformer.position_encoding.pe[:, : z.shape[1]]
        for layer in tail.transformer.transformer_encoder.layers:
            out.append(pooled(z := layer(z)))
        return torch.cat(out, 1)

    return seen


def windows(folder):
    for row in open(folder + "/list.tsv"):
        file, label, system = row.rstrip("\n").split("\t")
        if label not in ("genuine", "attack"):
            continue
        x = audio.resample(*soundfile.read(f"{folder}/{file}", dtype="float32"))
        x = audio.level(audio.trim(x)) if len(x) >= audio.RATE else x[:0]
        if len(x) < audio.RATE:
            continue
        part = x[max(0, (len(x) - CLIP) // 2) :][:CLIP]
        yield np.tile(part, -(-CLIP // len(part)))[:CLIP].astype(np.float32), label == "attack", GALLERIES.get(system, system.split("/")[0])


def judged(x, attack, source, damping):
    """Scores of every recording by a regression without its source; sources have equal weight, then the two classes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    galleries = sorted(GALLERIES.values())
    corpora = sorted(set(source) - set(galleries))
    scores = np.zeros(len(x))
    for k, gallery in enumerate(galleries):
        out = np.isin(source, [gallery, *corpora[k :: len(galleries)]])
        weight = np.zeros(len(x))
        for s in set(source[~out]):
            for label in (False, True):
                some = ~out & (source == s) & (attack == label)
                weight[some] = max(1, some.sum()) ** -0.5
        for label in (False, True):
            weight[attack == label] /= weight[attack == label].sum()
        scale = StandardScaler().fit(x[~out])
        fitted = LogisticRegression(C=damping, max_iter=3000).fit(scale.transform(x[~out]), attack[~out], sample_weight=weight[~out] * (~out).sum())
        scores[out] = fitted.decision_function(scale.transform(x[out]))
    return scores


if __name__ == "__main__":
    folder, base, weights = sys.argv[1:]
    seen = {"resnet34": resnet34, "distillmos": distillmos}[base](weights)
    with torch.no_grad():
        rows = [(seen(torch.from_numpy(x)[None])[0].numpy(), label, source) for x, label, source in windows(folder)]
    x, attack, source = (np.array(v) for v in zip(*rows))
    label = attack.astype(float)
    for damping in (1e-3, 1e-2, 1e-1):
        scores = judged(x, attack, source, damping)
        by_gallery = [f"{g} {100 * eer(scores[source == g], label[source == g]):.1f}" for g in sorted(GALLERIES.values())]
        print(f"{base}, C {damping}: EER {100 * eer(scores, label):.1f} %; within {', '.join(by_gallery)}", flush=True)
