"""Judges every command before it reaches a robot: passed on, slowed, or refused and stopped."""

from hardware.safety.decision import Decision, Intervention
from hardware.safety.supervisor import Supervisor

__all__ = ["Decision", "Intervention", "Supervisor"]
