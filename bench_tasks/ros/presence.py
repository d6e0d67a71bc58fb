"""Which nodes of this machine have died: the kernel says so at once, the middleware after 20 s."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

from bench_tasks.errors import GoneNode

__all__ = ["ASKED_TOO_S", "Presence", "Watch"]

ASKED_TOO_S = 1.0
"""When a node ends in order, all are about to be asked to: within this time it is no loss."""


def _name(node: str) -> str:
    return f"\0bench_tasks/node_{os.environ.get('ROS_DOMAIN_ID') or 0}_{node}"


class Presence:
    """A node as those that watch it see it: a socket, closed by the kernel when the node dies."""

    def __init__(self, node: str) -> None:
        """Be there. A second node of the same name cannot be watched."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):
            self._socket.bind(_name(node))
            self._socket.listen(16)

    def farewell(self) -> None:
        """Tell those that watch that the node ends because it was asked to."""
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                with contextlib.suppress(OSError):  # One that has died keeps it from nobody else.
                    peer.send(b"x")


class Watch:
    """The nodes that one node depends on."""

    def __init__(self) -> None:
        """Watch nobody yet."""
        self._peers: dict[str, socket.socket] = {}
        self._ended: dict[str, bytes] = {}
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, node: str) -> None:
        """Watch a node, if it is on this machine; one that has ended, if it is there again."""
        with self._lock:
            if node in self._peers and node not in self._ended:
                return
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.setblocking(False)
        try:
            peer.connect(_name(node))
        except OSError:
            peer.close()
            return
        with self._lock:
            before = self._peers.pop(node, None)
            self._peers[node] = peer
            self._ended.pop(node, None)
        if before is not None:
            before.close()

    def _look(self) -> dict[str, bytes]:
        """What the nodes that have ended said last: b"" those that died."""
        with self._lock:
            for node, peer in self._peers.items():
                if node not in self._ended:
                    try:
                        self._ended[node] = peer.recv(1)
                    except BlockingIOError:
                        continue
                    except OSError:
                        self._ended[node] = b""
                    self._seen[node] = time.monotonic()
            return dict(self._ended)

    def died(self) -> str:
        """The node that died without being asked to end, in words; "" if none did."""
        names = [f"/{node}" for node, word in self._look().items() if not word]
        return f"node {' and '.join(names)} is gone" if names else ""

    def check(self, *nodes: str) -> None:
        """GoneNode when one of these nodes has died, or ended in order some time ago."""
        ended = self._look()
        for node in nodes:
            if node in ended and (
                not ended[node] or time.monotonic() - self._seen[node] > ASKED_TOO_S
            ):
                raise GoneNode(self.died() or f"node /{node} is gone")
