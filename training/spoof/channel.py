"""What happens to speech on its way to the detector, on the accelerator: the same for genuine speech and for attacks. And replay: a
loudspeaker, a room and a second microphone in between."""
import math
import torch, torch.nn.functional as F

RATE, N = 16000, 65536


def uniform(b, lo, hi, device):
    return torch.empty(b, 1, device=device).uniform_(lo, hi)


def chance(b, p, device):
    return torch.rand(b, 1, device=device) < p


def filtered(x, response):
    return torch.fft.irfft(torch.fft.rfft(x, N) * response, N)[:, : x.shape[1]]


def frequencies(device):
    return torch.linspace(0, RATE / 2, N // 2 + 1, device=device)


def ripple(b, decibels, points, device):
    """A smooth random response of ±decibels (one deviation)."""
    r = F.interpolate(torch.randn(b, 1, points, device=device), size=N // 2 + 1, mode="linear")[:, 0]
    return 10 ** (r * decibels / 20)


def image_rooms(count, distance, rt60, device, seed):
    """Impulse responses of shoebox rooms by the image method, at most 0.5 s: [count][8000]. distance in m, rt60 in s: ranges."""
    g = torch.Generator(device="cpu").manual_seed(seed)
    u = lambda lo, hi, *s: torch.rand(*s, generator=g) * (hi - lo) + lo
    rooms = torch.zeros(count, 8000)
    order = torch.arange(-9, 10)
    grid = torch.stack(torch.meshgrid(order, order, order, indexing="ij"), -1).reshape(-1, 3).float()
    for i in range(count):
        size = torch.tensor([u(2, 9, 1).item(), u(2, 7, 1).item(), u(2.2, 3.5, 1).item()])
        t60 = u(*rt60, 1).item()
        volume, surface = size.prod(), 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2])
        reflection = math.sqrt(max(0.02, 1 - min(0.98, float(0.161 * volume / (t60 * surface)))))
        source = u(0.3, 1, 3) * (size - 0.6).clamp(min=0.2)
        direction = F.normalize(torch.randn(3, generator=g), dim=0) * u(*distance, 1)
        microphone = (source + direction).clamp(min=0.1).minimum(size - 0.1)
        for flip in range(8):
            sign = torch.tensor([1 - 2 * (flip >> k & 1) for k in range(3)]).float()
            image = 2 * grid * size + sign * source
            bounces = (2 * grid - (1 - sign) / 2).abs().sum(1) if flip else (2 * grid).abs().sum(1)
            away = (image - microphone).norm(dim=1).clamp(min=0.05)
            at = (away / 343 * RATE).long()
            keep = at < 8000
            rooms[i].index_add_(0, at[keep], (reflection ** bounces[keep]) / away[keep])
        first = int((rooms[i] != 0).nonzero()[0])
        rooms[i] = torch.roll(rooms[i], -first)
    rooms[:, 0] = rooms[:, 0].clamp(min=1e-3)
    return (rooms / rooms.norm(dim=1, keepdim=True)).to(device)


