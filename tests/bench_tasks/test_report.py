"""The report page: self-contained, complete, and safe with whatever text it is given."""

import base64
import json
import re
from html.parser import HTMLParser

import made
import pytest

from bench_tasks.bags.recording import BagSink
from bench_tasks.errors import UsageError
from bench_tasks.reports import report
from bench_tasks.reports.summary import by_task, by_tier, category, together
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, CameraFrame

VOID = {"meta", "img", "br", "link"}


class Checker(HTMLParser):
    """Collects ids, links and sources, and refuses tags that do not nest."""

    def __init__(self):
        super().__init__()
        self.stack, self.ids, self.links, self.sources, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        self.sources += [attrs["src"]] if "src" in attrs else []
        assert not any(name.startswith("on") for name in attrs)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.stack == []
    assert len(set(checker.ids)) == len(checker.ids)
    for link in checker.links:
        assert link.startswith("#") and link[1:] in checker.ids, link
    assert all(source.startswith("data:image/") for source in checker.sources)
    assert not re.search(r"https?://|@import|url\(|<script|<link", html), "needs the network"
    return checker, " ".join(" ".join(checker.text).split())


@pytest.fixture
def folder(tmp_path):
    for seed, options in enumerate(({}, {"y": made.OUT_OF_ORDER}, {"end": False})):
        sink = BagSink(tmp_path / f"{seed:06d}")
        made.ranking_episode(sink, seed=seed, **options)
        for camera, seq in [("third", 0), *(("head", s) for s in range(9))]:
            stamp = seq * CONTROL_PERIOD_NS
            sink.frames((CameraFrame(camera, seq, stamp, 32, 24, "png", made.png()),))
        sink.writer.close(wall_s=0.5)
    return tmp_path


def test_the_page_of_a_folder(folder):
    path = report.write_report(folder)
    checker, text = checked(path.read_text())
    assert path == folder / "report.html" and len(list(folder.glob("scores-*.json"))) == 1
    assert "1 of 3 episodes succeeded" in text and "2 of 2 live verdicts confirmed" in text
    assert "1 episode has no verdict" in text
    assert "goal not reached: ordered" in text and "incomplete recording: no end event" in text
    assert "blocks_ranking_rgb 1/3" in text and "6 % to 79 %" in text.replace("\u202f", " ")
    assert len(checker.sources) == 2 * report.FRAMES_PER_EPISODE, "of the failed two"
    assert text.count("head, state 0, 0.00 s") == text.count("head, state 8, 0.16 s") == 2
    data = base64.b64decode(checker.sources[0].partition(",")[2])
    assert data == made.png()


def test_an_edited_result_file_is_found_and_the_recordings_count(folder):
    report.write_report(folder)
    (first,) = folder.glob("scores-*.json")
    assert "not what the recordings give" not in report.write_report(folder).read_text()
    assert list(folder.glob("scores-*.json")) == [first]
    value = json.loads(first.read_text())
    for episode in value["episodes"]:
        episode |= {"success": True, "scored": True, "cause": ""}
    lie = folder / "scores-29990101T000000Z.json"
    lie.write_text(json.dumps(value))
    (folder / "scores-29990102T000000Z.json").write_text("")
    text = checked(report.write_report(folder, folder / "other.html").read_text())[1]
    assert "1 of 3 episodes succeeded" in text
    assert f"The result file {lie.name} is not what the recordings give" in text
    assert "scores-29990102T000000Z.json is not valid JSON" in text


def test_without_recordings_a_result_file_is_shown_with_a_warning(folder, tmp_path_factory):
    report.write_report(folder)
    (first,) = folder.glob("scores-*.json")
    other = tmp_path_factory.mktemp("other")
    (other / first.name).write_bytes(first.read_bytes())
    text = checked(report.write_report(other).read_text())[1]
    assert "1 of 3 episodes succeeded" in text and "There are no recordings" in text


