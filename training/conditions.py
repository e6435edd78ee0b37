"""The conditions speech is measured under, and the pitch of a voice. Numpy alone."""
import numpy as np
import codec

RATE = 16000


def synthetic_noise(seconds=120, seed=1):
    """Noise that is nobody's recording: between pink and brown, its level and colour swinging slowly."""
    chance, n = np.random.RandomState(seed), seconds * RATE
    f = np.maximum(np.fft.rfftfreq(n, 1 / RATE), 20)
    pink, brown = (np.fft.irfft((chance.randn(len(f)) + 1j * chance.randn(len(f))) / f**p, n) for p in (0.5, 1.0))
    swing = np.interp(np.arange(n), np.linspace(0, n, seconds * 2), chance.rand(seconds * 2))
    x = pink / pink.std() * swing + brown / brown.std() * (1 - swing)
    return (x / x.std()).astype(np.float32)


def through(condition, x, seed, noise):
    """A 16 kHz segment through clean, mulaw, alaw, gsm, amrN, opus (12 kbit/s, narrow band), noiseDB or cutSECONDS."""
    if condition in ("mulaw", "alaw", "gsm") or condition.startswith("amr"):
        return codec.telephone(condition)(x)
    if condition == "opus":
        return codec.Opus(12000, codec.NARROW, voip=True)(x)
    if condition.startswith("noise"):
        at = np.random.RandomState(seed).randint(0, len(noise) - len(x))
        n = noise[at : at + len(x)]
        return x + n * np.sqrt((x**2).mean() / (n**2).mean()) * 10 ** (-float(condition[5:]) / 20)
    if condition.startswith("cut"):
        return x[: int(float(condition[3:]) * RATE)]
    return x


def pitch(x):
    """Median fundamental frequency in Hz of the voiced frames (autocorrelation, 60 to 400 Hz), or 0."""
    frames = np.lib.stride_tricks.sliding_window_view(x, 640)[::320]
    frames = frames[(frames**2).mean(1) > 0.1 * (x**2).mean()] * np.hanning(640)
    r = np.fft.irfft(np.abs(np.fft.rfft(frames, 2048)) ** 2)[:, :400]
    window = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(640), 2048)) ** 2)[:400]
    r = r / (r[:, :1] + 1e-9) / (window / window[0])[None]
    lag = 40 + r[:, 40:267].argmax(1)
    voiced = r[np.arange(len(r)), lag] > 0.6
    return float(np.median(RATE / lag[voiced])) if voiced.sum() > 10 else 0.0
