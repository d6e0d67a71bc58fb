"""The Franka cell's node while it gets ready: what ends that, and what the arms are told then."""

import threading
from types import SimpleNamespace

import pytest

from bench_tasks.errors import BenchError

pytestmark = pytest.mark.ros


@pytest.fixture
def cell():
    """All that getting ready looks at, without drivers."""
    told = []
    drivers = SimpleNamespace(
        poll=list, ready=lambda: told.append("ready"), tell=lambda *what: told.append(what),
        open_to=lambda *what: told.append("open"),
    )  # fmt: skip
    from hardware.franka.world_node import FrankaWorldNode

    node = SimpleNamespace(
        drivers=drivers, told=told, stopping=threading.Event(), _estop=threading.Event(),
        _confirmed=threading.Event(), event=print,
        get_logger=lambda: SimpleNamespace(warning=print),
        _cell=SimpleNamespace(raw={"confirm_before_home": True}),
    )  # fmt: skip
    for name in ("_wait", "_go_home", "load", "_on_estop"):
        setattr(node, name, getattr(FrankaWorldNode, name).__get__(node))
    return node


def test_the_button_breaks_it_off_and_both_arms_hold(cell):
    threading.Timer(0.2, lambda: cell._on_estop(SimpleNamespace(data=True))).start()
    with pytest.raises(BenchError, match="/safety/estop says true"):
        cell.load("lift_pot", 0, {})
    assert cell.told == [("left", "hold"), ("right", "hold")], "nothing before a human confirms"
    cell._on_estop(SimpleNamespace(data=False))
    assert not cell._estop.is_set()


def test_it_begins_when_a_human_has_confirmed(cell):
    threading.Timer(0.2, cell._confirmed.set).start()
    threading.Timer(0.6, cell.stopping.set).start()
    cell.drivers.width = lambda arm: 0.0
    with pytest.raises(BenchError, match="the hands do not open"):
        cell.load("lift_pot", 0, {})
    assert cell.told == ["ready", "open", "open", ("left", "hold"), ("right", "hold")]


def test_only_a_heartbeat_that_counts_on_lets_the_arms_move(cell):
    from hardware.franka.world_node import SILENT_S, FrankaWorldNode

    told = []
    cell.drivers.tell, cell._stay = (lambda *what: told.append(what)), lambda: None
    cell.event = lambda kind, **_: told.append(kind)
    cell._beat, cell._beat_s, cell._held = -1, 0.0, False
    beat, safe = FrankaWorldNode._on_beat.__get__(cell), FrankaWorldNode._safe.__get__(cell)
    assert not safe() and told == [("left", "hold"), ("right", "hold"), "heartbeat_lost"]
    beat(SimpleNamespace(data=7))
    assert safe()
    cell._beat_s -= 2 * SILENT_S
    beat(SimpleNamespace(data=7))
    assert not safe()
    beat(SimpleNamespace(data=8))
    assert safe()
