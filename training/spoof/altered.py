"""Speech altered on the spot in ways that synthesizers alter it, each a little, so that a detector hears more kinds of traces than there are vocoders at hand:

mel        magnitudes that went through mel bands, as they are or as an acoustic model would give them, under the phases of before
phases     phases moved at random, in all of the spectrum or above some frequency
smooth     magnitudes averaged over neighbouring frames and bins
pattern    a gain, or a tone, that repeats every few samples, as layers that raise the rate leave it
"""
import numpy as np, torch, torch.nn.functional as F
from vocoders import RATE, as_predicted, levelled, mel_basis

KINDS = ("mel", "phases", "smooth", "pattern")
PERIODS = (2, 4, 5, 8, 10, 16, 20, 32, 64, 80, 100, 128, 150, 160, 200, 240, 256, 300, 320)
_bases = {}


def bases(points, bands, device):
    """Mel bands and the way back."""
    if (points, bands) not in _bases:
        basis = mel_basis(RATE, points, bands, 8000, "cpu")
        _bases[points, bands] = basis.to(device), torch.linalg.pinv(basis).to(device)
    return _bases[points, bands]


def altered(x, kind):
    """[batch][samples], as loud as `levelled`; every clip by a strength of its own."""
    b, samples, d = *x.shape, x.device
    draw = lambda lo, hi, *shape: torch.rand(b, *shape, device=d) * (hi - lo) + lo
    if kind == "pattern":
        every = int(np.random.choice(PERIODS))
        pattern = torch.randn(b, every, device=d)
        pattern = pattern - pattern.mean(1, keepdim=True)
        pattern = (pattern / pattern.std(1, keepdim=True)).repeat(1, -(-samples // every))[:, :samples]
        strength = 10 ** draw(-2.5, -0.8, 1)
        return levelled(torch.where(torch.rand(b, 1, device=d) < 0.7, x * (1 + strength * pattern), x + 0.02 * strength * pattern))
    points = int(np.random.choice([512, 1024, 2048]))
    window = torch.hann_window(points, device=d)
    s = torch.stft(x, points, points // 4, points, window, return_complex=True)
    if kind == "phases":
        above = torch.where(torch.rand(b, 1, 1, device=d) < 0.3, 0, draw(500, 5000, 1, 1)) / (RATE / 2)
        at = torch.linspace(0, 1, s.shape[1], device=d)[None, :, None]
        y = s * torch.exp(1j * torch.where(at >= above, draw(0.2, 2, 1, 1) * torch.randn(s.shape, device=d), 0))
    else:
        magnitude = s.abs().clamp(min=1e-5)
        if kind == "mel":
            basis, back = bases(points, int(np.random.choice([64, 80, 100, 128])), d)
            m = torch.log((basis @ magnitude).clamp(min=1e-5))
            other = (back @ torch.exp(as_predicted(m) if np.random.rand() < 0.5 else m)).clamp(min=1e-5)
        else:
            wide = [(1, 3), (1, 5), (3, 3), (3, 1), (5, 1)][np.random.randint(5)]
            other = torch.exp(F.avg_pool2d(magnitude.log()[:, None], wide, 1, (wide[0] // 2, wide[1] // 2), count_include_pad=False)[:, 0])
        y = s * (other / magnitude) ** draw(0.3, 1, 1, 1)
    return levelled(torch.istft(y, points, points // 4, points, window, length=samples))
