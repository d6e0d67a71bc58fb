"""The part of the report about predicted pictures: dreams right or wrong by acts right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench_tasks.verdicts.episode_score import EpisodeScore

__all__ = ["dreams"]

_COLUMNS = (
    ("PSNR", "psnr_db", "{:.1f} dB"), ("first picture repeated", "still_psnr_db", "{:.1f} dB"),
    ("autoencoder alone", "own_psnr_db", "{:.1f} dB"), ("latent error", "latent_error", "{:.3f}"),
    ("latents, first repeated", "still_latent_error", "{:.3f}"),
)  # fmt: skip


def dreams(episodes: Sequence[EpisodeScore]) -> str:
    """Tables as HTML; nothing when no policy told its dreams."""
    told = [e for e in episodes if e.dreams]
    if not told:
        return ""
    judged = [e for e in told if e.dreams["right"] is not None]
    note = (
        "<p class=soft>A policy that predicts pictures compared each with what it saw when the "
        "time had come. An episode's dreams are right when the predicted latents were, over all, "
        "nearer to that than the picture that the prediction began with. Beside it stand that "
        "picture repeated, and the true one encoded and decoded by the autoencoder, the best that "
        "can be expected.</p>"
    )
    return f"<h2>Dreaming and acting</h2><div class=card>{_cross(judged)}{note}</div>{_each(told)}"


def _cross(judged: Sequence[EpisodeScore]) -> str:
    lines = []
    for acts, name in ((True, "acts right"), (False, "acts wrong")):
        row = [e for e in judged if e.success == acts]
        counts = [sum(e.dreams["right"] == right for e in row) for right in (True, False)]
        lines.append(f"<tr><td>{name}</td>"
                     + "".join(f"<td class=r>{count}</td>" for count in counts) + "</tr>"
                     )  # fmt: skip
    head = "<tr><th>episodes</th><th class=r>dreams right</th><th class=r>dreams wrong</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _each(told: Sequence[EpisodeScore]) -> str:
    words = {True: "<span class=good>right</span>", False: "<span class=bad>wrong</span>",
             None: "-"}  # fmt: skip
    lines = []
    for episode in told:
        name = f"{episode.task} {episode.seed}"
        begin = (
            f"<td class=name>{escape(name)}</td><td>{words[episode.dreams['right']]}</td>"
            f"<td>{words[episode.success]}</td>"
        )
        horizons = episode.dreams["horizons"]
        for seconds, found in horizons.items():
            cells = "".join(f"<td class=r>{text.format(found[key])}</td>"
                            for _, key, text in _COLUMNS)  # fmt: skip
            lines.append(f"<tr>{begin}<td class=r>{escape(seconds)} s</td>"
                         f"<td class=r>{found['pictures']}</td>{cells}</tr>")  # fmt: skip
            begin = "<td></td><td></td><td></td>"
        if not horizons:
            lines.append(f"<tr>{begin}<td class=r colspan={len(_COLUMNS) + 2}>"
                         f"{episode.dreams['missed']} predictions, none of a time that was seen"
                         "</td></tr>")  # fmt: skip
    head = "".join(f"<th class=r>{name}</th>" for name, _, _ in _COLUMNS)
    return (
        "<div class=card><table><tr><th>episode</th><th>dreams</th><th>acts</th>"
        f"<th class=r>ahead</th><th class=r>pictures</th>{head}</tr>{''.join(lines)}</table></div>"
    )
