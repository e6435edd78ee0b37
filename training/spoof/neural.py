"""Copies of speech by neural codecs and vocoders that others publish with their weights; clips at 16 kHz in and out.

lyra      google/lyra's SoundStream encoder, residual quantiser and generator (Apache-2.0): FOLDER/lyra/*.tflite, PyPI ai-edge-litert; 0.2 of real time
fargan    the vocoder of opus 1.5.2 (BSD; `./configure --enable-dred && make` of Debian's source archive): FOLDER/fargan_demo; 0.02 of real time
"""
import os, subprocess, tempfile
import numpy as np

LYRA_QUANTISERS = (16, 30, 46)  # 3.2, 6 and 9.2 kbit/s
FARGAN_VALUES = 36  # of a frame of 10 ms: 18 cepstra, pitch, voicing, then what it does not read


class Lyra:
    def __init__(self, folder):
        from ai_edge_litert.interpreter import Interpreter

        # The networks keep their state from one frame to the next: new ones for every clip would be slow, so clips begin in the tail of the last.
        self.encoder, self.quantizer, self.generator = (Interpreter(f"{folder}/lyra/{n}.tflite", num_threads=1) for n in ("soundstream_encoder", "quantizer", "lyragan"))
        self.listen, self.speak = self.encoder.get_signature_runner(), self.generator.get_signature_runner()
        self.encode, self.decode = (self.quantizer.get_signature_runner(n) for n in ("encode", "decode"))

    def __call__(self, x, quantisers):
        x, out = np.concatenate([np.zeros(1600, np.float32), x, np.zeros(640, np.float32)]), []
        for at in range(0, len(x) - 319, 320):
            seen = self.listen(input_audio=x[None, at : at + 320])["output_0"]
            code = self.encode(input_frames=seen, num_quantizers=np.array(quantisers, np.int32))
            code = next(v for v in code.values() if v.dtype == np.int32)
            out.append(self.speak(input_audio=self.decode(encoding_indices=code)["output_0"])["output_0"][0])
        return np.concatenate(out)[1600:]


def fargan(folder, x, smooth=False):
    """smooth: cepstra averaged over three frames, as an acoustic model would give them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        pcm, features, out = (f"{place}/{n}" for n in ("in.pcm", "features.f32", "out.pcm"))
        (np.clip(np.concatenate([np.zeros(1600), x, np.zeros(1600)]), -1, 1) * 32767).astype(np.int16).tofile(pcm)
        subprocess.run([folder + "/fargan_demo", "-features", pcm, features], check=True, capture_output=True)
        if smooth:
            f = np.fromfile(features, np.float32).reshape(-1, FARGAN_VALUES)
            f[1:-1, :18] = (f[:-2, :18] + f[1:-1, :18] + f[2:, :18]) / 3
            f.tofile(features)
        subprocess.run([folder + "/fargan_demo", "-fargan-synthesis", features, out], check=True, capture_output=True)
        return np.fromfile(out, np.int16).astype(np.float32) / 32768


def aligned(y, x, most=960):
    """y moved and cut so that it lies where x does (a codec delays what it says)."""
    n = len(x)
    y = np.pad(y, (most, most + max(0, n - len(y))))
    size = 1 << (len(y) + n).bit_length()
    likeness = np.fft.irfft(np.fft.rfft(y, size) * np.conj(np.fft.rfft(x, size)), size)[: 2 * most + 1]
    at = int(np.argmax(np.abs(likeness)))
    return y[at : at + n].astype(np.float32)


_lyra = None


def copied(folder, family, x, chance):
    global _lyra
    if family == "lyra":
        _lyra = _lyra or Lyra(folder)
        return aligned(_lyra(x.astype(np.float32), chance.choice(LYRA_QUANTISERS)), x)
    return aligned(fargan(folder, x, chance.random() < 0.5)[1600:], x)
