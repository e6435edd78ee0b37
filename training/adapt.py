"""Adapts a published network to phones and rooms. It hears a short, spoilt crop and is asked for what the teachers (CAM++, ECAPA and
ResNet34) together say of the clean chunk it came from; no label but the speaker's other chunks is needed. Or (`own`) it is asked for
what its start says of the same crop before it was spoilt, so that it stays where it is good.

python3 adapt.py label BANK PUBLISHED             teachers' embeddings of the bank, once; prints the published networks on DEV
python3 adapt.py train BANK PUBLISHED OUT.pt {"steps": 830, …} [OUT.pt {…} …]   the fields of Recipe, for one run after another
python3 adapt.py sweep BANK PUBLISHED RUN.pt [RUN.pt …]   DEV between the published network and each run
python3 adapt.py means BANK PUBLISHED A.pt=0.5,B.pt=0.5 …   DEV of each mean of runs that lie in one space
"""
import glob, json, math, os, sys, time
from dataclasses import dataclass, field
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
import conditions, measure, networks, trials
from blend import blend
from augment import Augment

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RATE, LABEL_SECONDS = 16000, 8
SPEEDS = (0.86, 1.0, 1.16)  # a changed speed is another voice: the teachers label it too
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


@dataclass
class Recipe:
    network: str = "campplus"  # the published network to adapt: campplus or resnet34
    steps: int = 830
    seed: int = 1
    batch: int = 512
    crop: float = 3.0  # seconds the network sees; shorter pieces are looped to fill it, which leaves the statistics as they are
    shortest: float = 1.0
    rate: float = 4e-4
    decay: float = 0.02
    shares: dict = field(default_factory=lambda: {"campplus": 0.25, "ecapa": 0.25, "resnet34": 0.5})  # of the teachers in the target
    centre: float = 0.3  # of the speaker's mean in the target
    distance: float = 4.0  # weights of the losses: cosine to the target,
    relation: float = 1.0  # likeness to the others of the batch,
    classes: float = 0.0  # and being nearest to one's own speaker among all
    coded: float = 0.4  # share of crops that came through a real codec
    clean: float = 0.1  # share of crops left as they are
    telephone: float = 0.35  # share of the others that go through the line of augment.py
    places: float = 1.0  # factor of the chances of a room, noise, a microphone
    noisiest: float = 0.0  # dB SNR
    average: float = 0.998  # of the weights, per step
    rounded: float = 0.25  # last part of the run with weights rounded to int8
    base: str = ""  # an adapted checkpoint to go on from, in place of the published network
    own: bool = False  # taught by its start, which hears the crop unspoilt
    whole: float = 0.0  # with own: share of the base's embedding of the whole chunk (and of `centre`) in the target of a crop that is spoilt or short
    fused: float = 0.0  # with whole: share of all teachers' embedding of the chunk, turned into the base's space, in that embedding
    learn: str = ""  # beginnings of the names of the weights that learn, by comma; all of them where empty
    hold: float = 0.0  # weights decay towards where they started, by rate · hold a step, instead of towards zero
    warm: int = 300  # steps until the full rate
    compile: bool = True


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


class Material:
    """A bank's training speech, its copies through codecs, noise, and who speaks."""

    def __init__(self, folder):
        rows, self.plain, self.coded = load_bank(folder, is_train)
        self.noise = load_bank(folder, lambda name: name == "esc50")[1]
        self.p, self.n = place(rows)
        names = {k: i for i, k in enumerate(sorted({(r["c"], r["s"]) for r in rows}))}
        self.who = torch.tensor([names[r["c"], r["s"]] for r in rows], device=DEVICE)
        self.tables = {}

    @torch.no_grad()
    def labels(self, voice):
        """Unit embeddings [chunk, speed, width] of every chunk at every speed."""
        p, n, size, table = self.p, self.n, 384, None
        for o in range(0, len(p), size):
            part = slice(o, o + size)
            for k, s in enumerate(SPEEDS):
                b = len(p[part])
                x = crop(self.plain, p[part], n[part], torch.zeros(b, device=DEVICE), torch.full((b,), s, device=DEVICE), LABEL_SECONDS * RATE)
                with torch.autocast(DEVICE, torch.bfloat16):
                    e = voice(x)
                table = torch.empty(len(p), len(SPEEDS), e.shape[1], device=DEVICE) if table is None else table
                table[part, k] = e
        return table

    def labelled(self, name, voice):
        """`labels`, once for several runs of one start."""
        if name not in self.tables:
            self.tables[name] = self.labels(voice)
        return self.tables[name]

    def chances(self):
        """Of each chunk to be drawn: speakers by the root of their speech."""
        total = torch.zeros(int(self.who.max()) + 1, device=DEVICE).index_add_(0, self.who, self.n.float())[self.who]
        return self.n.float() / total * total.clamp(max=300 * RATE) ** 0.5


