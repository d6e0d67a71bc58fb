"""Lets the tests of this folder share `sabotage` and `cases`, whatever import mode pytest uses."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
