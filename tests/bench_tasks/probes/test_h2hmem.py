"""The published layout is read as it is, its faults are told, and ours is written in it."""

from __future__ import annotations

import json

import pytest

from bench_tasks.errors import UsageError
from bench_tasks.probes import make_probe
from bench_tasks.probes.h2hmem import read_dialogue, type_of
from bench_tasks.probes.h2hmem_writer import write_dialogue
from bench_tasks.probes.stream import NOT_MENTIONED, Asked, Item

PICTURE = b"\xff\xd8 not really a picture \xff\xd9"


def turn(role, text, image=""):
    return {"role": role, "content": {"image": image, "text": text}}


def question(text, answer, sub_type, *sessions, image="", **more):
    return {
        "question": {"image": image, "text": text}, "original_answer": answer,
        "answer_session": list(sessions), "answer_dialogue": "dialogue1",
        "question_type": {"main_type": "Memory", "sub_type": sub_type}, "difficulty": "hard",
        "validated": True, **more,
    }  # fmt: skip


def write(folder, questions, turns=None, date=None, images=(), captions=()):
    (folder / "image").mkdir(parents=True)
    (folder / "questions.json").write_text(json.dumps({"questions": questions}))
    if turns is not None:
        session = {"session_id": "x", "session_title": "t", "theme": "t", "dialogue": turns}
        if date:
            session["timeline_date"] = date
        (folder / "session.json").write_text(json.dumps(session))
    for name in images:
        (folder / "image" / name).write_bytes(PICTURE)
    for name in captions:
        (folder / "caption_256").mkdir(exist_ok=True)
        (folder / "caption_256" / name).write_text("A red kite.\n")


@pytest.fixture
def dialogue(tmp_path):
    """Two people, three sessions of which the tenth must not come before the second."""
    scenes = tmp_path / "dataset" / "dyadic" / "dialogue1" / "scenes"
    write(scenes / "session0", [
        question("Order them.", "B -> A", "Temporal Reasoning", "session0"),
    ])  # fmt: skip
    write(scenes / "session1", [
        question("What flew?", "A kite", "Unimodal Precise Recall", "session1"),
        question("Is that so?", "yes.", "Conflict Detection", "session1"),
        question("What is this?", "A kite", "Cross-modal Related Retrieval", "session1",
                 image="1.png"),
    ], [turn("Ida", "Look, my kite.", "1.png"), turn("Ole", "Nice.")], "2024-03-01",
        ["1.png"], ["1.txt"])  # fmt: skip
    write(scenes / "session2", [
        question("What is their tent?", "not mentioned", "Answer Refusal", "session2"),
    ], [turn("Ole", "It is torn.")], "2024-03-09")  # fmt: skip
    write(scenes / "session10", [
        question("Why?", "The wind", "Multimodal Causal Inference", "session1", "session10",
                 image="session1/1.png"),
    ], [turn("Ida", "The wind did it.")], "2024-04-01")  # fmt: skip
    return scenes.parent


