"""python3 evaluate.py DATA OUT: measures OUT/synthetic.pt on DEV, by codec and by length. DATA: pack.py's dev shards; codecs as train.py."""
import json, sys
import torch
from network import Attack, LogMel
from rates import report
from train import D, RATE, load, scores

if __name__ == "__main__":
    data, out = sys.argv[1:3]
    net = Attack()
    net.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in torch.load(out + "/synthetic.pt", map_location="cpu").items()})
    net, front, result = net.to(D).eval(), LogMel().to(D), {}
    for line in ("mulaw", "gsm", "opus"):
        rows, plain, coded = load(data + "/dev-*.json", line)
        if not result:
            result["none"] = report(rows, scores(net, front, plain))
            result["none, 2 s"] = report(rows, scores(net, front, plain[:, : 2 * RATE]))
        result[line] = report(rows, scores(net, front, coded))
    json.dump(result, open(out + "/dev.json", "w"), indent=1)
    for line, r in result.items():
        print(f"{line:12s} EER {r['eer']} %  genuine {r['genuine']} attacks {r['attacks']}")
    for system, r in result["none"]["apcer"].items():
        print(f"  {system:36s} {r['clips']:4d} clips  APCER {r['apcer']:.2f} {r['interval']}")
