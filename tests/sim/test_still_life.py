"""Pictures for memory probes show what they are said to show, and the eye of the reader sees it."""

from __future__ import annotations

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes.stills import Still, caption_of, stills
from bench_tasks.probes.stream import Picture
from bench_tasks.probes.words import COLOURS, THINGS
from policies.memory.eye import colours_in
from sim.still_life import Album


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    return Album(tmp_path_factory.mktemp("stills"))


def fresh(count: int) -> list[Still]:
    """Other things than conversations show; the thresholds of the eye were not looked up there."""
    n = len(COLOURS)
    return [
        Still(1000 + k, tuple((COLOURS[(k + j * (1 + k % 5)) % n], THINGS[(k // 3 + 2 * j) % 5])
                              for j in range(1 + k % 3)))
        for k in range(count)
    ]  # fmt: skip


def seen_right(album, chosen) -> tuple[int, int]:
    """How often the largest thing's colour is seen first, and how often all are seen, no more."""
    first = every = 0
    for still in chosen:
        seen = colours_in(Picture("x.jpg", album(still)))
        colours = [colour for colour, _ in still.things]
        first += seen[:1] == (colours[0],)
        every += set(seen) == set(colours)
    return first, every


def test_the_eye_sees_the_colours_of_rendered_things(album):
    assert seen_right(album, fresh(32)) == (32, 32)


@pytest.mark.slow
def test_the_eye_sees_the_colours_in_all_pictures_of_conversations(album):
    first, every = seen_right(album, stills())
    assert first >= 0.99 * len(stills()) and every >= 0.98 * len(stills())


def test_captions_are_read_in_their_order():
    for still in stills()[:40]:
        picture = Picture("x.jpg", b"", "", caption_of(still))
        assert colours_in(picture) == tuple(colour for colour, _ in still.things)


def test_what_is_no_picture_shows_nothing():
    assert colours_in(Picture("x.jpg", b"no picture")) == ()
    assert colours_in(Picture("x.jpg", b"", caption="Nothing that is coloured, or tired")) == ()


def test_a_picture_is_rendered_once_and_the_same_by_another_painter(tmp_path):
    still = stills()[7]
    first, second = Album(tmp_path / "a"), Album(tmp_path / "b")
    assert first(still) == second(still)
    (file,) = (tmp_path / "a").iterdir()
    file.write_bytes(b"kept")
    assert first(still) == b"kept", "it is not rendered again"
    assert Album(tmp_path / "a")(stills()[8]) != b"kept"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot keep pictures in .*file"):
        Album(tmp_path / "file")(stills()[0])


def test_every_colour_is_largest_equally_often_and_no_colour_twice():
    firsts = [still.things[0][0] for still in stills()]
    assert {firsts.count(colour) for colour in COLOURS} == {len(stills()) // len(COLOURS)}
    assert all(len({c for c, _ in still.things}) == len(still.things) for still in stills())