def test_a_dialogue_is_read_in_its_order(dialogue):
    found = read_dialogue(dialogue)
    assert found.faults == []
    steps = list(found.steps())
    items = [step for step in steps if isinstance(step, Item)]
    assert [i.text for i in items] == ["Look, my kite.", "Nice.", "It is torn.", "The wind did it."]
    assert [i.session for i in items] == ["session1", "session1", "session2", "session10"]
    assert [i.speaker for i in items] == ["Ida", "Ole", "Ole", "Ida"]
    assert items[0].picture.data == PICTURE and items[0].picture.format == "png"
    days = [(i.stamp_ns - items[0].stamp_ns) // (86_400 * 10**9) for i in items]
    assert days == [0, 0, 8, 31]
    asked = [step for step in steps if isinstance(step, Asked)]
    assert [a.kind for a in asked] == ["UPR", "CD", "CRR", "AR", "MCR", "TR"]
    assert steps[-1] is asked[-1], "what is about all sessions comes last"
    assert [steps.index(a) for a in asked[:3]] == [2, 3, 4], "after its session"
    assert all(a.query.stamp_ns > s.stamp_ns for k, a in enumerate(steps) if isinstance(a, Asked)
               for s in steps[:k] if isinstance(s, Item))  # fmt: skip


def test_golds_and_evidence(dialogue):
    asked = {s.query.text: s for s in read_dialogue(dialogue).steps() if isinstance(s, Asked)}
    recalled, doubted, refused = asked["What flew?"], asked["Is that so?"], asked["What is their "
                                                                                  "tent?"]
    assert recalled.evidence == ("session1-001", "session1-002") and not recalled.query.choices
    assert (doubted.gold, doubted.query.choices, doubted.chance) == ("Yes", ("Yes", "No"), 0.5)
    assert refused.gold == NOT_MENTIONED and refused.evidence == () and refused.tags["refusal"]
    assert asked["Why?"].evidence == ("session1-001", "session1-002", "session10-001")
    assert asked["Why?"].query.picture.data == asked["What is this?"].query.picture.data == PICTURE
    assert asked["Why?"].tags == {"people": 2, "difficulty": "hard", "modality": "both",
                                  "turns": 4, "seconds": 31 * 86_400 + 1}  # fmt: skip
    assert len(asked["Order them."].evidence) == 4


def test_sessions_are_known_however_they_are_written(dialogue):
    told = question("Where?", "There", "Unimodal Precise Recall")
    told["answer_session"] = "Session 2"
    write(dialogue / "scenes" / "session3", [told], [turn("Ole", "Hm.")], "2024-03-20")
    found = read_dialogue(dialogue)
    assert found.faults == []
    (asked,) = found.asked["session3"]
    assert asked.evidence == ("session2-001",)


def test_captions_stand_for_pictures(dialogue):
    steps = list(make_probe(f"h2hmem:dir={dialogue.parents[1]},mode=text").steps(0))
    assert (steps[0].picture.data, steps[0].picture.caption) == (b"", "A red kite.")
    assert steps[4].query.picture.caption == "A red kite."


FAULTS = [
    ("session3", {"questions": [], "turns": [], "date": "2024-13-01"},
     "dialogue1/session3: timeline_date '2024-13-01' is no date; taken as a day later"),
    ("session3", {"questions": [], "turns": [], "date": "2024-03-02"},
     "dialogue1/session3: timeline_date '2024-03-02' is before what was said before; taken as a "
     "day later"),
    ("session3", {"questions": []}, "dialogue1/session3: no session.json"),
    ("session3", {"questions": [], "date": "2024-03-20", "turns": [turn("A", "x", "2.png")]},
     "dialogue1/session3 turn 1: picture 2.png is missing"),
    ("session3", {"questions": [], "date": "2024-03-20", "turns": [turn("A", "x", "2.png")],
                  "images": ["2.jpg"]}, "dialogue1/session3 turn 1: picture 2.png is 2.jpg"),
    ("session3", {"questions": [], "date": "2024-03-20", "turns": [{"role": "A"}]},
     "dialogue1/session3 turn 1: left out, malformed (no 'content')"),
]  # fmt: skip
Q = "dialogue1/session3/questions.json question 1: "
DOUBTS = [
    (question("?", "x", "Telepathy", "session1"), Q + "unknown type 'Telepathy'"),
    (question("?", "", "Temporal Reasoning", "session1"), Q + "no answer"),
    (question("?", "x", "Temporal Reasoning", "session1", validated=False), Q + "not validated"),
    (question("?", "x", "Temporal Reasoning", "session8"), Q + "answer_session session8 is not "
     "there"),
    (question("?", "img9.jpg in session1", "Multimodal Causal Inference", "session1"),
     Q + "the answer names img9.jpg, which is not there"),
    (question("?", "Perhaps", "Conflict Detection", "session1"),
     Q + "the answer is neither yes nor no: 'Perhaps'"),
    (question("?", "x", "Temporal Reasoning", "session1", image="7.png"),
     Q + "picture 7.png is missing"),
    ({"question": {"text": "?"}}, Q + "left out, malformed (no 'original_answer')"),
]  # fmt: skip


@pytest.mark.parametrize(("session", "content", "fault"), FAULTS)
def test_a_fault_of_a_session_is_one_line_and_the_rest_is_read(dialogue, session, content, fault):
    write(dialogue / "scenes" / session, **content)
    found = read_dialogue(dialogue)
    assert found.faults == [fault]
    stamps = [s.stamp_ns for s in found.steps() if isinstance(s, Item)]
    assert len(stamps) >= 4 and stamps == sorted(stamps)


@pytest.mark.parametrize(("asked", "fault"), DOUBTS)
def test_a_fault_of_a_question_is_one_line_and_the_rest_is_read(dialogue, asked, fault):
    write(dialogue / "scenes" / "session3", [asked], [turn("A", "Hm.")], "2024-03-20")
    found = read_dialogue(dialogue)
    assert found.faults == [fault]
    kept = "left out" not in fault
    assert sum(isinstance(step, Asked) for step in found.steps()) == 6 + kept


def test_what_is_no_json_is_left_out(dialogue):
    (dialogue / "scenes" / "session2" / "questions.json").write_text("{")
    (dialogue / "scenes" / "session10" / "questions.json").unlink()
    found = read_dialogue(dialogue)
    assert len(found.faults) == 2 and found.faults[1] == "dialogue1/session10: no questions.json"
    assert found.faults[0].startswith("dialogue1/session2/questions.json: left out, Expecting")


@pytest.mark.parametrize(("name", "kind"), [
    ("Knowledge Resolution", "KR"), ("Multimodal Causal Reasoning", "MCR"), ("ret", "RET"),
    ("Cross-turn Reference Tracking", "RET"), ("Test Time Learning", "TTL"), ("", "other"),
])  # fmt: skip
def test_types_are_known_by_their_names(name, kind):
    assert type_of(name) == kind


def test_a_generated_conversation_is_read_as_it_was_written(tmp_path):
    """In pictures and in words: nothing that is asked or scored by is lost."""
    for mode, render in (("image", lambda still: b"picture %d" % still.number), ("text", None)):
        kind = make_probe(f"conversations:sessions=4,questions=2,mode={mode}")
        steps = list(kind.steps(5, render))
        assert write_dialogue(steps, tmp_path / mode / "dialogue1") == 4
        back = make_probe(f"h2hmem:dir={tmp_path / mode},mode={mode}")
        read = list(back.steps(0))
        assert back.faults == []
        for before, after in zip(steps, read, strict=True):
            if isinstance(before, Asked):
                assert after.tags.pop("difficulty") in ("easy", "medium", "hard")
                assert after == before
                continue
            for name in ("id", "stamp_ns", "speaker", "text"):
                assert getattr(after, name) == getattr(before, name)
            assert (after.picture is None) == (before.picture is None)
            if before.picture is not None:
                for name in ("data", "format", "caption"):
                    if mode == "text" or name != "caption":
                        assert getattr(after.picture, name) == getattr(before.picture, name)


def test_what_cannot_be_is_told_in_one_line(tmp_path, dialogue):
    with pytest.raises(UsageError, match="h2hmem needs dir=FOLDER"):
        make_probe("h2hmem")
    with pytest.raises(UsageError, match="holds no dialogueN/scenes/"):
        make_probe(f"h2hmem:dir={tmp_path / 'nowhere'}")
    with pytest.raises(UsageError, match="there are 1 dialogues: no seed 1"):
        make_probe(f"h2hmem:dir={dialogue}").steps(1)
    with pytest.raises(UsageError, match="dialogue1 exists already"):
        write_dialogue([], dialogue)


@pytest.mark.parametrize("ours, says", [
    ("x", "'str' object has no attribute 'get'"),
    ({"stamp_ns": "x"}, "stamp_ns must be a whole number of 64 bits, got 'x'"),
    ({"stamp_ns": 10**30}, "stamp_ns must be a whole number of 64 bits, got 1000"),
    ({"stamp_ns": 5}, "stamp_ns goes back"),
    ({"id": ""}, "id '' is none"),
    ({"id": "session1-001"}, "id 'session1-001' is taken"),
])  # fmt: skip
def test_what_is_wrong_under_our_own_key_is_one_line_too(dialogue, ours, says):
    path = dialogue / "scenes" / "session1" / "session.json"
    raw = json.loads(path.read_text())
    raw["dialogue"][1]["bench_tasks"] = ours
    path.write_text(json.dumps(raw))
    found = read_dialogue(dialogue)
    assert [line for line in found.faults if says in line] == [
        f"dialogue1/session1 turn 2: left out, malformed ({line.split('(', 1)[1]}"
        for line in found.faults]  # fmt: skip
    assert [item.text for item in found.items["session1"]] == ["Look, my kite."]


def test_text_that_is_none_and_evidence_that_was_not_said_are_left_out(dialogue):
    path = dialogue / "scenes" / "session2"
    raw = json.loads((path / "session.json").read_text())
    raw["dialogue"].append(turn("Ole", "\ud800"))
    (path / "session.json").write_text(json.dumps(raw))
    more = question("What?", "Torn", "Unimodal", "session2", bench_tasks={"evidence": ["no"]})
    (path / "questions.json").write_text(json.dumps({"questions": [more]}))
    (path / "image" / "1.png").mkdir()
    found = read_dialogue(dialogue)
    assert found.faults == [
        "dialogue1/session2 turn 2: left out, malformed (text must be a text, got '\\ud800')",
        "dialogue1/session2/questions.json question 1: left out, malformed "
        "(its evidence 'no' was not said)"]  # fmt: skip
