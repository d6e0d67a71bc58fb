"""The Franka cell's node: what arms are told in each period, its pictures, and its reports."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("bench_interfaces")

from bench_tasks.errors import BenchError, UsageError  # noqa: E402
from bench_tasks.robots.fr3 import HOME_RAD  # noqa: E402
from bench_tasks.vocabulary import ARMS, ActionChunk  # noqa: E402
from hardware.franka.cell import read_cell  # noqa: E402
from hardware.signals import Signals  # noqa: E402

pytestmark = pytest.mark.ros
HOME = np.tile(np.append(HOME_RAD, 0.08), 2)


class Arms:
    """Drivers that keep what they are told, in order."""

    def __init__(self):
        self.told, self.events, self.wrench, self.pace = [], [], np.zeros(6), 1.0

    def now_ns(self):
        return round(time.monotonic_ns() * self.pace)

    def poll(self):
        found, self.events = self.events, []
        return found

    def arm(self, arm):
        q = HOME[:7]
        return SimpleNamespace(q=q, dq=0.5 * q, tau=2 * q, tau_ext=3 * q, q_sent=q,
                               wrench=self.wrench, success_rate=1.0, rate_hz=999.0, lost=2,
                               waiting=False)  # fmt: skip

    def send(self, arm, command):
        self.told.append((arm, command))

    def open_to(self, arm, width):
        self.told.append((arm, width))

    def hold(self):
        self.told.append("hold")

    def width(self, arm):
        return 0.06

    def mode(self, arm):
        return "following"

    def faults(self):
        return {"right gripper": "too hot"}


@pytest.fixture
def world(monkeypatch):
    """A node in an episode, without a middleware: arms at home, the safety node watching."""
    from hardware import signals

    monkeypatch.setattr(signals, "SILENT_S", 5.0)  # this process may be held up
    from hardware.franka.world_node import FrankaWorldNode

    events, published = [], []
    state = SimpleNamespace(seq=4, stamp_ns=80_000_000)
    node = FrankaWorldNode.__new__(FrankaWorldNode)
    vars(node).update(
        state=state, scene=SimpleNamespace(), drivers=Arms(), _signals=Signals(), ticking=True,
        beats=0,
        _last=HOME.copy(), _held=False, _begun_ns=time.monotonic_ns(), _cell=read_cell("cell"),
        chunk=None, watched=True, events=events, published=published,
        refused=[], _trouble="", _loading=False, _laying=False,
        event=lambda kind, **data: events.append((kind, data["reason"])),
        refuse=lambda kind, why: node.refused.append((kind, why)),
        publish=lambda state: published.append((state.seq, len(node.drivers.told))),
        get_logger=lambda: SimpleNamespace(error=print),
        _pictures=SimpleNamespace(stream=lambda _: None),
        _measured=lambda scene, seq, stamp: SimpleNamespace(seq=seq, stamp_ns=stamp),
    )  # fmt: skip
    return node


def tick(world):
    """A period that begins at 100 s."""
    world.drivers.told.clear()
    world.beats += world.watched
    world._signals.on_beat(world.beats)
    world._tick(100.0)
    return world.drivers.told


def moved(world, rad, count=3):
    """A chunk that answers the next state and moves the left arm's first joint."""
    values = np.tile(HOME, (count, 1))
    values[:, 0] += rad * np.arange(1, count + 1)
    values[:, 15] = 0.02
    world.chunk = ActionChunk(world.state.seq + 1, values)


