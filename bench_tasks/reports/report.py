"""One self-contained HTML page about a run, from its recordings."""

from __future__ import annotations

import base64
import dataclasses
import json
import shlex
import zlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench_tasks.bags.bag import frames
from bench_tasks.commands.progress import duration
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.manifest import PAGE, environment, read_json, replaceable, replacing, utc_now
from bench_tasks.reports.latency import execution_table
from bench_tasks.reports.report_after import answers_after
from bench_tasks.reports.report_causes import diagnoses
from bench_tasks.reports.report_dreams import dreams
from bench_tasks.reports.report_parts import bar, document, percent, whisker
from bench_tasks.reports.report_teamwork import teamwork
from bench_tasks.reports.summary import (
    Group,
    acting_alone,
    by_execution,
    by_help,
    by_task,
    by_tier,
    category,
    together,
)
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.scored_runs import wrong_runs
from bench_tasks.verdicts.usage import usage_table
from bench_tasks.vocabulary import CameraFrame

__all__ = ["page", "write_report"]

FRAMES_PER_EPISODE = 6
MAX_PICTURED = 80
"""Failed episodes that are shown with pictures; the page stays below some 10 MB."""


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the page about a run's folder, and return its path.

    The recordings are scored anew: a result file that says something else is named in a warning,
    and is shown only when there is no recording. UsageError when the folder holds neither;
    BenchError when the page cannot be written.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    target = replaceable(out or folder / "report.html", PAGE)
    warnings: list[str] = []
    episodes, scored, source = _results(folder, warnings)
    warnings += wrong_runs(folder, episodes)
    run = read_json(folder / "run.json") if (folder / "run.json").exists() else {}
    html = page(episodes, run, scored, source, warnings)
    with replacing(target) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return target


def _results(
    folder: Path, warnings: list[str]
) -> tuple[list[EpisodeScore], dict[str, Any], str]:
    """The episodes, the result file that agrees with them ({} if there can be none), its name."""
    newest = score_files.newest_scores(folder, warnings)
    saved = score_files.load_scores(newest) if newest is not None else []
    try:
        episodes = scoring.score_folder(folder)
    except UsageError as error:
        if newest is None:
            raise UsageError("; ".join([str(error), *warnings])) from None
        warnings.append(f"there are no recordings: {newest.name} is shown as it is, unconfirmed")
        return saved, read_json(newest), newest.name
    if newest is None or _texts(saved) != _texts(episodes):
        if newest is not None and _undiagnosed(saved) != _undiagnosed(episodes):
            name = f"the result file {newest.name}"
            warnings.append(f"{name} is not what the recordings give: they were scored anew")
        try:
            newest = score_files.save_scores(folder, episodes)
        except BenchError as error:
            warnings.append(str(error))
            return episodes, {"created": utc_now(), "environment": environment()}, ""
    return episodes, read_json(newest), newest.name


def _undiagnosed(episodes: Sequence[EpisodeScore]) -> list[str]:
    """What result files held before failures were diagnosed."""
    return _texts([dataclasses.replace(e, diagnosis={}, help="", execution={}, dreams={},
                                       teamwork={})
                   for e in episodes])


def _texts(episodes: Sequence[EpisodeScore]) -> list[str]:
    return sorted(json.dumps(e.to_dict(), sort_keys=True) for e in episodes)


def page(
    episodes: Sequence[EpisodeScore], run: dict[str, Any], scored: dict[str, Any], source: str,
    warnings: Sequence[str] = (),
) -> str:
    """The page as HTML. `run` is run.json or {}, `scored` the result file called `source`."""
    whole = together(episodes)
    alone = acting_alone(episodes)
    agents = sorted({("" if alone(e) else f"{e.planner or '?'} planner, ") +
                     f"{e.policy or '?'} policy" for e in episodes})  # fmt: skip
    title = "; ".join(agents) if len(agents) <= 2 else f"{len(agents)} planners and policies"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p class=soft>{_when(run, scored)}</p>",
        _headline(whole),
        _warnings(whole, run, warnings),
        "<h2>Success by tier</h2>", _rates(by_tier(episodes)),
        "<h2>Success by task</h2>", _rates(by_task(episodes)),
        "<p class=soft>Bars: share of successful episodes; lines: 95\u202f% Wilson interval.</p>",
        _answers(by_task(episodes)), answers_after(by_task(episodes)),
        _executions(by_execution(episodes)), dreams(episodes), teamwork(episodes),
        "<h2>Stage progress</h2>", *[_stages(group) for group in by_task(episodes)],
        _help(episodes), diagnoses(whole), _causes(whole), _failed(whole),
        _all(by_task(episodes)), usage_table(episodes),
        _timings(by_task(episodes)),
        _repeat(run, scored, source),
    ]  # fmt: skip
    return document(title, "".join(parts))


