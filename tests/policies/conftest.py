"""Lets the tests of this folder share what those of the simulation, servers and models use."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "sim", HERE / "planners", HERE / "remote", HERE / "wam"):
    sys.path.insert(0, str(folder))
