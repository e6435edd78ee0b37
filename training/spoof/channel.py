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


class Channel:
    """call: near microphone or small distance, noise, microphone response, band, mu-law, level."""

    def __init__(self, speech, device, seed=1):
        self.speech, self.device = speech, device
        self.near = image_rooms(150, (0.05, 0.4), (0.1, 0.5), device, seed)
        self.far = image_rooms(300, (0.1, 3.0), (0.15, 1.0), device, seed + 1)

    def _room(self, x, rooms):
        return filtered(x, torch.fft.rfft(rooms[torch.randint(0, len(rooms), (len(x),), device=self.device)], N))

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

    def call(self, x):
        b, d, f = len(x), self.device, frequencies(self.device)
        x = self._noise(x, 0.5, (8, 35))
        response = torch.where(chance(b, 0.6, d), ripple(b, 3, 10, d), torch.ones(b, len(f), device=d))
        telephone = chance(b, 0.4, d)
        band = torch.sigmoid((f - uniform(b, 50, 300, d)) / 20) * torch.sigmoid((uniform(b, 3300, 3900, d) - f) / 60)
        limit = torch.sigmoid((uniform(b, 4000, 7900, d) - f) / 80)
        response = response * torch.where(telephone, band, torch.where(chance(b, 0.5, d), limit, torch.ones_like(limit)))
        x = filtered(x, response)
        x = (x / (x.abs().amax(1, keepdim=True) + 1e-6) * uniform(b, 0.05, 1.05, d)).clamp(-1, 1)
        c = torch.round(torch.sign(x) * torch.log1p(255 * x.abs()) / math.log1p(255) * 127) / 127
        mulaw = torch.sign(c) * (torch.exp(c.abs() * math.log1p(255)) - 1) / 255
        return torch.where(telephone & chance(b, 0.7, d), mulaw, x)

    def near_speech(self, x, p=0.5):
        return torch.where(chance(len(x), p, self.device), self._room(x, self.near), x)
