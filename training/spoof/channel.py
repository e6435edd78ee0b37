"""What happens to speech on its way to the detector, on the accelerator: the same for genuine speech and for attacks. And replay: a
loudspeaker, a room and a second microphone in between.

python3 channel.py ROOMS.pt      simulates the rooms once for several processes (half a minute of one core)
"""
import math, sys
import torch, torch.nn.functional as F

RATE, N = 16000, 65536


def filtered(x, response):
    return torch.fft.irfft(torch.fft.rfft(x, N) * response, N)[:, : x.shape[1]]


def frequencies(device):
    return torch.linspace(0, RATE / 2, N // 2 + 1, device=device)


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
    """What lies between a mouth (or a machine) and the detector. The second half of a batch are the clips opposite those of the first and take the same
    way: every draw is made for the first half and holds for both."""

    def __init__(self, speech, device, rooms=""):
        """rooms: a file that `rooms` below wrote, where several processes share it."""
        self.speech, self.device, self.background = speech, device, backgrounds(speech)
        near, far = torch.load(rooms) if rooms else simulated()
        self.near, self.far = near.float().to(device), far.float().to(device)

    def uniform(self, b, lo, hi):
        return torch.empty(b // 2, 1, device=self.device).uniform_(lo, hi).repeat(2, 1)

    def chance(self, b, p):
        return torch.rand(b // 2, 1, device=self.device).repeat(2, 1) < p

    def some(self, b, count):
        return torch.randint(0, count, (b // 2,), device=self.device).repeat(2)

    def noise(self, b, t):
        return torch.randn(b // 2, t, device=self.device).repeat(2, 1)

    def ripple(self, b, decibels, points):
        """A smooth random response of ±decibels (one deviation)."""
        r = F.interpolate(torch.randn(b // 2, 1, points, device=self.device), size=N // 2 + 1, mode="linear")[:, 0]
        return (10 ** (r * decibels / 20)).repeat(2, 1)

    def _room(self, x, rooms):
        return filtered(x, torch.fft.rfft(rooms[self.some(len(x), len(rooms))], N))

    def others_background(self, x, p):
        """The background of other recordings behind the voice, so that a clean voice is no sign of a machine."""
        b, t = x.shape
        shape = self.background[self.some(b, len(self.background))]
        response = F.interpolate(shape[:, None], size=N // 2 + 1, mode="linear")[:, 0]
        noise = filtered(self.noise(b, t), response) * 10 ** (self.uniform(b, -3, 9) / 20)
        return torch.where(self.chance(b, p), x + noise, x)

    def _noise(self, x, p, snr):
        b, t = x.shape
        tilt = 10 ** (-self.uniform(b, 0, 1.2) * torch.log10(1 + frequencies(self.device) / 100))
        noise = filtered(self.noise(b, t), tilt)
        babble = sum(self.speech[self.some(b, len(self.speech))][:, :t] for _ in range(3))
        noise = torch.where(self.chance(b, 0.7), noise / noise.std(1, keepdim=True), babble / (babble.std(1, keepdim=True) + 1e-6))
        return torch.where(self.chance(b, p), x + noise * x.std(1, keepdim=True) * 10 ** (-self.uniform(b, *snr) / 20), x)

    def replay(self, x):
        """Speech out of a loudspeaker into a room: band limits and resonances of a small driver, its distortion, then the room."""
        b, f = len(x), frequencies(self.device)
        low, high = self.uniform(b, 80, 600), self.uniform(b, 3800, 9000)
        driver = torch.sigmoid((f - low) / (low * self.uniform(b, 0.1, 0.35))) * torch.sigmoid((high - f) / (high * self.uniform(b, 0.02, 0.12)))
        y = filtered(x, driver * self.ripple(b, 4, 24))
        drive = self.uniform(b, 0.3, 3)
        y = y / (y.abs().amax(1, keepdim=True) + 1e-6)
        y = torch.where(self.chance(b, 0.6), torch.tanh(drive * (y + self.uniform(b, 0, 0.1) * y**2)) / drive, y)
        return self._room(y, self.far)

    def near_speech(self, x, p=0.5):
        return torch.where(self.chance(len(x), p), self._room(x, self.near), x)

    def call(self, x, p_noise=0.4):
        """Noise, microphone response, band, level, G.711 on a part."""
        b, f = len(x), frequencies(self.device)
        x = self._noise(x, p_noise, (8, 40))
        response = torch.where(self.chance(b, 0.6), self.ripple(b, 3, 10), torch.ones(b, len(f), device=self.device))
        telephone = self.chance(b, 0.35)
        band = torch.sigmoid((f - self.uniform(b, 50, 300)) / 20) * torch.sigmoid((self.uniform(b, 3300, 3950) - f) / 40)
        limit = torch.sigmoid((self.uniform(b, 4000, 8100) - f) / 80)
        response = response * torch.where(telephone, band, torch.where(self.chance(b, 0.5), limit, torch.ones_like(limit)))
        x = filtered(x, response)
        x = (x / (x.abs().amax(1, keepdim=True) + 1e-6) * 10 ** (self.uniform(b, -26, 0.4) / 20)).clamp(-1, 1)
        x = torch.where(telephone & self.chance(b, 0.7), mulaw(x), x)
        # the least noise of converters: without it an empty band would be a signature
        return x + self.noise(*x.shape) * 10 ** (self.uniform(b, -110, -75) / 20)


def simulated():
    """Rooms: near the microphone, and of replays."""
    return image_rooms(150, (0.05, 0.4), (0.1, 0.5), "cpu", 1), image_rooms(300, (0.1, 3.0), (0.15, 1.0), "cpu", 2)


if __name__ == "__main__":
    torch.save([r.half() for r in simulated()], sys.argv[1])
