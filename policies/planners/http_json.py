"""One JSON request to a model server, with a hard deadline; everything that goes wrong is named.

On the standard library, since a deadline for the whole exchange, and no more than that, is needed:
the usual clients limit the wait for each packet, so that a server which trickles never times out.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench_tasks.errors import UsageError

__all__ = ["Endpoint", "HttpFailure", "post_json"]

MAX_BYTES = 32 * 1024 * 1024
RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


class HttpFailure(Exception):
    """Why there is no answer. `again` says whether another try may help.

    `status` is 0 when no answer came; `wait_s` what the server asked to wait; `body` its text.
    """

    def __init__(
        self, reason: str, again: bool, status: int = 0, wait_s: float | None = None,
        body: str = "",
    ) -> None:
        """`reason` is one line."""
        super().__init__(" ".join(reason.split()))
        self.again, self.status, self.wait_s, self.body = again, status, wait_s, body


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens; no credentials in it."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, base_url: str) -> Endpoint:
        """Read a base URL; UsageError, without showing it, when it cannot be used."""
        try:
            parts = urlsplit(base_url)
            port = parts.port
        except ValueError:
            raise UsageError("base_url is not a URL") from None
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise UsageError("base_url must hold no credentials, query or fragment")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("base_url must be like http://host:port/v1")
        port = port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    def __str__(self) -> str:
        """Host and port, as errors name the server."""
        return f"{self.host}:{self.port}"

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection, through the proxy that the environment names for this host, if any."""
        kind = http.client.HTTPConnection
        more: dict[str, Any] = {}
        if self.scheme == "https":
            kind, more = http.client.HTTPSConnection, {"context": ssl.create_default_context()}
        proxy = urllib.request.getproxies().get(self.scheme)
        if not proxy or urllib.request.proxy_bypass(self.host):
            return kind(self.host, self.port, timeout=timeout_s, **more)
        via = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        connection = kind(via.hostname or "", via.port or 8080, timeout=timeout_s, **more)
        connection.set_tunnel(self.host, self.port)
        return connection


def post_json(
    endpoint: Endpoint, path: str, body: dict[str, Any], headers: dict[str, str], timeout_s: float
) -> Any:
    """POST `body` and return the JSON that came back within `timeout_s`; HttpFailure otherwise."""
    deadline = time.monotonic() + timeout_s
    connection = endpoint.connect(timeout_s)
    try:
        status, answer_headers, data = _exchange(
            connection, endpoint.path + path, body, headers, deadline
        )
    except (TimeoutError, socket.timeout):
        raise HttpFailure(f"no complete answer within {timeout_s:g} s", True) from None
    except ConnectionRefusedError:
        raise HttpFailure("connection refused: is the server running?", True) from None
    except socket.gaierror:
        raise HttpFailure("the host's name is unknown", False) from None
    except ssl.SSLError as error:
        raise HttpFailure(f"TLS failed: {error.reason or 'handshake'}", False) from None
    except http.client.IncompleteRead as error:
        what = f"the answer broke off after {len(error.partial)} bytes"
        raise HttpFailure(what, True) from None
    except (ConnectionError, http.client.HTTPException) as error:
        kind = type(error).__name__
        raise HttpFailure(f"the connection broke off ({kind})", True) from None
    except OSError as error:
        raise HttpFailure(f"cannot connect: {error.strerror or 'network error'}", True) from None
    finally:
        connection.close()
    return _judge(status, answer_headers, data)


def _exchange(
    connection: http.client.HTTPConnection, path: str, body: dict[str, Any],
    headers: dict[str, str], deadline: float,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Send and receive; TimeoutError past the deadline, however slowly bytes trickle in."""
    connection.connect()
    sock = connection.sock

    def limit() -> None:
        left = deadline - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        sock.settimeout(left)

    limit()
    connection.request(
        "POST", path, json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json", **headers},
    )
    limit()
    response = connection.getresponse()
    parts, size = [], 0
    while True:
        limit()
        part = response.read1(65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise http.client.HTTPException("the answer is too long")
    if response.length:  # read1 does not complain about what is missing
        raise http.client.IncompleteRead(b"".join(parts), response.length)
    return response.status, response.headers, b"".join(parts)


def _judge(status: int, headers: http.client.HTTPMessage, data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    html = text.lstrip()[:1] == "<" or "text/html" in headers.get("Content-Type", "")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if 200 <= status < 300:
        if value is not None:
            return value
        if html:
            raise HttpFailure("it answered with HTML, not JSON: is base_url right?", False, status)
        raise HttpFailure("it answered with broken JSON", True, status)
    if 300 <= status < 400:
        raise HttpFailure(f"status {status}, a redirect: set base_url to its target", False, status)
    said = "an HTML page" if html else _message(value) or text.strip()[:200]
    reason = f"status {status} {http.client.responses.get(status, '')}".strip()
    raise HttpFailure(
        f"{reason}: {said}" if said else reason, status in RETRIED_STATUS, status,
        _retry_after(headers), text[:2000],
    )  # fmt: skip


def _message(value: Any) -> str:
    """The text of an error in the usual shapes: {"error": {"message"}}, {"error"}, {"message"}."""
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        error = error.get("message", "")
    return error[:200] if isinstance(error, str) else ""


def _retry_after(headers: http.client.HTTPMessage) -> float | None:
    """Seconds of a Retry-After header; a date counts from the server's own Date."""
    from email.utils import parsedate_to_datetime

    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        now = parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None
