"""python3 golden.py MODEL.vvm OUT.json KIND=CHECKPOINT.pt…: the float networks' scores of synthesized voices, for test/nn/attack.test.ts.
Checkpoints as quantize.py takes them, synthetic=NARROW.pt,SCALE*SLIM.pt: the mean of the scores; KIND= leaves the scores in OUT.json as they are (only the calibration of that network changed)."""
import json, os, struct, subprocess, sys
import numpy as np, torch
from network import Fronts, prepared, restored

EMBED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/nn/embed.mjs")
VOICES = (1, 8, 9, 14)  # far apart for both networks


def main(model, out, *named):
    data = open(model, "rb").read()
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    hashes, kinds = {s["name"]: s["sha256"] for s in header["sections"]}, []
    voices = [torch.from_numpy(np.frombuffer(subprocess.run(["node", EMBED, "--voice", str(v)], stdout=subprocess.PIPE, check=True).stdout, "<f4").copy()) for v in VOICES]
    for kind, checkpoint in (n.split("=", 1) for n in named):
        if not checkpoint:
            kinds.append(next(k for k in json.load(open(out)) if k["kind"] == kind) | {"revision": hashes[kind]})
            continue
        nets = [(float(scale or 1), restored(one)) for scale, _, one in (part.rpartition("*") for part in checkpoint.split(","))]
        fronts = Fronts(tuple({name for _, net in nets for name in net.names}))
        with torch.no_grad():
            pictures = [{name: prepared(y) for name, y in fronts(x[None]).items()} for x in voices]
            scores = [round(float(np.mean([scale * float(net(x)) for scale, net in nets])), 4) for x in pictures]
        kinds.append({"kind": kind, "revision": hashes[kind], "scores": [{"voice": v, "score": s} for v, s in zip(VOICES, scores)]})
        print(kind, scores)
    with open(out, "w") as f:
        json.dump(kinds, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