def test_each_period_arms_and_hands_are_told_what_is_due_and_then_the_state_is_published(world):
    moved(world, 0.002)
    (_, left), (_, wide), (_, right), (_, narrow) = tick(world)
    np.testing.assert_allclose(left.q, HOME[:7] + [0.002, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(left.v[0], 0.1)
    np.testing.assert_allclose(right.q, HOME[8:15])
    assert (wide, narrow) == (0.08, 0.02) and left.seq == 5
    assert left.due_ns == right.due_ns == 100_020_000_000
    assert world.published == [(5, 4)] and world.ticking


def test_no_command_follows_when_an_episode_is_given_up_for_a_camera(world):
    def stream(_):
        raise BenchError("camera head: its picture is 0.31 s old")

    world._pictures.stream = stream
    moved(world, 0.002)
    told = tick(world)
    assert told[-1] == "hold" and told.count("hold") == 1
    assert world.events == [("world_lost", "camera head: its picture is 0.31 s old")]
    assert not world.ticking and world.chunk is None


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda w: w.drivers.events.append(("driver_lost", "it has ended (SIGKILL)")), "SIGKILL"),
        (lambda w: w.drivers.events.append(("robot_fault", "joint_reflex")), "joint_reflex"),
        (lambda w: w.drivers.events.append(("hand_fault", "left hand: aborted")), "left hand: ab"),
        (lambda w: setattr(w.drivers, "wrench", np.full(6, 18.0)), "31 N act on the left arm, more "
         "than 30 N"),
        (lambda w: setattr(w.drivers, "wrench", np.array([0, 0, 0, 0, np.nan, 0])), "nan Nm act"),
    ],
)  # fmt: skip
def test_what_ends_an_episode_at_once(world, what, said):
    what(world)
    moved(world, 0.002)
    assert tick(world) == ["hold"] and world.published == []
    assert said in world.events[-1][1] and not world.ticking


def test_without_a_heartbeat_that_counts_on_the_arms_hold_until_it_does(world):
    tick(world)
    world.watched = False
    world._signals._counted_s -= 6.0
    moved(world, 0.002)
    assert tick(world) == ["hold"] and world.events[0][0] == "heartbeat_lost"
    assert tick(world) == [] and len(world.events) == 1 and world.chunk is None
    world.watched = True
    told = tick(world)
    np.testing.assert_array_equal(told[0][1].q, HOME[:7])
    assert world.ticking and len(world.published) == 4


def test_the_safety_nodes_heartbeat_stands_still_when_no_states_come_and_ends_when_none_may_move():
    from hardware.safety import Decision
    from hardware.safety_node import SafetyNode

    sent, supervisor = [], SimpleNamespace(sees=True, vouches=True, on_time=lambda _: Decision())
    node = SimpleNamespace(
        _judge_early=lambda: None, _ticked_s=0.0, _realtime=False, _supervisor=supervisor, _beats=0,
        _over=False,
        _do=lambda _: None, _beat_out=SimpleNamespace(publish=lambda m: sent.append(m.data)),
    )  # fmt: skip
    for sees, vouches in ((1, 1), (1, 1), (0, 1), (0, 1), (0, 0), (1, 0), (1, 1)):
        supervisor.sees, supervisor.vouches = bool(sees), bool(vouches)
        SafetyNode._tick.__get__(node)()
    assert sent == [1, 2, 2, 2, 3]


def test_a_refused_command_drops_the_chunk_and_both_arms_stay(world):
    moved(world, 0.002)
    world.drivers.events.append(("command_refused", "left arm: a command was due 0.2 s ago"))
    told = tick(world)
    np.testing.assert_array_equal(told[0][1].q, HOME[:7])
    assert world.events[0][0] == "command_refused" and world.ticking
    assert len(told) == 2, "hands stay as they are until somebody says where they are to go"


def test_what_begins_too_far_away_is_refused(world):
    moved(world, 0.2)
    np.testing.assert_array_equal(tick(world)[0][1].q, HOME[:7])
    kind, why = world.refused[0]
    assert kind == "bad_chunk" and "0.200 rad away at joint 1 of the left arm" in why


def ticks(world, count, loading, broadcast=lambda: None):
    """What is asked of the reports in some periods between or before episodes."""
    left, asked = [count], []

    def is_set():
        left[0] -= 1
        return left[0] < 0

    world.stopping, world._late, world._loading = SimpleNamespace(is_set=is_set), 0, loading
    world._diagnosed_s, world.ticking = float("-inf"), False
    world._reports = SimpleNamespace(broadcast=broadcast, diagnose=asked.append)
    world._tick_on()
    return asked