class Dev:
    """The frozen lists, their segments packed with the rest: to follow a run, not for figures that are quoted."""

    def __init__(self, folder, kinds=("clean", "mulaw", "gsm", "noise10", "cut2")):
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
    material, dev, found, tables = Material(folder), Dev(folder), {}, {}
    for kind in networks.PUBLISHED:
        voice = networks.load(kind, published).to(DEVICE)
        tables[kind] = material.labels(voice).half().cpu()
        found[kind] = dev.embeddings(voice)
        dev.report(kind, found[kind])
    torch.save(tables, folder + "/teachers.pt")
    for shares in ((0.25, 0.25, 0.5), (0.5, 0, 0.5), (0.2, 0.1, 0.7), (0.35, 0.3, 0.35)):
        side = lambda s, k: np.concatenate([math.sqrt(a) * found[kind][s][k] for kind, a in zip(networks.PUBLISHED, shares)], 1)
        dev.report(" ".join(map(str, shares)), {s: {k: side(s, k) for k in found["ecapa"][s]} for s in found["ecapa"]})


def centred(own, who, centre):
    """Unit embeddings [chunk, speed, width] -> the same with a share of the speaker's mean, and the means."""
    centres = F.normalize(torch.zeros(int(who.max()) + 1, *own.shape[1:], device=DEVICE).index_add_(0, who, own), dim=2)
    return F.normalize((1 - centre) * own + centre * centres[who], dim=2), centres


def together(tables, shares):
    """What the teachers say together: unit embeddings [chunk, speed, 256]."""
    fused = torch.cat([math.sqrt(share) * tables[kind].to(DEVICE).float() for kind, share in shares.items()], 2)
    flat = fused.reshape(-1, fused.shape[2])
    mean = flat.mean(0)
    axes = torch.linalg.svd((flat - mean).T @ (flat - mean))[0][:, : networks.WIDTH]
    return F.normalize((fused - mean) @ axes, dim=2)


def turned(taught, own):
    """`taught`, turned as a whole so that it lies nearest to `own`."""
    u, _, v = torch.linalg.svd(taught.flatten(0, 1).T @ own.flatten(0, 1))
    return taught @ (u @ v)


def targets(tables, who, recipe):
    """-> unit targets [chunk, speed, 256], speakers' means, and the linear map that takes the network's own embedding nearest to them."""
    own = together(tables, recipe.shares)
    target, centres = centred(own, who, recipe.centre)
    x = tables[recipe.network].to(DEVICE).float().flatten(0, 1)
    if recipe.network == "campplus":  # its map has a bias
        x = torch.cat([x, torch.ones(len(x), 1, device=DEVICE)], 1)
    fit = torch.linalg.solve(x.T @ x + 1e-3 * torch.eye(x.shape[1], device=DEVICE), x.T @ own.flatten(0, 1))
    return target, centres, fit.T.contiguous().cpu()


