"""python3 golden.py MODEL.vvm OUT.json KIND=CHECKPOINT.pt…: the float networks' scores of synthesized voices, for test/nn/attack.test.ts."""
import json, os, struct, subprocess, sys
import numpy as np, torch
from network import Attack, LogMel, prepared

EMBED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/nn/embed.mjs")
VOICES = (1, 2, 3)


def main(model, out, *named):
    data = open(model, "rb").read()
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    hashes, front, kinds = {s["name"]: s["sha256"] for s in header["sections"]}, LogMel(), []
    voices = [torch.from_numpy(np.frombuffer(subprocess.run(["node", EMBED, "--voice", str(v)], stdout=subprocess.PIPE, check=True).stdout, "<f4").copy()) for v in VOICES]
    for kind, checkpoint in (n.split("=", 1) for n in named):
        net = Attack()
        net.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in torch.load(checkpoint, map_location="cpu").items()})
        net.eval()
        with torch.no_grad():
            scores = [round(float(net(prepared(front(x[None])))), 4) for x in voices]
        kinds.append({"kind": kind, "revision": hashes[kind], "scores": [{"voice": v, "score": s} for v, s in zip(VOICES, scores)]})
        print(kind, scores)
    with open(out, "w") as f:
        json.dump(kinds, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
