"""What is observed, as messages on two topics: who said what, and the pictures shown with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from bench_tasks.bags.cdr_types import decode, encode, join_ns, split_ns
from bench_tasks.images import image_topic
from bench_tasks.probes.stream import Item, Picture

__all__ = [
    "PICTURE_TYPE", "SHOWN", "TALK", "TALK_TYPE", "Hearing", "decode_picture", "encode_item",
    "encode_picture",
]  # fmt: skip

TALK, TALK_TYPE = "/talk/utterance", "bench_interfaces/msg/Utterance"
SHOWN, PICTURE_TYPE = image_topic("shown"), "sensor_msgs/msg/CompressedImage"


def encode_picture(picture: Picture, stamp_ns: int) -> bytes:
    """sensor_msgs/CompressedImage; its frame is the picture's name. The caption is left out."""
    header = {"stamp": split_ns(stamp_ns), "frame_id": picture.name}
    value = {"header": header, "format": picture.format, "data": picture.data}
    return encode(PICTURE_TYPE, value)


def decode_picture(data: bytes) -> Picture:
    """Inverse of `encode_picture`."""
    raw = decode(PICTURE_TYPE, data)
    return Picture(raw["header"]["frame_id"], bytes(raw["data"]), raw["format"])


def encode_item(item: Item) -> tuple[bytes, bytes | None]:
    """The messages of an item: bench_interfaces/Utterance, and its picture's if it has one.

    A picture of which there is nothing but a caption goes with the utterance alone.
    """
    picture = item.picture
    shown = picture is not None and bool(picture.data)
    said = encode(
        TALK_TYPE,
        {"stamp": split_ns(item.stamp_ns), "id": item.id, "session": item.session,
         "speaker": item.speaker, "text": item.text, "about": item.about or "", "shown": shown,
         "picture": picture.name if picture else "",
         "caption": picture.caption if picture else ""},
    )  # fmt: skip
    return said, encode_picture(picture, item.stamp_ns) if picture and shown else None


class Hearing:
    """Puts together what comes on the two topics, in whatever order between them.

    Pictures of one name are taken in the order in which they come.
    """

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._said: deque[dict] = deque()
        self._pictures: dict[str, deque[Picture]] = {}

    def said(self, data: bytes) -> None:
        """An utterance has come. ValueError when it is malformed."""
        self._said.append(decode(TALK_TYPE, data))

    def shown(self, data: bytes) -> None:
        """A picture has come. ValueError when it is malformed."""
        picture = decode_picture(data)
        self._pictures.setdefault(picture.name, deque()).append(picture)

    @property
    def waiting(self) -> str:
        """Name of the picture that the next item waits for; "" when it waits for none."""
        return self._said[0]["picture"] if self._said else ""

    @property
    def stuck(self) -> bool:
        """Whether something was said that waits for a picture, once `take` has been called."""
        return bool(self._said)

    def take(self) -> Iterator[Item]:
        """The items that are complete, in the order in which they were said."""
        while self._said:
            raw = self._said[0]
            seen = None
            if raw["shown"]:
                come = self._pictures.get(raw["picture"])
                if not come:
                    return
                seen = come.popleft()
            yield _item(self._said.popleft(), seen)

    def unseen(self) -> Item | None:
        """The next item without the picture that it waits for; None when it waits for none.

        The picture counts as lost; the item has its name and caption.
        """
        if not self._said:
            return None
        return _item(self._said.popleft(), None)


def _item(raw: dict, seen: Picture | None) -> Item:
    picture = None
    if seen is not None:
        picture = Picture(seen.name, seen.data, seen.format, raw["caption"])
    elif raw["picture"] or raw["caption"]:
        picture = Picture(raw["picture"], b"", "", raw["caption"])
    return Item(
        raw["id"], join_ns(raw["stamp"]), raw["session"], raw["speaker"], raw["text"], picture,
        raw["about"] or None,
    )  # fmt: skip
