"""Speech codecs through the system's libraries (ctypes): Opus, GSM full rate, AMR narrow band. Needs numpy alone, so that it
runs where nothing can be installed: set CODECS to a folder that holds libopus.so.0, libgsm.so.1 and libopencore-amrnb.so.0."""
import ctypes as C, os
from functools import cache
import numpy as np

RATE, FRAME, DELAY = 16000, 960, 104  # Opus: 60 ms packets, look-ahead in samples
_SET_BITRATE, _SET_BANDWIDTH, _SET_COMPLEXITY, _RESET = 4002, 4008, 4010, 4028
NARROW, MEDIUM, WIDE = 1101, 1102, 1103


def library(name):
    folder = os.environ.get("CODECS")
    return C.CDLL(os.path.join(folder, name) if folder else name)


def half_rate(x):
    """16 kHz -> 8 kHz, or back with double_rate, by the spectrum: exact and fast for short pieces."""
    return np.fft.irfft(np.fft.rfft(x)[: len(x) // 4 + 1], len(x) // 2).astype(np.float32) / 2


def double_rate(x):
    return np.fft.irfft(np.fft.rfft(x), len(x) * 2).astype(np.float32) * 2


def _pcm(x, block):
    out = np.zeros(-(-len(x) // block) * block, np.int16)
    out[: len(x)] = np.clip(np.round(x * 32767), -32768, 32767)
    return out


class Opus:
    """Packets of 60 ms. `voip` tunes the coder for telephony."""

    def __init__(self, bitrate, bandwidth=None, voip=False, complexity=5):
        self.lib = lib = library("libopus.so.0")
        lib.opus_encoder_create.restype = lib.opus_decoder_create.restype = C.c_void_p
        lib.opus_encode.argtypes = [C.c_void_p, C.c_void_p, C.c_int, C.c_void_p, C.c_int32]
        lib.opus_decode.argtypes = [C.c_void_p, C.c_char_p, C.c_int32, C.c_void_p, C.c_int, C.c_int]
        self.encoder = C.c_void_p(lib.opus_encoder_create(RATE, 1, 2048 if voip else 2049, None))
        self.decoder = C.c_void_p(lib.opus_decoder_create(RATE, 1, None))
        lib.opus_encoder_ctl(self.encoder, _SET_BITRATE, C.c_int(bitrate))
        lib.opus_encoder_ctl(self.encoder, _SET_COMPLEXITY, C.c_int(complexity))
        if bandwidth:
            lib.opus_encoder_ctl(self.encoder, _SET_BANDWIDTH, C.c_int(bandwidth))
        self.buffer = C.create_string_buffer(4000)

    def encode(self, x):
        """-> packet lengths, bytes"""
        self.lib.opus_encoder_ctl(self.encoder, _RESET)
        pcm = np.concatenate([_pcm(x, FRAME), np.zeros(FRAME, np.int16)])
        packets = []
        for o in range(0, len(pcm), FRAME):
            n = self.lib.opus_encode(self.encoder, pcm[o:].ctypes.data, FRAME, self.buffer, 4000)
            packets.append(self.buffer.raw[:n])
        return [len(p) for p in packets], b"".join(packets)

    def decode(self, raw, lengths, samples):
        """-> int16"""
        self.lib.opus_decoder_ctl(self.decoder, _RESET)
        out, o = np.zeros((len(lengths), FRAME), np.int16), 0
        for row, n in zip(out, lengths):
            self.lib.opus_decode(self.decoder, raw[o : o + n], n, row.ctypes.data, FRAME, 0)
            o += n
        return out.reshape(-1)[DELAY : DELAY + samples]

    def __call__(self, x):
        lengths, raw = self.encode(x)
        return self.decode(raw, lengths, len(x)).astype(np.float32) / 32768


class Gsm:
    """GSM 06.10 full rate, 8 kHz."""

    def __init__(self):
        self.lib = lib = library("libgsm.so.1")
        lib.gsm_create.restype = C.c_void_p
        lib.gsm_destroy.argtypes = [C.c_void_p]
        lib.gsm_encode.argtypes = lib.gsm_decode.argtypes = [C.c_void_p, C.c_void_p, C.c_void_p]

    def __call__(self, x):
        pcm, packet = _pcm(x, 160), C.create_string_buffer(33)
        out = np.empty_like(pcm)
        encoder, decoder = self.lib.gsm_create(), self.lib.gsm_create()
        for o in range(0, len(pcm), 160):
            self.lib.gsm_encode(encoder, pcm[o:].ctypes.data, packet)
            self.lib.gsm_decode(decoder, packet, out[o:].ctypes.data)
        self.lib.gsm_destroy(encoder)
        self.lib.gsm_destroy(decoder)
        return out[: len(x)].astype(np.float32) / 32768


NO_DATA = 15 << 3  # the frame type of a frame that did not arrive


class Amr:
    """AMR narrow band, 8 kHz; mode 0..7 is 4.75 to 12.2 kbit/s."""

    def __init__(self):
        self.lib = lib = library("libopencore-amrnb.so.0")
        lib.Encoder_Interface_init.restype = lib.Decoder_Interface_init.restype = C.c_void_p
        lib.Encoder_Interface_exit.argtypes = lib.Decoder_Interface_exit.argtypes = [C.c_void_p]
        lib.Encoder_Interface_Encode.argtypes = [C.c_void_p, C.c_int, C.c_void_p, C.c_void_p, C.c_int]
        lib.Decoder_Interface_Decode.argtypes = [C.c_void_p, C.c_void_p, C.c_void_p, C.c_int]

    def __call__(self, x, mode=7, dtx=0, lost=0.0):
        """lost: how often a stretch of one to three frames does not arrive and is concealed."""
        pcm, packet = _pcm(x, 160), C.create_string_buffer(64)
        out, missing = np.empty_like(pcm), 0
        encoder, decoder = self.lib.Encoder_Interface_init(dtx), self.lib.Decoder_Interface_init()
        for o in range(0, len(pcm), 160):
            self.lib.Encoder_Interface_Encode(encoder, mode, pcm[o:].ctypes.data, packet, 0)
            if not missing and np.random.rand() < lost:
                missing = np.random.randint(1, 4)
            if missing:
                packet[0], missing = bytes([NO_DATA]), missing - 1
            self.lib.Decoder_Interface_Decode(decoder, packet, out[o:].ctypes.data, 0)
        self.lib.Encoder_Interface_exit(encoder)
        self.lib.Decoder_Interface_exit(decoder)
        return out[: len(x)].astype(np.float32) / 32768


def mulaw(x):
    """G.711 mu-law there and back (the continuous law at 8 bits, within half a step of the tables)."""
    y = np.sign(x) * np.log1p(255 * np.minimum(np.abs(x), 1)) / np.log(256)
    y = np.round(y * 127) / 127
    return (np.sign(y) * (256 ** np.abs(y) - 1) / 255).astype(np.float32)


def alaw(x):
    """G.711 A-law there and back, likewise."""
    a, m = 87.6, np.minimum(np.abs(x), 1)
    scale = 1 + np.log(a)
    y = np.where(m < 1 / a, a * m, 1 + np.log(np.maximum(m * a, 1))) / scale
    y = np.round(y * 127) / 127 * scale
    return (np.sign(x) * np.where(y < 1, y / a, np.exp(y - 1) / a)).astype(np.float32)


@cache
def telephone(kind):
    """kind: mulaw, alaw, gsm, amr0..amr7, lossy (AMR at 7.4 kbit/s with lost frames), after-gsm (AMR at 5.9 kbit/s after GSM) -> a function of 16 kHz samples that returns
    them through an 8 kHz line."""
    if kind == "after-gsm":
        gsm, amr = Gsm(), Amr()
        line = lambda x: amr(gsm(x), 2)
    elif kind == "lossy":
        amr = Amr()
        line = lambda x: amr(x, 4, lost=0.05)
    elif kind.startswith("amr"):
        amr = Amr()
        line = lambda x: amr(x, int(kind[3:]))
    else:
        line = {"mulaw": mulaw, "alaw": alaw, "gsm": Gsm()}[kind]
    return lambda x: double_rate(line(half_rate(x[: len(x) // 4 * 4])))
