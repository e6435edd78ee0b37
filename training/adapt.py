"""Adapts CAM++ to phones and rooms. It hears a short, spoilt crop and is asked for what the two teachers (CAM++ and ECAPA) together
say of the clean chunk it came from; no label but the speaker's other chunks is needed.

python3 adapt.py label BANK PUBLISHED             teachers' embeddings of the bank, once; prints the published networks on DEV
python3 adapt.py train BANK PUBLISHED OUT.pt {"seconds": 240, …}   the fields of Recipe
"""
import glob, json, math, os, sys, time
from dataclasses import dataclass
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
import conditions, measure, networks, trials
from augment import Augment

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RATE, LABEL_SECONDS = 16000, 8
SPEEDS = (0.86, 1.0, 1.16)  # a changed speed is another voice: the teachers label it too
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


@dataclass
class Recipe:
    seconds: float = 240  # of training
    batch: int = 512
    crop: float = 3.0  # seconds the network sees; shorter pieces are looped to fill it, which leaves the statistics as they are
    shortest: float = 1.0
    rate: float = 4e-4
    decay: float = 0.02
    share: float = 0.5  # of ECAPA in the target
    centre: float = 0.3  # of the speaker's mean in the target
    distance: float = 4.0  # weights of the losses: cosine to the target,
    relation: float = 1.0  # likeness to the others of the batch,
    classes: float = 0.0  # and being nearest to one's own speaker among all
    coded: float = 0.4  # share of crops that came through a real codec
    clean: float = 0.1  # share of crops left as they are
    telephone: float = 0.35
    average: float = 0.998  # of the weights, per step
    rounded: float = 0.25  # last part of the run with weights rounded to int8
    base: str = ""  # an adapted checkpoint to go on from
    compile: bool = True
    steps: int = 0  # stop after so many (0: by time)


def load_bank(folder, wanted):
    """-> (rows with their position p, plain speech, coded speech)"""
    rows, plain, coded, position = [], [], [], 0
    for path in sorted(glob.glob(folder + "/*.json")):
        name = os.path.basename(path)[:-5]
        if not wanted(name):
            continue
        plain.append(np.load(f"{folder}/{name}.plain.npy", mmap_mode="r"))
        if os.path.exists(f"{folder}/{name}.coded.npy"):
            coded.append(np.load(f"{folder}/{name}.coded.npy", mmap_mode="r"))
        for r in json.load(open(path)):
            rows.append({**r, "p": position})
            position += r["n"]
    device = lambda parts: torch.from_numpy(np.concatenate(parts)).to(DEVICE) if parts else None
    return rows, device(plain), device(coded)


def place(rows):
    return tuple(torch.tensor([r[k] for r in rows], device=DEVICE) for k in ("p", "n"))


def crop(bank, p, n, start, speed, samples, content=None):
    """Pieces of the bank at a speed, linear interpolation; `content` samples of the chunk, looped to fill `samples`."""
    i = torch.arange(samples, device=DEVICE, dtype=torch.float32)[None]
    i = start[:, None] + (torch.remainder(i, content[:, None]) if content is not None else i) * speed[:, None]
    i = torch.remainder(i, (n[:, None] - 1).float().clamp(min=1))
    j = i.long()
    w = i - j
    return (bank[p[:, None] + j].float() * (1 - w) + bank[p[:, None] + (j + 1).minimum(n[:, None] - 1)].float() * w) / 32768


def is_train(name):
    return not name.startswith("dev") and name != "esc50"


@torch.no_grad()
def teach(folder, published):
    """Both teachers' unit embeddings of every chunk at every speed, kept in the folder."""
    rows, plain, _ = load_bank(folder, is_train)
    p, n = place(rows)
    voices = [networks.load(kind, published).to(DEVICE) for kind in ("campplus", "ecapa")]
    table, size = torch.empty(len(rows), len(SPEEDS), 2, 192, device=DEVICE), 384
    for o in range(0, len(rows), size):
        part = slice(o, o + size)
        for k, s in enumerate(SPEEDS):
            b = len(p[part])
            x = crop(plain, p[part], n[part], torch.zeros(b, device=DEVICE), torch.full((b,), s, device=DEVICE), LABEL_SECONDS * RATE)
            with torch.autocast(DEVICE, torch.bfloat16):
                for t, voice in enumerate(voices):
                    table[part, k, t] = voice(x)
    torch.save(table.half().cpu(), folder + "/teachers.pt")
    print("labelled", len(rows), flush=True)
    return voices


