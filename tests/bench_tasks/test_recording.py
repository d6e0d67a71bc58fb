"""Bags as written: by which readers they open, what survives a kill, a full disk, a second run."""

import json
import os
import resource
import signal

import made
import pytest
import yaml
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader

from bench_tasks.bags import cdr
from bench_tasks.bags.bag import read_bag
from bench_tasks.bags.recording import BagSink, BagWriter, HashSink
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.vocabulary import Verdict


def written(path, states=30):
    sink = BagSink(path, {"seed": 7})
    made.feed(sink, states)
    sink.writer.close(note="x")
    return sink


def test_rosbags_opens_the_bag_and_reads_every_topic(tmp_path):
    sink = written(tmp_path / "000007")
    with Reader(tmp_path / "000007") as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        assert counts["/world/state"] == 30 and counts["/world/scene"] == 1
        assert counts["/head/image_raw/compressed"] == 1
        assert counts == sink.writer.counts
        assert reader.message_count == sum(counts.values())
        stamps = [stamp for _, stamp, _ in reader.messages()]
        qos = {c.topic: c.ext.offered_qos_profiles[0] for c in reader.connections}
    assert stamps == sorted(set(stamps)), "no two messages share a log time"
    assert qos["/world/scene"].durability.name == "TRANSIENT_LOCAL"
    assert qos["/world/state"].durability.name == "VOLATILE"


def test_foxglove_style_readers_decode_every_message(tmp_path):
    written(tmp_path / "bag")
    with open(tmp_path / "bag" / "bag_0.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        seen = {}
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            assert schema.encoding == "ros2msg"
            seen.setdefault(channel.topic, []).append((message, decoded))
    assert [d.seq for _, d in seen["/world/state"]] == list(range(30))
    assert [d.clock.nanosec for _, d in seen["/clock"]][:3] == [0, 20_000_000, 40_000_000]
    assert [m.publish_time for m, _ in seen["/world/state"]][:2] == [0, 20_000_000]
    assert json.loads(seen["/world/scene"][0][1].json)["seed"] == 7


def test_metadata_and_manifest_say_what_is_in_the_bag(tmp_path):
    sink = written(tmp_path / "bag")
    info = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())
    info = info["rosbag2_bagfile_information"]
    assert info["storage_identifier"] == "mcap" and info["version"] == 8
    assert info["relative_file_paths"] == ["bag_0.mcap"]
    assert info["duration"]["nanoseconds"] >= 29 * 20_000_000
    manifest = json.loads((tmp_path / "bag" / "manifest.json").read_text())
    assert manifest["status"] == "complete" and manifest["seed"] == 7 and manifest["note"] == "x"
    assert (manifest["first_seq"], manifest["last_seq"]) == (0, 29)
    assert manifest["state_hash"] == sink.state_hash
    assert manifest["message_counts"] == sink.writer.counts