def test_periods_are_those_of_the_arms_time_and_so_are_stamps(world):
    begun = []
    world._look_s = 0.001
    world.drivers.pace = 0.2
    world._turn = begun.append
    wall_s = time.monotonic()
    ticks(world, 4, loading=False)
    assert time.monotonic() - wall_s > 0.25, "three periods of 0.1 s of the wall's"
    np.testing.assert_allclose(np.diff(begun), 0.02, atol=1e-6)
    world._begun_ns, stamps = world.drivers.now_ns(), []
    world.state = SimpleNamespace(seq=4, stamp_ns=0)
    world._measured = lambda scene, seq, stamp: stamps.append(stamp) or SimpleNamespace(
        seq=seq, stamp_ns=stamp
    )
    world.ticking = True
    time.sleep(0.2)
    tick(world)
    assert 0.03e9 < stamps[0] <= world.drivers.now_ns() - world._begun_ns


def test_diagnostics_are_told_while_the_cell_gets_ready(world, monkeypatch):
    from hardware import world_ros

    assert len(ticks(world, 5, loading=True)) == 1
    monkeypatch.setattr(world_ros, "DIAGNOSE_S", 0.0)
    assert len(ticks(world, 5, loading=True)) == 5


def test_what_fails_in_each_period_is_told_once(world):
    def broadcast():
        raise RuntimeError("no such topic")

    ticks(world, 5, loading=False, broadcast=broadcast)
    ((kind, why),) = world.events
    assert kind == "world_lost" and "no such topic" in why and world.drivers.told == ["hold"]


def test_an_episode_begins_with_the_bases_at_the_height_of_its_scene(world):
    from bench_tasks.vocabulary import Scene

    scene = Scene(task="t", task_version=1, seed=0, instruction="", objects=(), entities=(),
                  joint_names=(), params={}, base_height_m=0.07)  # fmt: skip
    told = SimpleNamespace(scene=scene.to_json(), state=SimpleNamespace(object_pose=[]))
    heights = []
    nothing = SimpleNamespace(
        go_home=lambda: None,
        wait_for_objects=lambda *_: None,
        wait_for_cameras=lambda: None,
        wait_for_state=lambda: None,
    )
    world._preparation, world.sensors = nothing, SimpleNamespace(lay_out=lambda *_: told)
    world._kinematics = SimpleNamespace(set_base_height=lambda h: heights.append(("own", h)))
    world._shown = SimpleNamespace(set_base_height=lambda h: heights.append(("shown", h)))
    loaded, _ = world.load("t", 0, {})
    assert heights == [("own", 0.07), ("shown", 0.07)]
    assert (loaded.robot, loaded.contacts, world._loading) == ("franka", "hands", False)


def test_the_button_is_heard_in_all_ways_and_a_confirmation_that_nobody_waits_for_says_so(world):
    from bench_tasks.ros.node_ros import BUTTON

    heard, offered = [], {}
    world.sensors = SimpleNamespace(
        hear=lambda kind, topic, work, qos: heard.append((topic, qos, work)),
        offer=lambda kind, name, work: offered.update({name: work}),
    )
    world._listen()
    button = [(qos, work) for topic, qos, work in heard if topic == "/safety/estop"]
    assert [qos for qos, _ in button] == list(BUTTON)
    for _, work in button:
        world._signals.estop.clear()
        work(SimpleNamespace(data=True))
        assert world._signals.estop.is_set()
    confirm = offered["/world/confirm"]
    early = confirm(None, SimpleNamespace())
    assert (early.success, early.message) == (False, "nothing is to be confirmed now")
    world._signals.ask()
    assert confirm(None, SimpleNamespace()).success and world._signals.confirmed.is_set()


# -- pictures --------------------------------------------------------------------------------------


class Node:
    """Keeps what is published, topic by topic."""

    def __init__(self):
        self.sent = {}

    def create_publisher(self, kind, topic, _):
        sent = self.sent.setdefault(topic, [])
        return SimpleNamespace(publish=sent.append, get_subscription_count=lambda: "pose" in topic
                               or "joint" in topic or "wrench" in topic)  # fmt: skip

    def get_clock(self):
        import rclpy.time

        return SimpleNamespace(now=lambda: rclpy.time.Time(seconds=5))


