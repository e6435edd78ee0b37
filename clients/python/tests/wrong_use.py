"""Wrong arguments, and servers that are not a box: each must give an error that says what to do."""
import pickle
import socket
import threading

import numpy as np
import vivavoce
from vivavoce import contract
from vivavoce.recording import recording_of


def raised(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"expected {kind.__name__}")


def server(answer):
    """Sends these bytes to whoever connects, and closes the connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def people(answer):
    return vivavoce.connect(server(answer), token="t").people()


tls_alert = b"\x15\x03\x01\x00\x02\x02\x46"
assert "does it need https://?" in raised(ConnectionError, lambda: people(tls_alert))
half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"
assert "was lost during the call" in raised(ConnectionError, lambda: people(half))
assert "was lost during the call" in raised(ConnectionError, lambda: people(b""))
page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
assert "(HTTP 200) is not one of a vivavoce box" in raised(vivavoce.StatusError, lambda: people(page))

url = "http://127.0.0.1:9"
line_break = raised(ValueError, lambda: vivavoce.connect(url, token="secret\n").people())
assert "line breaks" in line_break and "secret" not in line_break
assert "must be above 0, got 0" in raised(ValueError, lambda: vivavoce.connect(url, token="t", timeout_seconds=0))
assert "missing.pem" in raised(FileNotFoundError, lambda: vivavoce.connect(url, token="t", cafile="missing.pem"))
assert "got '8000'" in raised(ValueError, lambda: recording_of(np.zeros(8, np.int16), "8000", None))
assert recording_of(np.zeros((8, 2), np.uint8), 8000, "alaw").channels == 2


class BrokenBox:
    """Refuses the recording, and then cannot be reached."""

    def get_gk_voiceprint_profile_id(self, _):
        return contract.GetGkVoiceprintProfileIdResponse(gk_voiceprint_profile_id=contract.UniqueId(value="print"))

    def start_session(self, _):
        return contract.StartSessionResponse()

    def add_media_segment(self, _):
        raise vivavoce.StatusError(vivavoce.StatusCode.TOO_LARGE, "the recording is too large")

    def stop_engagement(self, _):
        raise ConnectionError("cannot connect")


def check():
    vivavoce.Voiceprints(BrokenBox(), "default", "ivr-text-dependent").verify("ada", b"RIFF")


assert "the recording is too large" in raised(vivavoce.StatusError, check)

violations = (vivavoce.FieldViolation("rate", "missing", "rate must be set"),)
error = vivavoce.StatusError(vivavoce.StatusCode.BUSY, "try again", "request", violations, 2.0)
copied = pickle.loads(pickle.dumps(error))
assert (str(copied), vars(copied)) == (str(error), vars(error))
print("ok")