class Dev:
    """The frozen lists, their segments packed with the rest: to follow a run, not for figures that are quoted."""

    def __init__(self, folder, kinds=("clean", "gsm", "noise10", "cut2")):
        rows, plain, _ = load_bank(folder, lambda name: name.startswith("dev"))
        x = plain.cpu().numpy().astype(np.float32) / 32768 if rows else None
        self.sets, noise = {}, conditions.synthetic_noise()
        for name in sorted({r["c"] for r in rows}):
            speech = [x[r["p"] : r["p"] + r["n"]] for r in rows if r["c"] == name]
            self.sets[name] = trials.trials(name), {k: [conditions.through(k, s, i, noise) for i, s in enumerate(speech)] for k in kinds}

    @torch.no_grad()
    def embed(self, voice, speech):
        out, by_length = torch.empty(len(speech), 0), {}
        for i, x in enumerate(speech):
            by_length.setdefault(len(x), []).append(i)
        for ids in by_length.values():
            for o in range(0, len(ids), 256):
                e = voice(torch.from_numpy(np.stack([speech[i] for i in ids[o : o + 256]])).float().to(DEVICE)).cpu()
                out = torch.zeros(len(speech), e.shape[1]) if not out.shape[1] else out
                out[ids[o : o + 256]] = e
        return out.numpy()

    def embeddings(self, voice):
        return {name: {k: self.embed(voice, s) for k, s in speech.items()} for name, (_, speech) in self.sets.items()}

    def report(self, title, found):
        for name, ((_, models, rows), _) in self.sets.items():
            cells = []
            for kind, e in found[name].items():
                m = np.stack([found[name]["clean"][ks].mean(0) for ks in models])
                m /= np.linalg.norm(m, axis=1, keepdims=True)
                s = (m[rows[:, 1]] * e[rows[:, 2]]).sum(1)
                cells.append(f"{kind} {measure.eer(s, rows[:, 0]):.2f} ({measure.fnmr_at(s, rows[:, 0]):.1f})")
            print(f"{title:12s} {name:9s} {'  '.join(cells)}", flush=True)


def label(folder, published):
    cam, ecapa = teach(folder, published)
    dev = Dev(folder)
    a, b = dev.embeddings(cam), dev.embeddings(ecapa)
    dev.report("campplus", a)
    dev.report("ecapa", b)
    for share in (0.35, 0.5, 0.65):
        dev.report(f"both {share}", {s: {k: np.concatenate([math.sqrt(1 - share) * a[s][k], math.sqrt(share) * b[s][k]], 1) for k in a[s]} for s in a})


def targets(table, who, recipe):
    """-> unit targets [chunk, speed, 256], speakers' means, and the linear map that takes CAM++'s own embedding nearest to them."""
    fused = torch.cat([math.sqrt(1 - recipe.share) * table[:, :, 0], math.sqrt(recipe.share) * table[:, :, 1]], 2)
    flat = fused.reshape(-1, 384)
    mean = flat.mean(0)
    axes = torch.linalg.svd((flat - mean).T @ (flat - mean))[0][:, : networks.WIDTH]
    own = F.normalize((fused - mean) @ axes, dim=2)
    centres = F.normalize(torch.zeros(int(who.max()) + 1, len(SPEEDS), networks.WIDTH, device=DEVICE).index_add_(0, who, own), dim=2)
    target = F.normalize((1 - recipe.centre) * own + recipe.centre * centres[who], dim=2)
    x = torch.cat([table[:, :, 0].reshape(-1, 192), torch.ones(len(flat), 1, device=DEVICE)], 1)
    fit = torch.linalg.solve(x.T @ x + 1e-3 * torch.eye(193, device=DEVICE), x.T @ own.reshape(-1, networks.WIDTH))
    return target, centres, fit


