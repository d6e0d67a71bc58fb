"""Nodes started by a launch file: package look-up, parameters, names, remappings."""

import os
import sys

import pytest

pytestmark = pytest.mark.ros

NODE = """
import json, sys, rclpy
rclpy.init()
node = rclpy.create_node("plain", automatically_declare_parameters_from_overrides=True)
values = {n: p.value for n, p in node.get_parameters_by_prefix("").items()}
topic = node.create_publisher(__import__("std_msgs.msg").msg.String, "chat", 1).topic_name
print(json.dumps([node.get_fully_qualified_name(), topic, sys.argv[1:2], 
                  *(values[n] for n in ("rate", "who", "list", "flag", "inner.x", "file"))]))
rclpy.shutdown()
"""


@pytest.fixture
def package(tmp_path):
    """A package `demo` with one node."""
    prefix = tmp_path / "prefix"
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages/demo").touch()
    (prefix / "share/demo").mkdir()
    (prefix / "lib/demo").mkdir(parents=True)
    node = prefix / "lib/demo/node"
    node.write_text(f"#!{sys.executable}{NODE}")
    node.chmod(0o755)
    return prefix


def test_node_gets_name_parameters_and_remappings(ros2, ros_domain, package):
    (ros2.folder / "extra.yaml").write_text("/**: {ros__parameters: {file: from_file}}\n")
    result = ros2.launch(
        """
        return [DeclareLaunchArgument("rate", default_value="2.5"),
                Node(package="demo", executable="node", name="special", namespace="arm",
                     output="screen", arguments=["word"], remappings=[("chat", "talk")],
                     parameters=[{"rate": LaunchConfiguration("rate"), "who": "7",
                                  "list": [1, 2], "flag": True, "inner": {"x": 3}},
                                 "extra.yaml"])]
        """,
        AMENT_PREFIX_PATH=f"{package}:{os.environ['AMENT_PREFIX_PATH']}",
    )
    assert result.status == 0, result.out
    want = '["/arm/special", "/arm/talk", ["word"], 2.5, "7", [1, 2], true, 3, "from_file"]'
    assert f"[node-1] {want}\n" in result.out


def test_parameter_files_are_removed_at_the_end(ros2, ros_domain, package, tmp_path):
    (tmp_path / "tmp").mkdir()
    ros2.launch(
        "return [Node(package='demo', executable='node', parameters=[{'rate': 1}])]",
        AMENT_PREFIX_PATH=f"{package}:{os.environ['AMENT_PREFIX_PATH']}",
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert not list((tmp_path / "tmp").glob("launch_params_*"))
