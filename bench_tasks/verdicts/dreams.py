"""How right a world model's pictures of the future were: errors by horizon, from the recording.

A policy that predicts pictures compares each with what it sees when the time has come. Its every
comparison is in an event `dream` (`DREAM`), so that dreaming and acting can be told apart from the
recordings alone: a policy may dream wrong and act right, or the other way round.

Errors are mean squares: of colours in [0, 1], and of latents of unit variance. Beside each stand
two references: the picture that the prediction began with, repeated (`still`), and what the
autoencoder makes of the true picture (`own`), which no prediction can be expected to surpass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from bench_tasks.vocabulary import Event

__all__ = ["DREAM", "ERRORS", "Mean", "check_dreams", "dreams_of", "psnr_db"]

DREAM = "dream"
"""Kind of the event: {"compared": [{"horizon_s", *ERRORS}, ...], "missed": int}."""
ERRORS = ("pixel", "latent", "still_pixel", "still_latent", "own_pixel")
MAX_DB = 99.0


def psnr_db(mean_square: float) -> float:
    """Peak signal to noise ratio of colours in [0, 1]; `MAX_DB` at most, where nothing differs."""
    return min(MAX_DB, -10.0 * math.log10(mean_square)) if mean_square > 0 else MAX_DB


class Mean:
    """Means of errors over pictures."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count, self._sums = 0, dict.fromkeys(ERRORS, 0.0)

    def add(self, errors: dict[str, float]) -> None:
        """Take the errors of one picture."""
        self.count += 1
        for key in ERRORS:
            self._sums[key] += errors[key]

    def result(self) -> dict[str, float]:
        """`pictures`, PSNR of the mean errors of colours, and the mean errors of latents."""
        mean = {key: value / self.count for key, value in self._sums.items()}
        return {
            "pictures": self.count, "psnr_db": psnr_db(mean["pixel"]),
            "still_psnr_db": psnr_db(mean["still_pixel"]),
            "own_psnr_db": psnr_db(mean["own_pixel"]), "latent_error": mean["latent"],
            "still_latent_error": mean["still_latent"],
        }  # fmt: skip


def _errors(item: Any) -> dict[str, float] | None:
    """The numbers of one comparison; None when a recording holds something else."""
    keys = ("horizon_s", *ERRORS)
    if not isinstance(item, dict):
        return None
    values = {key: item.get(key) for key in keys}
    if not all(type(v) in (int, float) and 0 <= v < 1e9 for v in values.values()):
        return None
    return values  # type: ignore[return-value]


def dreams_of(events: Iterable[Event]) -> dict[str, Any]:
    """An episode's dreams: {} when its policy told none.

    `horizons`: seconds -> as of `Mean.result`; `missed`: predictions whose time came without a
    look; `right`: whether the predicted latents were, over all, nearer to what happened than the
    picture that they began with, None when nothing was compared.
    """
    horizons: dict[str, Mean] = {}
    whole, missed, told = Mean(), 0, False
    for event in events:
        if event.kind != DREAM:
            continue
        told = True
        compared, late = event.data.get("compared"), event.data.get("missed")
        missed += late if type(late) is int and late > 0 else 0
        for item in compared if isinstance(compared, list) else []:
            errors = _errors(item)
            if errors is not None:
                horizons.setdefault(f"{errors['horizon_s']:g}", Mean()).add(errors)
                whole.add(errors)
    if not told:
        return {}
    right = None
    if whole.count:
        mean = whole.result()
        right = mean["latent_error"] < mean["still_latent_error"]
    found = {key: horizons[key].result() for key in sorted(horizons, key=float)}
    return {"horizons": found, "missed": missed, "right": right}


def check_dreams(found: dict[str, Any]) -> None:
    """TypeError when a result file's dreams are not what `dreams_of` gives."""
    if not found:
        return
    empty = Mean()
    empty.add(dict.fromkeys(ERRORS, 1.0))
    keys = set(empty.result())
    horizons = found.get("horizons")
    good = set(found) == {"horizons", "missed", "right"} and isinstance(horizons, dict)
    good = good and type(found["missed"]) is int and found["right"] in (True, False, None)
    for values in horizons.values() if good and isinstance(horizons, dict) else ():
        good = good and isinstance(values, dict) and set(values) == keys
        good = good and all(type(v) in (int, float) and v < 1e9 for v in values.values())
    if not good:
        raise TypeError(f"dreams is {found!r}"[:200])