def image(encoding, pixels, pad=0):
    rows = np.pad(pixels.reshape(len(pixels), -1), ((0, 0), (0, pad)))
    return SimpleNamespace(encoding=encoding, height=pixels.shape[0], width=pixels.shape[1],
                           data=rows.astype(np.uint8).tobytes())  # fmt: skip


def test_pictures_of_every_kind_come_out_as_jpeg_of_one_size():
    import cv2

    from hardware.pictures_ros import as_jpeg

    red = np.zeros((48, 64, 3), np.uint8)
    red[..., 0] = 200
    grey = np.full((48, 64, 1), 90, np.uint8)
    png = cv2.imencode(".png", red[..., ::-1])[1].tobytes()
    for message, colour in [
        (image("rgb8", red), [0, 0, 200]), (image("bgr8", red[..., ::-1], pad=5), [0, 0, 200]),
        (image("mono8", grey), [90, 90, 90]),
        (SimpleNamespace(format="png", data=png), [0, 0, 200]),
    ]:  # fmt: skip
        data = as_jpeg(message, (32, 24))
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert pixels.shape == (24, 32, 3)
        np.testing.assert_allclose(pixels[12, 16], colour, atol=6)
    same = SimpleNamespace(format="rgb8; jpeg compressed bgr8", data=data)
    assert as_jpeg(same, (32, 24)) is not None and as_jpeg(same, (32, 24)) == data
    with pytest.raises(BenchError, match="encoding 'yuv422' is not understood"):
        as_jpeg(SimpleNamespace(encoding="yuv422"), (32, 24))
    with pytest.raises(BenchError, match="format 'png' cannot be decoded"):
        as_jpeg(SimpleNamespace(format="png", data=b"no picture"), (32, 24))


def test_pictures_carry_the_states_stamp_and_a_calibration_of_their_size():
    from bench_tasks.bags import cdr
    from hardware.pictures_ros import Pictures

    node, cell = Node(), read_cell("cell")
    info = SimpleNamespace(width=64, height=48, k=[60, 0, 32, 0, 60, 24, 0, 0, 1])
    sensors = SimpleNamespace(picture=lambda _: (image("mono8", np.zeros((48, 64, 1))), info))
    pictures = Pictures(node, cell, sensors, "head@10", "32x24")
    pictures.stream(SimpleNamespace(seq=11, stamp_ns=7))  # not its turn
    assert node.sent["/head/image_raw/compressed"] == []
    pictures.stream(SimpleNamespace(seq=15, stamp_ns=300_000_000))
    (sent,) = node.sent["/head/camera_info"]
    told = cdr.decode("sensor_msgs/msg/CameraInfo", sent)
    assert told["header"]["stamp"]["nanosec"] == 300_000_000 and told["width"] == 32
    np.testing.assert_allclose(told["k"], [30, 0, 16, 0, 30, 12, 0, 0, 1])
    assert len(pictures.publishers) == 6
    taken = pictures.take(("head",), False, SimpleNamespace(seq=16, stamp_ns=320_000_000))
    sensors.picture = lambda _: (_ for _ in ()).throw(BenchError("its picture is too old"))
    pictures.publish(taken)  # what was taken in time is published
    for name in ("camera_info", "image_raw/compressed"):
        assert len(node.sent[f"/head/{name}"]) == 2
    info.width = 0
    sensors.picture = lambda _: (image("mono8", np.zeros((48, 64, 1))), info)
    with pytest.raises(BenchError, match="CameraInfo is of 0x48 pixels: it is not calibrated"):
        pictures.take(("head",), False, SimpleNamespace(seq=17, stamp_ns=340_000_000))
    info.width = 64
    with pytest.raises(BenchError, match="no episode"):
        pictures.take(("head",), False, None)
    with pytest.raises(UsageError, match="depth"):
        pictures.take(("head",), True, None)
    with pytest.raises(UsageError, match="unknown camera 'nose': choose from head"):
        Pictures(node, cell, sensors, "nose@10", "32x24")


# -- reports ---------------------------------------------------------------------------------------


