"""More of what people have, for talks that need many variables; see `words`."""

from __future__ import annotations

__all__ = ["DAILY", "LASTING", "SMALL_WORDS"]

DAILY: dict[str, tuple[str, ...]] = {
    "breakfast": ("porridge", "fried eggs", "rye bread", "yoghurt"),
    "evening drink": ("camomile", "ginger beer", "buttermilk", "apple juice"),
    "training": ("rowing", "yoga", "boxing", "swimming"),
    "bedtime": ("nine o'clock", "ten o'clock", "eleven o'clock", "midnight"),
    "kitchen budget": ("forty crowns", "sixty crowns", "ninety crowns", "two hundred crowns"),
    "diet": ("vegan", "low in salt", "without gluten", "rich in protein"),
    "room for guests": ("the attic", "the study", "the cellar", "the veranda"),
    "reading": ("crime novels", "poems", "travel reports", "comics"),
    "garden plan": ("a herb bed", "a pond", "an orchard", "a rockery"),
    "course": ("Italian", "welding", "first aid", "bookkeeping"),
    "club": ("the choir", "the fire brigade", "the walking group", "the theatre group"),
    "household": ("alone", "with a sister", "with two lodgers", "with grandparents"),
    "holiday": ("the mountains", "the seaside", "a lake", "a capital city"),
    "heating": ("a tiled stove", "a heat pump", "gas", "electric radiators"),
}
"""A variable of somebody's life, and four values of it."""

LASTING: dict[str, tuple[str, ...]] = {
    "shoe size": ("thirty-eight", "forty", "forty-two", "forty-four"),
    "lucky number": ("three", "seven", "thirteen", "twenty-one"),
    "star sign": ("Aries", "Libra", "Leo", "Pisces"),
    "handwriting": ("upright", "slanted", "round", "tiny"),
}
"""What never changes and may be told to anybody."""

SMALL_WORDS = (
    "Lovely weather today.", "I slept badly.", "Mind the step.", "One moment, please.",
    "My phone has been ringing for hours.", "Has the post come already?", "It is getting late.",
    "Where were we?", "Good to see you again.", "What a noise out there!",
    "I have to go in ten minutes.", "Wait, let me think.", "The lamp flickers a little.",
    "Somebody ought to clean the windows.", "Let us talk about it tomorrow.",
)  # fmt: skip
"""Sentences that say nothing, with no word of a value."""