def test_run_manifest_tells_how_to_repeat(folder):
    run = {
        "started": "2026-01-02T03:04:05Z", "status": "interrupted", "python": "3.11",
        "command": ["bench_tasks", "run", "--out", "a b"], "git": {"commit": "abc", "dirty": True},
        "packages": {"mujoco": "3.3"}, "task_versions": {"blocks_ranking_rgb": 1},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    text = checked(report.write_report(folder).read_text())[1]
    assert "bench_tasks run --out 'a b'" in text and "abc with local changes" in text
    assert "mujoco 3.3" in text and "blocks_ranking_rgb version 1" in text
    assert "did not finish" in text and "run 2026-01-02 03:04 UTC" in text


def score(**changes):
    base = dict(
        task="t", seed=1, success=False, progress=0.5, cause="lost: x", state_hash="ab", bag="",
        wall_s=2.0, sim_s=4.0, stages={"up": True, "down": False}, tier=2, planner="p", policy="q",
    )  # fmt: skip
    return EpisodeScore(**{**base, **changes})


def test_text_of_planners_and_tasks_is_never_markup():
    nasty = "<script>alert(1)</script>\"'&"
    episode = score(
        task=nasty, cause=nasty, planner=nasty, policy=nasty, stages={nasty: True},
        notes=(nasty,), agrees=False, state_hash="ab",
        details={"questions": {nasty: {"gold": {nasty: nasty}, "answer": {nasty: nasty},
                                       "accuracy": 0.0, "chance": 0.5}}},
    )  # fmt: skip
    run = {"command": [nasty], "git": {"commit": nasty}, "packages": {nasty: nasty},
           "status": "odd"}  # fmt: skip
    html = report.page([episode], run, {}, nasty)
    checked(html.replace("&lt;script", ""))
    assert "<script" not in html


def test_many_failures_keep_the_page_small():
    episodes = [score(seed=k) for k in range(300)]
    html = report.page(episodes, {}, {}, "x")
    checked(html)
    assert html.count("Pictures left out") == 300 - report.MAX_PICTURED


def test_empty_and_wrong_folders(tmp_path):
    with pytest.raises(UsageError, match="no recordings"):
        report.write_report(tmp_path)
    with pytest.raises(UsageError, match="not a folder"):
        report.write_report(tmp_path / "missing")
    (tmp_path / "scores-1.json").write_text("[]")
    with pytest.raises(UsageError, match="JSON object"):
        report.write_report(tmp_path)


def test_groups_count_the_unscored_as_failures():
    group = together([
        score(success=True, cause="", progress=1.0, stages={"up": True, "down": True}),
        score(cause="setup: no layout", scored=False, progress=0.0, stages={}),
        score(cause="lost: y"),
    ])  # fmt: skip
    assert (group.count, group.successes, group.unscored) == (3, 1, 1)
    assert group.share == pytest.approx(1 / 3) and group.progress == pytest.approx(0.5)
    assert group.causes == {"lost": 1, "setup": 1} and category("a: b: c") == "a"
    assert group.stages == {"up": 1.0, "down": 0.5} and group.chance is None
    assert (group.sim_s, group.wall_s) == (12.0, 6.0)


def test_a_guesser_scores_nothing_though_single_episodes_look_better_than_chance():
    def asked(*shares):
        return together([
            score(details={"questions": {"q": {"gold": {}, "answer": {}, "accuracy": share,
                                               "chance": 0.25}}})
            for share in shares
        ])  # fmt: skip

    assert asked(0.75, 0.0, 0.0).score == pytest.approx(0.0)
    assert asked(0.0, 0.0).score == 0.0 and asked(1.0, 1.0).score == 100.0
    assert asked(1.0, 0.25).score == pytest.approx(50.0)
    assert together([score()]).score is None


def test_groups_are_ordered_and_never_mix_agents():
    episodes = [score(task="b", tier=None, kind="probe"), score(task="z", tier=1), score(task="a")]
    assert [g.name for g in by_task(episodes)] == ["z", "a", "b"]
    assert [g.name for g in by_tier(episodes)] == ["tier 1", "tier 2", "probe"]
    both = [score(planner="x", success=True), score(planner="y")]
    assert [(g.name, g.successes) for g in by_task(both)] == [("t (x, q)", 1), ("t (y, q)", 0)]


def test_a_policy_that_asks_for_no_plans_is_named_alone():
    """In title, groups and causes, also where an episode ended before it began."""
    wam = [score(planner="expert", policy="wam 1f", asked=asked, seed=seed)
           for seed, asked in enumerate((False, None))]  # fmt: skip
    planned = score(planner="expert", policy="skills", asked=True)
    early = score(planner="expert", policy="other", asked=None)
    assert "<h1>wam 1f policy</h1>" in report.page(wam, {}, {}, "")
    html = report.page([*wam, planned], {}, {}, "")
    assert "<h1>expert planner, skills policy; wam 1f policy</h1>" in html
    assert [g.name for g in by_task([*wam, planned])] == ["t (expert, skills)", "t (wam 1f)"]
    assert "<h1>expert planner, other policy</h1>" in report.page([early], {}, {}, "")
    assert ">wam 1f</th>" in html and ">expert</th>" in html


def diagnosed(seed, kind, tier=2, mode="parallel", planner="openai:m:none", help="none"):  # noqa: A002
    return EpisodeScore(
        "blocks_tower", seed, False, 0.2, "time limit: 80 s", "", "", 1.0, 80.0, tier=tier,
        mode=mode, planner=planner, policy="skills", help=help,
        diagnosis={"kind": kind, "evidence": f"<{kind}> & all", "seq": 12},
    )  # fmt: skip


def test_causes_are_crossed_with_model_tier_and_mode():
    episodes = [
        diagnosed(0, "perception"), diagnosed(1, "perception", tier=3, mode="single"),
        diagnosed(2, "sequencing", planner="openai:n:none"),
    ]  # fmt: skip
    html = report.page(episodes, {}, {}, "scores.json")
    _, text = checked(html)
    tables = re.findall(r"<table>.*?</table>", html)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
            for row in re.findall(r"<tr>(.*?)</tr>", "".join(tables))]  # fmt: skip
    plain = [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows]
    assert ["kind of cause, by model", "openai:m", "openai:n", "published"] in plain
    assert ["perception", "2 100\u202f%", "-", "GPT-5 54\u202f%"] in plain
    assert ["sequencing", "-", "1 100\u202f%", "Gemini-2.5-Pro 31\u202f%"] in plain
    assert ["by tier", "tier 2", "tier 3"] in plain and ["by mode", "parallel", "single"] in plain
    assert ["perception", "1 50\u202f%", "1 100\u202f%"] in plain
    assert "arXiv 2602.08392" in text and "<perception> & all" in text


