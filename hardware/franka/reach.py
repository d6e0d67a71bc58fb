"""Whether both arms and hands of a cell can be reached at all: for the check-up, which moves none.

By pylibfranka: a connection to the ports on which a control box takes commands, closed again at
once. By franka_ros2: what the drivers' processes miss of its topics and actions.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ARMS
from hardware.checkup import Found
from hardware.franka.cell import Cell
from hardware.franka.drivers import Drivers

__all__ = ["check_reach"]

PORTS = {"arm": 1337, "hand": 1338}
"""libfranka-common, include/research_interface/{robot,gripper}: kCommandPort."""
CONNECT_S, LOOK_S = 3.0, 0.05
START_S, HEARD_S = 30.0, 10.0
"""Until all processes speak, and from then on until what they hear is there."""
_STAND_IN = "start the stand-in, as docs/franka.md says"
_CABLE = ("look at power, cable and the address in the cell, whether this machine has an address "
          "on that network (ip addr), and what else is connected to it")  # fmt: skip
_REFUSED = {
    "arm": "activate FCI in Desk; see whether the address is that of a control box",
    "hand": "choose Franka Hand as the end effector in Desk, and look at its plug",
}


def check_reach(cell: Cell) -> list[Found]:
    """Arm by arm; UsageError when franka_ros2's messages are not there."""
    return _controllers(cell) if cell.by_ros else _boxes(cell)


def _boxes(cell: Cell) -> list[Found]:
    addresses = {arm: cell.arm(arm)["address"] for arm in ARMS}
    answers = _all_answers([(addresses[arm], port) for arm in ARMS for port in PORTS.values()])
    found: list[Found] = []
    for arm in ARMS:
        for what, port in PORTS.items():
            peer, why, refused = answers[addresses[arm], port]
            name, at = f"{arm} {what}", f"{addresses[arm]}, port {port}"
            if peer:
                found.append((name, True, f"its control box takes connections at {at}", ""))
                continue
            remedy = _REFUSED[what] if refused else _CABLE
            found.append((name, False, f"its control box does not answer at {at}: {why}",
                          _STAND_IN if cell.raw["simulated"] else remedy))  # fmt: skip
            if what == "arm":
                break  # what is behind it cannot answer either
    peers = [answers[addresses[arm], PORTS["arm"]][0] for arm in ARMS]
    if peers[0] and peers[0] == peers[1]:
        both = " and ".join(addresses[arm] for arm in ARMS)
        found.append(("addresses", False, f"{both} are the same control box, {peers[0]}",
                      "correct addresses in the cell"))  # fmt: skip
    return found


_Answer = tuple[str, str, bool]
"""The address that answered, "" for none; why none did; whether that was a refusal."""


def _all_answers(targets: list[tuple[str, int]]) -> dict[tuple[str, int], _Answer]:
    """All at once: a name may take long to be looked up, which nothing else bounds."""
    answers = dict.fromkeys(targets, ("", f"nothing came within {CONNECT_S:g} s", False))

    def ask(target: tuple[str, int]) -> None:
        answers[target] = _answer(*target)

    asking = [threading.Thread(target=ask, args=(target,), daemon=True) for target in targets]
    end = time.monotonic() + CONNECT_S + 0.5
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(answers)


def _answer(address: str, port: int) -> _Answer:
    try:
        with socket.create_connection((address, port), CONNECT_S) as end:
            return end.getpeername()[0], "", False
    except TimeoutError:
        return "", f"nothing came within {CONNECT_S:g} s", False
    except OSError as error:  # a name that nobody knows among them
        return "", error.strerror or str(error), isinstance(error, ConnectionRefusedError)


def _controllers(cell: Cell) -> list[Found]:
    """What the drivers' processes say that are not told to begin: they command nothing."""
    drivers = Drivers(cell)
    looks: dict[str, Callable[[], object]] = {}
    for arm in ARMS:
        looks[f"{arm} arm"] = lambda arm=arm: drivers.arm(arm)
        looks[f"{arm} hand"] = lambda arm=arm: drivers.width(arm)
    try:
        end, wrong = time.monotonic() + START_S, dict.fromkeys(looks, "not heard")
        spoke = False
        while any(wrong.values()) and time.monotonic() < end:
            time.sleep(LOOK_S)
            drivers.poll()
            if not spoke and not drivers.starting:
                spoke, end = True, time.monotonic() + HEARD_S
            for name, look in looks.items():  # what was there once is there
                wrong[name] = wrong[name] and _why(look)
    finally:
        drivers.close()
    remedy = ("start franka_ros2's controllers in this shell's ROS_DOMAIN_ID (docs/franka.md says "
              "which), or correct names in the cell")  # fmt: skip
    return [(name, not why, why or "its topics and actions are there", remedy)
            for name, why in wrong.items()]  # fmt: skip


def _why(look: Callable[[], object]) -> str:
    try:
        look()
    except BenchError as error:
        return str(error)
    return ""