def test_manifest_says_recording_until_the_end(tmp_path):
    sink = BagSink(tmp_path / "bag")
    assert json.loads((tmp_path / "bag" / "manifest.json").read_text())["status"] == "recording"
    with pytest.raises(RuntimeError), sink.writer:
        raise RuntimeError("stopped")
    manifest = json.loads((tmp_path / "bag" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted" and manifest["error"] == "stopped"


def test_the_same_episode_gives_the_same_file_and_hash(tmp_path):
    one, two = written(tmp_path / "a" / "x"), written(tmp_path / "b" / "x")
    files = [(tmp_path / d / "x" / "x_0.mcap").read_bytes() for d in "ab"]
    assert files[0] == files[1]
    plain = HashSink()
    made.feed(plain, 30)
    assert one.state_hash == two.state_hash == plain.state_hash


def test_raw_messages_from_subscriptions_give_the_same_bag(tmp_path):
    """What the recorder node does: tails of uninitialised memory are cut on the way."""
    direct = written(tmp_path / "a" / "x")
    with open(tmp_path / "a" / "x" / "x_0.mcap", "rb") as file:
        messages = [(s.name, c.topic, m) for s, c, m in make_reader(file).iter_messages()]
    with BagWriter(tmp_path / "b" / "x", {"seed": 7}) as writer:
        for type_name, topic, message in messages:
            writer.write(topic, type_name, message.data + b"astrtps_", message.publish_time)
    assert writer.state_hash == direct.state_hash
    files = [(tmp_path / d / "x" / "x_0.mcap").read_bytes() for d in "ab"]
    assert files[0] == files[1]


def test_late_messages_keep_their_stamp_and_log_times_still_grow(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        for stamp in (0, 40_000_000, 20_000_000, 20_000_000):
            writer.write("/clock", "rosgraph_msgs/msg/Clock", cdr.encode_clock(stamp), stamp)
    with open(tmp_path / "bag" / "bag_0.mcap", "rb") as file:
        times = [(m.log_time, m.publish_time) for _, _, m in make_reader(file).iter_messages()]
    assert times == [
        (0, 0), (40_000_000, 40_000_000), (40_000_001, 20_000_000), (40_000_002, 20_000_000),
    ]  # fmt: skip


def test_refusals(tmp_path):
    written(tmp_path / "bag")
    before = (tmp_path / "bag" / "bag_0.mcap").read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        BagWriter(tmp_path / "bag")
    assert (tmp_path / "bag" / "bag_0.mcap").read_bytes() == before
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write to"):
        BagWriter(tmp_path / "file" / "bag")
    with BagWriter(tmp_path / "other") as writer:
        with pytest.raises(BenchError, match="/world/state"):
            writer.write("/world/state", "bench_interfaces/msg/WorldState", b"\0\1\0\0zz", 0)
        writer.write("/clock", "rosgraph_msgs/msg/Clock", cdr.encode_clock(0), 0)
        with pytest.raises(BenchError, match="carries rosgraph_msgs/msg/Clock"):
            writer.write("/clock", "std_msgs/msg/Header", b"\0\1\0\0" + bytes(16), 0)
    with pytest.raises(BenchError, match="no longer"):
        writer.write("/clock", "rosgraph_msgs/msg/Clock", cdr.encode_clock(0), 0)


def test_a_type_without_definition_is_kept_as_it_came(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.write("/odd", "some_pkg/msg/Odd", b"\0\1\0\0abc", 5)
    with open(tmp_path / "bag" / "bag_0.mcap", "rb") as file:
        assert [m.data for _, _, m in make_reader(file).iter_messages()] == [b"\0\1\0\0abc"]


def test_a_killed_recorder_leaves_whole_chunks_and_an_open_manifest(tmp_path):
    assert made.record_and_be_killed(tmp_path / "bag") == -signal.SIGKILL
    assert json.loads((tmp_path / "bag" / "manifest.json").read_text())["status"] == "recording"
    assert not (tmp_path / "bag" / "metadata.yaml").exists()
    assert (tmp_path / "bag" / "bag_0.mcap").stat().st_size > 50_000


def test_what_was_flushed_can_be_read_whatever_becomes_of_the_writer(tmp_path):
    sink = BagSink(tmp_path / "bag", {"seed": 7})
    made.feed(sink, 5)
    assert not read_bag(tmp_path / "bag").states, "they lie in memory"
    sink.writer.flush()
    found = read_bag(tmp_path / "bag")
    assert [state.seq for state in found.states] == [0, 1, 2, 3, 4] and found.scene is not None
    assert "without its end record" in found.problems[0]
    sink.writer.close()
    sink.writer.flush()
    assert len(read_bag(tmp_path / "bag").states) == 5 and not read_bag(tmp_path / "bag").problems


def limited(size):
    """Let this process's files grow no further than `size`: a full disk, for all that it sees."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_one_clear_error(tmp_path):
    whole = written(tmp_path / "whole")
    child = os.fork()
    if child == 0:
        code = 9
        try:
            limited(100_000)
            sink = BagSink(tmp_path / "cut")
            try:
                made.feed(sink, 2000)
            except BenchError as error:
                code = 0 if "cannot write" in str(error) and "\n" not in str(error) else 8
                sink.writer.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Reader(tmp_path / "whole") as reader:
        assert reader.message_count == sum(whole.writer.counts.values())


def test_the_scene_comes_first(tmp_path):
    with pytest.raises(ValueError, match="scene"):
        BagSink(tmp_path / "bag").state(made.state(0))


def test_hash_sink_is_a_whole_sink():
    sink = HashSink()
    made.feed(sink, 3)
    sink.verdict(Verdict("t", 1, True, 1.0, "", {}, 2, 0.04))
    assert len(sink.state_hash) == 64
