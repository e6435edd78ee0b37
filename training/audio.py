"""Reading, trimming and resampling of corpus audio. What runs on the accelerator (numpy and system codecs only) is in codec.py."""
import io, subprocess
from math import gcd
import numpy as np
from scipy.signal import resample_poly

RATE = 16000


def read(data: bytes):
    """Bytes of wav, flac, ogg, mp3 or webm -> (float32 mono, rate), or None where nothing can be read."""
    import soundfile  # which the accelerator's machine does not have

    try:
        x, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        return x.mean(1), rate
    except soundfile.LibsndfileError:
        out = subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-f", "s16le", "-ac", "1", "-ar", str(RATE), "-"], input=data, capture_output=True).stdout
        return (np.frombuffer(out, np.int16).astype(np.float32) / 32768, RATE) if out else None


def read_mulaw(data: bytes):
    """Headerless G.711 mu-law at 8 kHz."""
    u = ~np.frombuffer(data, np.uint8)
    magnitude = ((((u & 15).astype(np.int32) << 3) + 0x84) << ((u >> 4) & 7)) - 0x84
    return (np.where(u & 0x80, -magnitude, magnitude) / 32768).astype(np.float32), 8000


def resample(x, rate, to=RATE):
    g = gcd(rate, to)
    return x if rate == to else resample_poly(x, to // g, rate // g).astype(np.float32)


def trim(x, rate=RATE):
    """Drops silence: keeps 10 ms frames within 40 dB of the loud ones, and 200 ms around them."""
    hop = rate // 100
    n = len(x) // hop
    if n < 10:
        return x
    frames = x[: n * hop].reshape(n, hop)
    db = 10 * np.log10((frames**2).mean(1) + 1e-10)
    active = db > max(np.percentile(db, 97) - 40, -75)
    return frames[np.convolve(active, np.ones(41))[20 : 20 + n] > 0].reshape(-1)


def level(x):
    """To -24 dBFS, or as near as the peak allows."""
    return x * min(0.06 / np.sqrt(np.mean(x**2) + 1e-12), 0.95 / (np.abs(x).max() + 1e-9))
