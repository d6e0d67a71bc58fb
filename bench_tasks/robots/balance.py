"""Keeps the G1 on its feet: a walking policy that came in a wheel, told to stand still.

The networks are holosoma-inference's `fastsac` and `ppo` (100 numbers in, 29 out, 50 Hz). What
they see, in this order: their last output (29), the pelvis' angular velocity in its own frame x
0.25 (3), commanded yaw rate (1) and velocity (2), cosine of both feet's phases (2), joint positions
minus the default posture (29), joint velocities x 0.05 (29), gravity's direction in the pelvis'
frame (3), sine of the phases (2). Joint targets are the default posture + 0.25 x output.

They were trained to move the arms themselves and, shown arms in another posture, they walk off. So
they are shown waist and arms in the default posture and at rest. What the arms really do to the
balance they are told as a tilt: that at which a robot in the default posture would have its centre
of mass where it is now. They then lean the other way.
"""

from __future__ import annotations

import json

import numpy as np

from bench_tasks.errors import BenchError, unknown
from bench_tasks.robots.g1 import DEFAULT_RAD, JOINT_NAMES, LEGS, balance_models
from bench_tasks.view import rotation_matrix

__all__ = ["MODELS", "Balance"]

MODELS = ("ppo", "fastsac")
_SCALE, _CLIP = 0.25, 100.0
_STAND = (np.full(2, np.cos(np.pi)), np.full(2, np.sin(np.pi)))
"""Both feet at the phase pi: stand."""
COM_HEIGHT_M = 0.65
"""Of a standing G1's centre of mass above its ankles."""
LEAN_GAIN = 0.6
"""Share of the tilt that is told. Both arms stretched forward and the waist bent by 0.5 rad, `ppo`
stands still with it; with nothing told it steps forward by 0.2 m, with 1.3 it walks off."""


class Balance:
    """One balance policy. `last` (29,) is all that it remembers."""

    def __init__(self, model: str = "ppo") -> None:
        """Load a network (0.1 s). UsageError on an unknown name; BenchError when it is not there.

        BenchError also when its joints are not those that we think they are.
        """
        if model not in MODELS:
            raise unknown("balance policy", model, MODELS)
        try:
            import onnxruntime
        except ImportError:
            raise BenchError(
                "the humanoid needs onnxruntime: pip install --no-deps -r requirements/humanoid.txt"
            ) from None
        options = onnxruntime.SessionOptions()
        # One thread, so that the same input gives the same bits on every machine load.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = balance_models() / f"{model}_g1_29dof.onnx"
        self._net = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
        joints = json.loads(self._net.get_modelmeta().custom_metadata_map["dof_names"])
        if tuple(joints) != JOINT_NAMES:
            raise BenchError(f"{file.name} moves other joints: {', '.join(joints)}")
        self._input = np.zeros((1, 100), np.float32)
        self.last = np.zeros(len(JOINT_NAMES))

    @property
    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Motor gains (29,) and (29,) that the network was trained with: kp and kd."""
        metadata = self._net.get_modelmeta().custom_metadata_map
        return np.array(json.loads(metadata["kp"])), np.array(json.loads(metadata["kd"]))

    def reset(self) -> None:
        """Forget the last output."""
        self.last = np.zeros(len(JOINT_NAMES))

    def targets(
        self, quat: np.ndarray, angular_velocity: np.ndarray, position: np.ndarray,
        velocity: np.ndarray, shift_m: np.ndarray,
    ) -> np.ndarray:
        """Targets (29,) rad of all joints for the next 20 ms; the legs' are the first 12.

        `quat` (4,) wxyz of the pelvis in the world, `angular_velocity` (3,) rad/s in its own frame,
        joint `position` and `velocity` (29,), `shift_m` (2,): how far forward and to the left, in
        the pelvis' frame, waist and arms move the whole robot's centre of mass from where the
        default posture has it.
        """
        position, velocity = position.copy(), velocity.copy()
        position[LEGS:], velocity[LEGS:] = DEFAULT_RAD[LEGS:], 0.0
        forward, left = LEAN_GAIN * np.arctan(np.asarray(shift_m) / COM_HEIGHT_M)
        tilt = _turn(-left, forward)
        # The pelvis as if it were tilted further by that, about its own axes.
        gravity = -(rotation_matrix(quat) @ tilt)[2]
        cosine, sine = _STAND
        self._input[0] = np.concatenate([
            self.last, 0.25 * angular_velocity, np.zeros(3), cosine, position - DEFAULT_RAD,
            0.05 * velocity, gravity, sine,
        ])  # fmt: skip
        output = self._net.run(None, {"actor_obs": self._input})[0][0].astype(np.float64)
        self.last = np.clip(output, -_CLIP, _CLIP)
        return DEFAULT_RAD + _SCALE * self.last


def _turn(about_x_rad: float, about_y_rad: float) -> np.ndarray:
    """Rotation matrix of a small turn about x and y (the rotation vector is their sum)."""
    angle = float(np.hypot(about_x_rad, about_y_rad))
    if angle == 0.0:
        return np.eye(3)
    axis = np.array([about_x_rad, about_y_rad, 0.0]) / angle
    half = np.sin(angle / 2) * axis
    return rotation_matrix(np.concatenate([[np.cos(angle / 2)], half]))
