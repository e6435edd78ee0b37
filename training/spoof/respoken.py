"""Genuine clips said again from little more than what was said (LOG.md 32): where a copy by a vocoder or codec keeps all that can be heard, nothing remains here but units of
content, a voice, and in one of four the pitch. The rest is made up, as a synthesizer makes it up from a text.

python3 respoken.py units BANK WHISPER.pt               units of every genuine clip: which of 320 means the encoder's last layer (whisper.py's file) is nearest to, fifty a second
python3 respoken.py train BANK HIFIGAN NETS KIND --seconds N
python3 respoken.py speak BANK HIFIGAN NETS [--told A.pt,B.pt]      BANK/copies-said-*.npy, as bank.py's copies
                                                        --told: how well networks tell them before any has learnt from them

KIND: flow     log-mel spectra by a flow from noise (as E1 and other flow or diffusion systems), or where they lie in the mean (as FastSpeech), in a clip's own voice or another's
      turns    log-mel spectra frame after frame (as Tacotron)
      direct   samples from units, voice and pitch at once (as VITS and systems with discrete units), against judges
"""
import argparse, json, math, os, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

import bank as material
import vocoders
from vocoders import Block, HIFIGAN_RATE, RATE, levelled, mel_basis, resampled
from whisper import Encoder

UNITS, STEPS, FRAMES, BANDS, VOICE = 320, 160, 276, 80, 96
WIDE = FRAMES * 256  # samples of a clip at HIFIGAN_RATE, and a little more
STRIDE = 320  # samples of a unit at RATE


@torch.no_grad()
def heard(encoder, x):
    """Clips at 16 kHz -> [clips][STEPS][width], what Whisper's last layer makes of them."""
    window = torch.hann_window(400, device=x.device)
    power = torch.stft(x, 400, 160, 400, window, return_complex=True)[..., :-1].abs() ** 2
    bins = (mel_basis(RATE, 400, 80, 8000, x.device) @ power).clamp(min=1e-10).log10()
    return encoder((bins.maximum(bins.amax((1, 2), keepdim=True) - 8) + 4) / 4)[-1]


@torch.no_grad()
def units(folder, whisper):
    speech, _ = material.accelerator(folder)
    encoder = Encoder().to(speech.device)
    encoder.load_state_dict({k: v.float() for k, v in torch.load(whisper, map_location="cpu").items()})
    seen = torch.cat([heard(encoder, levelled(x)) for x in speech.split(128)])
    seen = F.layer_norm(seen, seen.shape[-1:])
    some = seen.reshape(-1, seen.shape[-1])[torch.randperm(seen.shape[0] * seen.shape[1], device=seen.device)[:100000]]
    means = some[:UNITS].clone()
    for _ in range(25):
        near = torch.cat([torch.cdist(part, means).argmin(1) for part in some.split(20000)])
        counts = torch.bincount(near, minlength=UNITS)
        sums = torch.zeros_like(means).index_add_(0, near, some)
        means = torch.where(counts[:, None] > 0, sums / counts[:, None].clamp(min=1), some[torch.randint(0, len(some), (UNITS,), device=some.device)])
    found = torch.cat([torch.cdist(part.reshape(-1, part.shape[-1]), means).argmin(1).reshape(-1, STEPS) for part in seen.split(128)])
    np.save(folder + "/units.npy", found.cpu().numpy().astype(np.int16))
    print("units", len(torch.unique(found)), "used,", f"{float((found[:, 1:] != found[:, :-1]).float().mean()) * 50:.1f} changes a second", flush=True)


def spectra(x):
    """Clips at 16 kHz -> log-mel spectra as HiFi-GAN reads them, [clips][BANDS][FRAMES]."""
    y = resampled(x, x.shape[1] * HIFIGAN_RATE // RATE)
    y = F.pad(F.pad(y, (0, WIDE - y.shape[1]))[:, None], (384, 384), mode="reflect")[:, 0]
    s = torch.stft(y, 1024, 256, 1024, torch.hann_window(1024, device=x.device), center=False, return_complex=True).abs()
    return torch.log((mel_basis(HIFIGAN_RATE, 1024, BANDS, 8000, x.device) @ s).clamp(min=1e-5))


def beside(keys):
    """For every clip another one of the same voice, or itself."""
    voices = {}
    for i, key in enumerate(keys):
        voices.setdefault(key, []).append(i)
    return np.array([voices[key][(voices[key].index(i) + 1) % len(voices[key])] for i, key in enumerate(keys)])


class Voice(nn.Module):
    """What a voice and its line sound like: spectra -> [clips][VOICE]."""

    def __init__(self, c=256):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(BANDS, c, 5, 2, 2), nn.GELU(), nn.Conv1d(c, c, 5, 2, 2), nn.GELU(), Block(c), Block(c))
        self.out = nn.Linear(2 * c, VOICE)

    def forward(self, m):
        y = self.net(m)
        return F.layer_norm(self.out(torch.cat([y.mean(2), (y.var(2) + 1e-5).sqrt()], 1)), (VOICE,))


