"""What stand-in robots keep of their joints."""

import numpy as np

from sim.standin.black_box import BlackBox, read_box


def test_what_two_parts_of_a_robot_note_is_read_while_they_do(tmp_path):
    path = tmp_path / "box"
    assert read_box(path, 2).shape == (0, 5)
    left, right = BlackBox(str(path)), BlackBox(str(path))
    left.note(33.0, 0, 4.0, [0.1, 0.2])
    left.flush()
    right.note(33.5, 1, 4.4, np.array([0.3, 0.4]))
    right.flush()
    np.testing.assert_array_equal(
        read_box(path, 2), [[33.0, 0, 4.0, 0.1, 0.2], [33.5, 1, 4.4, 0.3, 0.4]]
    )
    with open(path, "ab") as file:
        file.write(b"half a row")
    np.testing.assert_array_equal(read_box(path, 2, since=1)[:, 0], [33.5])


def test_without_a_file_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    box = BlackBox("")
    box.note(33.0, 0, 4.0, [0.1])
    box.flush()
    assert not list(tmp_path.iterdir())
