"""The stand-in for a Franka cell: hands that speak for the scene's, and a scene that follows."""

import queue
import socket
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

from sim.standin.black_box import BlackBox
from sim.standin.franka_server import LONGEST, REPORT, SETTLED, WIDTH, SceneHand, arm_only
from sim.standin.pace import Pace


@pytest.fixture
def hand():
    """A hand whose fingers are where they are asked to be, but never closer than `stop`."""
    made, over = SceneHand(), threading.Event()
    made.stop_at = 0.0

    def fingers():
        while not over.wait(0.002):
            made.width = max(made.asked, made.stop_at)

    threading.Thread(target=fingers, daemon=True).start()
    yield made
    over.set()


def test_a_hand_has_grasped_only_what_stops_its_fingers_within_the_band(hand):
    hand.stop_at = 0.04
    assert hand.grasp(0.0, 0.01, 0.1, 0.5, 40.0) and hand.width == 0.04
    assert hand.move(0.08, 0.5) and not hand.is_grasped
    assert not hand.grasp(0.0, 0.01, 0.03, 0.5, 40.0), "too wide"
    assert hand.homing() and hand.width == 0.08
    for work in (lambda: hand.move(0.09, 0.1), lambda: hand.grasp(-0.01, 0.1, 0.1, 0.1, 1.0)):
        with pytest.raises(ValueError, match="outside 0..0.08 m"):
            work()


def test_the_simulated_arm_has_joints_and_nothing_to_collide_with(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(arm_only(tmp_path)))
    assert (model.nq, model.nu, model.ngeom) == (7, 0, 0)


# -- the node --------------------------------------------------------------------------------------


class World:
    """A scene that does as it is told."""

    def __init__(self):
        self.scene, self.state, self.did = None, SimpleNamespace(seq=0), []

    def step(self, chunk):
        self.did.append(chunk.values[0])
        opening = chunk.values[0][[7, 15]] + 0.001
        self.state = SimpleNamespace(seq=self.state.seq + 1, gripper_opening=opening,
                                     object_pose=np.zeros((0, 7)))  # fmt: skip
        return (self.state,)


@pytest.fixture
def node(tmp_path):
    """The node without a middleware; the arms' ends of its links are `node.arms`."""
    pytest.importorskip("rclpy")
    pytest.importorskip("bench_interfaces")
    from sim.standin import franka_node as module

    links = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    for pair in links:
        for end in pair:
            end.setblocking(False)
    pace_file = str(tmp_path / "pace")
    Pace.begin(pace_file)
    made = SimpleNamespace(
        _pace=Pace(pace_file), _time_s=0.0, _lab_ns=None,
        paces=[Pace(pace_file, part) for part in range(2)],
        _jobs=queue.SimpleQueue(), _q=np.zeros(16), _opening=np.full(2, 0.08),
        _width=np.full(2, 0.08),
        _heard_s=[None, None], _asked=np.full(2, 0.08), _speed=np.full(2, 0.1),
        _ends=[ours for ours, _ in links],
        arms=[theirs for _, theirs in links], world=World(), stopping=threading.Event(), errors=[],
        status=[], show=lambda scene, state: None,
        get_logger=lambda: SimpleNamespace(error=made.errors.append),
        get_clock=lambda: SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=5 * 10**18)),
    )  # fmt: skip

    def stop(status):
        made.status.append(status)
        made.stopping.set()

    made.stop = stop
    for name in ("_hear", "period", "_run", "in_scene", "lay_out", "comes", "leave", "lab_ns"):
        setattr(made, name, getattr(module.StandInNode, name).__get__(made))
    yield made
    made.stopping.set()


def says(node, arm, q, width, speed=0.1):
    node.arms[arm].send(REPORT.pack(*q, *[0.0] * 7, width, speed))


def test_the_scene_goes_where_the_arms_are_and_tells_the_hands_what_it_measures(node):
    node.world.scene = SimpleNamespace(objects=())
    says(node, 0, np.full(7, 0.1), 0.08)
    says(node, 1, np.full(7, 0.2), 0.0)
    node.period()
    (action,) = node.world.did
    np.testing.assert_allclose(action[:7], 0.1)
    np.testing.assert_allclose(action[8:15], 0.2)
    assert action[7] == 0.08 and action[15] == pytest.approx(0.078)  # 0.1 m/s for a period
    widths = [WIDTH.unpack(arm.recv(64))[0] for arm in node.arms]
    assert widths == [0.08, pytest.approx(0.079)], "as measured, and no wider than a hand"


def test_a_hand_that_presses_on_something_opens_from_there_at_once(node):
    node.world.scene = SimpleNamespace(objects=())
    held = SimpleNamespace(seq=0, gripper_opening=np.array([0.022, 0.08]), object_pose=np.zeros(0))
    node.world.step = lambda chunk: node.world.did.append(chunk.values[0]) or (held,)
    for _ in range(45):  # closes upon it, and presses
        says(node, 0, np.zeros(7), 0.0)
        node.period()
    assert node.world.did[-1][7] == 0.0
    says(node, 0, np.zeros(7), 0.08)
    node.period()
    assert node.world.did[-1][7] == pytest.approx(0.024)


