"""Make a virtual environment with ROS wheels fit to build interfaces in; run by its own python.

The wheels' exported CMake files name the include directories of the machine that built them. They
are replaced by this interpreter's. Running it again changes nothing.
"""

import re
import sys
import sysconfig
from pathlib import Path

import numpy

BUILDER = r"/opt/python/cp\d+-cp\d+"
BAKED_NUMPY = re.compile(BUILDER + r"/lib/python[\d.]+/site-packages/numpy/_core/include")
BAKED_PYTHON = re.compile(BUILDER + r"/include/python[\d.]+")


def rewrite(share: Path, python_include: str, numpy_include: str) -> int:
    """Replace the baked-in directories in every *.cmake under `share`; return files changed."""
    changed = 0
    for path in share.rglob("*.cmake"):
        old = path.read_text(encoding="utf-8")
        new = BAKED_NUMPY.sub(lambda _: numpy_include, old)
        new = BAKED_PYTHON.sub(lambda _: python_include, new)
        if new != old:
            path.write_text(new, encoding="utf-8")
            changed += 1
    return changed


def main() -> int:
    """Rewrite what lies in this environment's share folder."""
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").is_file():
        sys.stderr.write(
            f"no Python.h in {include}: install the headers of this Python"
            f" (Debian: apt-get install python3-dev)\n"
        )
        return 1
    rewrite(Path(sys.prefix) / "share", include, numpy.get_include())
    return 0


if __name__ == "__main__":
    sys.exit(main())
