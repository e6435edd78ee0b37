"""An issuer of tokens that answers 429 and then gives a token. Run by test/python of the repository.

python busy_issuer.py URL   (the box and its issuer; POST /refuse?times=N&after=S sets how often it answers 429, and its Retry-After)
"""
import sys
import time
import urllib.request

import vivavoce
from vivavoce import StatusCode, StatusError

(url,) = sys.argv[1:]


def refuse(times, after):
    urllib.request.urlopen(urllib.request.Request(f"{url}/refuse?times={times}&after={after}", method="POST")).close()


def connect(**options):
    return vivavoce.connect(url, client_id="bank", client_secret="secret", **options)


refuse(1, 1)
started = time.monotonic()
with connect() as voice:
    assert voice.people() == []
assert time.monotonic() - started >= 1, "asked again too early"

# Longer than a call waits, and with no attempts left: the caller is told how long.
for after, options in ((900, {}), (1, {"retries": 0})):
    refuse(1, after)
    with connect(**options) as voice:
        try:
            voice.people()
            raise AssertionError("expected a refusal")
        except StatusError as error:
            assert error.code == StatusCode.BUSY and error.retry_after_seconds == after, error
            assert "too many failed attempts" in error.message, error
print("ok")