def test_the_scenes_time_is_that_of_the_slower_arm(node):
    assert not node.comes(), "no arm has a time yet"
    left, right = node.paces
    left.tell(100.0)
    right.tell(100.0)
    assert node.comes() and not node.comes()  # from then on
    stamp_ns = node.lab_ns()
    left.tell(100.09)
    right.tell(100.05)
    assert [node.comes() for _ in range(3)] == [True, True, False]
    assert node.lab_ns() - stamp_ns == 40_000_000
    node.leave()  # to lay out something, say, while the arms go on
    assert right.others_s == pytest.approx(100.09)
    for arm in node.paces:
        arm.tell(103.0)
    assert node.comes() and not node.comes(), "what it missed is not made up for"


def test_fingers_have_settled_when_the_scene_has_looked_however_long_that_takes():
    hand, ended = SceneHand(), threading.Event()

    def close():
        hand.grasp(0.0, 0.1, 0.1, 0.1, 40.0)
        ended.set()

    threading.Thread(target=close, daemon=True).start()
    while hand.asked > 0.0:
        ended.wait(0.01)
    assert not ended.wait(0.5), "nobody has looked"
    for width in (0.06, 0.05, *[0.05] * (SETTLED - 1)):
        hand.width = width
        ended.wait(0.03)
    assert not ended.is_set()
    hand.width = 0.05
    assert ended.wait(5.0) and hand.is_grasped and SETTLED < LONGEST


def test_it_ends_when_an_arm_has_ended(node):
    node.arms[1].close()
    node.period()
    assert node.status == [1] and node.errors == ["the simulated right arm has ended"]


def test_an_arm_that_hangs_is_not_shown_as_one_that_rests(node, monkeypatch):
    from sim.standin import franka_node as module

    clock = [50.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    clock[0] += 9.0
    node.period()  # they take a while to start
    for arm in (0, 1):
        says(node, arm, np.zeros(7), 0.08)
    node.period()
    clock[0] += 5.0  # the scene was busy; what has come meanwhile is heard
    for arm in (0, 1):
        says(node, arm, np.zeros(7), 0.08)
    node.period()
    clock[0] += 0.9 * module.SILENT_S
    says(node, 0, np.zeros(7), 0.08)
    node.period()
    assert node.status == []
    clock[0] += 0.2 * module.SILENT_S
    node.period()
    assert node.status == [1] and node.errors == ["the simulated right arm says nothing for 1 s"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_server_ends_with_its_link_and_with_whatever_goes_wrong(fails, monkeypatch):
    from sim.standin import franka_server as module

    class Ended(BaseException):
        pass

    def end(status):
        raise Ended(status)

    monkeypatch.setattr(module.os, "_exit", end)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    state = {"q": [0.0] * 7, "dq": [0.0] * 7}
    simulated = SimpleNamespace(get_robot_state=lambda: {} if fails else state, data=None)
    if not fails:
        theirs.close()
    with pytest.raises(Ended, match="1" if fails else "0"):
        module.exchange(ours, simulated, SceneHand(), BlackBox(), 0)


def test_it_ends_when_its_scene_fails(node):
    node.world.scene = SimpleNamespace(objects=())
    node.world.step = lambda _: (_ for _ in ()).throw(RuntimeError("no solution"))
    node.paces[0].tell(1.0)
    node._run()
    assert node.status == [1] and "RuntimeError: no solution" in node.errors[0]


def test_objects_are_laid_out_with_the_arms_at_home_only(node, monkeypatch):
    from bench_tasks.errors import BenchError
    from bench_tasks.robots.fr3 import HOME_RAD
    from sim.standin import scene_ros as module

    thread = threading.Thread(target=node._run, daemon=True)
    thread.start()
    with pytest.raises(BenchError, match="rad away from their starting pose"):
        node.lay_out("lift_pot", 0, ())
    node.world.reset = lambda *what: what
    node.world.capture = lambda _: None
    for arm in (0, 1):
        says(node, arm, HOME_RAD, 0.08)
    assert node.lay_out("lift_pot", 0, ()) == ("lift_pot", 0, ())
    node.stopping.set()
    thread.join(5)
    monkeypatch.setattr(module, "JOB_S", 0.05)
    done = []
    with pytest.raises(BenchError, match=r"took longer than 0\.05 s"):
        node.in_scene(lambda: done.append(1))
    node.stopping.clear()
    threading.Thread(target=node._run, daemon=True).start()
    last: Future = Future()
    node._jobs.put((lambda: None, last))
    last.result(5)
    assert done == [], "what nobody waits for any more is not done"
