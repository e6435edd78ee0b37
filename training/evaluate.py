"""python3 evaluate.py DEV PUBLISHED NETWORK [condition …]: measures a network on the frozen lists. DEV: extract.py's output;
NETWORK: campplus, ecapa, resnet34, several by `+` (scores added), or an adapted checkpoint (`.pt`; `.pt:8` rounds its weights to int8 first);
conditions: clean mulaw gsm amr opus noise10 cut2 cut1 (applied to the test side; codecs to both where `both:` stands before)."""
import json, os, sys
import numpy as np, soundfile, torch
import audio, corpora, measure, networks, trials
from conditions import synthetic_noise, through

CONDITIONS = ["clean", "mulaw", "gsm", "noise10", "cut2", "cut1"]


def load(network, published):
    if "+" in network:
        kinds = network.split("+")
        return networks.Fused([(load(kind, published), 1 / len(kinds)) for kind in kinds])
    if network in networks.PUBLISHED:
        return networks.load(network, published)
    path, _, bits = network.partition(":")
    voice = networks.load("adapted", published, path)
    return networks.quantize(voice) if bits else voice


def segments(dev, name):
    keys, models, rows = trials.trials(name)
    speech = []
    for key in keys:
        x, rate = soundfile.read("{}/{}/{}/{}/{}.wav".format(dev, name, *key), dtype="float32")
        speech.append(audio.resample(x, rate))
    return keys, models, rows, speech


@torch.no_grad()
def embed(voice, speech, batch=32):
    """Unit embeddings; pieces of one length go together."""
    out, by_length = [None] * len(speech), {}
    for i, x in enumerate(speech):
        by_length.setdefault(len(x), []).append(i)
    for ids in by_length.values():
        for o in range(0, len(ids), batch):
            e = voice(torch.from_numpy(np.stack([speech[i] for i in ids[o : o + batch]]).astype(np.float32)))
            for i, row in zip(ids[o : o + batch], e):
                out[i] = row
    return torch.stack(out).numpy()


def score(enroll, test, models, rows):
    m = np.stack([enroll[ks].mean(0) for ks in models])
    m /= np.linalg.norm(m, axis=1, keepdims=True)
    return (m[rows[:, 1]] * test[rows[:, 2]]).sum(1)


def report(keys, models, rows, scores, bounds=False):
    same = rows[:, 0]
    out = dict(eer=measure.eer(scores, same), fnmr1=measure.fnmr_at(scores, same))
    if bounds:
        who = np.array([k[0] for k in keys])
        left, right = who[[models[m][0] for m in rows[:, 1]]], who[rows[:, 2]]
        out["eer95"] = measure.interval(measure.eer, scores, same, left, right).round(2).tolist()
        out["fnmr95"] = measure.interval(measure.fnmr_at, scores, same, left, right).round(1).tolist()
    return {k: round(float(v), 2) if not isinstance(v, list) else v for k, v in out.items()}


def main(dev, published, network, *conditions):
    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    voice, noise = load(network, published), synthetic_noise()
    for name in os.environ.get("SETS", ",".join(corpora.DEV)).split(","):
        keys, models, rows, speech = segments(dev, name)
        clean = embed(voice, speech)
        for condition in conditions or CONDITIONS:
            test = clean if condition == "clean" else embed(voice, [through(condition.split(":")[-1], x, i, noise) for i, x in enumerate(speech)])
            enroll = test if condition.startswith("both:") else clean
            print(name, condition, json.dumps(report(keys, models, rows, score(enroll, test, models, rows), condition == "clean")), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
