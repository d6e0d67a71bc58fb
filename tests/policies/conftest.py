"""Lets the tests of this folder share `drill` with those of the simulation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "sim"))
