"""One self-contained HTML page about a training: losses, errors, predicted and real video."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from bench_tasks.commands.progress import duration
from bench_tasks.manifest import replacing
from bench_tasks.reports.report_style import CSS
from policies.wam.checkpoint import Checkpoint
from policies.wam.train import Trainer
from policies.wam.video_score import CHUNKS, dream, pictures, score_video

__all__ = ["write_report"]

STARTS = 24
"""Moments of held-out demonstrations from which video is predicted and scored."""
STRIPS = 2
"""Strips of each task."""
WIDTH, HEIGHT, LEFT, BOTTOM = 440, 200, 44, 22
_COLOURS = ("var(--fill)", "var(--warn)", "var(--good)")
_TABLE = (
    ("horizon", "horizon_s", "{:.1f} s"), ("chunk", "chunk", "{:.0f}"),
    ("pictures", "pictures", "{:.0f}"), ("PSNR", "psnr_db", "{:.1f} dB"),
    ("present repeated", "still_psnr_db", "{:.1f} dB"),
    ("autoencoder alone", "own_psnr_db", "{:.1f} dB"), ("latent error", "latent_error", "{:.3f}"),
    ("latents, present repeated", "still_latent_error", "{:.3f}"),
)  # fmt: skip
"""Head, key and format of the columns about predicted video."""


def write_report(
    folder: Path, made: Checkpoint, trainer: Trainer, seeds: Sequence[int], steps: int = 4
) -> Path:
    """Write `report.html` about a finished training, video sampled in `steps`; return its path."""
    video = _video(made, trainer, seeds, steps) if made.model.shape.video else ""
    about = made.made
    kind = "World-action model" if made.model.shape.video else "Cloning policy"
    title = f"{kind}: {', '.join(about['tasks'])}"
    parts = [
        f"<h1>{escape(title)}</h1>", _facts(made, trainer.history),
        "<h2>Losses</h2>", _curves(trainer.history), _held_out(trainer), video, _repeat(made),
    ]  # fmt: skip
    html = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        '<meta name=color-scheme content="light dark">'
        f"<title>bench_tasks: {escape(title)}</title><style>{CSS}"
        ".strip img{width:100%;height:auto;image-rendering:auto;border-radius:6px}"
        ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:12px}"
        ".charts .card{margin:0}svg{width:100%;height:auto}"
        "svg text{fill:var(--soft);font-size:11px}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )
    target = folder / "report.html"
    with replacing(target) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return target


def _last(history: Sequence[dict[str, float]], key: str) -> float | None:
    return next((entry[key] for entry in reversed(history) if key in entry), None)


def _facts(made: Checkpoint, history: Sequence[dict[str, float]]) -> str:
    about = made.made
    count = sum(p.numel() for p in made.model.parameters())
    facts = [
        (f"{about['steps']}", f"steps in {duration(about['wall_s'])}"),
        (f"{sum(part['demonstrations'] for part in about['data'])}", "demonstrations"),
        (f"{count / 1e6:.2f} M", "weights of the transformer"),
    ]
    error = _last(history, "held_out_rad")
    if error is not None:
        facts.append((f"{error:.4f} rad", "mean joint error, held out"))
    cells = "".join(f"<div class=fact><b>{a}</b><span>{b}</span></div>" for a, b in facts)
    return f"<div class=head>{cells}</div>"


# -- curves --------------------------------------------------------------------------------------


def _curves(history: Sequence[dict[str, float]]) -> str:
    charts = [
        ("flow matching loss in training", ("action_loss", "video_loss")),
        ("joint error of held-out demonstrations (rad)", ("held_out_rad", "held_out_p95_rad")),
        ("latent error of their first chunk's video", ("held_out_latent",)),
        ("opening error of their grippers (m)", ("held_out_opening_m",)),
        ("joint error of agents (rad)", ("held_out_own_rad", "held_out_partner_rad")),
    ]
    drawn = [_chart(title, history, keys) for title, keys in charts]
    cards = "".join(f"<div class=card>{svg}</div>" for svg in drawn if svg)
    return f"<div class=charts>{cards}</div>" if cards else "<p class=soft>Nothing was logged.</p>"


def _chart(title: str, history: Sequence[dict[str, float]], keys: Sequence[str]) -> str:
    """Lines over steps, on a logarithmic scale."""
    series = {
        key: [(entry["step"], entry[key]) for entry in history if entry.get(key, 0.0) > 0]
        for key in keys
    }
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    end = max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    low, high = math.log10(low) - 0.02, math.log10(high) + 0.02

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - 8) * x / end
        up = (math.log10(y) - low) / (high - low)
        return across, 8 + (HEIGHT - BOTTOM - 8) * (1 - up)

    parts = []
    for k in range(5):
        value = 10 ** (low + (high - low) * k / 4)
        _, y = place(0, value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 8}" stroke="var(--line)"/>'
                     f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>')
    for k in range(5):
        x, _ = place(end * k / 4, 10**high)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">'
                     f"{end * k / 4:.0f}</text>")  # fmt: skip
    names = []
    for colour, (key, line) in zip(_COLOURS, series.items(), strict=False):
        if not line:
            continue
        corners = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" '
                     'stroke-width="1.6"/>')  # fmt: skip
        parts += [
            '<circle cx="{:.1f}" cy="{:.1f}" r="2" fill="{}"/>'.format(*place(*point), colour)
            for point in (line if len(line) < 40 else line[-1:])
        ]
        names.append(f'<span style="color:{colour}">{key.replace("_", " ")}</span> '
                     f"{line[-1][1]:.4g}")  # fmt: skip
    return (
        f"<h3>{escape(title)} <span class=soft>by step; at the end: {', '.join(names)}</span></h3>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _held_out(trainer: Trainer) -> str:
    rows = []
    for name, found in (("the policy", None), ("the mean action", trainer.mean_action_errors())):
        cells = []
        for key in ("held_out_rad", "held_out_p95_rad", "held_out_opening_m"):
            value = _last(trainer.history, key) if found is None else found[key]
            cells.append(f"<td class=r>{'-' if value is None else f'{value:.4f}'}</td>")
        rows.append(f"<tr><td>{name}</td>{''.join(cells)}</tr>")
    head = ("<tr><th>what answers</th><th class=r>joints, mean (rad)</th>"
            "<th class=r>joints, 95 % (rad)</th><th class=r>openings (m)</th></tr>")  # fmt: skip
    count = len(trainer.held_demos)
    note = ("<p class=soft>Errors of the actions of one chunk, from single observations of "
            f"{count} demonstrations that were kept from training. The mean action is that of all "
            "learnt chunks, relative to the present joints: what is worse has learnt nothing.</p>"
            )  # fmt: skip
    caution = trainer.made.get("caution", "")
    note += f"<p class=warn>{escape(caution)}.</p>" if caution else ""
    return (f"<h2>Held-out demonstrations</h2><div class=card><table>{head}{''.join(rows)}</table>"
            f"{note}</div>")  # fmt: skip


# -- video ---------------------------------------------------------------------------------------


def _moments(trainer: Trainer, count: int) -> dict[int, list[int]]:
    """Held-out demonstration -> rows spread over it, `count` in all or a few more."""
    rows, found = trainer.rows, {}
    firsts = np.unique(rows.first)
    shape = trainer.shape
    each = -(-count // len(trainer.held_demos))
    for k in trainer.held_demos:
        first, last = int(firsts[k]), int(firsts[k]) + rows.lengths[k] - 1
        # What is predicted ought to lie in the demonstration, as far as it is long enough.
        end = max(first, last - shape.chunk * CHUNKS)
        found[k] = sorted({round(x) for x in np.linspace(first, end, each)})
    return found


@torch.no_grad()
def _video(made: Checkpoint, trainer: Trainer, seeds: Sequence[int], steps: int) -> str:
    moments = _moments(trainer, STARTS)
    starts = np.array([row for rows in moments.values() for row in rows])
    dreamt = dream(made, trainer.rows, starts, steps=steps)
    scores = score_video(made, trainer.rows, dreamt)
    tasks = trainer.rows.tasks
    cards, shown = [], dict.fromkeys(tasks, 0)
    for k, rows in moments.items():
        if shown[tasks[k]] >= STRIPS:
            continue
        shown[tasks[k]] += 1
        at = int(np.flatnonzero(starts == rows[len(rows) // 2])[0])
        valid = int(dreamt.valid[at].sum())
        start, later = starts[at], dreamt.rows[:valid]
        wanted = made.autoencoder.encode(pictures(trainer.rows, np.r_[start, start + later]))
        strip = _strip(made, torch.cat([wanted[:1], dreamt.latents[at, :valid]]), wanted)
        second = (start - trainer.rows.first[start]) / trainer.shape.rows_hz
        label = (f"{tasks[k]} seed {seeds[k]} from {second:.1f} s on: present, then "
                 + ", ".join(f"{x / trainer.shape.rows_hz:.1f} s" for x in later))  # fmt: skip
        cards.append(f"<div class='card strip'><h3>{escape(label)}</h3>{strip}</div>")
    missing = sorted(task for task, count in shown.items() if not count)
    if missing:
        cards.append(f"<p class=warn>No demonstration of {escape(', '.join(missing))} was kept "
                     "from training: there is only one.</p>")  # fmt: skip
    head = "".join(f"<th class=r>{name}</th>" for name, _, _ in _TABLE)
    lines = "".join(
        "<tr>" + "".join(f"<td class=r>{text.format(s[key])}</td>" for _, key, text in _TABLE)
        + "</tr>" for s in scores
    )  # fmt: skip
    note = (
        f"<p class=soft>Sampled in {max(steps, 1)} step{'s' * (steps > 1)}. Chunk 1 answers a "
        "real observation; from chunk 2 on the model sees its own predicted pictures, and its "
        "commands as states. PSNR is that of the mean square error over the pictures. "
        "Present repeated: the picture that the prediction began with. Autoencoder "
        "alone: the true picture, encoded and decoded, the best that a prediction "
        "can be expected to reach. Latents have unit variance.</p>"
    )
    return (
        f"<h2>Predicted video against what happened</h2><div class=card><table><tr>{head}</tr>"
        f"{lines}</table>{note}</div><p class=soft>Above: the present picture and the predicted "
        f"ones. Below: what happened. All are decoded from latents.</p>{''.join(cards)}"
    )


def _strip(made: Checkpoint, above: torch.Tensor, below: torch.Tensor) -> str:
    """Two rows of pictures, decoded from latents, as one image."""
    decoded = made.autoencoder.decode(torch.cat([above, below])).clamp(-1, 1)
    pixels = ((decoded + 1) * 127.5).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    two = [np.concatenate(list(half), axis=1) for half in (pixels[: len(above)],
                                                           pixels[len(above) :])]  # fmt: skip
    gap = np.full((4, two[0].shape[1], 3), 128, np.uint8)
    image = cv2.cvtColor(np.concatenate([two[0], gap, two[1]]), cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 88])
    text = base64.b64encode(data.tobytes()).decode()
    source = f"data:image/jpeg;base64,{text}"
    return f'<img loading=lazy alt="predicted above, real below" src="{source}">'


def _repeat(made: Checkpoint) -> str:
    about: dict[str, Any] = made.made
    commit = about["git"].get("commit") or "not a checkout"
    facts = {
        "commit": commit + (" with local changes" if about["git"].get("dirty") else ""),
        "data (SHA-256)": ", ".join(
            f"{part['hash'][:16]} ({part['demonstrations']} demonstrations, {part['rows']} rows)"
            for part in about["data"]
        ),
        "tasks": ", ".join(about["tasks"]),
        "recipe": ", ".join(f"{k} {v}" for k, v in about["recipe"].items() if v != ""),
        "shape": ", ".join(f"{k} {v}" for k, v in made.model.shape.to_dict().items()),
    }  # fmt: skip
    items = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return (f"<h2>To repeat it</h2><div class=card><pre>{escape(about['command'])}</pre>"
            f"<dl>{items}</dl></div>")  # fmt: skip
