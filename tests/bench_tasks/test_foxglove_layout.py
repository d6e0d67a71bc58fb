"""The committed Foxglove layout shows topics and fields that the bags really have."""

import json
import re
from pathlib import Path

import made

from bench_tasks.bags import cdr
from bench_tasks.bags.bag import messages
from bench_tasks.bags.recording import TOPICS, BagSink

LAYOUT = json.loads((Path(__file__).parents[2] / "docs" / "foxglove_layout.json").read_text())
PANELS = LAYOUT["configById"]


def leaves(node):
    if isinstance(node, str):
        return [node]
    return leaves(node["first"]) + leaves(node["second"])


def test_every_panel_is_placed_and_configured():
    placed = leaves(LAYOUT["layout"])
    placed += [tab["layout"] for name in placed if name.startswith("Tab!")
               for tab in PANELS[name]["tabs"]]  # fmt: skip
    assert sorted(placed) == sorted(PANELS)


def test_plotted_paths_exist_in_a_bag(tmp_path):
    sink = BagSink(tmp_path / "bag")
    made.ranking_episode(sink)
    sink.writer.close()
    last = {m.topic: cdr.decode(m.type_name, m.data) for m in messages(tmp_path / "bag", [])}
    paths = [p["value"] for name in PANELS if name.startswith("Plot!")
             for p in PANELS[name]["paths"]]  # fmt: skip
    assert len(paths) >= 20
    for path in paths:
        topic, field, index = re.fullmatch(r"(/[\w/]+)\.(\w+)\[(\d+)\]", path).groups()
        assert isinstance(float(last[topic][field][int(index)]), float), path


def test_shown_topics_are_recorded():
    from sim.scene import CAMERAS

    pictures = {f"/{camera}/image_raw/compressed" for camera in CAMERAS}
    shown = [panel["topicPath"] for panel in PANELS.values() if "topicPath" in panel]
    assert set(shown) <= set(TOPICS) and len(shown) == 3
    images = {p["imageMode"]["imageTopic"] for p in PANELS.values() if "imageMode" in p}
    assert images and images <= pictures
