"""What a Franka cell's sensors say, and how a source is found out that has stopped measuring."""

from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.ros
pytest.importorskip("rclpy")

from bench_tasks.errors import BenchError, UsageError  # noqa: E402
from hardware.franka.cell import read_cell  # noqa: E402
from tests.hardware.clock import Clock  # noqa: E402

AGE_S = 0.15
STEP_NS = 20_000_000
AHEAD = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


@pytest.fixture
def clock(monkeypatch):
    """The sensors' time."""
    from hardware import sensors_ros

    made = Clock()
    monkeypatch.setattr(sensors_ros, "time", made)
    return made


@pytest.fixture
def sensors(monkeypatch, clock):
    """A `Sensors` that is spun by nobody: messages are handed to it."""
    from hardware import sensors_ros
    from hardware.sensors_ros import Sensors

    class Still:
        def __init__(self, *_, **__):
            pass

        def __getattr__(self, _):
            return lambda *_, **__: None

    for name in ("Node", "SingleThreadedExecutor"):
        monkeypatch.setattr(sensors_ros, name, Still)
    cell = read_cell("standin")
    for key in ("objects", "contacts"):
        cell.raw[key]["age_s"] = AGE_S
    cell.raw["camera_age_s"] = AGE_S
    return Sensors(cell)


