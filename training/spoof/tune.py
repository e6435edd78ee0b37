"""The narrow network and the last maps of a residual one learn on from what ships, on one or two cores without an accelerator (LOG.md 33): pictures of speech are made once and learnt from again and again.

python3 tune.py views BANK ROOMS.pt VIEWS COUNT NARROW.pt SLIM.pt    so many clips and copies on their way to the detector, what the networks say of them, and what the residual one pools
python3 tune.py learn VIEWS OUT-narrow.pt NARROW.pt SECONDS [OPTIONS]
python3 tune.py maps VIEWS OUT.pt SLIM.pt SECONDS [OPTIONS]          the residual network's last two maps alone

BANK: bank.py's, ROOMS.pt: channel.py's, NARROW.pt: widen.py's of what ships. Half of the pictures are of genuine clips; of the attacks `copies` lie opposite their originals, and of the others
`said` are made of text by networks. Labels are learnt, and for 1 - `labels` what the network said before where it was right, so that it forgets little. Of the weights the mean over the last steps is kept.
"""
import json, math, os, sys, time

import numpy as np, torch, torch.nn.functional as F
from network import FRONTS, prepared, restored
from train import OPTIONS, SURE, Material, cropped, save, spoilt

BATCH = 128
TUNED = dict(rate=4e-4, decay=0.02, size=96, labels=0.6, apart=0.5, mixup=0.3, drop=0.1, copies=0.35, said=0.6, line=0.25, coded=0.4)
FRAMES = 200  # of a clip, that a residual network hears


