"""EER of float networks on recordings of DEV or LEFT, over four lines, where the accelerator is: to choose before anything is rounded. Of a window only speech is kept, as in the engine (LOG.md 35).

python3 windows.py pack DIR OUT                  DIR: extract.py's folder. OUT-<k>.bin (FLAC clips) + .json: windows of 3.2 s of every genuine recording and attack, at most four
python3 windows.py score OUT SCORES.json NETWORK.pt…   as recorded, through G.711, GSM and Opus at 12 kbit/s; a recording's score is the mean of its windows'. a.pt+b.pt is the mean of
                                                 their weights, a.pt,b.pt of their scores; 2*a.pt,1*b.pt weighs them, each in units of its mean distance from zero. CODECS: as bank.py says.
python3 windows.py tell SCORES.json NETWORK.pt…  the same of scores that are there. The figures that are reported are the engine's.
python3 windows.py engine SCORES.json…           the same of what `npm run bench:accuracy -- --spoof --lengths all --scores SCORES.json` wrote, line by line
"""
import glob, json, multiprocessing, os, re, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np

CLIP, MOST = int(3.2 * 16000), 4
LINES = ("none", "g711", "gsm", "opus")
SPEECH = 6.5, 1  # what is kept of a window: train.net_speech's middle


def pack(folder, out):
    from pack import Writer, audio, soundfile

    os.makedirs(os.path.dirname(out), exist_ok=True)
    writer = Writer(os.path.dirname(out), os.path.basename(out))
    for number, row in enumerate(open(folder + "/list.tsv")):
        file, label, system = row.rstrip("\n").split("\t")
        if label not in ("genuine", "attack"):
            continue
        x = audio.resample(*soundfile.read(f"{folder}/{file}", dtype="float32"))
        x = audio.level(audio.trim(x)) if len(x) >= audio.RATE else x[:0]
        for at in range(0, min(MOST * CLIP, len(x) - CLIP // 3), CLIP):
            part = x[at : at + CLIP]
            writer.add(label, system, f"{number}", np.tile(part, -(-CLIP // len(part)))[:CLIP])
    writer.flush()
    print(out, writer.count, "windows")


def score(name, out, *networks):
    import torch
    from bank import _coded, _decode
    from channel import mulaw
    from network import Fronts, prepared, restored
    from train import net_speech, placed
    from vocoders import levelled

    shards = sorted(glob.glob(name + "-*.json"))
    with multiprocessing.Pool() as pool:
        parts = pool.map(_decode, [(s[:-5], i, i + 40) for s in shards for i in range(0, len(json.load(open(s))), 40)], chunksize=1)
        rows, clips = [r for p in parts for r in p[0]], np.concatenate([p[1] for p in parts])
        through = {kind: np.concatenate(pool.map(_coded, [(codec, clips[o : o + 32]) for o in range(0, len(clips), 32)], chunksize=2)) for kind, codec in (("gsm", "gsm"), ("opus", "opus-12"))}
    d = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    alone = sorted({part.rpartition("*")[2] for asked in networks for part in asked.split(",")})
    nets, fronts = {n: restored(n).to(d) for n in alone}, Fronts(("mel", "linear", "short")).to(d)
    numbers = np.array([int(r["key"]) for r in rows])
    _, first, of = np.unique(numbers, return_index=True, return_inverse=True)
    label, system = np.array([rows[i]["label"] == "attack" for i in first], float), [rows[i]["system"] for i in first]
    told = {}
    with torch.no_grad():
        for line in LINES:
            x = torch.from_numpy(through.get(line, clips)).to(d)
            found = {n: [] for n in alone}
            for part in x.split(128):
                y = levelled(part.float() / 32768)
                seen = fronts(mulaw(y) if line == "g711" else y)
                order, _ = net_speech(seen["mel"], *SPEECH)
                seen = {k: prepared(placed(v, order)) for k, v in seen.items()}
                with torch.autocast(d.type, torch.bfloat16, enabled=d.type == "cuda"):
                    for n, net in nets.items():
                        found[n].append(net(seen).float().cpu().numpy())
            for n in alone:
                told[n, line] = np.bincount(of, np.concatenate(found[n])) / np.bincount(of)
    json.dump(dict(label=label.tolist(), system=system, scores={f"{n} {line}": s.round(3).tolist() for (n, line), s in told.items()}), open(out, "w"))
    tell(out, *networks)


def tell(scores, *networks):
    """EER over each line and over all together; attacks above what 1 % of genuine speech reaches over all lines."""
    from sources import LINEAGE
    from train import eer

    said = json.load(open(scores))
    label, values = np.array(said["label"]), {name: np.array(v) for name, v in said["scores"].items()}
    attack = (label > 0) & np.array([not s.startswith(LINEAGE) for s in said["system"]])
    counted = attack | (label == 0)
    percent = lambda found: ", ".join(f"{100 * x:.1f}" for x in found)
    for asked in networks:
        total = dict.fromkeys(LINES, 0)
        for part in asked.split(","):
            weight, _, network = part.rpartition("*")
            unit = np.mean([np.abs(values[f"{network} {line}"]).mean() for line in LINES]) if weight else 1
            total = {line: total[line] + float(weight or 1) / unit * values[f"{network} {line}"] for line in LINES}
        together = np.concatenate([total[line][counted] for line in LINES])
        high = np.quantile(np.concatenate([total[line][label == 0] for line in LINES]), 0.99)
        print(re.sub("[^,+*]*/", "", asked), "EER", percent(eer(total[line][counted], label[counted]) for line in LINES), "together", percent([eer(together, np.tile(label[counted], len(LINES)))]),
              "found at 1 %", percent(np.mean(total[line][attack] > high) for line in LINES), flush=True)  # fmt: skip


def engine(*paths):
    from train import eer

    for path in paths:
        rows = [r for r in json.load(open(path)) if r["kind"] == "synthetic" and r["reliability"] > 0 and r["label"] in ("genuine", "attack") and not r["condition"].endswith(" s")]
        total, attack, line = (np.array([f(r) for r in rows]) for f in (lambda r: r["llr"], lambda r: r["label"] == "attack", lambda r: r["condition"]))
        high, lines = np.quantile(total[~attack], 0.99), list(dict.fromkeys(line))
        percent = lambda found: ", ".join(f"{100 * x:.1f}" for x in found)
        print(os.path.basename(path), ", ".join(lines), "EER", percent(eer(total[line == name], attack[line == name].astype(float)) for name in lines), "together", percent([eer(total, attack.astype(float))]),
              "found at 1 %", percent(np.mean(total[attack & (line == name)] > high) for name in lines), flush=True)  # fmt: skip


if __name__ == "__main__":
    dict(pack=pack, score=score, tell=tell, engine=engine)[sys.argv[1]](*sys.argv[2:])
