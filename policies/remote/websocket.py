"""One websocket to a policy server, on which no call can last longer than its deadline.

A deadline covers the whole exchange: `websockets` limits the wait for a message, but not how long a
server may take to read what it is sent, so a timer cuts the connection then.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from policies.remote.codec import MAX_BYTES, WireError

__all__ = ["Refused", "Websocket", "said"]

ERROR_CHARS = 300
_QUIET = logging.getLogger(f"{__name__}.library")
_QUIET.propagate = False
_QUIET.addHandler(logging.NullHandler())
"""What the library logs of broken connections is told by our errors."""


class Refused(WireError):
    """Nobody listens there (yet)."""


class Websocket:
    """A connection that is closed for good by the first thing that goes wrong."""

    def __init__(self, host: str, port: int, tls: bool, key: str, deadline_s: float) -> None:
        """Connect; `Refused` when nobody listens, WireError on anything else."""
        end = time.monotonic() + deadline_s
        shown = f"[{host}]" if ":" in host else host
        headers = {"Authorization": f"Api-Key {key}"} if key else {}
        sock = _tcp(host, port, deadline_s)
        self._open = ExitStack()
        try:
            with _cut(sock, end):
                self._connection: ClientConnection = self._open.enter_context(
                    connect(
                        f"{'wss' if tls else 'ws'}://{shown}:{port}", sock=sock, compression=None,
                        max_size=MAX_BYTES, additional_headers=headers, logger=_QUIET,
                        open_timeout=max(0.001, end - time.monotonic()), close_timeout=0.2,
                        max_queue=2,
                        # Servers that infer answer no pings; the deadline of each call is enough.
                        ping_interval=None, ssl=ssl.create_default_context() if tls else None,
                    )
                )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - named below, whatever kind the library has
            sock.close()
            raise _named(error, deadline_s, "the handshake", end) from None

    def receive(self, deadline_s: float) -> bytes | str:
        """The next message."""
        try:
            return self._connection.recv(timeout=max(0.0, deadline_s))
        except Exception as error:  # noqa: BLE001
            raise _named(error, deadline_s, "the answer") from None

    def ask(self, message: bytes, deadline_s: float) -> bytes | str:
        """Send a message and return the next one; WireError if one was there before.

        Messages of these wires have no numbers: what was not asked for would be taken for the
        answer to this.
        """
        end = time.monotonic() + deadline_s
        try:
            early: bytes | str | None = self._connection.recv(timeout=0)
        except TimeoutError:
            early = None
        except Exception as error:  # noqa: BLE001
            raise _named(error, deadline_s, "the request") from None
        if isinstance(early, str):
            raise WireError(f"it sent an error: {said(early)}")
        if early is not None:
            raise WireError("it sent a message that was not asked for: stale answers are not used")
        try:
            with _cut(self._connection.socket, end):
                self._connection.send(message)
            return self._connection.recv(timeout=max(0.0, end - time.monotonic()))
        except Exception as error:  # noqa: BLE001
            raise _named(error, deadline_s, "the answer", end) from None

    def close(self) -> None:
        """Close at once: nothing more of this connection is of interest."""
        with suppress(OSError):
            self._connection.socket.shutdown(socket.SHUT_RDWR)
        with suppress(Exception):
            self._open.close()


def said(text: str) -> str:
    """The last line of what a server says of its error: of a traceback, the exception."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:ERROR_CHARS] if lines else "an empty text"


def _tcp(host: str, port: int, deadline_s: float) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), timeout=deadline_s)
        sock.settimeout(None)  # from here on the timer of each call counts
        return sock
    except ConnectionRefusedError:
        raise Refused("connection refused: is the server running?") from None
    except socket.gaierror:
        raise WireError("the host's name is unknown") from None
    except TimeoutError:
        raise WireError(f"no connection within {deadline_s:g} s") from None
    except OSError as error:
        raise Refused(f"cannot connect: {error.strerror or 'network error'}") from None


@contextmanager
def _cut(sock: socket.socket, end: float) -> Iterator[None]:
    """Cut the connection when the time is up, so that no read or write can last longer."""

    def cut() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, end - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _named(
    error: Exception, deadline_s: float, what: str, end: float = float("inf")
) -> WireError:
    """What went wrong, in our words; past the `end` of the time it is that, since we cut then."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, TimeoutError) or time.monotonic() >= end - 0.001:
        return WireError(f"no complete answer within {deadline_s:g} s")
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        hint = ": is the API key right?" if status in (401, 403) else ""
        return WireError(f"it refused the connection with status {status}{hint}")
    if isinstance(error, ConnectionClosed):
        frame = error.rcvd or error.sent
        code = f" (code {frame.code})" if frame is not None else ""
        if error.sent is not None and error.sent.code == 1009 and error.rcvd is None:
            return WireError(f"it sent more than the limit of {MAX_BYTES} bytes")
        if error.sent is not None and error.sent.code in (1002, 1007) and error.rcvd is None:
            return WireError("it sent what is no websocket message")
        return WireError(f"the connection broke off during {what}{code}")
    if isinstance(error, ssl.SSLError):
        return WireError(f"TLS failed: {error.reason or 'handshake'}")
    # The library asserts, too, when a peer that speaks something else hangs up.
    if isinstance(error, WebSocketException | AssertionError):
        return WireError(f"it does not speak websocket ({type(error).__name__})")
    if isinstance(error, OSError | EOFError):
        return WireError(f"the connection broke off during {what}")
    return WireError(f"{what} failed: {type(error).__name__}: {str(error)[:100]}")
