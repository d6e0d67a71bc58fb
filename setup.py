"""The root is a ROS 2 package (ament_python) and a pip package at once."""

import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = "bench_tasks"
# colcon runs a link to this file from its build folder.
REQUIREMENTS = Path(__file__).resolve().parent / "requirements"

setup(
    name=NAME,
    version="0.1.0",
    description="Evaluation of planners and action policies on bimanual manipulation over ROS 2",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(
        include=[top + sub for top in (NAME, "sim", "policies", "hardware") for sub in ("", ".*")]
    ),
    include_package_data=True,
    package_data={
        "": ["*.json", "*.yaml", "*.xml", "*.html", "*.css", "*.js", "*.safetensors", "*.npz"]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", sorted(glob.glob("launch/*.launch.py"))),
    ],
    zip_safe=False,
    extras_require={
        name: [
            line.strip()
            for line in (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        for name in ("policies", "data")
    },
    entry_points={
        "console_scripts": [
            "bench_tasks = bench_tasks.cli:main",
            "world_node = bench_tasks.ros.start:world",
            "franka_world_node = bench_tasks.ros.start:franka_world",
            "franka_check_node = bench_tasks.ros.start:franka_check",
            "unitree_check_node = bench_tasks.ros.start:unitree_check",
            "standin_franka_node = bench_tasks.ros.start:standin_franka",
            "standin_ros2_control_node = bench_tasks.ros.start:standin_ros2_control",
            "unitree_world_node = bench_tasks.ros.start:unitree_world",
            "standin_g1_node = bench_tasks.ros.start:standin_g1",
            "layout_node = bench_tasks.ros.start:layout",
            "planner_node = bench_tasks.ros.start:planner",
            "policy_node = bench_tasks.ros.start:policy",
            "memory_node = bench_tasks.ros.start:memory",
            "probe_node = bench_tasks.ros.start:probe",
            "safety_node = bench_tasks.ros.start:safety",
            "task_node = bench_tasks.ros.start:task",
            "recorder_node = bench_tasks.ros.start:recorder",
        ],
    },
)