class Layer(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.local = nn.Conv1d(c, c, 7, padding=3, groups=c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.moved = nn.Linear(c, 4 * c)
        nn.init.zeros_(self.moved.weight)
        nn.init.zeros_(self.moved.bias)

    def forward(self, x, t):
        a, b, c, d = self.moved(t)[:, None].chunk(4, 2)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + a) + b
        q, k, v = (z.unflatten(2, (self.heads, -1)).transpose(1, 2) for z in self.qkv(y).chunk(3, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = x + self.local(x.transpose(1, 2)).transpose(1, 2)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + c) + d
        return x + self.down(F.gelu(self.up(y)))


class Flow(nn.Module):
    def __init__(self, c=384, layers=8):
        super().__init__()
        self.voice, self.unit = Voice(), nn.Embedding(UNITS + 1, 128)  # the last one: nothing is said of it
        self.first, self.place = nn.Linear(BANDS + 128 + VOICE, c), nn.Parameter(0.02 * torch.randn(FRAMES, c))
        self.time = nn.Sequential(nn.Linear(64, c), nn.GELU(), nn.Linear(c, c))
        self.layers, self.last = nn.ModuleList(Layer(c, 6) for _ in range(layers)), nn.Linear(c, BANDS)

    def forward(self, x, t, said, voice):
        """x: [clips][BANDS][FRAMES]; t: how far it is, 0 to 1; said: units, [clips][FRAMES]. -> where it goes."""
        at = t[:, None] * torch.exp(torch.linspace(0, math.log(1000), 32, device=x.device))
        t = self.time(torch.cat([at.sin(), at.cos()], 1))
        y = self.first(torch.cat([x.transpose(1, 2), self.unit(said), voice[:, None].expand(-1, FRAMES, -1)], 2)) + self.place
        for layer in self.layers:
            y = layer(y, t)
        return self.last(F.layer_norm(y, y.shape[-1:])).transpose(1, 2)

    def loss(self, m, said, other):
        voice = self.voice(other)
        none = torch.rand(len(m), device=m.device) < 0.1
        said, voice = torch.where(none[:, None], UNITS, said), torch.where(none[:, None], 0, voice)
        plain = (torch.rand(len(m), 1, 1, device=m.device) < 0.2).float()  # from nothing at all in place of noise: the mean
        noise = torch.randn_like(m) * (1 - plain)
        t = torch.sigmoid(torch.randn(len(m), device=m.device)) * (1 - plain[:, 0, 0])
        x = noise + t[:, None, None] * (m - noise)
        return F.mse_loss(self(x, t, said, voice).float(), m - noise)

    def speak(self, said, other, mean=False, steps=24, guided=1.5):
        voice = self.voice(other)
        zero = torch.zeros(len(said), device=said.device)
        if mean:
            return self(torch.zeros(len(said), BANDS, FRAMES, device=said.device), zero, said, voice).float()
        x = torch.randn(len(said), BANDS, FRAMES, device=said.device)
        for k in range(steps):
            toward = self(x, zero + k / steps, said, voice).float()
            free = self(x, zero + k / steps, torch.full_like(said, UNITS), torch.zeros_like(voice)).float()
            x = x + (free + guided * (toward - free)) / steps
        return x


class Turns(nn.Module):
    """Two frames at a time, each time from what it said last."""

    def __init__(self, c=768):
        super().__init__()
        self.voice, self.unit = Voice(), nn.Embedding(UNITS + 1, 192)
        self.around = nn.Sequential(nn.Conv1d(192, 256, 5, 2, 2), Block(256), Block(256))
        self.before = nn.ModuleList([nn.Linear(2 * BANDS, 256), nn.Linear(256, 128)])
        self.net, self.last = nn.GRU(128 + 256 + VOICE, c, 2, batch_first=True), nn.Linear(c + 256, 2 * BANDS)

    def remembered(self, x):
        for layer in self.before:
            x = F.dropout(F.relu(layer(x)), 0.5)  # always: else it hears nothing but itself
        return x

    def given(self, said, other):
        return self.around(self.unit(said).transpose(1, 2)).transpose(1, 2), self.voice(other)[:, None]

    def loss(self, m, said, other):
        around, voice = self.given(said, other)
        frames = m.transpose(1, 2).reshape(len(m), FRAMES // 2, 2 * BANDS)
        before = self.remembered(F.pad(frames, (0, 0, 1, 0))[:, :-1])
        y, _ = self.net(torch.cat([before, around, voice.expand(-1, FRAMES // 2, -1)], 2))
        off = self.last(torch.cat([y, around], 2)).float() - frames
        return off.abs().mean() + (off**2).mean()

    def speak(self, said, other):
        around, voice = self.given(said, other)
        frame, state, out = torch.zeros(len(said), 1, 2 * BANDS, device=said.device), None, []
        for k in range(FRAMES // 2):
            y, state = self.net(torch.cat([self.remembered(frame).to(around.dtype), around[:, k : k + 1], voice], 2), state)
            frame = self.last(torch.cat([y, around[:, k : k + 1]], 2))
            out.append(frame)
        return torch.cat(out, 1).float().reshape(len(said), FRAMES, BANDS).transpose(1, 2)


class Direct(vocoders.Rebuilt):
    """Units, a voice and the pitch to samples: HiFi-GAN's stages with another way in."""

    def __init__(self, base):
        super().__init__(base, hidden="noise", size=192, loud=0.3, rate=HIFIGAN_RATE)
        self.voice, self.unit, self.given = Voice(), nn.Embedding(UNITS + 1, 192), nn.Conv1d(192 + VOICE + 3, self.encoder[0].in_channels, 3, padding=1)

    def features(self, x, predicted):
        """Of x nothing but pitch and loudness, both in coarse steps."""
        frames = x.shape[1] // 256
        pitch, voiced = (v[:, None, :frames] for v in vocoders.pitch(x, self.rate))
        loud = F.avg_pool1d(F.avg_pool1d(x[:, None] ** 2, 256).clamp(min=1e-8).log(), 9, 1, 4, count_include_pad=False)
        coarse = lambda v, step: torch.round(v / step) * step
        at = ((torch.arange(frames, device=x.device) + 0.5) * 256 / self.rate * RATE / STRIDE + self.begin / STRIDE).long().clamp(max=STEPS - 1)
        y = torch.cat([self.unit(self.said[:, at]).transpose(1, 2), self.voice(self.other)[:, :, None].expand(-1, -1, frames), coarse(pitch.log2() - 7, 1 / 24) * voiced, voiced, coarse(loud / 4, 0.25)], 1)
        return self.encoder(self.given(y))

    def forward(self, x, said, other, begin=0):
        """said: units of the whole clip, of which x begins at `begin`."""
        self.said, self.other, self.begin = said, other, begin
        return super().forward(x)


class Clips:
    """What is learnt from: spectra, units, and spectra of another clip of the same voice."""

    def __init__(self, folder):
        self.speech, self.keys = material.accelerator(folder)
        self.speech = levelled(self.speech)
        d = self.speech.device
        self.said = torch.from_numpy(np.load(folder + "/units.npy")).to(d).long()
        self.other = torch.from_numpy(beside(self.keys)).to(d)
        spectrum = torch.cat([spectra(x) for x in self.speech.split(256)])
        self.mean, self.scale = spectrum.mean((0, 2))[:, None], spectrum.std((0, 2))[:, None]
        self.spectra = ((spectrum - self.mean) / self.scale).half()
        self.wide = (torch.arange(FRAMES, device=d) * STEPS // FRAMES)[None]

    def some(self, size):
        return torch.randint(0, len(self.speech), (size,), device=self.speech.device)


def learnt(net, clips, seconds, size=128):
    net = net.to(clips.speech.device)
    optimizer, start, step, mean = torch.optim.AdamW(net.parameters(), lr=0, betas=(0.9, 0.98), weight_decay=0.01), time.time(), 0, 0.0
    average = {k: v.detach().clone() for k, v in net.state_dict().items()}
    while (done := (time.time() - start) / seconds) < 1:
        optimizer.param_groups[0]["lr"] = 6e-4 * min(1, (step + 1) / 200) * (1 - 0.9 * done)
        i = clips.some(size)
        with torch.autocast(clips.speech.device.type, torch.bfloat16):
            loss = net.loss(clips.spectra[i].float(), clips.said[i][:, clips.wide[0]], clips.spectra[clips.other[i]].float())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        step, mean = step + 1, mean + 0.01 * (loss.detach() - mean)
        with torch.no_grad():
            rate = min(0.998, step / (step + 20))
            for k, v in net.state_dict().items():
                average[k].lerp_(v, 1 - rate)
    net.load_state_dict(average)
    return net.eval(), step, float(mean)


def train(folder, hifigan, nets, kind, seconds):
    os.makedirs(nets, exist_ok=True)
    start, clips = time.time(), Clips(folder)
    if kind == "direct":
        net = Direct(vocoders.generator(hifigan, hifigan + "/generator_universal.fp16.pt")).to(clips.speech.device)

        def drawn(size, length):
            i, at = clips.some(size), int(torch.randint(0, (clips.speech.shape[1] - length) // STRIDE, (1,))) * STRIDE
            return clips.speech[i, at : at + length], clips.said[i], clips.spectra[clips.other[i]].float(), at

        net, step, loss = vocoders.train_vocoder(net, clips.speech, seconds, vocoders.Both(), 8192, 16, 0.15, drawn)
    else:
        net, step, loss = learnt(Flow() if kind == "flow" else Turns(), clips, seconds)
    torch.save(net.state_dict(), f"{nets}/said-{kind}.pt")
    print(f"{time.time() - start:6.1f} s said-{kind} {step} steps, loss {loss:.3f}", flush=True)


@torch.no_grad()
def speak(folder, hifigan, nets, told):
    start, clips = time.time(), Clips(folder)
    d, made = clips.speech.device, {}
    generator = vocoders.generator(hifigan, hifigan + "/generator_universal.fp16.pt").to(d)
    weights = {k: v.clone() for k, v in generator.state_dict().items()}
    istftnet = material.maker("Rebuilt", next(options for family, _, options, *_ in material.MAKERS if family == "istftnet"), hifigan).to(d).eval()
    istftnet.load_state_dict(torch.load(f"{nets}/istftnet.pt", map_location=d))

    def sounded(spectrum, k):
        """Spectra to samples, by HiFi-GAN as it is, changed, or by the one with short spectra."""
        m = spectrum * clips.scale + clips.mean
        if k % 3 == 2:
            return levelled(istftnet(torch.zeros(len(m), clips.speech.shape[1], device=d), mel=m))
        generator.load_state_dict(weights)
        if k % 3 == 1:
            vocoders.varied(generator, 0.06)
        with torch.autocast(d.type, torch.float16, enabled=d.type == "cuda"):
            y = generator(m)[:, 0].float()
        return levelled(resampled(y[:, : clips.speech.shape[1] * HIFIGAN_RATE // RATE], clips.speech.shape[1]))

    def load(kind, net):
        net.load_state_dict(torch.load(f"{nets}/said-{kind}.pt", map_location=d))
        return net.to(d).eval()

    flow, turns = load("flow", Flow()), load("turns", Turns())
    direct = load("direct", Direct(vocoders.generator(hifigan, hifigan + "/generator_universal.fp16.pt")))
    said = lambda i: clips.said[i][:, clips.wide[0]]
    own = lambda i: clips.spectra[clips.other[i]].float()
    another = lambda i: own(i).roll(1, 0)  # neighbours in a block: other voices
    kinds = {
        "said-flow": (60, lambda i, k: sounded(flow.speak(said(i), own(i), guided=(1.0, 2.0)[k % 2]), k)),
        "said-other": (61, lambda i, k: sounded(flow.speak(said(i), another(i), guided=1.5), k)),
        "said-mean": (62, lambda i, k: sounded(flow.speak(said(i), own(i), mean=True), k)),
        "said-turns": (63, lambda i, k: sounded(turns.speak(said(i), own(i)), k)),
        "said-direct": (64, lambda i, k: levelled(direct(clips.speech[i], clips.said[i], own(i)))),
    }
    for family, (number, make) in kinds.items():
        index, out = material.part_of(clips.keys, number), []
        for k, part in enumerate(np.array_split(index, -(-len(index) // 64))):
            with torch.autocast(d.type, torch.bfloat16, enabled=d.type == "cuda"):
                out.append(make(torch.from_numpy(part).to(d), k).float())
        x = torch.cat(out).nan_to_num()
        q = (torch.round(x.clamp(-1, 1) * 32768 / material.STEP) * material.STEP).clamp(-32768, 32752).short().cpu().numpy()
        np.save(f"{folder}/copies-{family}-0.npy", q)
        json.dump([dict(family=family, key=clips.keys[i], pair=int(i)) for i in index], open(f"{folder}/copies-{family}-0.json", "w"))
        print(f"{time.time() - start:6.1f} s {family} {len(index)}", material.told_apart(told, x[:1024], clips.speech[index[:1024]]) if told else "", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("units", "train", "speak"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--told", default="", help="networks, by a comma")
    a = parser.parse_args()
    dict(units=lambda: units(*a.paths), train=lambda: train(*a.paths, a.seconds), speak=lambda: speak(*a.paths, list(filter(None, a.told.split(",")))))[a.what]()
