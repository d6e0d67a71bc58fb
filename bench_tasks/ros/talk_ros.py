"""A memory behind the node `memory`, and what its node needs to hear what is said to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bench_interfaces.msg import Utterance
from bench_interfaces.srv import Ask, ResetAgent
from sensor_msgs.msg import CompressedImage

from bench_tasks.errors import BenchError, BrokenOff, MemoryRaised
from bench_tasks.probes.messages import (
    SHOWN,
    TALK,
    Hearing,
    decode_picture,
    encode_item,
    encode_picture,
)
from bench_tasks.probes.stream import Item, Query, Reply, checked, reply_from
from bench_tasks.ros.node_ros import (
    TRACK,
    BenchNode,
    Caller,
    Unwatched,
    from_message,
    take_all,
    to_message,
    unwatched,
    wait_for_listeners,
)

__all__ = ["Listener", "TopicMemory", "query_of", "reply_to"]

HEAR_S = 30.0
"""How long what was said before a question may be under way."""
LOST_S = 60.0
"""After which a picture counts as lost: what was said after it must not wait for it for ever."""
AT_ONCE = 500
"""Items that are sent before it is made sure that they have come: no queue is as long as a talk."""


class Listener:
    """Hears what is said and shown on the topics, in order."""

    def __init__(self, node: BenchNode) -> None:
        """Subscribe `node`."""
        self._by_hand = Unwatched()
        self._said = unwatched(node, Utterance, TALK, TRACK, self._by_hand)
        self._shown = unwatched(node, CompressedImage, SHOWN, TRACK, self._by_hand)
        self._hearing = Hearing()
        self.heard = 0
        self.lost: list[str] = []
        """What was heard without its picture, a line each; who reads it may empty it."""
        self._stuck = (-1, 0.0)
        """So many had been heard when the next one was first seen waiting, and when that was."""

    def take(self) -> Iterator[Item]:
        """The items that are complete by now."""
        for data in take_all(self._said):
            self._hearing.said(data)
        for data in take_all(self._shown):
            self._hearing.shown(data)
        for item in self._hearing.take():
            self.heard += 1
            yield item
        heard, since = self._stuck
        if heard != self.heard or not self._hearing.stuck:
            self._stuck = (self.heard, time.monotonic())
        elif time.monotonic() - since > LOST_S and (item := self._hearing.unseen()):
            name = item.picture.name if item.picture else ""
            self.lost.append(f"item {item.id}: picture {name!r} did not come in {LOST_S:g} s")
            self.heard += 1
            yield item

    def take_until(self, count: int) -> Iterator[Item]:
        """Items until so many have been heard in all; BenchError when they do not come."""
        end = time.monotonic() + HEAR_S
        while self.heard < count:
            yield from self.take()
            if time.monotonic() > end:
                picture = self._hearing.waiting
                lacking = f", the next one without its picture {picture!r}" if picture else ""
                raise BenchError(
                    f"{self.heard} of {count} items were heard within {HEAR_S:g} s{lacking}"
                )
            time.sleep(0.001)

    def forget(self) -> None:
        """What was said before is no longer waited for."""
        for subscription in (self._said, self._shown):
            for _ in take_all(subscription):
                pass
        self._hearing, self.heard = Hearing(), 0
        self.lost, self._stuck = [], (-1, 0.0)


def query_of(request: Ask.Request, raw: dict[str, Any]) -> Query:
    """The question of a request to `/memory/ask`; `raw` are its words, ValueError if malformed."""
    picture = decode_picture(from_message(request.images[0])) if request.images else None
    if picture is not None:
        picture = type(picture)(picture.name, picture.data, picture.format, raw["caption"])
    if not isinstance(raw["choices"], list):
        raise ValueError(f"choices must be a list of texts, got {raw['choices']!r:.80}")
    return checked(
        Query(raw["id"], raw["stamp_ns"], raw["text"], tuple(raw["choices"]), picture)
    )


def reply_to(text: str) -> Reply:
    """The reply in an answer of `/memory/ask`."""
    return reply_from(json.loads(text))


class TopicMemory:
    """The node `memory` as a memory that is played a probe: items go out on the topics."""

    name = "memory"

    def __init__(self, node: BenchNode, recorded: bool, deadline_s: float) -> None:
        """Connect `node`; an answer gets `deadline_s`."""
        self._node, self._listeners = node, 1 + recorded
        self._said = node.create_publisher(Utterance, TALK, TRACK)
        self._shown = node.create_publisher(CompressedImage, SHOWN, TRACK)
        self._reset = Caller(node, ResetAgent, "/memory/reset", deadline_s)
        self._ask = Caller(node, Ask, "/memory/ask", deadline_s)
        self.calls = {"memory": [self._reset, self._ask]}
        self.said, self.shown = 0, 0
        self.raised: dict[str, str] = {}
        """What the memory raised at items, by their ids, as far as it is known."""

    def begin(self) -> None:
        """An empty memory, once all who must hear are connected. BenchError when it is not so."""
        wait_for_listeners(((p, self._listeners) for p in (self._said, self._shown)), 10.0)
        self.said, self.shown, self.raised = 0, 0, {}
        self._reset.call(ResetAgent.Request(scene=json.dumps({"probe": True})))

    def end(self) -> int:
        """How many bytes it kept; it is closed by this."""
        return json.loads(self._reset.call(ResetAgent.Request()).metadata)["storage_bytes"]

    def observe(self, item: Item) -> None:
        """Say it; that it was heard is made sure before an answer."""
        said, picture = encode_item(item)
        if picture is not None:
            self._shown.publish(to_message(picture, CompressedImage))
            self.shown += 1
        self._said.publish(to_message(said, Utterance))
        self.said += 1
        if self.said % AT_ONCE == 0:
            self._catch_up(settle=False)

    def settle(self) -> None:
        """Wait until everything was observed, and what can be done before a question is done.

        MemoryRaised when the memory raised something at the latter; BrokenOff when not all came.
        """
        self._catch_up(settle=True)

    def _catch_up(self, settle: bool) -> None:
        try:
            found = json.loads(self._call({"settle": settle}))
        except Exception as error:
            # The memory's own faults are in the answer: something was lost on the way.
            raise BrokenOff(str(error)) from error
        self.raised |= found["raised"]
        if found["settling"]:
            raise MemoryRaised(found["settling"])

    def answer(self, query: Query) -> Reply:
        """Ask; errors as of `Caller.call`."""
        raw = {key: value for key, value in asdict(query).items() if key != "picture"}
        images = []
        if query.picture is not None:
            raw["caption"] = query.picture.caption
            images = [to_message(encode_picture(query.picture, query.stamp_ns), CompressedImage)]
        return reply_to(self._call({"query": raw}, images))

    def _call(self, what: dict[str, Any], images: list[CompressedImage] | None = None) -> str:
        question = json.dumps({"after": self.said, **what})
        return self._ask.call(Ask.Request(question=question, images=images or [])).answer
