"""Build the workspace with colcon and make it visible to the environment's Python."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from progress import Failed, Steps, digest, remove
from ros import Ros

__all__ = ["build_interfaces", "build_package", "install_small_ros2", "link_libraries"]

INTERFACES = ("*.msg", "*.srv", "*.action", "*.in", "CMakeLists.txt", "package.xml")


def interface_packages(root: Path, ros: Ros) -> list[Path]:
    """Folders of the interface packages to build; a distribution has the standard ones itself."""
    own = [root / "ros_ws/src/bench_interfaces"]
    lacking = sorted((root / "ros_ws/from_wheels").glob("*/package.xml"))
    return own if ros.real else own + [path.parent for path in lacking]


def colcon(root: Path, ros: Ros) -> tuple[list[str], dict[str, str]]:
    """The colcon command, run by the environment's Python so that scripts start with it."""
    venv = root / ".venv"
    program = shutil.which("colcon") if ros.real else str(venv / "bin/colcon")
    if program is None:
        raise Failed("no colcon. Run: sudo apt-get install -y python3-colcon-common-extensions")
    env = {**os.environ, "PATH": f"{venv / 'bin'}:{os.environ.get('PATH', '')}"}
    if not ros.real:
        env["AMENT_PREFIX_PATH"] = env["CMAKE_PREFIX_PATH"] = str(venv)
        for name in ("PYTHONPATH", "COLCON_PREFIX_PATH"):
            env.pop(name, None)
    return [str(venv / "bin/python"), program, "build", "--symlink-install"], env


def build_interfaces(root: Path, ros: Ros, steps: Steps, key: str) -> None:
    """Build the messages and services, from nothing, when one of them changed."""
    packages = interface_packages(root, ros)
    files = [path for package in packages for kind in INTERFACES for path in package.rglob(kind)]
    base = root / "ros_ws"

    def action() -> None:
        for name in ("build", "install", "log"):
            remove(base / name)
        (steps.folder / "package").unlink(missing_ok=True)
        command, env = colcon(root, ros)
        arguments = ["--cmake-args", "-DBUILD_TESTING=OFF"]
        if not ros.real:
            arguments.append("-DPYTHON_INTERFACES_ONLY=ON")
            if shutil.which("ninja"):
                arguments.append("-GNinja")
        steps.run(
            "interfaces", [*command, "--base-paths", *map(str, packages), *arguments],
            "Fix what the log names, then run make again.", env, base,
        )

    steps.step(
        "interfaces", digest(files, key), "ROS interfaces (1 to 4 min)", action,
        [base / "install/setup.bash", *(base / "install" / path.name for path in packages)],
    )


def link_libraries(root: Path) -> None:
    """Put the built libraries where the ROS wheels' start-up already makes the linker look.

    The wheels' type support loads them by name, and only LD_LIBRARY_PATH decides where from.
    Links that are there are left alone.
    """
    lib = root / ".venv/lib"
    for old in lib.glob("lib*.so"):
        if old.is_symlink() and not old.exists():
            old.unlink()
    for built in (root / "ros_ws/install").glob("*/lib/lib*.so"):
        link = lib / built.name
        if not (link.is_symlink() and link.readlink() == built):
            link.unlink(missing_ok=True)
            link.symlink_to(built)


def build_package(root: Path, ros: Ros, steps: Steps, key: str) -> None:
    """Build bench_tasks itself; with --symlink-install only new files need it again."""
    listed = [str(path) for path in sorted((root / "launch").glob("*.launch.py"))]
    files = [root / name for name in ("package.xml", "setup.py", "setup.cfg", "pyproject.toml")]
    tops = sorted(path.parent.name for path in root.glob("*/__init__.py"))

    def action() -> None:
        command, env = colcon(root, ros)
        remove(root / "ros_ws/build/bench_tasks")
        remove(root / "ros_ws/install/bench_tasks")
        prefix = root / "ros_ws/install"
        env["AMENT_PREFIX_PATH"] = ":".join(
            [*map(str, sorted(path for path in prefix.iterdir() if path.is_dir())),
             env.get("AMENT_PREFIX_PATH", "")]
        )
        steps.run(
            "package", [*command, "--base-paths", "src/bench_tasks"],
            "Fix what the log names, then run make again.", env, root / "ros_ws",
        )
        pip = [str(root / ".venv/bin/python"), "-m", "pip", "install", "--quiet", "--no-deps",
               "--no-build-isolation", "--editable", str(root)]
        steps.run("editable", pip, "Fix what the log names, then run make again.")

    steps.step(
        "package", digest(files, key, *listed, *tops), "installing bench_tasks", action,
        [root / "ros_ws/install/bench_tasks", root / ".venv/bin/bench_tasks"],
    )


def install_small_ros2(root: Path) -> None:
    """Make `ros2`, `launch` and the built interfaces available in an environment of wheels.

    Never called where a distribution is used. Writes only what differs, so that it costs nothing.
    """
    venv = root / ".venv"
    (site,) = (venv / "lib").glob("python3.*/site-packages")
    python = root / "ros_ws/from_wheels/python"
    install = root / "ros_ws/install"
    built = sorted(install.glob(f"*/lib/{site.parent.name}/site-packages/*/msg"))
    lines = [str(python), *(str(path.parent.parent) for path in built)]
    lines.append("import small_ros2.environment; small_ros2.environment.activate()")
    write(site / "bench_tasks_ros.pth", "\n".join(lines) + "\n")
    script = venv / "bin/ros2"
    write(script, f"#!{venv / 'bin/python'}\nimport sys\nfrom small_ros2.cli import main\n"
                  "sys.exit(main())\n")
    if not os.access(script, os.X_OK):
        script.chmod(0o755)


def write(path: Path, text: str) -> None:
    """Write `text` unless it is there already."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
