"""Read recordings: rosbag2 folders with MCAP storage, or single MCAP files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from launch.errors import LaunchError
from mcap.exceptions import McapError
from mcap.reader import make_reader

__all__ = ["Summary", "files_of", "info", "messages", "summarise"]


@dataclass
class Summary:
    """What a recording holds; times in ns."""

    files: list[Path]
    start_ns: int = 0
    end_ns: int = 0
    types: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    qos: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())


def files_of(bag: Path) -> list[Path]:
    """The MCAP files of a recording, in their order; LaunchError when there are none."""
    if bag.is_file():
        return [bag]
    if not bag.is_dir():
        raise LaunchError(f"recording '{bag}' does not exist")
    metadata = bag / "metadata.yaml"
    if metadata.is_file():
        try:
            text = yaml.safe_load(metadata.read_text(encoding="utf-8"))
            names = text["rosbag2_bagfile_information"]["relative_file_paths"]
            return [bag / name for name in names]
        except (yaml.YAMLError, KeyError, TypeError):
            raise LaunchError(f"{metadata}: not a rosbag2 description") from None
    found = sorted(bag.glob("*.mcap"))
    if not found:
        raise LaunchError(f"'{bag}' holds neither metadata.yaml nor an .mcap file")
    return found


def summarise(bag: Path) -> Summary:
    """Read topics, types, counts and times."""
    summary = Summary(files_of(bag))
    starts, ends = [], []
    for path in summary.files:
        try:
            with path.open("rb") as stream:
                made = make_reader(stream).get_summary()
        except FileNotFoundError:
            raise LaunchError(f"{path} does not exist") from None
        except McapError as error:
            raise LaunchError(f"{path}: not a readable MCAP file: {error}") from None
        if made is None or made.statistics is None:
            raise LaunchError(f"{path}: not closed properly; no summary")
        if made.statistics.message_count:
            starts.append(made.statistics.message_start_time)
            ends.append(made.statistics.message_end_time)
        for number, channel in made.channels.items():
            schema = made.schemas.get(channel.schema_id)
            summary.types[channel.topic] = schema.name if schema else ""
            summary.qos[channel.topic] = channel.metadata.get("offered_qos_profiles", "")
            count = made.statistics.channel_message_counts.get(number, 0)
            summary.counts[channel.topic] = summary.counts.get(channel.topic, 0) + count
    summary.start_ns, summary.end_ns = min(starts, default=0), max(ends, default=0)
    return summary


def messages(bag: Path, topics: list[str] | None = None) -> Iterator[tuple[str, int, bytes]]:
    """(topic, time in ns, CDR bytes) by time; equal times keep the order of recording."""
    for path in files_of(bag):
        with path.open("rb") as stream:
            for _, channel, message in make_reader(stream).iter_messages(
                topics=topics, log_time_order=True
            ):
                yield channel.topic, message.log_time, message.data


def info(bag: Path) -> str:
    """A summary to read."""
    summary = summarise(bag)
    size = sum(path.stat().st_size for path in summary.files)

    def when(stamp: int) -> str:
        clock = time.strftime("%b %d %Y %H:%M:%S", time.localtime(stamp // 10**9))
        return f"{clock}.{stamp % 10**9:09d} ({stamp / 1e9:.9f})"

    lines: list[Any] = [
        f"Files:             {' '.join(path.name for path in summary.files)}",
        f"Bag size:          {size / 1024:.1f} KiB",
        "Storage id:        mcap",
        f"Duration:          {(summary.end_ns - summary.start_ns) / 1e9:.9f}s",
        f"Start:             {when(summary.start_ns)}",
        f"End:               {when(summary.end_ns)}",
        f"Messages:          {summary.total}",
    ]
    lead = "Topic information: "
    for topic in sorted(summary.types):
        lines.append(
            f"{lead}Topic: {topic} | Type: {summary.types[topic]} |"
            f" Count: {summary.counts[topic]} | Serialization Format: cdr"
        )
        lead = " " * len(lead)
    return "\n".join(lines)