def _when(run: dict[str, Any], scored: dict[str, Any]) -> str:
    def utc(value: Any) -> str:
        return f"{str(value)[:16].replace('T', ' ')} UTC"

    text = f"run {utc(run['started'])}, " if "started" in run else ""
    return escape(f"{text}scored {utc(scored.get('created', ''))}")


def _headline(whole: Group) -> str:
    low, high = whole.interval
    compared = [e for e in whole.episodes if e.agrees is not None]
    agreeing = sum(e.agrees is True for e in compared)
    facts = [
        (percent(whole.share), f"success, 95\u202f% interval {percent(low)} to {percent(high)}"),
        (f"{whole.successes} of {whole.count}", "episodes succeeded"),
        (f"{whole.progress:.2f}", "mean progress, 0 to 1"),
        (f"{agreeing} of {len(compared)}", "live verdicts confirmed from the recordings"),
    ]
    cells = "".join(f"<div class=fact><b>{a}</b><span>{b}</span></div>" for a, b in facts)
    return f"<div class=head>{cells}</div>"


def _warnings(whole: Group, run: dict[str, Any], more: Sequence[str]) -> str:
    lines = [escape(line[0].upper() + line[1:]) + "." for line in more]
    if run.get("status") not in (None, "complete"):
        lines.append(f"The run did not finish: its manifest says {escape(str(run['status']))}.")
    if whole.unscored:
        few = "1 episode has no verdict and counts as a failure"
        many = f"{whole.unscored} episodes have no verdict and count as failures"
        lines.append(f"{few if whole.unscored == 1 else many}.")
    if whole.stopped:
        few = "In 1 episode a human stopped the arms: it counts as a failure"
        many = f"In {whole.stopped} episodes a human stopped the arms: they count as failures"
        lines.append(f"{few if whole.stopped == 1 else many}.")
    differ = [e for e in whole.episodes if e.agrees is False]
    if differ:
        names = ", ".join(_link(e) for e in differ)
        lines.append(f"Live and offline verdict differ: {names}.")
    notes = dict.fromkeys(note for e in whole.episodes for note in e.notes)
    lines += [escape(note[0].upper() + note[1:]) + "." for note in notes]
    return "".join(f'<p class="warn">{line}</p>' for line in lines)


def _rates(groups: Sequence[Group]) -> str:
    rows = []
    for group in groups:
        low, high = group.interval
        number = (f"{group.successes}/{group.count} <span class=soft>"
                  f"{percent(low)} to {percent(high)}</span>")  # fmt: skip
        rows.append(bar(group.name, group.share, whisker(low, high), number))
    return f"<div class=card>{''.join(rows)}</div>"


def _help(episodes: Sequence[EpisodeScore]) -> str:
    """Success by level of help, where a model had several."""
    groups = by_help(episodes)
    if len({e.help for group in groups for e in group.episodes}) < 2:
        return ""
    note = "<p class=soft>Each level of help tells all that the one before it does, and more.</p>"
    return f"<h2>Success by help given</h2>{_rates(groups)}{note}"


def _executions(groups: Sequence[Group]) -> str:
    """Success against latency, where chunks were executed in several ways."""
    if not groups:
        return ""
    return f"<h2>Success against latency</h2>{_rates(groups)}{execution_table(groups)}"


def _answers(groups: Sequence[Group]) -> str:
    """Share of right answers against chance, for the tasks that ask questions."""
    rows = [
        bar(
            group.name, group.accuracy,
            f'<i class=chance style="left:{100 * group.chance:.1f}%"></i>',
            f"{percent(group.accuracy)} <span class=soft>chance "
            f"{percent(group.chance)}, score {group.score:.0f}</span>",
        )
        for group in groups
        if group.accuracy is not None and group.chance is not None
    ]  # fmt: skip
    if not rows:
        return ""
    note = ("<p class=soft>Bars: share of right answers; the mark: what guessing gives. The score "
            "is 0 at chance and 100 when all is right.</p>")  # fmt: skip
    return f"<h2>Answers to questions</h2><div class=card>{''.join(rows)}</div>{note}"


