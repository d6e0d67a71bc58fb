"""Questions to Unitree's services over DDS, and answers. Only for the driver's environment.

A service is a pair of topics, rt/api/NAME/request and .../response, whose messages carry JSON.
Written out here since the SDK's client opens a DDS domain of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from unitree_sdk2py.idl.unitree_api.msg import dds_

from bench_tasks.robots.unitree_dds import Dds

__all__ = ["CHECK_MODE", "MOTION_SWITCHER", "Client", "Server"]

MOTION_SWITCHER, CHECK_MODE = "motion_switcher", 1001
"""The service that says which program controls the robot, by a `name` that is empty in debug mode:
Unitree's MotionSwitcherClient."""
_WAIT_S = 0.0005
_MOST = 16


class Client:
    """Who asks."""

    def __init__(self, dds: Dds, service: str) -> None:
        """Nothing is asked yet; it takes a moment until the service is found."""
        part = dds.participant
        self._out = DataWriter(part, Topic(part, f"rt/api/{service}/request", dds_.Request_))
        self._into = DataReader(part, Topic(part, f"rt/api/{service}/response", dds_.Response_))

    def ask(self, api: int, seconds: float) -> Any:
        """What the service answers, as JSON; None when it does not, or says no."""
        number = time.monotonic_ns()
        identity = dds_.RequestIdentity_(number, api)
        header = dds_.RequestHeader_(
            identity, dds_.RequestLease_(0), dds_.RequestPolicy_(0, False)
        )
        self._out.write(dds_.Request_(header, "{}", []))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for answer in self._into.take(_MOST):
                if isinstance(answer, dds_.Response_) and answer.header.identity.id == number:
                    right = answer.header.status.code == 0
                    return json.loads(answer.data) if right else None
            time.sleep(_WAIT_S)
        return None


class Server:
    """Who answers."""

    def __init__(self, dds: Dds, service: str, answers: Callable[[int], Any]) -> None:
        """`answers` gets the number of the question."""
        part, self._answers = dds.participant, answers
        self._into = DataReader(part, Topic(part, f"rt/api/{service}/request", dds_.Request_))
        self._out = DataWriter(part, Topic(part, f"rt/api/{service}/response", dds_.Response_))

    def heard(self) -> list[Any]:
        """Questions that have come since the last call."""
        # That who asked has ended comes as a sample, too.
        return [one for one in self._into.take(_MOST) if isinstance(one, dds_.Request_)]

    def answer(self, question: Any) -> None:
        """Answer one of them."""
        identity = question.header.identity
        header = dds_.ResponseHeader_(identity, dds_.ResponseStatus_(0))
        self._out.write(dds_.Response_(header, json.dumps(self._answers(identity.api_id)), []))