def published_network(published, recipe, fit=None):
    """The network that learns, as published or from a base; `fit` maps its embedding to the targets."""
    if recipe.base:
        net = networks.load("adapted", published, recipe.base).network
    elif recipe.network == "resnet34":
        net = networks.load("resnet34", published).network
        if fit is not None:
            net.fc.weight.data, net.fc.bias.data = fit @ net.fc.weight.data, fit @ net.fc.bias.data
    else:
        net = networks.Adapted(networks.load("campplus", published).network)
        net.fc.weight.data, net.fc.bias.data = fit[:, :-1].contiguous(), fit[:, -1].contiguous()
    if recipe.network == "resnet34":
        net = net.to(memory_format=torch.channels_last)
    return net.to(DEVICE).eval()  # eval: batch norms keep their statistics; their scales still learn


def teachers(folder):
    return torch.load(folder + "/teachers.pt", weights_only=True)


def start(folder, published, material, recipe):
    """-> the network to train, its targets [chunk, speed, 256] where it has such, speakers' means, and the start where that teaches."""
    if recipe.own:
        net, teacher = published_network(published, recipe), published_network(published, recipe)
        voice = networks.Voice(networks.front(teacher), teacher).to(DEVICE)
        if not recipe.whole:
            return net, None, None, teacher
        own = material.labelled(recipe.network + recipe.base, voice)
        if recipe.fused:
            taught = turned(together(teachers(folder), recipe.shares), own)
            print(f"the teachers together, turned, and the base: cosine {(taught * own).sum(2).mean().item():.3f}", flush=True)
            own = F.normalize(own.lerp(taught, recipe.fused), dim=2)
        return net, centred(own, material.who, recipe.centre)[0], None, teacher
    target, centres, fit = targets(teachers(folder), material.who, recipe)
    return published_network(published, recipe, fit), target, centres, None