def _stages(group: Group) -> str:
    if not group.stages:
        return ""
    rows = "".join(bar(n, share, "", percent(share)) for n, share in group.stages.items())
    scored = group.count - group.unscored
    return (f"<div class=card><h3>{escape(group.name)} <span class=soft>({scored} scored, "
            f"mean progress {group.progress:.2f})</span></h3>{rows}</div>")  # fmt: skip


def _anchor(episode: EpisodeScore) -> str:
    """Name of the episode's place in the page; the bag tells equal seeds of two runs apart."""
    text = f"{episode.task or 'unknown'}-{episode.seed}"
    which = zlib.crc32(f"{episode.bag} {episode.planner} {episode.policy}".encode())
    return "".join(c if c.isalnum() else "-" for c in text) + f"-{which:08x}"


def _link(episode: EpisodeScore) -> str:
    return f'<a href="#{_anchor(episode)}">{escape(episode.task)} {episode.seed}</a>'


def _causes(whole: Group) -> str:
    if not whole.causes:
        return "<h2>Failures by cause</h2><p class=soft>No episode failed.</p>"
    rows = []
    for cause, count in whole.causes.items():
        members = [e for e in whole.episodes if not e.success and category(e.cause) == cause]
        links = ", ".join(_link(e) for e in members[:12])
        more = f" and {count - 12} more" if count > 12 else ""
        rows.append(f"<tr><td>{escape(cause)}</td><td class=r>{count}</td>"
                    f"<td class=long>{links}{more}</td></tr>")  # fmt: skip
    head = "<tr><th>cause</th><th class=r>episodes</th><th>which</th></tr>"
    table = f"<table>{head}{''.join(rows)}</table>"
    return f"<h2>Failures by cause</h2><div class=card>{table}</div>"


def _failed(whole: Group) -> str:
    failed = [e for e in whole.episodes if not e.success]
    if not failed:
        return ""
    cards = [_card(e, pictured=k < MAX_PICTURED) for k, e in enumerate(failed)]
    return f"<h2>Failed episodes</h2>{''.join(cards)}"


def _card(episode: EpisodeScore, pictured: bool) -> str:
    reached = [name for name, yes in episode.stages.items() if yes]
    missed = [name for name, yes in episode.stages.items() if not yes]
    lines = [f'<p class="bad">{escape(episode.cause)}</p>']
    if episode.diagnosis:
        kind, evidence, seq = (episode.diagnosis.get(k, "") for k in ("kind", "evidence", "seq"))
        lines.append(f"<p><b>{escape(str(kind))}</b>: {escape(str(evidence))} "
                     f"<span class=soft>(state {escape(str(seq))})</span></p>")  # fmt: skip
    if episode.stages:
        lines.append(f"<p class=soft>reached: {escape(', '.join(reached) or 'nothing')}; "
                     f"not reached: {escape(', '.join(missed) or 'nothing')}</p>")  # fmt: skip
    asked = [*episode.details.get("questions", {}).items(),
             *episode.details.get("afterwards", {}).items()]  # fmt: skip
    for name, question in asked:
        given = question.get("answer") or {}
        pairs = "; ".join(
            f"{item}: answered {given.get(item, 'nothing')}, correct is {gold}"
            for item, gold in question.get("gold", {}).items()
        )
        lines.append(f"<p class=soft>question {escape(str(name))}: {escape(pairs)}</p>")
    lines.append(_pictures(episode) if pictured else "<p class=soft>Pictures left out.</p>")
    return (f'<div class=card id="{_anchor(episode)}"><h3>{escape(episode.task)}, seed '
            f"{episode.seed}</h3>{''.join(lines)}</div>")  # fmt: skip


def _key_frames(path: Path) -> list[CameraFrame]:
    """A few frames of one camera, evenly over the episode, first and last among them.

    The head camera's, if there are any; otherwise those of the first by name.
    """
    taken: dict[str, dict[int, CameraFrame]] = {}
    for frame in frames(path):
        taken.setdefault(frame.camera, {}).setdefault(frame.seq, frame)
    if not taken:
        return []
    chosen = taken.get("head") or taken[min(taken)]
    found = [chosen[seq] for seq in sorted(chosen)]
    if len(found) <= FRAMES_PER_EPISODE:
        return found
    last = len(found) - 1
    picks = {round(k * last / (FRAMES_PER_EPISODE - 1)) for k in range(FRAMES_PER_EPISODE)}
    return [found[k] for k in sorted(picks)]


