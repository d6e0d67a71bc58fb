"""Every family's published form, what is refused or dropped, and that nothing else is raised."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_tasks.errors import UsageError
from policies.planners.dialects import DIALECTS, DialectError, parse, qwen25_image_size

SIZE = (1288, 728)


def marks(text: str, dialect: str, size=None) -> list[tuple]:
    return [(m.kind, m.points, m.label, m.frame) for m in parse(text, dialect, size).marks]


def near(*points):
    return tuple(pytest.approx(p) for p in points)


def test_qwen3_vl_points_and_boxes_in_a_fenced_block():
    text = 'Here:\n```json\n[{"point_2d": [925, 618], "label": "cup"},\n' \
           ' {"bbox_2d": [10, 20, 500, 1000], "label": "table"}]\n```'  # fmt: skip
    assert marks(text, "qwen3-vl") == [
        ("point", near((0.925, 0.618)), "cup", None),
        ("box", near((0.01, 0.02), (0.5, 1.0)), "table", None),
    ]


def test_qwen25_vl_is_in_pixels_of_the_resized_image():
    text = '[{"bbox_2d": [644, 182, 1288, 728], "label": "pan"}]'
    assert marks(text, "qwen2.5-vl", SIZE) == [("box", near((0.5, 0.25), (1, 1)), "pan", None)]
    with pytest.raises(DialectError, match="size is needed"):
        parse(text, "qwen2.5-vl")
    xml = '<points x1="322" y1="364" x2="644" y2="182" alt="the ball">the ball</points>'
    assert marks(xml, "qwen2.5-vl-xml", SIZE) == [
        ("point", near((0.25, 0.5)), "the ball", None),
        ("point", near((0.5, 0.25)), "the ball", None),
    ]


def test_the_same_text_means_another_place_in_another_dialect():
    text = '[{"point": [100, 900], "label": "a"}]'
    assert marks(text, "gemini-er") == [("point", near((0.9, 0.1)), "a", None)]
    with pytest.raises(DialectError, match="needs point_2d or bbox_2d"):
        parse(text, "qwen3-vl")
    box = '[{"box_2d": [100, 200, 300, 400], "label": "b"}]'
    assert marks(box, "gemini-er") == [("box", near((0.2, 0.1), (0.4, 0.3)), "b", None)]


def test_molmo1_percent_and_what_lies_outside_is_dropped():
    one = '<point x="61.5" y="40.4" alt="a handle">a handle</point>'
    assert marks(one, "molmo1") == [("point", near((0.615, 0.404)), "a handle", None)]
    many = '<points x1="10.0" y1="20.0" x2="110.0" y2="20.0" x3="30" y3="100" alt="x">x</points>'
    parsed = parse(many, "molmo1")
    assert [m.points[0] for m in parsed.marks] == [near((0.1, 0.2))[0], near((0.3, 1.0))[0]]
    assert [m.id for m in parsed.marks] == [1, 3] and parsed.dropped == 1


def test_molmo2_points_of_one_and_of_several_images():
    text = '<points coords="1 1 990 800 2 911 800">spoons</points>'
    parsed = parse(text, "molmo2")
    assert [(m.frame, m.id, m.label) for m in parsed.marks] == [(1, 1, "spoons"), (1, 2, "spoons")]
    assert parsed.marks[0].points == near((0.99, 0.8))
    for separator in "\t;:,":
        text = f'<points coords="1 1 555 169{separator}2 3 649 154 4 1709 162">t</points>'
        parsed = parse(text, "molmo2")
        assert [(m.frame, m.id) for m in parsed.marks] == [(1, 1), (2, 3)] and parsed.dropped == 1


def test_molmo2_tracks_become_one_trajectory_for_each_object():
    text = '<tracks coords="0.0 1 635 522;0.5 1 606 490 2 511 124;1.0 2 515 164">balls</tracks>'
    first, second = parse(text, "molmo2").marks
    assert (first.kind, first.id, first.times) == ("trajectory", 1, (0.0, 0.5))
    assert first.points == near((0.635, 0.522), (0.606, 0.49))
    assert (second.id, second.times) == (2, (0.5, 1.0))


@pytest.mark.parametrize("dialect", ["robopoint", "roborefer"])
def test_tuples_are_points_and_four_numbers_a_box(dialect):
    text = "Sure: [(0.46, 0.53), (0.1, 0.2, 0.3, 0.4)] (as asked)"
    assert marks(text, dialect) == [
        ("point", near((0.46, 0.53)), "", None), ("box", near((0.1, 0.2), (0.3, 0.4)), "", None),
    ]  # fmt: skip
    with pytest.raises(DialectError, match="2 or 4"):
        parse("[(0.1, 0.2, 0.3)]", dialect)
    with pytest.raises(DialectError, match="outside"):
        parse("[(46, 53)]", dialect)


def test_rynnbrain_plan():
    text = (
        "Pick up <affordance> <frame 1>: (577, 371) </affordance> of <object> <frame 1>: "
        "(541, 248), (680, 414) </object>. Place <object> <frame 2>: (1, 2), (3, 4) </object> "
        "into <area> <frame 1>: (667, 579) </area>. Done."
    )
    assert marks(text, "rynnbrain") == [
        ("point", near((0.577, 0.371)), "affordance", 1),
        ("box", near((0.541, 0.248), (0.68, 0.414)), "object", 1),
        ("box", near((0.001, 0.002), (0.003, 0.004)), "object", 2),
        ("point", near((0.667, 0.579)), "area", 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<trajectory> <frame 4>: (146, 373), (200, 300) </trajectory>",
        "<trajectory> <frame 4>; (146, 373), (200, 300) </trajectory>",
        "<traj> <frame4>; (146, 373), (200, 300) </traj>",
        "<traj><frame 4> (146,373),(200,300)</traj>",
        "<think>first <traj> <frame 9>: (1, 1) </traj></think>#### <answer><trajectory> <frame 4>: "
        "(146, 373), (200, 300) </trajectory></answer>",
    ],
)
def test_rynnbrain_trajectory_variants(text):
    ((kind, points, _, frame),) = marks(text, "rynnbrain")
    assert (kind, points, frame) == ("trajectory", near((0.146, 0.373), (0.2, 0.3)), 4)


def test_rynnbrain_other_tags_and_an_unclosed_one():
    text = "<grasp_pose> <frame 2>: (1, 2), (3, 4), (5, 6), (7, 8) </grasp_pose>"
    assert parse(text, "rynnbrain").marks[0].kind == "polygon"
    counted = parse(
        "<counting> <frame 1>: (1, 2) <frame 53>; (3, 4), (5, 6) </counting>", "rynnbrain"
    )
    assert [m.frame for m in counted.marks] == [1, 53, 53]
    cut = parse("<area> <frame 1>: (667, 579)", "rynnbrain")
    assert len(cut.marks) == 1 and cut.repairs == ("<area> is not closed",)


def test_broken_json_is_repaired_and_the_repair_told():
    good = parse('[{"point_2d": [1, 2], "label": "a"}]', "qwen3-vl")
    assert good.repairs == ()
    mended = parse(
        '```json\n[{"point_2d": [1, 2], "label": "a"},\n{"point_2d": [3, 4],]', "qwen3-vl"
    )
    assert [m.points for m in mended.marks] == [near((0.001, 0.002)), near((0.003, 0.004))]
    assert mended.repairs


def test_nothing_shown_is_not_an_error_where_the_form_can_say_so():
    assert parse("[]", "gemini-er").marks == ()


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("text", ["", "There are none.", "{}", "<point>", "[[1, 2]]", "(a, b)"])
def test_what_cannot_be_read_is_refused_in_one_line(dialect, text):
    with pytest.raises(DialectError) as caught:
        parse(text, dialect, SIZE)
    assert isinstance(caught.value, UsageError) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('[{"point_2d": [1001, 5]}]', "qwen3-vl"), ('[{"point_2d": [-1, 5]}]', "qwen3-vl"),
        ('[{"point_2d": [true, 5]}]', "qwen3-vl"), ('[{"point_2d": [1e999, 5]}]', "qwen3-vl"),
        ('[{"point_2d": "12"}]', "qwen3-vl"), ('[{"bbox_2d": [1, 2]}]', "qwen3-vl"),
        ('[{"point": [5, 1001]}]', "gemini-er"), ('[{"bbox_2d": [0, 0, 1289, 5]}]', "qwen2.5-vl"),
        ("<area> <frame 1>: (1, 1001) </area>", "rynnbrain"),
        ("<object> <frame 1>: (1, 1) </object>", "rynnbrain"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_refused(text, dialect):
    with pytest.raises(DialectError):
        parse(text, dialect, SIZE)


def test_an_unknown_dialect_lists_the_known_ones():
    with pytest.raises(UsageError, match="unknown dialect 'gpt': choose from gemini-er, molmo1"):
        parse("", "gpt")


PIECES = [
    "<point ", "<points ", "coords=", '"1 1 2 3"', "x=", 'x1="3"', 'y1="4"', ">", "</points>",
    "<tracks coords=\"0 1 2", "(0.1, 0.2)", "(577, 371)", "<affordance>", "<frame 1>:", "<object>",
    "<frame53>;", "</object>", "<traj>", "[", "]", "{", "}", '"point_2d":', "[1, 2]",
    "[1e999,null]",
    '"label"', "```json\n", "```", "NaN", "\\", '"', "<answer>", "</think>", ",", ":", "\t",
    "9" * 30,
    "\u0663", "\ud800", "é", "\x00", "[[[[", "-", "1e5",
]  # fmt: skip


def test_ten_thousand_random_strings_raise_nothing_but_the_dialects_own_error():
    rng = random.Random(1)
    names = sorted(DIALECTS)
    outcomes = {True: 0, False: 0}
    for i in range(10_000):
        if i % 2:
            text = "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 14)))
        else:
            text = "".join(chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x3000))))
                           for _ in range(rng.randint(0, 60)))  # fmt: skip
        try:
            found = parse(text, names[i % len(names)], SIZE)
            outcomes[True] += 1
            for mark in found.marks:
                assert all(0.0 <= c <= 1.0 for point in mark.points for c in point)
        except DialectError as error:
            outcomes[False] += 1
            assert "\n" not in str(error) and len(str(error)) <= 400
    assert sum(outcomes.values()) == 10_000 and min(outcomes.values()) > 0


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=20),
       st.sampled_from(sorted(DIALECTS)))  # fmt: skip
def test_any_text_is_parsed_or_refused(pieces, dialect):
    try:
        parse("".join(pieces), dialect, SIZE)
    except DialectError:
        pass


def test_deep_nesting_is_refused_not_crashed_on():
    with pytest.raises(DialectError):
        parse("[" * 100_000, "qwen3-vl")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=8))
def test_what_was_written_comes_back(points):
    wanted = [((x / 1000, y / 1000),) for x, y in points]
    triples = " ".join(f"{i} {x} {y}" for i, (x, y) in enumerate(points))
    forms = {
        "qwen3-vl": str([{"point_2d": [x, y]} for x, y in points]).replace("'", '"'),
        "gemini-er": str([{"point": [y, x]} for x, y in points]).replace("'", '"'),
        "molmo2": f'<points coords="1 {triples}">',
        "molmo1": "".join(f'<point x="{x / 10}" y="{y / 10}">' for x, y in points),
        "robopoint": str([(x / 1000, y / 1000) for x, y in points]),
        "rynnbrain": "<area><frame 1>: " + ", ".join(map(str, points)) + "</area>",
    }
    for dialect, text in forms.items():
        got = [m.points for m in parse(text, dialect).marks]
        assert got == [(pytest.approx(w[0]),) for w in wanted], dialect


def test_size_of_the_image_as_qwen25_sees_it():
    assert qwen25_image_size(1280, 720) == (1288, 728)
    for size in ((320, 240), (10, 4000), (4000, 3000), (20, 20)):
        w, h = qwen25_image_size(*size)
        assert w % 28 == h % 28 == 0 and 0 < w * h <= 1003520 * 1.01
