"""Sharing work: everything is done once or accounted for, and no process is left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import chores
import pytest

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.workers import Lost, work_through


class Heard(dict):
    """Results by index, each once; notes beside."""

    def __init__(self):
        super().__init__()
        self.notes = []

    def done(self, index, result):
        assert index not in self
        self[index] = result

    def note(self, index, text, part):
        self.notes.append((index, text, part))


def share(items, count=2, make=chores.make, heard=None):
    heard = Heard() if heard is None else heard
    work_through(count, make, items, heard.done, heard.note)
    return heard


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def ended(pids, within_s=20.0):
    until = time.monotonic() + within_s
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def test_each_item_goes_to_the_next_free_process_which_is_made_once(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    heard = share([1.0, *[0.01] * 6], make=partial(chores.make, tmp_path / "pids"))
    assert sorted(heard) == list(range(7))
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2 and {str(pid) for pid, _, _ in heard.values()} <= set(pids)
    # Whoever waits for the long one does no other in the meantime.
    assert heard[0][1] < max(count for _, count, _ in heard.values())
    assert (0, "item 1.0", 0.5) in heard.notes
    share_of_each = str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert {threads for *_, threads in heard.values()} == {share_of_each}
    assert "OMP_NUM_THREADS" not in os.environ and ended(pids)


def test_a_process_that_dies_costs_its_item_and_another_takes_its_place():
    heard = share([0.01, "kill", 0.01, "exit", 0.01, 0.01], 1)
    assert heard.pop(1) == Lost("was killed by SIGKILL")
    assert heard.pop(3) == Lost("ended with status 7")
    assert sorted(heard) == [0, 2, 4, 5] and heard[4][0] == heard[5][0]
    assert len({pid for pid, *_ in heard.values()}) == 3


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [("refuse", UsageError, "^this item is wrong$"), ("bug", RuntimeError, "(?s)chores.*oops")],
)
def test_what_the_work_raises_ends_everything_and_what_was_done_is_kept(
    tmp_path, item, kind, message
):
    heard = Heard()
    with pytest.raises(kind, match=message):
        share([0.01, item, "wait"], 1, partial(chores.make, tmp_path / "pids"), heard)
    assert list(heard) == [0] and ended((tmp_path / "pids").read_text().split())


def test_processes_that_cannot_be_made_are_one_line():
    with pytest.raises(BenchError, match="could be started: the first was killed by SIGKILL"):
        share([0.01] * 3, make=chores.make_none)
    with pytest.raises(BenchError, match="^no renderer found$"):
        share([0.01] * 3, make=chores.make_wrong)


def test_no_process_outlives_the_one_that_started_it(tmp_path):
    code = (
        "import chores; from functools import partial\n"
        "from bench_tasks.workers import work_through\n"
        "if __name__ == '__main__':\n"
        f"    make = partial(chores.make, {str(tmp_path / 'pids')!r})\n"
        "    work_through(2, make, ['wait', 'wait'], print, lambda *_: None)\n"
    )
    (tmp_path / "main.py").write_text(code)
    folders = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[2])))
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py")], env={**os.environ, "PYTHONPATH": folders}
    )
    until, pids = time.monotonic() + 60, []
    while len(pids) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        if (tmp_path / "pids").exists():
            pids = re.findall(r"\d+(?=\n)", (tmp_path / "pids").read_text())
    assert len(pids) == 2 and all(map(alive, pids))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert ended(pids)