def backgrounds(speech):
    """The spectrum of each clip's quietest tenth, per 512 samples: what its room and line sound like when nobody speaks."""
    out = []
    for x in speech.split(256):
        power = torch.stft(x, 1024, 512, 1024, torch.hann_window(1024, device=x.device), return_complex=True).abs() ** 2
        quiet = power.sum(1).topk(max(1, power.shape[2] // 10), largest=False).indices
        out.append((power.gather(2, quiet[:, None].expand(-1, 513, -1)).mean(2) / 384).sqrt())
    return torch.cat(out)


def mulaw(x):
    """G.711 at 8 kHz: down, eight bits, up again."""
    n = x.shape[1]
    y = torch.fft.irfft(torch.fft.rfft(x)[:, : n // 4 + 1], n // 2) / 2
    c = torch.round(torch.sign(y) * torch.log1p(255 * y.abs().clamp(max=1)) / math.log(256) * 127) / 127
    y = torch.sign(c) * (torch.exp(c.abs() * math.log(256)) - 1) / 255
    return torch.fft.irfft(F.pad(torch.fft.rfft(y), (0, n // 2 - n // 4)), n) * 2


class Channel:
    """What lies between a mouth (or a machine) and the detector. Every draw follows torch's generator: the same seed gives a clip and its copy
    the same way."""

    def __init__(self, speech, device, seed=1):
        self.speech, self.device, self.background = speech, device, backgrounds(speech)
        self.near = image_rooms(150, (0.05, 0.4), (0.1, 0.5), device, seed)
        self.far = image_rooms(300, (0.1, 3.0), (0.15, 1.0), device, seed + 1)

    def _room(self, x, rooms):
        return filtered(x, torch.fft.rfft(rooms[torch.randint(0, len(rooms), (len(x),), device=self.device)], N))

    def others_background(self, x, p):
        """The background of other recordings behind the voice, so that a clean voice is no sign of a machine."""
        b, t, d = *x.shape, self.device
        shape = self.background[torch.randint(0, len(self.background), (b,), device=d)]
        response = F.interpolate(shape[:, None], size=N // 2 + 1, mode="linear")[:, 0]
        noise = filtered(torch.randn(b, t, device=d), response) * 10 ** (uniform(b, -3, 9, d) / 20)
        return torch.where(chance(b, p, d), x + noise, x)

    def _noise(self, x, p, snr):
        b, t, d = *x.shape, self.device
        tilt = 10 ** (-uniform(b, 0, 1.2, d) * torch.log10(1 + frequencies(d) / 100))
        noise = filtered(torch.randn(b, t, device=d), tilt)
        babble = sum(self.speech[torch.randint(0, len(self.speech), (b,), device=d)][:, :t] for _ in range(3))
        noise = torch.where(chance(b, 0.7, d), noise / noise.std(1, keepdim=True), babble / (babble.std(1, keepdim=True) + 1e-6))
        return torch.where(chance(b, p, d), x + noise * x.std(1, keepdim=True) * 10 ** (-uniform(b, *snr, d) / 20), x)

    def replay(self, x):
        """Speech out of a loudspeaker into a room: band limits and resonances of a small driver, its distortion, then the room."""
        b, d, f = len(x), self.device, frequencies(self.device)
        low, high = uniform(b, 80, 600, d), uniform(b, 3800, 9000, d)
        driver = torch.sigmoid((f - low) / (low * uniform(b, 0.1, 0.35, d))) * torch.sigmoid((high - f) / (high * uniform(b, 0.02, 0.12, d)))
        y = filtered(x, driver * ripple(b, 4, 24, d))
        drive = uniform(b, 0.3, 3, d)
        y = y / (y.abs().amax(1, keepdim=True) + 1e-6)
        y = torch.where(chance(b, 0.6, d), torch.tanh(drive * (y + uniform(b, 0, 0.1, d) * y**2)) / drive, y)
        return self._room(y, self.far)

    def near_speech(self, x, p=0.5):
        return torch.where(chance(len(x), p, self.device), self._room(x, self.near), x)

    def call(self, x, p_noise=0.4):
        """Noise, microphone response, band, level, G.711 on a part."""
        b, d, f = len(x), self.device, frequencies(self.device)
        x = self._noise(x, p_noise, (8, 40))
        response = torch.where(chance(b, 0.6, d), ripple(b, 3, 10, d), torch.ones(b, len(f), device=d))
        telephone = chance(b, 0.35, d)
        band = torch.sigmoid((f - uniform(b, 50, 300, d)) / 20) * torch.sigmoid((uniform(b, 3300, 3950, d) - f) / 40)
        limit = torch.sigmoid((uniform(b, 4000, 8100, d) - f) / 80)
        response = response * torch.where(telephone, band, torch.where(chance(b, 0.5, d), limit, torch.ones_like(limit)))
        x = filtered(x, response)
        x = (x / (x.abs().amax(1, keepdim=True) + 1e-6) * 10 ** (uniform(b, -26, 0.4, d) / 20)).clamp(-1, 1)
        x = torch.where(telephone & chance(b, 0.7, d), mulaw(x), x)
        # the least noise of converters: without it an empty band would be a signature
        return x + torch.randn_like(x) * 10 ** (uniform(b, -110, -75, d) / 20)
