"""Converts files, bytes and arrays to recordings that the box accepts."""
from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

if TYPE_CHECKING:
    from numpy.typing import NDArray

Encoding = Literal["pcm16", "alaw", "mulaw"]
Audio = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]", "NDArray[Any]"]
"""The path or the bytes of a WAV file, headerless bytes (needs `encoding` and `rate`), or a numpy array (needs `rate`)."""


@dataclass(frozen=True)
class Recording:
    """The bytes of a recording, and their format if they have no header."""

    chunk: bytes
    encoding: str = ""
    rate: int = 0
    channels: int = 0
    name: str = ""
    """The file name, for error messages."""


def recording_of(audio: Audio, rate: int | None, encoding: Encoding | None) -> Recording:
    if isinstance(audio, (str, os.PathLike)):
        path = Path(audio)
        return _of_bytes(path.read_bytes(), rate, encoding, str(path))
    if isinstance(audio, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(audio), rate, encoding)
    return _of_array(audio, rate, encoding)


def _of_bytes(data: bytes, rate: int | None, encoding: Encoding | None, name: str = "") -> Recording:
    if encoding is None:
        if rate is not None:
            raise ValueError("headerless bytes need an encoding: pcm16, alaw or mulaw; a WAV file needs neither encoding nor rate")
        return Recording(data, name=name)
    return Recording(data, encoding, _checked(rate), 1, name)


def _of_array(audio: "NDArray[Any]", rate: int | None, encoding: Encoding | None) -> Recording:
    import numpy as np

    if not isinstance(audio, np.ndarray):
        raise TypeError(f"audio must be a path, bytes or a numpy array, got {type(audio).__name__}")
    if audio.ndim not in (1, 2):
        raise ValueError(f"an array must have the shape (samples,) or (samples, channels), got {audio.shape}")
    if audio.ndim == 2 and audio.shape[1] > audio.shape[0]:
        raise ValueError(f"an array must have the shape (samples, channels), got {audio.shape}: transpose it")
    columns = 1 if audio.ndim == 1 else audio.shape[1]
    if audio.dtype == np.uint8 and encoding in ("alaw", "mulaw"):
        return Recording(audio.tobytes(), encoding, _checked(rate), columns)
    if encoding is not None:
        raise ValueError(f"encoding {encoding} is only for bytes and uint8 arrays; leave it out for an array of {audio.dtype}")
    if audio.dtype == np.int16:
        return Recording(audio.astype("<i2").tobytes(), "pcm16", _checked(rate), columns)
    if audio.dtype not in (np.float32, np.float64):
        raise TypeError(f"an array must be float32 or float64 in -1..1, or int16, got {audio.dtype}")
    if not np.isfinite(audio).all():
        raise ValueError("an array must hold finite samples; it has NaN or infinity")
    if audio.size and np.abs(audio).max() > 8:
        raise ValueError(f"float samples must be in -1..1, got one of {np.abs(audio).max():g}: are they 16-bit values?")
    return Recording(_float_wav(audio.astype("<f4").tobytes(), columns, _checked(rate)))


def _checked(rate: int | None) -> int:
    if isinstance(rate, str) or rate is None or int(rate) != rate or rate < 1:
        raise ValueError(f"rate must be the number of samples per second, such as 16000, got {rate!r}")
    return int(rate)


def _float_wav(data: bytes, channels: int, rate: int) -> bytes:
    """Writes 32-bit floats, so that the samples do not change."""
    frame = 4 * channels
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, channels, rate, rate * frame, frame, 32)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body
