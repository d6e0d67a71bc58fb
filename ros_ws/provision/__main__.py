"""Set up everything a bare clone lacks; run by the Makefile: python ros_ws/provision run|test|...

Standard library only, since it runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from interpreter import base_python, runs_from  # noqa: E402
from progress import Failed, Steps, digest, explain, remove, say  # noqa: E402
from ros import Ros, choose  # noqa: E402
from system import check_tools, rendering  # noqa: E402
from workspace import (  # noqa: E402
    build_interfaces,
    build_package,
    install_small_ros2,
    link_libraries,
)

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
SITE = VENV / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def environment(steps: Steps, ros: Ros, python: str) -> str:
    """Make the virtual environment with `python`; return the key that all else depends on.

    The key is the same from whichever environment of one Python the set-up is run.
    """
    key = digest([], sys.version, sys.base_prefix, str(ROOT), ros.distro)

    def action() -> None:
        steps.forget()
        remove(VENV)
        steps.run(
            "environment", [python, "-m", "venv", *ros.venv_options, str(VENV)],
            "Run: sudo apt-get install -y python3-venv python3-dev",
        )

    version = ".".join(map(str, sys.version_info[:3]))
    where = f"ROS 2 {ros.distro}" if ros.real else "ROS 2 from wheels"
    steps.step(
        "environment", key, f"virtual environment: Python {version}, {where}", action,
        [VENV / "bin/python", VENV / "pyvenv.cfg", SITE],
    )
    return key


def requirements(steps: Steps, ros: Ros, key: str) -> str:
    """Install the pinned packages and make the wheels' CMake files usable.

    Returns the key of what is built with them: only the ROS wheels and colcon count for that.
    """
    files = [ROOT / f"requirements/{name}.txt" for name in ros.requirement_files]
    prepare = ROOT / "ros_ws/from_wheels/prepare.py"
    new = digest([*files, prepare], key)

    def action() -> None:
        python = str(VENV / "bin/python")
        pip = [python, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
        steps.run(
            "packages", [*pip, *(word for file in files for word in ("-r", str(file)))],
            "Check the network and the package index, then run make again.",
        )
        if not ros.real:
            steps.run("prepare", [python, str(prepare)], "Then run make again.")

    # A distribution may have some of them already, outside the environment.
    makes = [] if ros.real else [SITE / name for name in ("numpy", "mujoco", "rclpy")]
    steps.step("packages", new, "Python packages (1 to 4 min)", action, makes)
    return digest([file for file in files if file.stem in ("ros", "build")] + [prepare], key)


def policies_extra(steps: Steps, ros: Ros, key: str) -> None:
    """Install what learned policies, their data and the humanoid need."""
    file = ROOT / "requirements/policies.txt"
    others = [ROOT / f"requirements/{name}.txt" for name in ("weights", "data", "humanoid")]
    lerobot = ROOT / "requirements/lerobot.txt"

    def action() -> None:
        pip = [str(VENV / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check"]
        advice = "Check the network and the package index, then run make again."
        base = str(ROOT / "requirements/base.txt")
        steps.run("policies", [*pip, "-r", str(file), "-c", base], advice)
        more = [word for other in others for word in ("-r", str(other))]
        steps.run("data", [*pip, "--no-deps", *more], advice)
        # Apart from all else: transformers would import its torchvision, which is of another torch.
        remove(VENV / "lerobot")
        steps.run("data", [*pip, "--no-deps", "--target", str(VENV / "lerobot"),
                           "-r", str(lerobot)], advice)  # fmt: skip

    what = "packages for learned policies (1 to 4 min)"
    steps.step("policies", digest([file, *others, lerobot], key), what, action,
               [VENV / "lerobot", *([] if ros.real else [SITE / "transformers"])])


def humanoid(steps: Steps, ros: Ros, key: str) -> None:
    """Install the humanoid's model and what balances it: a real one's limits and distances too."""
    file = ROOT / "requirements/humanoid.txt"

    def action() -> None:
        pip = [str(VENV / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check"]
        steps.run("humanoid", [*pip, "--no-deps", "-r", str(file)],
                  "Check the network and the package index, then run make again.")  # fmt: skip

    steps.step("humanoid", digest([file], key), "packages for the humanoid", action,
               [] if ros.real else [SITE / "mjlab", SITE / "onnxruntime"])  # fmt: skip


def vendors_python(name: str) -> str:
    """Another Python than ours for a vendor's environment, "" for ours.

    Only Unitree's: the CycloneDDS that goes with a live robot has wheels up to Python 3.10.
    UNITREE_PYTHON says which, otherwise a python3.10 is taken where there is one.
    """
    if name != "unitree":
        return ""
    given = os.environ.get("UNITREE_PYTHON", "")
    python = given or shutil.which("python3.10") or ""
    if python and subprocess.run([python, "-c", "import venv"], capture_output=True).returncode:
        if given:
            raise Failed(f"UNITREE_PYTHON: {given} cannot make a virtual environment")
        return ""  # a name that leads nowhere, as pyenv's
    return python


def vendor(steps: Steps, name: str, key: str) -> None:
    """Make an environment for packages whose pins clash with ours: .venv/NAME."""
    file, folder = ROOT / f"requirements/{name}.txt", VENV / name
    ours, advice = str(VENV / "bin/python"), "Check the network, then run make again."
    python = vendors_python(name) or ours

    def action() -> None:
        remove(folder)
        steps.run(name, [python, "-m", "venv", "--without-pip", str(folder)], advice)
        steps.run(
            name, [ours, "-m", "pip", "--python", str(folder / "bin/python"), "install",
                   "--no-deps", "--disable-pip-version-check", "-r", str(file)], advice,
        )  # fmt: skip

    steps.step(name, digest([file], key, python), f"packages of requirements/{name}.txt", action,
               [folder / "bin/python"])  # fmt: skip


VENDORS = ("franka", "franka_sim", "unitree")


def main(arguments: list[str]) -> int:
    """Do the set-up for running, for testing, or of a vendor's packages as well."""
    if arguments not in (["run"], ["test"], *([name] for name in VENDORS)):
        sys.stderr.write(f"usage: python ros_ws/provision {'|'.join(['run', 'test', *VENDORS])}\n")
        return 2
    try:
        python = base_python(VENV)
        if runs_from(VENV):
            # It may have to be made anew, which nothing that runs from it could survive.
            sys.stdout.flush()
            os.execv(python, [python, str(Path(__file__).parent), *arguments])
        steps = Steps(ROOT / ".stamps")
        ros, warning = choose(os.environ, python)
        if warning:
            say(warning)
        check_tools()
        key = environment(steps, ros, python)
        steps.step("rendering", key, "Debian packages for rendering", lambda: rendering(steps))
        key = requirements(steps, ros, key)
        build_interfaces(ROOT, ros, steps, key)
        if not ros.real:
            link_libraries(ROOT)
            install_small_ros2(ROOT)
        build_package(ROOT, ros, steps, key)
        if arguments == ["test"]:
            policies_extra(steps, ros, key)
        elif arguments[0] in VENDORS:
            vendor(steps, arguments[0], key)
            if arguments[0] == "unitree":
                humanoid(steps, ros, key)
    except Failed as failure:
        sys.stderr.write(f"set-up failed: {failure}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"set-up failed: {explain(error, ROOT)}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("set-up interrupted; run make again to go on\n")
        return 130
    steps.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