@torch.no_grad()
def views(bank, rooms, out, count, network, residual):
    torch.manual_seed(33)
    np.random.seed(33)
    os.makedirs(out, exist_ok=True)
    o, net, batches = {**OPTIONS, **TUNED}, restored(network), int(count) // BATCH
    slim = restored(residual).to(memory_format=torch.channels_last)
    material = Material(bank, "slim", (*FRONTS["narrow"], "mel"), {"persian", "dspspeech", "arabic"}, rooms, o, None)
    rows, scores, files, start = [], [], {}, time.time()
    for k in range(batches):
        good, bad, pairs, _, _, _ = material.draw(BATCH, o["copies"], 0)
        x, kept = material.pictures(good, bad, pairs)
        rows += [dict(family=material.rows[i]["family"], attack=int(n >= BATCH // 2), pair=int(n % (BATCH // 2) < pairs)) for n, i in enumerate([*good.tolist(), *bad.tolist()])]
        mel = cropped({"mel": x.pop("mel")}, kept, FRAMES)["mel"]
        half = torch.rand(BATCH)[:, None, None] < 0.5
        pooled = slim.pooled({"mel": torch.where(half, spoilt(mel, o), prepared(mel))})
        scores.append(torch.stack([net({name: prepared(v) for name, v in x.items()}), slim.judged(pooled)], 1).numpy())
        for name, v in {**x, "pooled": pooled.half(), "kept": kept}.items():
            if name not in files:
                files[name] = np.lib.format.open_memmap(f"{out}/{name}.npy", "w+", np.int32 if name == "kept" else np.float16, (batches * BATCH, *v.shape[1:]))
            files[name][k * BATCH : (k + 1) * BATCH] = v.numpy()
        if k % 10 == 9:
            print(k + 1, "of", batches, f"{time.time() - start:.0f} s", flush=True)
    json.dump(rows, open(out + "/rows.json", "w"))
    np.save(out + "/scores.npy", np.concatenate(scores))


def learn(folder, out, begin, seconds, options="{}"):
    torch.manual_seed(5)
    np.random.seed(5)
    o, net = {**OPTIONS, **TUNED, **json.loads(options)}, restored(begin).train()
    net.drop.p, net.drop_channels.p = o["drop"], o["drop"] / 3
    for layer in net.modules():
        if isinstance(layer, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            layer.momentum = 0.02
    rows, told = json.load(open(folder + "/rows.json")), np.load(folder + "/scores.npy")[:, 0]
    attack, pair = (np.array([r[name] for r in rows], np.float32) for name in ("attack", "pair"))
    files = {name: np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in (*net.names, "kept")}
    average, optimizer = restored(begin), torch.optim.AdamW(net.parameters(), lr=o["rate"], weight_decay=o["decay"])
    follow = [list(side) for side in zip(*((m, n) for m, n in zip(average.state_dict().values(), net.state_dict().values()) if n.is_floating_point()))]
    blocks, half, start, step, total = len(rows) // BATCH, o["size"] // 2, time.time(), 0, 0.0
    while (done := (time.time() - start) / float(seconds)) < 1:
        step += 1
        optimizer.param_groups[0]["lr"] = o["rate"] * min(1, step / 30) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        good = np.random.randint(blocks, size=half) * BATCH + np.random.randint(BATCH // 2, size=half)
        index = np.concatenate([good, good + BATCH // 2])  # a copy lies opposite its original
        x = cropped({name: torch.from_numpy(files[name][index]).float() for name in net.names}, torch.from_numpy(files["kept"][index]), int(np.random.choice([150, 220])))
        x, label, wanted = {name: spoilt(v, o) for name, v in x.items()}, torch.from_numpy(attack[index]) * 0.96 + 0.02, torch.from_numpy(told[index])
        wanted = torch.where(label > 0.5, wanted.clamp(min=SURE), wanted.clamp(max=-SURE))
        if mixed := step % 2:
            share, other = np.random.beta(o["mixup"], o["mixup"]), torch.randperm(o["size"])
            x, label, wanted = {name: v * share + v[other] * (1 - share) for name, v in x.items()}, label * share + label[other] * (1 - share), wanted * share + wanted[other] * (1 - share)
        z = net(x)
        loss = o["labels"] * F.binary_cross_entropy_with_logits(z, label) + (1 - o["labels"]) * F.smooth_l1_loss(z, wanted)
        opposite = torch.from_numpy(pair[good] > 0)
        if not mixed and opposite.any():
            loss = loss + o["apart"] * F.softplus(1 - z[half:][opposite] + z[:half][opposite]).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(*follow, 1 - min(0.99, step / (step + 20)))
        total += float(loss.detach())
        if step % 25 == 0:
            print(step, f"{time.time() - start:.0f} s", round(total / 25, 3), flush=True)
            total = 0.0
            save({"narrow": average}, out.removesuffix("-narrow.pt"))
    save({"narrow": average}, out.removesuffix("-narrow.pt"))
    json.dump(dict(kind="narrow", options=o, steps=step, calibration=[1.0, 0.0]), open(out.removesuffix(".pt") + ".json", "w"))


def maps(folder, out, begin, seconds, options="{}"):
    torch.manual_seed(5)
    np.random.seed(5)
    o, net = {**OPTIONS, **TUNED, "size": 512, "rate": 2e-4, "labels": 0.5, "drop": 0.2, "away": 0.02, **json.loads(options)}, restored(begin)
    rows, told, x = json.load(open(folder + "/rows.json")), torch.from_numpy(np.load(folder + "/scores.npy")[:, 1]), torch.from_numpy(np.load(folder + "/pooled.npy")).float()
    attack, start, step = torch.tensor([float(r["attack"]) for r in rows]), time.time(), 0
    weights = [*net.hidden.parameters(), *net.out.parameters()]
    first, optimizer = [w.detach().clone() for w in weights], torch.optim.Adam(weights, lr=o["rate"])
    net.drop.p = o["drop"]
    net.drop.train()
    wanted = torch.where(attack > 0, told.clamp(min=SURE), told.clamp(max=-SURE))
    while (done := (time.time() - start) / float(seconds)) < 1:
        step += 1
        optimizer.param_groups[0]["lr"] = o["rate"] * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        index, other, share = torch.randint(len(rows), (o["size"],)), torch.randint(len(rows), (o["size"],)), float(np.random.beta(o["mixup"], o["mixup"]))
        mix = lambda v: v[index] * share + v[other] * (1 - share)
        z = net.judged(mix(x))
        loss = o["labels"] * F.binary_cross_entropy_with_logits(z, mix(attack) * 0.96 + 0.02) + (1 - o["labels"]) * F.smooth_l1_loss(z, mix(wanted))
        loss = loss + o["away"] * sum((w - f).square().sum() / f.square().sum() for w, f in zip(weights, first))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(step, f"{time.time() - start:.0f} s", round(float(loss.detach()), 3), flush=True)
    save({"x": net}, out.removesuffix(".pt") + "-")
    os.replace(out.removesuffix(".pt") + "--x.pt", out)
    json.dump(dict(kind="slim", options=o, steps=step, calibration=[1.0, 0.0]), open(out.removesuffix(".pt") + ".json", "w"))


if __name__ == "__main__":
    dict(views=views, learn=learn, maps=maps)[sys.argv[1]](*sys.argv[2:])