def stamp(ns):
    return SimpleNamespace(sec=ns // 10**9, nanosec=ns % 10**9)


def tf(sensors, child, at=AHEAD, ns=0, parent="world", static=False):
    (x, y, z), (w, i, j, k) = at
    transform = SimpleNamespace(
        translation=SimpleNamespace(x=x, y=y, z=z), rotation=SimpleNamespace(w=w, x=i, y=j, z=k)
    )
    header = SimpleNamespace(frame_id=parent, stamp=stamp(ns))
    item = SimpleNamespace(header=header, child_frame_id=child, transform=transform)
    sensors._on_tf(SimpleNamespace(transforms=[item]), static)


def at(x):
    return (x, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


def test_a_tracker_that_goes_on_sending_what_it_measured_once_is_found_out(sensors, clock):
    end, ns = clock.monotonic() + 2 * AGE_S, 5 * 10**9
    while clock.monotonic() < end:  # one that measures is believed as long as it does
        ns += STEP_NS
        tf(sensors, "object/pot", at(0.1), ns)
        sensors.pose("pot")
        clock.sleep(0.02)
    end = clock.monotonic() + 2 * AGE_S
    while clock.monotonic() < end:
        tf(sensors, "object/pot", at(0.1), ns)
        clock.sleep(0.02)
    with pytest.raises(BenchError, match=r"its pose is \d+\.\d\d s old, more than 0.15 s"):
        sensors.pose("pot")
    tf(sensors, "object/pot", at(0.2), ns - STEP_NS)  # a late one is nothing new either
    with pytest.raises(BenchError, match="old"):
        sensors.pose("pot")
    tf(sensors, "object/pot", at(0.3), 10**9)  # its clock begins anew, which one alone cannot say
    with pytest.raises(BenchError, match="old"):
        sensors.pose("pot")
    tf(sensors, "object/pot", at(0.3), 10**9 + STEP_NS)
    assert sensors.pose("pot")[0][0] == 0.3


def test_of_two_who_say_where_an_object_is_the_one_who_repeats_the_past_is_not_believed(sensors):
    ns = 60 * 10**9
    for k in range(4):
        tf(sensors, "object/pot", at(0.1 + 0.01 * k), ns + k * STEP_NS)
        assert sensors.pose("pot")[0][0] == pytest.approx(0.1 + 0.01 * k)
        tf(sensors, "object/pot", at(0.9), ns - 2 * 10**9 + k * STEP_NS)
        assert sensors.pose("pot")[0][0] == pytest.approx(0.1 + 0.01 * k)


def test_an_object_that_nobody_watches_is_not_seen(sensors, clock):
    tf(sensors, "object/pot", static=True)
    with pytest.raises(BenchError, match="all of the tf from object/pot to world is static"):
        sensors.pose("pot")
    # What is fixed to a marker that is watched, by a camera that stands still, is seen,
    tf(sensors, "object/pot", at(0.1), parent="marker", static=True)
    tf(sensors, "camera", at(1.0), static=True)
    tf(sensors, "marker", at(0.5), 7, parent="camera")
    np.testing.assert_allclose(sensors.pose("pot")[0], [1.6, 0, 0, 1, 0, 0, 0])
    # for as long as the marker is.
    clock.sleep(1.2 * AGE_S)
    tf(sensors, "object/pot", at(0.1), parent="marker", static=True)
    with pytest.raises(BenchError, match="old"):
        sensors.pose("pot")


def test_what_is_fixed_to_what_moves_moves(sensors):
    tf(sensors, "object/pot", at(0.1), parent="marker", static=True)
    for k in range(8):
        tf(sensors, "marker", at(0.01 * k), (k + 1) * STEP_NS)
        pose, twist = sensors.pose("pot")
    assert pose[0] == pytest.approx(0.17)
    np.testing.assert_allclose(twist, [0.5, 0, 0, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(sensors.pose("pot")[1], twist)  # looked at twice
    # What moved before a pause says nothing of now.
    tf(sensors, "marker", at(9.0), 10**10)
    assert not sensors.pose("pot")[1].any()


def test_a_pose_through_a_turned_camera(sensors):
    s = np.sqrt(0.5)
    tf(sensors, "camera", ((1.0, 2.0, 0.0), (s, 0.0, 0.0, s)), static=True)  # left is ahead
    for k in range(8):
        spin = (np.cos(0.01 * k), np.sin(0.01 * k), 0.0, 0.0)  # about its x: 1 rad/s
        tf(sensors, "object/pot", ((0.1 * k, 0.0, 0.5), spin), (k + 1) * STEP_NS, parent="camera")
        pose, twist = sensors.pose("pot")
    np.testing.assert_allclose(pose[:3], [1.0, 2.7, 0.5], atol=1e-9)
    np.testing.assert_allclose(twist, [0, 5.0, 0, 0, 1.0, 0], atol=1e-6)


def test_trees_that_lead_nowhere(sensors):
    with pytest.raises(BenchError, match="pot is not seen: nobody publishes the tf frame object/p"):
        sensors.pose("pot")
    tf(sensors, "object/pot", parent="marker")
    with pytest.raises(BenchError, match="the tf frame marker hangs free"):
        sensors.pose("pot")
    tf(sensors, "marker", parent="object/pot")
    with pytest.raises(BenchError, match="is a ring"):
        sensors.pose("pot")
    for broken in (((np.nan, 0, 0), (1, 0, 0, 0)), ((0, 0, 0), (0, 0, 0, 0))):
        tf(sensors, "object/block", broken)
        with pytest.raises(BenchError, match="nobody publishes"):
            sensors.pose("block")


def picture(ns):
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp(ns)))


def test_a_camera_that_repeats_its_last_picture_has_none(sensors, clock):
    take = sensors._picture_of("head")
    with pytest.raises(BenchError, match="camera head: nothing has come on /cameras/head/image_ra"):
        sensors.picture("head")
    take(picture(10**9))
    with pytest.raises(BenchError, match="nothing has come on /cameras/head/camera_info"):
        sensors.picture("head")
    sensors._info_of("head")("info")
    assert sensors.picture("head")[1] == "info" and sensors.picture_age_s("head") < AGE_S
    clock.sleep(1.2 * AGE_S)
    take(picture(10**9))
    with pytest.raises(BenchError, match=r"camera head: its picture is \d+\.\d\d s old"):
        sensors.picture("head")
    take(picture(10**9 + STEP_NS))
    assert sensors.picture("head")
    assert sensors.picture_age_s("left_wrist") == np.inf
    with pytest.raises(UsageError, match="no camera 'nose' in standin: there are head, left_wrist"):
        sensors.picture("nose")


def test_contacts_that_are_repeated_or_broken_are_none(sensors, clock, monkeypatch):
    from hardware import sensors_ros

    def decode(data):
        if data is None:
            raise ValueError("too short")
        return SimpleNamespace(stamp_ns=data, contact_pair="pairs", contact_force=data)

    monkeypatch.setattr(sensors_ros.cdr, "decode_state", decode)
    with pytest.raises(BenchError, match="no contacts on /standin/state"):
        sensors.contacts()
    sensors._on_contacts(STEP_NS)
    assert sensors.contacts() == ("pairs", STEP_NS)
    clock.sleep(1.2 * AGE_S)
    for data in (STEP_NS, None):
        sensors._on_contacts(data)
        with pytest.raises(BenchError, match=r"no contacts on /standin/state for \d+\.\d\d s"):
            sensors.contacts()
    sensors._on_contacts(2 * STEP_NS)
    assert sensors.contacts()[1] == 2 * STEP_NS
