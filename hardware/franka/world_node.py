"""The node `world` made of two Franka arms: the same topics and services as the simulated one.

The arms' and hands' loops run in processes of their own (`drivers`); 50 times a second, on a
thread of its own, the state is put together from what was measured, published, and the next
action handed on. What is not known (an object that nobody sees, an arm that does not answer)
ends the episode without a verdict, with its reason.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from bench_interfaces.srv import MoveObjects
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from sensor_msgs.msg import CameraInfo, CompressedImage
from std_msgs.msg import Bool, UInt64
from std_srvs.srv import Trigger

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.images import (
    DEFAULT_SIZE,
    encode_camera_info,
    encode_frame,
    image_topic,
    info_topic,
    parse_size,
    picture_size,
)
from bench_tasks.kinematics import dual_arm
from bench_tasks.node_ros import PERIODIC, parameter, steady_timer
from bench_tasks.node_ros import main as run_node
from bench_tasks.robots import HOME_RAD
from bench_tasks.streams import parse_streams, periods_between
from bench_tasks.vocabulary import (
    ARM_COLUMNS,
    ARMS,
    CONTROL_PERIOD_NS,
    MAX_OPENING_M,
    CameraFrame,
    Scene,
    WorldState,
)
from bench_tasks.world_ros import WorldBase
from hardware.franka.cell import read_cell
from hardware.franka.drivers import Drivers
from hardware.franka.link import Command
from hardware.franka.motion import hand_contacts, next_step, within
from hardware.franka.sensors_ros import Sensors

__all__ = ["FrankaWorldNode", "main"]

PERIOD_S = CONTROL_PERIOD_NS / 1e9
HOME_WITHIN_RAD = 0.02
HOME_S, HANDS_S, CAMERAS_S, CONFIRM_S = 60.0, 10.0, 5.0, 600.0
WAY_STEPS = 60
JPEG_QUALITY = 90
SILENT_S = 0.1
FATAL = ("driver_lost", "robot_fault")


class FrankaWorldNode(WorldBase):
    """Two arms, two hands, cameras and a tracker."""

    def __init__(self) -> None:
        """Start the drivers and listen to the sensors; UsageError when the cell is not right."""
        # Of its own, not by a launch file's remapping: nothing unchecked must ever move these arms.
        super().__init__(clocks=("realtime",), commands="/safety/action_chunk")
        self._cell = read_cell(parameter(self, "cell", "cell"))
        streams = parse_streams(parameter(self, "streams", ""))
        for camera in streams:
            if camera not in self._cell.cameras:
                raise unknown("camera", camera, self._cell.cameras)
        self._every = {name: periods_between(hz) for name, hz in streams.items()}
        self._size = parse_size(parameter(self, "image_size", DEFAULT_SIZE))
        self._kinematics = dual_arm()
        self._jpeg = {name: self.create_publisher(CompressedImage, image_topic(name), PERIODIC)
                      for name in self._cell.cameras}  # fmt: skip
        self._info = {name: self.create_publisher(CameraInfo, info_topic(name), PERIODIC)
                      for name in self._cell.cameras}  # fmt: skip
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._confirmed = threading.Event()
        self._last = np.zeros(16)
        self._begun_ns = self._late = 0
        self.drivers = Drivers(self._cell)
        self.sensors = Sensors(self._cell)
        self._beat, self._beat_s, self._held = -1, time.monotonic(), False
        self.sensors.hear(UInt64, "/safety/heartbeat", self._on_beat)
        # While the arms go home no state is published for the safety node to judge.
        self._estop = threading.Event()
        self.sensors.hear(Bool, "/safety/estop", self._on_estop)
        steady_timer(self, 1.0, self._diagnose)
        # In the sensors' node: this one's thread waits for the answer.
        self.sensors.offer(Trigger, "/world/confirm", self._confirm)
        self._ticker = threading.Thread(target=self._tick_on, daemon=True)
        self._ticker.start()

    def close(self) -> None:
        """Bring the arms to rest."""
        self._ticker.join(timeout=1.0)
        self.drivers.close()
        self.sensors.close()

    # -- getting ready ---------------------------------------------------------------------------

    def load(self, task: str, seed: int, config: dict[str, Any]) -> tuple[Scene, WorldState]:
        """Arms home and hands open, then the objects where they belong."""
        try:
            self._go_home()
        except BaseException:
            for arm in ARMS:  # going home has no end of its own
                self.drivers.tell(arm, "hold")
            raise
        layout, about = self._cell.raw["layout"], json.dumps(config)
        told = self.sensors.lay_out(task, seed, about, layout["wait_s"])
        contacts = "all" if self._cell.raw["contacts"]["topic"] else "hands"
        scene = replace(Scene.from_json(told.scene), robot="franka", contacts=contacts)
        self._kinematics.set_base_height(scene.base_height_m)
        wanted = np.asarray(told.state.object_pose).reshape(-1, 7)
        self._wait_for_objects(scene, wanted, layout)
        self._wait_for_cameras()
        # It beats with the states, which begin now.
        self._begun_ns, self._beat_s, self._held = time.monotonic_ns(), time.monotonic(), False
        return scene, self._measured(scene, 0, 0)

    def _confirm(self, _: Trigger.Request, response: Trigger.Response):
        self._confirmed.set()
        response.success = True
        return response

    def _on_estop(self, message: Bool) -> None:
        (self._estop.set if message.data else self._estop.clear)()

    def _go_home(self) -> None:
        if self._cell.raw["confirm_before_home"]:
            self._confirmed.clear()
            self.get_logger().warning(
                "the hands are going to open and the arms to go to their starting pose: stand "
                "clear, then call /world/confirm"
            )
            self._wait(self._confirmed.is_set, CONFIRM_S, "nobody called /world/confirm")
        self.drivers.ready()
        for arm in ARMS:
            self.drivers.open_to(arm, MAX_OPENING_M)
        self._wait(
            lambda: all(self.drivers.width(arm) > 0.9 * MAX_OPENING_M for arm in ARMS), HANDS_S,
            "the hands do not open",
        )  # fmt: skip
        share = self._cell.raw["arms"]["home_share"]
        for arm in ARMS:
            start = {name: self.drivers.arm(name).q for name in ARMS}
            for s in np.linspace(0.0, 1.0, WAY_STEPS):
                way = {**start, arm: start[arm] + s * (HOME_RAD - start[arm])}
                hit = self._kinematics.collision(way["left"], way["right"], (MAX_OPENING_M,) * 2)
                if hit is not None and np.abs(start[arm] - HOME_RAD).max() > HOME_WITHIN_RAD:
                    raise BenchError(f"the {arm} arm cannot go straight home: {hit}. Guide it by "
                                     "hand to where it can")  # fmt: skip
            self.drivers.go_to(arm, HOME_RAD, share)
            self._wait(lambda arm=arm: self._is_home(arm), HOME_S, f"the {arm} arm is not home")
        self._last = np.tile(np.append(HOME_RAD, MAX_OPENING_M), len(ARMS))

    def _is_home(self, arm: str) -> bool:
        state = self.drivers.arm(arm)
        if self.drivers.mode(arm) != "following":
            raise BenchError(f"the {arm} arm is stopped: {self.drivers.faults()}")
        return bool(
            np.abs(state.q - HOME_RAD).max() < HOME_WITHIN_RAD
            and np.abs(state.q_sent - HOME_RAD).max() < 1e-4
        )

    def _wait(self, true: Any, seconds: float, what: str) -> None:
        end = time.monotonic() + seconds
        while True:
            for kind, reason in self.drivers.poll():
                self.event(kind, reason=reason)
            if self._estop.is_set():
                raise BenchError("/safety/estop says true: getting ready was broken off")
            if true():
                return
            if time.monotonic() > end or self.stopping.is_set():
                raise BenchError(f"{what} within {seconds:g} s")
            time.sleep(0.02)

    def _wait_for_objects(self, scene: Scene, wanted: np.ndarray, layout: dict[str, Any]) -> None:
        end, wrong = time.monotonic() + layout["wait_s"], ""
        while True:
            self.drivers.poll()
            try:
                wrong = self._misplaced(scene, wanted, layout)
            except BenchError as error:
                wrong = str(error)
            if not wrong:
                return
            if time.monotonic() > end or self.stopping.is_set():
                raise BenchError(f"the objects of {scene.task} seed {scene.seed} do not lie as "
                                 f"they must: {wrong}")  # fmt: skip
            time.sleep(0.05)

    def _wait_for_cameras(self) -> None:
        end = time.monotonic() + CAMERAS_S
        for camera in self._cell.cameras:
            while True:
                self.drivers.poll()
                try:
                    self.sensors.picture(camera)
                    break
                except BenchError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)

    def _misplaced(self, scene: Scene, wanted: np.ndarray, layout: dict[str, Any]) -> str:
        """Which object lies wrong, and by how much; "" when none does."""
        for item, target in zip(scene.objects, wanted, strict=True):
            pose, _ = self.sensors.pose(item.name)
            away = float(np.linalg.norm(pose[:3] - target[:3]))
            turned = 2 * float(np.arccos(min(1.0, abs(float(pose[3:] @ target[3:])))))
            if away > layout["position_m"] or turned > layout["angle_rad"]:
                to = ", ".join(f"{v:.3f}" for v in target[:3])
                return f"{item.name} is {away:.3f} m and {turned:.2f} rad away from ({to})"
        return ""

    # -- 50 times a second -----------------------------------------------------------------------

    def _tick_on(self) -> None:
        due = time.monotonic()
        while not self.stopping.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if now - due > PERIOD_S:
                self._late += 1
                due = now  # what was missed is not made up for in haste
            try:
                if self.ticking:
                    self._tick(due)
            except Exception:  # noqa: BLE001 - arms must not be left to a thread that has died
                self._give_up(traceback.format_exc())
            due += PERIOD_S

    def _tick(self, at_s: float) -> None:
        """The state now, and the action from now on."""
        state, scene = self.state, self.scene
        assert state is not None and scene is not None
        try:
            for kind, reason in self.drivers.poll():
                if kind in FATAL:
                    raise BenchError(reason)
                self.event(kind, reason=reason)
                if kind == "command_refused":
                    self._stay()
            stamp = max(time.monotonic_ns() - self._begun_ns, state.stamp_ns + 1)
            safe = self._safe()
            measured = self._measured(scene, state.seq + 1, stamp)
            due = self._reachable(self.due(measured.seq))
        except BenchError as error:
            self._give_up(str(error))
            return
        self.publish(measured)
        self._stream(measured)
        if not safe:
            return  # told nothing, the arms have come to rest
        step = next_step(self._last, due, PERIOD_S)
        self._last = step.action.copy()
        due_ns = int((at_s + PERIOD_S) * 1e9)
        for k, arm in enumerate(ARMS):
            part = slice(8 * k, 8 * k + 7)
            self.drivers.send(
                arm, Command(measured.seq, step.action[part].tolist(),
                             step.velocity[part].tolist(), step.acceleration[part].tolist(),
                             due_ns),
            )  # fmt: skip
            self.drivers.open_to(arm, step.openings[k])

    def _reachable(self, due: np.ndarray) -> np.ndarray:
        """The actions that are due; none when they begin too far from where the arms are told."""
        if len(due):
            away = np.abs(within(due[0]) - self._last)[ARM_COLUMNS]
            joint, limit = int(away.argmax()), self._cell.raw["arms"]["max_jump_rad"]
            if away[joint] > limit:
                self.chunk = None
                name = f"joint {joint % 7 + 1} of the {ARMS[joint // 7]} arm"
                self.refuse(
                    "bad_chunk", f"it begins {away[joint]:.3f} rad away at {name}, more than "
                    f"{limit:g} rad",
                )  # fmt: skip
                return due[:0]
        return due

    def _on_beat(self, beat: UInt64) -> None:
        if beat.data != self._beat:  # a count that stands still is no sign of life
            self._beat, self._beat_s = beat.data, time.monotonic()

    def _safe(self) -> bool:
        """Whether the safety node is alive; without it the arms brake."""
        silent = time.monotonic() - self._beat_s > SILENT_S
        if silent and not self._held:
            for arm in ARMS:
                self.drivers.tell(arm, "hold")
            self.event("heartbeat_lost", reason=f"no heartbeat of the safety node for {SILENT_S:g}"
                       " s: the arms hold")  # fmt: skip
        if silent or self._held:
            self._stay()
        self._held = silent
        return not silent

    def _stay(self) -> None:
        """An arm has braked: from here on both hold where they are told to be now."""
        self.chunk = None
        for k, arm in enumerate(ARMS):
            self._last[8 * k : 8 * k + 7] = self.drivers.arm(arm).q_sent

    def _give_up(self, reason: str) -> None:
        """Arms to rest; the conductor ends the episode without a verdict."""
        self.ticking, self.chunk = False, None
        for arm in ARMS:
            self.drivers.tell(arm, "hold")
        self.get_logger().error(reason)
        self.event("world_lost", reason=reason, fatal=True)

    def _measured(self, scene: Scene, seq: int, stamp_ns: int) -> WorldState:
        """The state now; BenchError when any of it is not known."""
        arms = [self.drivers.arm(arm) for arm in ARMS]
        for arm in ARMS:
            if self.drivers.mode(arm) != "following":
                raise BenchError(f"the {arm} arm is in mode {self.drivers.mode(arm)}")
        ee = np.stack([self._kinematics.forward(a, s.q) for a, s in zip(ARMS, arms, strict=True)])
        opening = np.array([self.drivers.width(arm) for arm in ARMS])
        seen = [self.sensors.pose(item.name) for item in scene.objects]
        poses = np.array([pose for pose, _ in seen]).reshape(-1, 7)
        if scene.contacts == "all":
            pairs, forces = self.sensors.contacts()
        else:
            pairs, forces = hand_contacts(
                scene, ee, poses, opening, self._last,
                tuple(self.drivers.grasped(arm) for arm in ARMS),
                self._cell.raw["hands"]["force_n"],
            )  # fmt: skip
        return WorldState(
            seq=seq, stamp_ns=stamp_ns,
            joint_position=np.concatenate([s.q for s in arms]),
            joint_velocity=np.concatenate([s.dq for s in arms]),
            joint_effort=np.concatenate([s.tau for s in arms]),
            gripper_opening=opening, ee_pose=ee, command=self._last.copy(), object_pose=poses,
            object_twist=np.array([twist for _, twist in seen]).reshape(-1, 6),
            contact_pair=pairs, contact_force=forces,
        )  # fmt: skip

    # -- pictures --------------------------------------------------------------------------------

    def _stream(self, state: WorldState) -> None:
        due = tuple(name for name, every in self._every.items() if state.seq % every == 0)
        if not due:
            return
        try:
            self.publish_pictures(self.capture(due, False))
        except BenchError as error:
            self._give_up(str(error))

    def capture(self, cameras: tuple[str, ...], depth: bool) -> tuple[CameraFrame, ...]:
        """The newest picture of each camera, at the size asked for, stamped with the state."""
        if depth:
            raise UsageError("depth is not taken from a robot's cameras yet")
        if self.state is None:
            raise BenchError("no episode is loaded")
        seq, stamp = self.state.seq, self.state.stamp_ns
        frames = []
        for camera in cameras:
            message, _ = self.sensors.picture(camera)
            frames.append(CameraFrame(camera, seq, stamp, *self._size, "jpeg", self._jpg(message)))
        return tuple(frames)

    def _jpg(self, message: Any) -> bytes:
        """A camera's message as JPEG of the size asked for."""
        if isinstance(message, CompressedImage):
            data = bytes(message.data)
            if "jpeg" in message.format and picture_size(data) == self._size:
                return data
            pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            if pixels is None:
                raise BenchError(f"a picture of format {message.format!r} cannot be decoded")
        else:
            channels = {"rgb8": 3, "bgr8": 3, "mono8": 1}.get(message.encoding)
            if channels is None:
                raise BenchError(f"a picture of encoding {message.encoding!r} is not understood: "
                                 "rgb8, bgr8 and mono8 are")  # fmt: skip
            rows = np.frombuffer(bytes(message.data), np.uint8).reshape(message.height, -1)
            pixels = rows[:, : message.width * channels].reshape(message.height, message.width, -1)
            code = {"rgb8": cv2.COLOR_RGB2BGR, "mono8": cv2.COLOR_GRAY2BGR}.get(message.encoding)
            pixels = pixels if code is None else cv2.cvtColor(pixels, code)
        resized = cv2.resize(pixels, self._size, interpolation=cv2.INTER_AREA)
        return cv2.imencode(".jpg", resized, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()

    def publish_pictures(self, frames: tuple[CameraFrame, ...]) -> None:
        """Publish pictures with their calibration, which is that of their size."""
        for frame in frames:
            _, info = self.sensors.picture(frame.camera)
            x, y = self._size[0] / info.width, self._size[1] / info.height
            k = np.array(info.k) * np.array([x, x, x, y, y, y, 1, 1, 1])
            self._jpeg[frame.camera].publish(encode_frame(frame))
            self._info[frame.camera].publish(
                encode_camera_info(frame.camera, frame.stamp_ns, *self._size, tuple(k.tolist()))
            )

    def picture_publishers(self) -> list[Any]:
        """What a recorder listens to."""
        return [*self._jpeg.values(), *self._info.values()]

    # -- the rest --------------------------------------------------------------------------------

    def move(self, poses: dict[str, np.ndarray]) -> None:
        """Have whoever lays things out put objects elsewhere."""
        numbers = np.concatenate(list(poses.values())).tolist()
        request = MoveObjects.Request(names=list(poses), poses=numbers)
        self.sensors.move(request, self._cell.raw["layout"]["wait_s"])

    def _diagnose(self) -> None:
        """What a technician wants to know, once a second."""
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        for arm in ARMS:
            array.status.append(self._diagnosis(arm))
        for camera in self._cell.cameras:
            age = self.sensors.picture_age_s(camera)
            good = age <= self._cell.raw["camera_age_s"]
            array.status.append(_status(
                f"camera {camera}", good, "ok" if good else "no recent picture", age_s=age
            ))  # fmt: skip
        array.status.append(_status("world", True, "ok", late_periods=self._late))
        self._diagnostics.publish(array)

    def _diagnosis(self, arm: str) -> DiagnosticStatus:
        if not self.ticking:
            self.drivers.poll()
        mode, faults = self.drivers.mode(arm), self.drivers.faults()
        try:
            state = self.drivers.arm(arm)
        except BenchError as error:
            return _status(f"{arm} arm", False, str(error), mode=mode)
        wrong = "; ".join(f"{name}: {text}" for name, text in faults.items() if arm in name)
        return _status(
            f"{arm} arm", not wrong, wrong or mode, mode=mode, success_rate=state.success_rate,
            rate_hz=state.rate_hz, lost_cycles=state.lost, waiting=state.waiting,
            external_force_n=float(np.linalg.norm(state.wrench[:3])),
        )  # fmt: skip


def _status(name: str, good: bool, message: str, **values: Any) -> DiagnosticStatus:
    level = DiagnosticStatus.OK if good else DiagnosticStatus.ERROR
    shown = [KeyValue(key=k, value=f"{v:.3f}" if isinstance(v, float) else str(v))
             for k, v in values.items()]  # fmt: skip
    return DiagnosticStatus(
        level=level, name=f"bench_tasks: {name}", message=message, values=shown
    )


def main(args: list[str] | None = None) -> None:
    """Entry point of `franka_world_node`."""
    run_node(FrankaWorldNode, args)


if __name__ == "__main__":
    main()