def train(folder, published, material, out, recipe):
    if recipe.own and recipe.classes:
        raise SystemExit("own has no speakers' means, so it cannot be used with classes")
    torch.manual_seed(recipe.seed)
    if material.coded is None or material.noise is None:
        raise SystemExit(f"{folder} lacks coded speech or noise (esc50)")
    net, target, centres, teacher = start(folder, published, material, recipe)
    front = networks.front(net).to(DEVICE)
    for name, q in net.named_parameters():
        q.requires_grad_(any(name.startswith(beginning) for beginning in recipe.learn.split(",")))
    learning = [q for q in net.parameters() if q.requires_grad]
    if not learning:
        raise SystemExit(f"no weights begin with {recipe.learn}")
    forward, listen = (torch.compile(m) if recipe.compile and m else m for m in (net, teacher))
    augment = Augment(material.plain, material.noise, DEVICE, 600 if DEVICE == "cuda" else 4, recipe.telephone, recipe.places, recipe.noisiest)

    p, n, chances = material.p, material.n, material.chances()
    kernels = [m.weight for m in net.modules() if isinstance(m, (nn.Conv1d, nn.Conv2d, nn.Linear))]
    optimizer = torch.optim.AdamW(learning, lr=recipe.rate, weight_decay=0.0 if recipe.hold else recipe.decay, fused=DEVICE == "cuda")
    origin, averaged = ([q.detach().clone() for q in learning] for _ in range(2))
    speeds, size, samples = torch.tensor(SPEEDS, device=DEVICE), recipe.batch, int(recipe.crop * RATE)
    eye = torch.eye(size, dtype=torch.bool, device=DEVICE)
    u = lambda: torch.rand(size, 1, device=DEVICE)

    @torch.no_grad()
    def draw():
        """-> features, targets, classes, and which crops are as recorded"""
        j = torch.multinomial(chances, size, replacement=True)
        k = torch.multinomial(torch.tensor([0.3, 0.4, 0.3], device=DEVICE), size, replacement=True)
        speed = speeds[k] * (0.975 + 0.05 * u()[:, 0])
        content = torch.where(u()[:, 0] < 0.5, samples, RATE * (recipe.shortest + (recipe.crop - recipe.shortest) * u()[:, 0])).round()
        at = u()[:, 0] * (n[j].float() - content * speed).clamp(min=0)
        clean, through = crop(material.plain, p[j], n[j], at, speed, samples, content), u() < recipe.coded
        x = torch.where(through, crop(material.coded, p[j], n[j], at, speed, samples, content), clean)
        kept = ~through & (u() < recipe.clean / (1 - recipe.coded))
        x = front(torch.where(kept, x, augment(x, through)))
        if teacher is None:
            return x, target[j, k], material.who[j] * len(SPEEDS) + k, kept
        with torch.autocast(DEVICE, torch.bfloat16):
            t = listen(front(clean))
        t = F.normalize(t.float())
        if recipe.whole:
            anchor = kept & (content == samples)[:, None]
            t = torch.where(anchor, t, F.normalize(t.lerp(target[j, k], recipe.whole)))
        return x, t, None, kept

    started, step, log = None, 0, time.time()
    while step < recipe.steps:
        done = step / recipe.steps
        for g in optimizer.param_groups:
            g["lr"] = rate = recipe.rate * min(1, (step + 1) / recipe.warm) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        x, t, c, kept = draw()
        rounding = done > 1 - recipe.rounded
        if rounding:  # forward and backward see int8 weights, the update goes to the exact ones
            exact = [w.data for w in kernels]
            for w in kernels:
                w.data = networks.quantized(w.data)
        with torch.autocast(DEVICE, torch.bfloat16):
            e = forward(x)
        e = F.normalize(e.float())
        cosine = (e * t).sum(1)
        distance = (1 - cosine).mean()
        relation = F.kl_div(F.log_softmax((e @ e.T / 0.07).masked_fill(eye, -1e4), 1), F.softmax((t @ t.T / 0.07).masked_fill(eye, -1e4), 1), reduction="batchmean")
        loss = recipe.distance * distance + recipe.relation * relation
        if recipe.classes:
            loss = loss + recipe.classes * F.cross_entropy(e @ centres.reshape(-1, networks.WIDTH).T / 0.05, c)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if rounding:
            for w, data in zip(kernels, exact):
                w.data = data
        nn.utils.clip_grad_norm_(learning, 2.0)
        optimizer.step()
        if recipe.hold:
            torch._foreach_lerp_([q.detach() for q in learning], origin, rate * recipe.hold)
        torch._foreach_lerp_(averaged, [q.detach() for q in learning], 1 - min(recipe.average, (step + 1) / (step + 10)))
        step += 1
        if started is None:  # the first step compiles
            print(f"first step {time.time() - log:.0f} s", flush=True)
            started = time.time()
        if step % 100 == 0 or step in (1, recipe.steps):
            as_recorded, spoilt = cosine[kept[:, 0]].mean().item(), cosine[~kept[:, 0]].mean().item()
            print(f"{step} {time.time() - started:.0f} s cosine as recorded {as_recorded:.3f} spoilt {spoilt:.3f} relation {relation.item():.3f}", flush=True)

    with torch.no_grad():
        for q, a in zip(learning, averaged):
            q.copy_(a)
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}, out + ".part")
    os.replace(out + ".part", out)
    print(f"{out} after {step} steps", flush=True)
    del optimizer, forward
    return net


def report(dev, title, published, state):
    path = f"/tmp/{os.getpid()}.pt"
    torch.save(state, path)
    voice = networks.quantize(networks.load("adapted", published, path)).to(DEVICE)
    dev.report(title, dev.embeddings(voice))


if __name__ == "__main__":
    command, folder, published, *rest = sys.argv[1:]
    if command == "label":
        label(folder, published)
    elif command == "train":
        runs = [(out, Recipe(**json.loads(recipe))) for out, recipe in zip(rest[::2], rest[1::2], strict=True)]
        material, dev = Material(folder), Dev(folder)
        for out, recipe in runs:
            train(folder, published, material, out, recipe)
            report(dev, out, published, networks.weights(out))
    elif command == "means":
        dev = Dev(folder)
        for mean in rest:
            report(dev, mean, published, blend(published, [(networks.weights(path), float(share)) for path, _, share in (word.partition("=") for word in mean.split(","))]))
    else:
        dev = Dev(folder)
        for run in rest:
            for share in (0.0, 0.25, 0.5, 0.75):
                report(dev, f"{run} {share}", published, blend(published, [(networks.weights(run), share)]))