def train(folder, published, out, recipe):
    rows, plain, coded = load_bank(folder, is_train)
    noise = load_bank(folder, lambda name: name == "esc50")[1]
    p, n = place(rows)
    names = {k: i for i, k in enumerate(sorted({(r["c"], r["s"]) for r in rows}))}
    who = torch.tensor([names[r["c"], r["s"]] for r in rows], device=DEVICE)
    target, centres, fit = targets(torch.load(folder + "/teachers.pt", weights_only=True).to(DEVICE).float(), who, recipe)
    classes = centres.reshape(-1, networks.WIDTH)

    net = networks.Adapted(networks.campplus_graph(published))
    net.n.load_state_dict(networks.weights(published + "/campplus.pt"))
    net.fc.weight.data, net.fc.bias.data = fit[:192].T.contiguous().cpu(), fit[192].clone().cpu()
    if recipe.base:
        net.load_state_dict(networks.weights(recipe.base))
    net = net.to(DEVICE).eval()  # eval: batch norms keep their statistics; their scales still learn
    forward = torch.compile(net) if recipe.compile else net
    front, augment = networks.KaldiFbank().to(DEVICE), Augment(plain, noise, DEVICE, rooms=600 if DEVICE == "cuda" else 4, telephone=recipe.telephone)

    total = torch.zeros(len(names), device=DEVICE).index_add_(0, who, n.float())
    chance = n.float() / total[who] * total[who].clamp(max=300 * RATE) ** 0.5  # speakers by the root of their speech
    kernels = [m.weight for m in net.modules() if isinstance(m, (nn.Conv1d, nn.Conv2d, nn.Linear))]
    optimizer = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=recipe.decay, fused=DEVICE == "cuda")
    averaged = [q.detach().clone() for q in net.parameters()]
    speeds, size, samples = torch.tensor(SPEEDS, device=DEVICE), recipe.batch, int(recipe.crop * RATE)
    eye = torch.eye(size, dtype=torch.bool, device=DEVICE)
    u = lambda: torch.rand(size, 1, device=DEVICE)

    @torch.no_grad()
    def draw():
        j = torch.multinomial(chance, size, replacement=True)
        k = torch.multinomial(torch.tensor([0.3, 0.4, 0.3], device=DEVICE), size, replacement=True)
        speed = speeds[k] * (0.975 + 0.05 * u()[:, 0])
        content = torch.where(u()[:, 0] < 0.5, samples, RATE * (recipe.shortest + (recipe.crop - recipe.shortest) * u()[:, 0])).round()
        at = u()[:, 0] * (n[j].float() - content * speed).clamp(min=0)
        through = u() < recipe.coded
        x = torch.where(through, crop(coded, p[j], n[j], at, speed, samples, content), crop(plain, p[j], n[j], at, speed, samples, content))
        x = torch.where(~through & (u() < recipe.clean / (1 - recipe.coded)), x, augment(x, through))
        return front(x), target[j, k], who[j] * len(SPEEDS) + k

    started, step, log = None, 0, time.time()
    while True:
        done = 0 if started is None else (time.time() - started) / recipe.seconds
        if recipe.steps:
            done = step / recipe.steps
        if done >= 1:
            break
        for g in optimizer.param_groups:
            g["lr"] = recipe.rate * min(1, (step + 1) / 300) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        x, t, c = draw()
        rounding = done > 1 - recipe.rounded
        if rounding:  # forward and backward see int8 weights, the update goes to the exact ones
            exact = [w.data for w in kernels]
            for w in kernels:
                w.data = networks.quantized(w.data)
        with torch.autocast(DEVICE, torch.bfloat16):
            e = forward(x)
        e = F.normalize(e.float())
        distance = (1 - (e * t).sum(1)).mean()
        relation = F.kl_div(F.log_softmax((e @ e.T / 0.07).masked_fill(eye, -1e4), 1), F.softmax((t @ t.T / 0.07).masked_fill(eye, -1e4), 1), reduction="batchmean")
        loss = recipe.distance * distance + recipe.relation * relation
        if recipe.classes:
            loss = loss + recipe.classes * F.cross_entropy(e @ classes.T / 0.05, c)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if rounding:
            for w, data in zip(kernels, exact):
                w.data = data
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        torch._foreach_lerp_(averaged, [q.detach() for q in net.parameters()], 1 - min(recipe.average, (step + 1) / (step + 10)))
        step += 1
        if started is None:  # the first step compiles
            print(f"first step {time.time() - log:.0f} s", flush=True)
            started = time.time()
        if step % 200 == 0 or step == recipe.steps:
            print(f"{step} {time.time() - started:.0f} s cosine {1 - distance.item():.3f} relation {relation.item():.3f}", flush=True)

    with torch.no_grad():
        for q, a in zip(net.parameters(), averaged):
            q.copy_(a)
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}, out)
    dev = Dev(folder)
    voice = networks.Voice(networks.KaldiFbank(), networks.quantize(net)).to(DEVICE)
    dev.report("adapted int8", dev.embeddings(voice))


if __name__ == "__main__":
    if sys.argv[1] == "label":
        label(*sys.argv[2:4])
    else:
        train(*sys.argv[2:5], Recipe(**json.loads(sys.argv[5] if len(sys.argv) > 5 else "{}")))