def _pictures(episode: EpisodeScore) -> str:
    if not episode.bag or not Path(episode.bag).exists():
        return "<p class=soft>There is no recording to take pictures from.</p>"
    shown = []
    for frame in _key_frames(Path(episode.bag)):
        label = f"{frame.camera}, state {frame.seq}, {frame.stamp_ns / 1e9:.2f} s"
        data = base64.b64encode(frame.data).decode()
        kind = "png" if frame.format == "png" else "jpeg"
        shown.append(
            f'<figure><img loading=lazy width={frame.width} height={frame.height} alt="'
            f'{escape(label)}" src="data:image/{kind};base64,{data}">'
            f"<figcaption>{escape(label)}</figcaption></figure>"
        )
    if not shown:
        return "<p class=soft>No picture was recorded.</p>"
    return f"<div class=frames>{''.join(shown)}</div>"


def _all(groups: Sequence[Group]) -> str:
    head = ("<tr><th>episode</th><th>verdict</th><th class=r>progress</th>"
            "<th class='r wide'>simulated</th><th class='r wide'>wall</th>"
            "<th class=wide>confirmed</th><th class=wide>states (SHA-256)</th></tr>")  # fmt: skip
    rows = []
    for episode in (e for group in groups for e in group.episodes):
        mark = "<span class=good>success</span>"
        name, row_id = f"{escape(episode.task)} {episode.seed}", f' id="{_anchor(episode)}"'
        if not episode.success:
            kind = "failure" if episode.scored else "no verdict"
            mark, name, row_id = f"<span class=bad>{kind}</span>", _link(episode), ""
        wall = f"{episode.wall_s:.1f} s" if episode.wall_s is not None else "-"
        agrees = {True: "yes", False: "<span class=bad>no</span>", None: "-"}[episode.agrees]
        rows.append(
            f"<tr{row_id}><td class=long>{name}</td><td>{mark}</td>"
            f"<td class=r>{episode.progress:.2f}</td>"
            f"<td class='r wide'>{episode.sim_s:.1f} s</td><td class='r wide'>{wall}</td>"
            f"<td class=wide>{agrees}</td>"
            f"<td class=wide><code>{escape(episode.state_hash[:12]) or '-'}</code></td></tr>"
        )
    note = (
        "<p class='soft wide'>Confirmed: the verdict given during the run is the one that the "
        "recording gives. Episodes with the same hash went through the same states.</p>"
    )
    table = f"<table>{head}{''.join(rows)}</table>"
    return f"<h2>All episodes</h2><div class=card>{table}{note}</div>"


def _timings(groups: Sequence[Group]) -> str:
    head = ("<tr><th>task</th><th class=r>simulated</th><th class=r>wall</th>"
            "<th class=r>simulated per wall second</th></tr>")  # fmt: skip
    rows = "".join(
        f"<tr><td class=long>{escape(g.name)}</td><td class=r>{duration(g.sim_s)}</td>"
        f"<td class=r>{duration(g.wall_s) if g.wall_s else '-'}</td>"
        f"<td class=r>{f'{g.sim_s / g.wall_s:.1f} s' if g.wall_s else '-'}</td></tr>"
        for g in groups
    )
    return f"<h2>Time</h2><div class=card><table>{head}{rows}</table></div>"


def _mapping(value: dict[str, Any], key: str) -> dict[str, Any]:
    """A mapping in a file that anyone may have written; {} when it is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _repeat(run: dict[str, Any], scored: dict[str, Any], source: str) -> str:
    about = run or _mapping(scored, "environment")
    git = _mapping(about, "git")
    commit = git.get("commit") or "not a checkout"
    packages = ", ".join(f"{k} {v}" for k, v in sorted(_mapping(about, "packages").items()))
    tasks = ", ".join(f"{k} version {v}" for k, v in _mapping(run, "task_versions").items())
    facts = {
        "commit": commit + (" with local changes" if git.get("dirty") else ""),
        "tasks": tasks, "packages": packages, "Python": about.get("python", ""),
        "ROS": about.get("ros_distro", "") or "none sourced",
        "platform": ", ".join(str(about[k]) for k in ("platform", "machine") if about.get(k)),
        "result file": source,
    }  # fmt: skip
    items = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items() if v)
    command = about.get("command")
    words = [escape(shlex.quote(str(w))) for w in (command if isinstance(command, list) else [])]
    # Lines break between the words of a command; only a very long one is broken itself.
    command = " ".join(w if len(w) > 40 else f"<span class=word>{w}</span>" for w in words)
    what = "Command that ran" if run else "Command that scored (the folder has no run.json)"
    return (f"<h2>To repeat it</h2><div class=card><p>{what}:</p>"
            f"<pre>{command}</pre><dl>{items}</dl></div>")  # fmt: skip
