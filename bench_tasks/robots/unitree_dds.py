"""Unitree's DDS topics as bytes. Only processes of the driver's environment import this.

Messages are written and read as what the wire carries (`unitree_hg`); the SDK's classes say only
what types the topics have.
"""

from __future__ import annotations

import importlib.metadata
import os
from importlib.resources import files

from cyclonedds._clayer import ddspy_take, ddspy_write
from cyclonedds.core import DDSException, InstanceState, SampleState, ViewState
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from unitree_sdk2py.idl.unitree_hg.msg import dds_

from bench_tasks.errors import UsageError
from bench_tasks.robots.unitree_hg import TOPICS

__all__ = ["VERSION", "Dds", "config_of"]

VERSION = importlib.metadata.version("cyclonedds")
LOOPBACK = "lo"
_ANY = SampleState.Any | ViewState.Any | InstanceState.Any
_MASK = () if VERSION.startswith("0.") else (_ANY,)
"""0.10 takes no mask."""
_KEPT = 16
"""So many messages of a topic wait to be taken; of more, the newest."""


def config_of(interface: str) -> str:
    """CycloneDDS's configuration for an interface; it reads UNITREE_INTERFACE, which this sets."""
    os.environ["UNITREE_INTERFACE"] = interface
    name = "cyclonedds_lo.xml" if interface == LOOPBACK else "cyclonedds_interface.xml"
    return files("bench_tasks.robots").joinpath(name).read_text(encoding="utf-8")


class Dds:
    """A participant in one domain on one interface."""

    def __init__(self, domain: int, interface: str, out: tuple[str, ...], into: tuple[str, ...]):
        """Write the topics `out`, read those of `into`. UsageError when there is no such interface.

        As in Unitree's SDK, who writes is reliable, who reads takes what comes. Of what comes
        between two looks nothing is left out here, so that all of it can be checked and counted.
        """
        try:
            self._domain = Domain(domain, config_of(interface))
            self.participant = DomainParticipant(domain)
        except DDSException:
            names = ", ".join(sorted(os.listdir("/sys/class/net")))
            raise UsageError(
                f"CycloneDDS cannot use interface {interface!r} (there are {names})"
            ) from None
        self._writers = {topic: DataWriter(self.participant, self._topic(topic)) for topic in out}
        kept = Qos(Policy.History.KeepLast(_KEPT))
        self._readers = {
            topic: DataReader(self.participant, self._topic(topic), qos=kept) for topic in into
        }

    def _topic(self, name: str) -> Topic:
        return Topic(self.participant, name, getattr(dds_, TOPICS[name]))

    def write(self, topic: str, data: bytes) -> None:
        """Send one message; DDSException when DDS does not take it."""
        status = ddspy_write(self._writers[topic]._ref, data)
        if status < 0:
            raise DDSException(status, f"writing {topic}")

    def take(self, topic: str) -> list[bytes]:
        """The messages that have come since the last call, oldest first."""
        found = ddspy_take(self._readers[topic]._ref, *_MASK, _KEPT)
        if isinstance(found, int):
            raise DDSException(found, f"reading {topic}")
        return [data for data, info in found if info.valid_data]

    def close(self) -> None:
        """CycloneDDS leaves the domain by itself when the process ends."""
