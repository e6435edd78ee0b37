"""Calls a box over HTTP: gets tokens, raises errors, and repeats calls when the box asks for it."""
from __future__ import annotations

import base64
import http.client
import json
import os
import random
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from .messages import Message

if TYPE_CHECKING:
    from .contract import StatusCode

M = TypeVar("M", bound=Message)

_LONGEST_WAIT_SECONDS = 30.0
_RENEW_BEFORE_SECONDS = 60.0


@dataclass(frozen=True)
class FieldViolation:
    """Describes what is wrong with one field of a request."""

    field: str
    violation: str
    message: str


class StatusError(Exception):
    """The box refused a call. `code` is the status code of the contract, `message` explains it."""

    def __init__(
        self,
        code: "StatusCode",
        message: str,
        request_id: str = "",
        field_violations: tuple[FieldViolation, ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.request_id = request_id
        """Identifies the call in the log of the box."""
        self.field_violations = field_violations
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[Any, ...]:
        # A pool of processes pickles errors. By default the text alone would be passed to `__init__`, which breaks the pool.
        return type(self), (self.code, self.message, self.request_id, self.field_violations, self.retry_after_seconds)


@dataclass(frozen=True)
class Credentials:
    """Client id and secret of an application. The client uses them to get access tokens, and renews these before they expire."""

    client_id: str
    client_secret: str
    token_url: str | None = None
    """The token endpoint of another issuer; by default that of the box."""


class Transport:
    """Calls one box. Threads can share it, because each call opens its own connection."""

    def __init__(
        self,
        url: str,
        *,
        token: str | Callable[[], str] | None = None,
        credentials: Credentials | None = None,
        timeout_seconds: float = 60.0,
        retries: int = 3,
        cafile: str | None = None,
    ) -> None:
        if not re.match(r"https?://[^/]+", url):
            raise ValueError(f"url must be an address such as http://127.0.0.1:8080, got {url!r}")
        if token is not None and credentials is not None:
            raise ValueError("pass a token or client credentials, not both")
        if not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be above 0, got {timeout_seconds}")
        if cafile is not None and not os.path.exists(cafile):
            raise FileNotFoundError(f"cafile does not exist: {cafile}")
        self._url = url.rstrip("/")
        self._timeout = timeout_seconds
        self._retries = retries
        context = ssl.create_default_context(cafile=cafile) if url.startswith("https:") else None
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if context:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self._given = token
        self._tokens = _Tokens(credentials, self._url, self._open) if credentials else None

    def call(self, verb: str, path: str, body: str | None, request: Message, answer: type[M]) -> M:
        """Calls one operation through its HTTP binding."""
        sent = body is not None and body != "*"
        fields = (replace(request, **{body: b""}) if sent else request).to_json()  # type: ignore[arg-type, type-var]
        filled = re.sub(r"\{([\w.]+)\}", lambda name: urllib.parse.quote(_take(fields, name[1]), safe=""), path)
        data: bytes | None = None
        headers: dict[str, str] = {}
        if body == "*":
            data, headers["content-type"] = json.dumps(fields).encode(), "application/json"
        else:
            if body is not None:
                data = getattr(request, body)
                headers["content-type"] = "application/octet-stream" if fields.get("encoding") else "audio/wav"
            query = urllib.parse.urlencode(_flat(fields))
            filled += f"?{query}" if query else ""
        return answer.from_json(self._send(verb, filled, data, headers))

    def _send(self, verb: str, path: str, data: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        from .contract import StatusCode

        renewed = False
        attempt = 0
        while True:
            token = None
            try:
                token = self._token()
                authorization = {"authorization": f"Bearer {token}"} if token else {}
                return self._once(verb, path, data, headers | authorization)
            except StatusError as error:
                if error.code == StatusCode.NOT_AUTHORIZED and self._tokens and token and not renewed:
                    # The box has new keys, or the token was revoked: try once more with a new token.
                    self._tokens.discard(token)
                    renewed = True
                    continue
                asked = error.retry_after_seconds or 0.5
                busy = error.code in (StatusCode.BUSY, StatusCode.RATE_EXCEEDED)
                if not busy or attempt >= self._retries or asked > _LONGEST_WAIT_SECONDS:
                    raise
                # The box reserves a place for the time that it asked for. The random factor keeps clients from returning all at once.
                time.sleep(max(asked, 2 ** min(attempt, 4) - 1) * random.uniform(1, 1.25))
                attempt += 1

    def _once(self, verb: str, path: str, data: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        status, answer, _ = self._open(verb, f"{self._url}{path}", data, headers)
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        raise _refusal(status, answer)

    def _open(self, verb: str, url: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, Any, float | None]:
        """Returns the HTTP status, the JSON of the answer, and `Retry-After` in seconds; the last two can be `None`."""
        from .contract import StatusCode

        request = urllib.request.Request(url, data=data, headers=headers, method=verb)
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return response.status, _json(response.read()), None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _json(error.read()), _seconds(error.headers.get("retry-after"))
        except (socket.timeout, TimeoutError) as error:
            raise StatusError(
                StatusCode.DEADLINE_EXCEEDED, f"{self._url} did not answer within {self._timeout:g} s"
            ) from error
        except urllib.error.URLError as error:
            raise ConnectionError(f"cannot connect to {self._url}: {error.reason}") from error
        except (http.client.HTTPException, OSError) as error:
            if isinstance(error, http.client.BadStatusLine) and not isinstance(error, OSError):
                raise ConnectionError(f"{self._url} does not speak HTTP; does it need https://?") from error
            raise ConnectionError(f"the connection to {self._url} was lost during the call: {error}") from error

    def _token(self) -> str | None:
        if self._tokens:
            return self._tokens.token()
        given = self._given() if callable(self._given) else self._given
        # Checked here because the error of the standard library would show the token.
        if given is not None and not re.fullmatch(r"[!-~]+", given):
            raise ValueError("the token must not have spaces, line breaks or other characters that a header cannot send")
        return given


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects, so that a token is only sent to the given address."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Tokens:
    """Holds one token for all threads, and renews it before it expires."""

    def __init__(self, credentials: Credentials, url: str, send: Callable[..., tuple[int, Any, float | None]]) -> None:
        self._url = credentials.token_url or f"{url}/oauth2/token"
        # RFC 6749, appendix B: an id may contain colons.
        pair = ":".join(urllib.parse.quote_plus(part) for part in (credentials.client_id, credentials.client_secret))
        self._headers = {
            "authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
            "content-type": "application/x-www-form-urlencoded",
        }
        self._send = send
        self._lock = threading.Lock()
        self._held = ""
        self._renew_at = 0.0

    def token(self) -> str:
        with self._lock:
            if not self._held or time.monotonic() >= self._renew_at:
                self._renew()
            return self._held

    def discard(self, refused: str) -> None:
        with self._lock:
            if self._held == refused:
                self._held = ""

    def _renew(self) -> None:
        from .contract import StatusCode

        asked_at = time.monotonic()
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "bio"}).encode()
        status, answer, retry_after = self._send("POST", self._url, form, self._headers)
        said = answer if isinstance(answer, dict) else {}
        token = said.get("access_token")
        if status != 200 or not isinstance(token, str):
            # 429 means too many failed attempts, perhaps of another client: the credentials may be right.
            is_refused = 400 <= status < 500 and status != 429
            code = StatusCode.NOT_AUTHORIZED if is_refused else StatusCode.BUSY
            why = said.get("error_description") or said.get("error") or f"HTTP {status}"
            message = f"cannot get a token from {self._url}: {why}"
            raise StatusError(code, message, retry_after_seconds=retry_after)
        life = float(said.get("expires_in", 0))
        self._held = token
        self._renew_at = asked_at + life - min(_RENEW_BEFORE_SECONDS, life / 2)


def _refusal(http_status: int, answer: Any) -> StatusError:
    from .contract import Status, StatusCode

    told = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        return StatusError(StatusCode.INTERNAL_ERROR, f"the answer (HTTP {http_status}) is not one of a vivavoce box; check the address")
    status = Status.from_json(told)
    return StatusError(
        status.status_code,
        status.message,
        status.request_id,
        tuple(FieldViolation(one.field, one.violation, one.message) for one in status.field_violations),
        status.retry_after.total_seconds() if status.retry_after else None,
    )


def _seconds(header: str | None) -> float | None:
    """Reads `Retry-After` in seconds. A box never sends a date, so dates are ignored."""
    return float(header) if header and re.fullmatch(r"\d{1,9}", header) else None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _take(fields: dict[str, Any], dotted: str) -> str:
    """Removes a variable of the path from the fields and returns it, because it must not appear in the body or query too."""
    *outer, last = dotted.split(".")
    at = fields
    for name in outer:
        at = at.get(name, {})
    value = at.pop(last, "")
    if value == "":
        raise ValueError(f"{dotted} must be set")
    return str(value)


def _flat(fields: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flattens fields for a query: `context.gk_scope_id.value=default`."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                pairs += _flat(one, f"{prefix}{name}.")
            else:
                pairs.append((f"{prefix}{name}", str(one).lower() if isinstance(one, bool) else str(one)))
    return pairs
