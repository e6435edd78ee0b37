"""Calls of a box over HTTP: tokens, refusals, and calls that are made again when the box says so."""
from __future__ import annotations

import base64
import json
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
    """What is wrong with one field of a request."""

    field: str
    violation: str
    message: str


class StatusError(Exception):
    """A refusal of the box, in the contract's words."""

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
        """Names the call in the box's log."""
        self.field_violations = field_violations
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True)
class Credentials:
    """Of an application: a token is asked for with these, and again before it expires."""

    client_id: str
    client_secret: str
    token_url: str | None = None
    """Of another issuer; the box's own when absent."""


class Transport:
    """One box. Safe to share between threads: every call is a connection of its own."""

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
        """One operation, by the HTTP binding of the contract."""
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
                    # The box was given other keys, or revoked it: the next token may fare better.
                    self._tokens.discard(token)
                    renewed = True
                    continue
                asked = error.retry_after_seconds or 0.5
                busy = error.code in (StatusCode.BUSY, StatusCode.RATE_EXCEEDED)
                if not busy or attempt >= self._retries or asked > _LONGEST_WAIT_SECONDS:
                    raise
                # The box keeps a place for the time that it asked for. Scattered, so that many clients do not come back at once.
                time.sleep(max(asked, 2 ** min(attempt, 4) - 1) * random.uniform(1, 1.25))
                attempt += 1

    def _once(self, verb: str, path: str, data: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        status, answer, _ = self._open(verb, f"{self._url}{path}", data, headers)
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        raise _refusal(status, answer)

    def _open(self, verb: str, url: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, Any, float | None]:
        """The status of HTTP, the JSON of the answer and the seconds of `Retry-After`, each `None` where there is none."""
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

    def _token(self) -> str | None:
        if self._tokens:
            return self._tokens.token()
        return self._given() if callable(self._given) else self._given


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token must not travel to where the caller did not send it."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Tokens:
    """One token for all threads, asked for again before it expires."""

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
            # 429: too many failed attempts, perhaps of somebody else. The credentials may be right.
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
        return StatusError(StatusCode.INTERNAL_ERROR, f"HTTP {http_status} without a status")
    status = Status.from_json(told)
    return StatusError(
        status.status_code,
        status.message,
        status.request_id,
        tuple(FieldViolation(one.field, one.violation, one.message) for one in status.field_violations),
        status.retry_after.total_seconds() if status.retry_after else None,
    )


def _seconds(header: str | None) -> float | None:
    """`Retry-After` in seconds; a date, which no box sends, is ignored."""
    return float(header) if header and re.fullmatch(r"\d{1,9}", header) else None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _take(fields: dict[str, Any], dotted: str) -> str:
    """A variable of the path; it stands there and nowhere else."""
    *outer, last = dotted.split(".")
    at = fields
    for name in outer:
        at = at.get(name, {})
    value = at.pop(last, "")
    if value == "":
        raise ValueError(f"{dotted} must be set")
    return str(value)


def _flat(fields: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """`context.gk_scope_id.value=default`: what a query carries."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                pairs += _flat(one, f"{prefix}{name}.")
            else:
                pairs.append((f"{prefix}{name}", str(one).lower() if isinstance(one, bool) else str(one)))
    return pairs
