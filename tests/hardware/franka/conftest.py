"""The drivers' own code over a robot that is not there."""

import sys
from pathlib import Path

import pytest
import yaml

from hardware import process
from hardware.franka.cell import read_cell

FAKE = Path(__file__).with_name("fake")


class Wrong:
    """What goes wrong with which robots; see `fake/pylibfranka.py`."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, what, *addresses):
        file = self.folder / what
        file.write_text(" ".join(addresses)) if addresses else file.unlink()


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    """In this process and those it starts, `pylibfranka` is the fake one, which this misleads."""
    pytest.importorskip("ruckig", reason="comes with make test or make franka")
    folder = tmp_path / "wrong"
    folder.mkdir()
    monkeypatch.setenv("FAKE_FRANKA", str(folder))
    monkeypatch.setattr(process, "ROOT", f"{FAKE}:{process.ROOT}")
    for name in ("pylibfranka", "hardware.franka.arm", "hardware.franka.gripper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(FAKE))
    yield Wrong(folder)
    for name in ("pylibfranka", "hardware.franka.arm", "hardware.franka.gripper"):
        sys.modules.pop(name, None)


@pytest.fixture
def cell(tmp_path):
    """The cell `standin`, whose hands find their fingers' ends and whose driver is this Python."""
    raw = read_cell("standin").raw
    raw["python"], raw["hands"]["home"] = sys.executable, True
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(raw))
    return read_cell(str(file))
