"""Reading back: whole bags, and bags cut, damaged or killed at any place."""

import struct

import made
import pytest
from mcap.writer import CompressionType, Writer

from bench_tasks.bags import cdr
from bench_tasks.bags.bag import find_bags, frames, messages, read_bag
from bench_tasks.bags.recording import BagSink
from bench_tasks.errors import UsageError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "000007"
    sink = BagSink(path, {"seed": 7})
    made.ranking_episode(sink, states=300)
    sink.frames((made.CameraFrame("head", 299, 299 * 20_000_000, 32, 24, "png", made.png()),))
    sink.writer.close()
    return path


def test_everything_comes_back(whole):
    seen = read_bag(whole)
    assert seen.problems == [] and seen.scene == made.ranking_scene()
    assert len(seen.states) == 300
    for seq, state in enumerate(seen.states):
        assert made.equal(state, made.ranking_state(seq, made.IN_ORDER))
    assert [e.kind for e in seen.events] == ["begin", "act", "end"]
    assert seen.verdict.success and seen.manifest["seed"] == 7
    assert seen.state_hash == seen.manifest["state_hash"]
    assert [f.seq for f in frames(whole)] == [299]
    assert next(frames(whole)).data == made.png()


def test_chunks_are_read_when_asked_for(tmp_path):
    sink = BagSink(tmp_path / "bag")
    made.feed(sink, 31)
    sink.writer.close()
    assert read_bag(tmp_path / "bag").chunks == []
    chunks = read_bag(tmp_path / "bag", chunks=True).chunks
    assert [(c.seq, c.values.shape) for c in chunks] == [(s, (10, 16)) for s in (0, 10, 20)]


def test_a_file_cut_anywhere_is_read_up_to_there_and_says_so(whole, tmp_path):
    data = (whole / "000007_0.mcap").read_bytes()
    cut, counts = tmp_path / "cut.mcap", []
    end_record = data.rindex(b"\x0f" + struct.pack("<Q", 4))  # DataEnd
    for size in [0, 3, 8, 20, *range(60, end_record, 1501), end_record, end_record + 5]:
        cut.write_bytes(data[:size])
        seen = read_bag(cut)
        assert len(seen.problems) == 1, (size, seen.problems)
        assert [s.seq for s in seen.states] == list(range(len(seen.states)))
        counts.append(len(seen.states))
    assert counts == sorted(counts) and counts[-1] == 300 and 0 < counts[len(counts) // 2] < 300
    cut.write_bytes(data[: end_record + 13])
    assert read_bag(cut).problems == [], "only the index is missing: nothing was lost"


def test_damage_is_found_by_the_checksum(whole, tmp_path):
    data = bytearray((whole / "000007_0.mcap").read_bytes())
    position = len(data) // 3
    data[position] ^= 0xFF
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(data)
    seen = read_bag(bad)
    assert len(seen.problems) == 1 and "damaged" in seen.problems[0]
    assert 0 < len(seen.states) < 300, "the other chunks are still read"


@pytest.mark.parametrize("junk", [b"", b"not a bag at all", b"\x89MCAP0\r\n" + b"\xff" * 40])
def test_junk_is_a_problem_not_an_exception(tmp_path, junk):
    (tmp_path / "x.mcap").write_bytes(junk)
    seen = read_bag(tmp_path)
    assert len(seen.problems) == 1 and seen.states == []


def test_a_killed_recorders_bag_is_read_to_its_last_chunk(tmp_path):
    made.record_and_be_killed(tmp_path / "bag")
    seen = read_bag(tmp_path / "bag")
    assert seen.problems and seen.manifest["status"] == "recording"
    assert 100 < len(seen.states) < 200 and seen.scene == made.scene()
    assert made.equal(seen.states[100], made.state(100))


@pytest.mark.parametrize("kind", list(CompressionType))
def test_any_compression_and_an_unchunked_file(tmp_path, kind):
    for chunked in (True, False):
        path = tmp_path / f"{chunked}.mcap"
        with open(path, "wb") as file:
            writer = Writer(file, compression=kind, use_chunking=chunked)
            writer.start()
            schema = writer.register_schema("bench_interfaces/msg/WorldState", "ros2msg", b"")
            channel = writer.register_channel("/world/state", "cdr", schema)
            for i in range(5):
                writer.add_message(channel, i, cdr.encode_state(made.state(i)) + b"rtps", i)
            writer.finish()
        seen = read_bag(path)
        assert seen.problems == [] and len(seen.states) == 5
        assert seen.state_hash == hash_of(5), "the garbage tail does not enter the hash"


def hash_of(count):
    digest = cdr.StateHash()
    for i in range(count):
        digest.add(made.state(i))
    return digest.hexdigest()


def test_split_bags_are_read_in_order(tmp_path):
    for part in range(11):
        with open(tmp_path / f"bag_{part}.mcap", "wb") as file:
            writer = Writer(file)
            writer.start()
            schema = writer.register_schema("bench_interfaces/msg/WorldState", "ros2msg", b"")
            channel = writer.register_channel("/world/state", "cdr", schema)
            writer.add_message(channel, part, cdr.encode_state(made.state(part)), part)
            writer.finish()
    assert [s.seq for s in read_bag(tmp_path).states] == list(range(11))


def test_two_scenes_and_undecodable_messages_are_problems(tmp_path):
    sink = BagSink(tmp_path / "bag")
    sink.scene(made.scene(seed=1))
    sink.scene(made.scene(seed=2))
    sink.writer.put("/world/state", "bench_interfaces/msg/WorldState", b"\0\1\0\0zz", 0)
    sink.writer.close()
    problems = read_bag(tmp_path / "bag").problems
    assert len(problems) == 2 and "different scene" in problems[0] and "state" in problems[1]


def test_find_bags(whole, tmp_path):
    assert find_bags(whole.parent) == [whole] == find_bags(whole)
    with pytest.raises(UsageError, match="no recordings"):
        find_bags(tmp_path)
    with pytest.raises(UsageError, match="not a folder"):
        find_bags(tmp_path / "missing")
    probe = tmp_path / "probe"
    probe.mkdir()
    (probe / "manifest.json").write_text('{"probe": "belief"}')
    with pytest.raises(UsageError, match="holds runs of memory probes: .*remember report"):
        find_bags(tmp_path)
    (probe / "manifest.json").write_text('{"probe": "belief", "task": "lift_pot"}')
    assert find_bags(tmp_path) == [probe]
    problems = []
    assert list(messages(tmp_path, problems)) == [] and problems == ["there is no MCAP file"]