def test_reports_tell_of_arms_cameras_and_what_the_robot_feels():
    from hardware.franka.reports_ros import BROADCAST, Reports

    node, arms, cell = Node(), Arms(), read_cell("cell")
    arms.wrench = np.array([3.0, 0, 4.0, 0, 0, 1.5])
    sensors = SimpleNamespace(picture_age_s=lambda camera: 0.1 if camera == "head" else 3.0)
    pose = np.array([0.5, 0.2, 0.3, 0.0, 1.0, 0.0, 0.0])
    reports = Reports(node, cell, arms, sensors, SimpleNamespace(forward=lambda *_: pose))
    reports.broadcast()
    assert not any(node.sent.values()), "nobody was heard of yet who listens"
    reports.diagnose(3)
    reports.broadcast()
    (array,) = node.sent["/diagnostics"]
    found = {s.name.removeprefix("bench_tasks: "): s for s in array.status}
    assert found["left arm"].message == "following" and found["left arm"].level == b"\0"
    assert found["right arm"].message == "right gripper: too hot"
    assert found["camera head"].message == "ok" and found["camera left_wrist"].level == b"\2"
    values = {v.key: v.value for v in found["left arm"].values}
    assert values["external_force_n"] == "5.000" and values["lost_cycles"] == "2"
    for arm in ARMS:
        sent = {name.rpartition("/")[2]: node.sent[f"/{arm}/{name}"][0] for name in BROADCAST}
        assert list(sent["joint_states"].position) == [0.03, 0.03]
        assert sent["joint_states"].name[1] == f"{arm}_fr3_finger_joint2"
        assert all(message.header.stamp.sec == 5 for message in sent.values())
        turn = sent["current_pose"].pose.orientation
        assert (turn.x, turn.w, sent["current_pose"].header.frame_id) == (1.0, 0.0, "world")
        measured = sent["measured_joint_states"]
        assert measured.name[6] == f"{arm}_fr3_joint7" and list(measured.position) == [*HOME_RAD]
        np.testing.assert_allclose(measured.velocity, 0.5 * HOME_RAD)
        np.testing.assert_allclose(sent["external_joint_torques"].effort, 3 * HOME_RAD)
        assert list(sent["desired_joint_states"].position) == [*HOME_RAD]
        wrench = sent["external_wrench_in_base_frame"]
        assert (wrench.wrench.force.z, wrench.wrench.torque.z) == (4.0, 1.5)
        assert wrench.header.frame_id == f"{arm}_fr3_link0"

    def silent(arm):
        raise BenchError("no state of the left arm for 0.3 s: following")

    arms.arm = silent
    reports.diagnose(3)
    reports.broadcast()
    assert not node.sent["/tf_static"], "nobody knows where the cameras are"
    assert "no state of the left arm" in node.sent["/diagnostics"][-1].status[0].message


def test_where_the_cameras_are_is_told(tmp_path):
    import yaml

    from hardware.franka.reports_ros import Reports

    raw = read_cell("cell").raw
    raw["calibration"] = "where.yaml"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(raw))
    cameras = {"head": {"parent": "world", "pose": [0.1, 0.2, 0.3, 0, 1, 0, 0]},
               "left_wrist": {"parent": "left", "pose": [0, 0, 0.05, 1, 0, 0, 0]}}  # fmt: skip
    (tmp_path / "where.yaml").write_text(yaml.safe_dump({"format_version": 1, "cameras": cameras}))
    node, cell = Node(), read_cell(str(tmp_path / "mine.yaml"))
    Reports(node, cell, Arms(), SimpleNamespace(), SimpleNamespace())
    (message,) = node.sent["/tf_static"]
    head, wrist = message.transforms
    assert (head.header.frame_id, head.child_frame_id) == ("world", "head_optical_frame")
    assert head.transform.translation.z == 0.3 and head.transform.rotation.x == 1.0
    assert wrist.header.frame_id == "left_fr3_hand_tcp"
    cameras["nose"] = cameras["head"]
    (tmp_path / "where.yaml").write_text(yaml.safe_dump({"format_version": 1, "cameras": cameras}))
    with pytest.raises(UsageError, match="unknown camera in .*where.yaml 'nose': choose from head"):
        read_cell(str(tmp_path / "mine.yaml"))
