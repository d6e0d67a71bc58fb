"""The gallery page, the pictures and the README's table are what the tasks say today."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench_tasks import tasks
from bench_tasks.cli import main
from bench_tasks.commands.gallery import page, section
from bench_tasks.commands.progress import Progress
from sim.cameras import camera_info
from sim.portrait import RENDERED, SIZE, window
from sim.world import SimWorld

ROOT = Path(__file__).parents[2]
AGAIN = "make it anew with `bench_tasks gallery --out docs`"


@pytest.fixture(scope="module")
def world():
    return SimWorld()


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """The sections of the page in docs/, by task."""
    text = (ROOT / "docs/gallery.md").read_text()
    return {part.split("\n", 1)[0]: part for part in re.split(r"^## ", text, flags=re.M)[1:]}


def test_the_readme_has_a_row_for_every_task():
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| (.+) \|$", readme, flags=re.M)
    found = [tasks.get(name) for name in tasks.names()]
    want = [
        (t.name, str(t.tier) if t.kind == "task" else "probe", t.mode, t.summary) for t in found
    ]
    assert [row for row in rows if row[0] in tasks.names()] == want


def test_the_page_is_what_would_be_written_now(world, written):
    """All but what the expert did, which takes an episode each: that is the slow test below."""
    assert list(written) == tasks.names(), AGAIN
    sections = {}
    for name, text in written.items():
        seed = re.search(r"at seed (\d+) the", text)
        expert = re.search(r"^- \*\*Expert\*\*: (.*)$", text, flags=re.M)
        assert seed and expert, AGAIN
        scene, _ = world.reset(name, int(seed[1]))
        sections[name] = section(tasks.get(name), scene, expert[1])
        assert ("done after" in expert[1]) is (tasks.get(name).goal(scene) is not None)
    assert (ROOT / "docs/gallery.md").read_text() == page(sections), AGAIN


def test_every_task_has_its_picture_and_it_is_small():
    total = 0
    for name in tasks.names():
        data = (ROOT / f"docs/pictures/{name}.jpg").read_bytes()
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert picture.shape[0] == SIZE[1] and picture.shape[1] > 2 * SIZE[0]
        assert picture.std() > 20
        assert len(data) <= 27_000, name
        total += len(data)
    assert total < 1_000_000


def test_one_task_is_shown_as_the_page_shows_it(tmp_path, written, capsys):
    assert main(["gallery", "--tasks", "lift_pot", "--out", str(tmp_path)]) == 0
    assert f"written to {tmp_path}/gallery.md" in capsys.readouterr().out
    text = (tmp_path / "gallery.md").read_text()
    assert text.split("## ", 1)[1].strip() == written["lift_pot"].strip()
    new, old = (
        cv2.imread(str(folder / "pictures/lift_pot.jpg")) for folder in (tmp_path, ROOT / "docs")
    )
    # Renderers differ in a few edges, never in what is shown.
    assert new.shape == old.shape and np.abs(new.astype(int) - old).mean() < 8.0
    before, after = new[:, : SIZE[0]], new[:, -SIZE[0] :]
    assert np.abs(before.astype(int) - after).mean() > 10.0


@pytest.mark.parametrize("camera", ["third", "head"])
def test_the_window_shows_every_object_and_no_more_than_there_is(world, camera):
    for name, seed in (("spatial_dense", 3), ("lift_pot", 0), ("cover_blocks", 1)):
        scene, state = world.reset(name, seed)
        left, top, right, bottom = window(world, camera, (state,))
        assert 0 <= left < right <= RENDERED[0] and 0 <= top < bottom <= RENDERED[1]
        assert (right - left) / (bottom - top) == pytest.approx(SIZE[0] / SIZE[1], abs=0.01)
        picture = SimWorldView(world, camera)
        for item in scene.objects:
            u, v = picture.pixel(state.object_pose[scene.index(item.name), :3])
            assert left < u < right and top < v < bottom, (name, item.name)


class SimWorldView:
    """Where points of the world are in a picture of the size that is rendered."""

    def __init__(self, world: SimWorld, camera: str) -> None:
        self.matrix = camera_info(world.model, camera, *RENDERED).matrix
        index = world.model.camera(camera).id
        self.eye = world.data.cam_xpos[index].copy()
        self.axes = world.data.cam_xmat[index].reshape(3, 3) * [1, -1, -1]

    def pixel(self, point: np.ndarray) -> np.ndarray:
        u, v, w = self.matrix @ (self.axes.T @ (point - self.eye))
        return np.array([u / w, v / w])


def test_mistakes_are_one_line(tmp_path, capsys):
    assert main(["gallery", "--tasks", "lift_pott", "--out", str(tmp_path)]) == 2
    assert "unknown task 'lift_pott': choose from" in capsys.readouterr().err
    assert main(["gallery", "--tasks", ",", "--out", str(tmp_path)]) == 2
    assert "no task to show: choose from all, spatial_cluttered" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    arguments = ["gallery", "--tasks", "spatial_sparse", "--out", str(tmp_path / "file")]
    assert main(arguments) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_page_comes_out_the_same(tmp_path):
    from bench_tasks.commands.gallery import gallery

    names = tuple(tasks.names())
    made = gallery(tmp_path, names, progress=Progress(len(names)))
    assert made.read_text() == (ROOT / "docs/gallery.md").read_text(), AGAIN
