"""What the reader by rules sees in a picture: the colours of things, by hue.

It tells the eight colours of `bench_tasks.probes` from each other and from a wooden table, grey
arms and a pale sky; it knows no shapes. In the place of a picture it reads its caption.
"""

from __future__ import annotations

import re

import cv2
import numpy as np

from bench_tasks.probes.stream import Picture

__all__ = ["HUES", "colours_in"]

HUES = {
    "red": (348, 14), "orange": (14, 39), "yellow": (39, 70), "green": (70, 160),
    "cyan": (160, 205), "blue": (205, 255), "purple": (255, 312), "pink": (312, 348),
}  # fmt: skip
"""Colour -> the hues from and to, in degrees."""
MIN_SATURATION = 0.40
"""A wooden table has 0.3, pink things 0.5."""
MIN_VALUE = 0.15
MIN_SHARE = 0.001
"""Of the picture's area: less is no thing."""


def colours_in(picture: Picture) -> tuple[str, ...]:
    """The colours of the things in a picture, the largest first; () when it cannot be decoded."""
    if not picture.data:
        return tuple(dict.fromkeys(re.findall(rf"\b(?:{'|'.join(HUES)})\b", picture.caption)))
    pixels = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        return ()
    hue, saturation, value = cv2.split(
        cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_BGR2HSV)
    )
    colourful = (saturation > MIN_SATURATION) & (value > MIN_VALUE)
    found = []
    for colour, (low, high) in HUES.items():
        within = (hue >= low) & (hue < high) if low < high else (hue >= low) | (hue < high)
        mask = (within & colourful).astype(np.uint8)
        # Edges between two colours have a third one's hue, but are thin.
        area = int(cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)).sum())
        if area >= MIN_SHARE * mask.size:
            found.append((area, colour))
    return tuple(colour for _, colour in sorted(found, reverse=True))
