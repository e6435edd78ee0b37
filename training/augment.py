"""Places, microphones and lines, on the accelerator: rooms by the image method, noise, babble, frequency responses, band limits,
the 8 kHz telephone (with G.711 and imperfect interpolation), level, clipping."""
import math
import torch, torch.nn.functional as F

RATE, SOUND, TAIL = 16000, 343.0, 8000  # Hz, m/s, samples of a room's response


def room(chance, device):
    """One response by the image method: a shoebox of random size, absorption, source and microphone."""
    size = torch.tensor([2.5, 2.5, 2.2], device=device) + torch.rand(3, generator=chance, device=device) * torch.tensor([6.0, 5.0, 1.6], device=device)
    mic = size * (0.15 + 0.7 * torch.rand(3, generator=chance, device=device))
    away = torch.randn(3, generator=chance, device=device)
    reach = 0.1 + 2.9 * torch.rand(1, generator=chance, device=device) ** 2  # mostly near, to 3 m
    source = (mic + away / away.norm() * reach).clamp(min=0.1).minimum(size - 0.1)
    rt60 = 0.15 + 0.85 * torch.rand(1, generator=chance, device=device).item() ** 1.5
    volume, surface = size.prod(), 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2])
    absorbed = 1 - torch.exp(-0.161 * volume / (surface * rt60))  # Eyring
    beta = (1 - absorbed).clamp(0.05, 0.98).sqrt()
    far = TAIL / RATE * SOUND
    axes = []  # for each axis: offsets of the images and the reflections each has met
    for i in range(3):
        k = torch.arange(-int(far / 2 / size[i]) - 1, int(far / 2 / size[i]) + 2, device=device)
        axes.append((torch.cat([2 * k * size[i] + source[i] - mic[i], 2 * k * size[i] - source[i] - mic[i]]), torch.cat([(2 * k).abs(), (2 * k - 1).abs()])))
    (x, nx), (y, ny), (z, nz) = axes
    distance = (x[:, None, None] ** 2 + y[None, :, None] ** 2 + z[None, None] ** 2).sqrt().flatten().clamp(min=0.05)
    gain = beta ** (nx[:, None, None] + ny[None, :, None] + nz[None, None]).flatten() / distance
    at = ((distance - distance.min()) / SOUND * RATE).round().long()
    keep = at < TAIL
    gain = gain * torch.where(torch.rand(gain.shape, generator=chance, device=device) < 0.5, -1.0, 1.0).where(at > 80, torch.ones_like(gain))  # walls that diffuse
    return torch.zeros(TAIL, device=device).index_add_(0, at[keep], gain[keep])


class Augment:
    """speech, noise: int16 banks on the device to cut babble and noise from; telephone: chance of the 8 kHz line; places: factor of
    the chances of a room, noise, a microphone; noisiest: dB SNR."""

    def __init__(self, speech, noise, device, rooms=600, telephone=0.35, places=1.0, noisiest=0.0):
        self.speech, self.noise, self.device, self.telephone, self.places, self.noisiest = speech, noise, device, telephone, places, noisiest
        chance = torch.Generator(device).manual_seed(7)
        r = torch.stack([room(chance, device) for _ in range(rooms)])
        self.rooms = r / r.norm(dim=1, keepdim=True)

    def line(self, spectrum, n, u):
        """Through 8 kHz: band, G.711 at 8 kHz, then back to 16 kHz with an interpolator whose images are 40 to 120 dB down."""
        f = torch.linspace(0, 8000, n // 2 + 1, device=self.device)[: n // 4 + 1]
        s = spectrum[:, : n // 4 + 1] * torch.sigmoid((f - u(50, 350)) / 20) * torch.sigmoid((u(3300, 3950) - f) / 40)
        x = torch.fft.irfft(s, n // 2) / 2
        x = (x / (x.abs().amax(1, keepdim=True) + 1e-6) * u(0.05, 1.0)).clamp(-1, 1)
        c = torch.round(torch.sign(x) * torch.log1p(255 * x.abs()) / math.log1p(255) * 127) / 127
        mulaw = torch.sign(c) * (torch.exp(c.abs() * math.log1p(255)) - 1) / 255
        s = torch.fft.rfft(torch.where(u(0, 1) < 0.7, mulaw, x)) * 2
        image = s[:, :-1].flip(1).conj() * 10 ** (-u(40, 120) / 20)
        return torch.cat([s, image], 1)

    def __call__(self, x, coded):
        """x [batch, samples]; coded [batch, 1]: already through a place and a line, so only little more happens to it."""
        b, t = x.shape
        d, n = self.device, -(-(t + TAIL) // 4096) * 4096
        u = lambda lo, hi: torch.empty(b, 1, device=d).uniform_(lo, hi)
        less = torch.where(coded, 0.35, 1.0) * self.places
        f = torch.linspace(0, 8000, n // 2 + 1, device=d)
        spectrum = torch.fft.rfft(x, n)
        echo = torch.fft.rfft(self.rooms[torch.randint(0, len(self.rooms), (b,), device=d)], n)
        x = torch.fft.irfft(torch.where((u(0, 1) < 0.4 * less) & ~coded, spectrum * echo, spectrum), n)[:, :t]

        def stretch(source):
            return source[torch.randint(0, len(source) - t - 1, (b, 1), device=d) + torch.arange(t, device=d)].float()

        noisy = u(0, 1) < 0.7
        noise = torch.where(noisy, stretch(self.noise), stretch(self.speech) + stretch(self.speech) + stretch(self.speech))
        hiss = u(0, 1) < 0.15
        noise = torch.where(hiss, torch.randn(b, t, device=d), noise)
        snr = torch.where(noisy, u(self.noisiest, 22), u(8, 22)) + torch.where(hiss, 8.0, 0.0) + torch.where(coded, 6.0, 0.0)
        gain = x.norm(dim=1, keepdim=True) / (noise.norm(dim=1, keepdim=True) + 1e-6) * 10 ** (-snr / 20)
        x = torch.where(u(0, 1) < 0.6 * less, x + gain * noise, x)

        response = 10 ** (F.interpolate(torch.randn(b, 1, 10, device=d) * u(0, 1)[..., None] * 5, size=len(f), mode="linear")[:, 0] / 20)
        response = torch.where(u(0, 1) < 0.5 * less, response, torch.ones_like(response))
        low = torch.sigmoid((u(3400, 7800) - f) / 60)
        response = torch.where((u(0, 1) < 0.2 * less) & ~coded, response * low, response)
        spectrum = torch.fft.rfft(x, n) * response
        x = torch.fft.irfft(torch.where((u(0, 1) < self.telephone) & ~coded, self.line(spectrum, n, u), spectrum), n)[:, :t]
        peak = torch.where(u(0, 1) < 0.1, u(1, 4), u(0.05, 1.0))  # above one: clipped
        x = (x / (x.abs().amax(1, keepdim=True) + 1e-6) * peak).clamp(-1, 1)
        return x + torch.randn(b, t, device=d) * 10 ** (-u(85, 130) / 20)  # the converter's own noise