def test_success_by_help_is_shown_when_several_were_given():
    told = diagnosed(1, "sequencing", planner="openai:m:poses", help="poses")
    assert "help given" not in report.page([diagnosed(0, "perception")], {}, {}, "")
    html = report.page([diagnosed(0, "perception"), told], {}, {}, "")
    assert "openai:m, help: none" in html and "openai:m, help: poses" in html
    assert html.index("help: none") < html.index("help: poses")


def test_a_result_file_from_before_there_was_a_diagnosis_is_not_called_wrong(folder):
    from bench_tasks.verdicts.score_files import newest_scores

    report.write_report(folder)
    path = newest_scores(folder)
    raw = json.loads(path.read_text())
    for scored in raw["episodes"]:
        del scored["diagnosis"], scored["help"]
    path.write_text(json.dumps(raw))
    report.write_report(folder)
    assert "were scored anew" not in (folder / "report.html").read_text()
    assert newest_scores(folder) != path and "diagnosis" in newest_scores(folder).read_text()
    raw["episodes"][0]["progress"] = 0.5
    newest_scores(folder).write_text(json.dumps(raw))
    report.write_report(folder)
    assert "were scored anew" in (folder / "report.html").read_text()


def executed(seed: int, success: bool, mode: str, latency: str, **sums) -> EpisodeScore:
    settings = {"mode": mode, "latency": latency, "execute": 0, "deadline_s": 10.0}
    zeros = dict.fromkeys(
        ("calls", "latency_s", "wall_s", "late", "actions", "dropped", "held", "blended"), 0.0
    )
    cause, bag = "" if success else "time limit: 30 s", f"{latency}/{seed}"
    return EpisodeScore(
        "lift_pot", seed, success, float(success), cause, "", bag, 1.0, 10.0, tier=2,
        policy="wam", execution={**settings, **zeros, **sums},
    )  # fmt: skip


def test_success_is_shown_against_latency():
    slow = {"calls": 4.0, "latency_s": 0.8, "wall_s": 0.04, "actions": 128.0, "dropped": 40.0,
            "held": 10.0, "late": 1.0}  # fmt: skip
    episodes = [executed(k, k < 3, "async", "0.2", **slow) for k in range(4)]
    episodes += [executed(k, True, "async", "free") for k in range(4)]
    episodes += [executed(k, False, "async", "0.05") for k in range(4)]
    checker, text = checked(report.page(episodes, {}, {}, "scores.json"))
    text = text.replace("\u202f", " ")
    ways = re.findall(r"wam: (async, latency (?:free|\S+ s)) (\d)/4 (\d+ % to \d+ %)", text)
    assert ways == [
        ("async, latency free", "4", "51 % to 100 %"),
        ("async, latency 0.05 s", "0", "0 % to 49 %"),
        ("async, latency 0.2 s", "3", "30 % to 95 %"),
    ]
    assert "10.0 s 4.0 0.200 0.0100 4 31 % 10.0 0.0" in text, "of the four with 0.2 s"
    _, text = checked(report.page(episodes[:4], {}, {}, "scores.json"))
    assert "Success against latency" not in text, "there is nothing to compare"
