"""The staged failures: what is sabotaged, in which task, and so what the cause is.

`DEVELOPED` were looked at while the rules were written, `HELD_OUT` were not: other tasks, other
seeds, other amounts.
"""

from __future__ import annotations

from functools import partial

from sabotage import (
    Broken,
    Case,
    Clash,
    Dawdle,
    Faulty,
    Freeze,
    HoldPolicy,
    LetGo,
    Malformed,
    NoAnswer,
    Offset,
    OneMoves,
    OtherCover,
    Park,
    Rename,
    Reverse,
    Scale,
    Shift,
    Skip,
    Stop,
    SwapArms,
    TopFirst,
    Uneven,
    WrongAnswer,
)

RGB = {"red_block": "blue_block", "blue_block": "red_block"}
SIZE = {"large_block": "small_block", "small_block": "large_block"}
TWO = {"red_block": "green_block", "green_block": "red_block"}
NEAR = (0.035, 0.0, 0.0)


def cases(label, name, tasks, seeds, planner=None, policy=None, **options):
    """One case per task and seed."""
    given = {k: v for k, v in (("planner", planner), ("policy", policy)) if v is not None}
    return [
        Case(label, name, task, seed, options=options, **given)
        for task in tasks.split() for seed in seeds
    ]  # fmt: skip


DEVELOPED = [
    *cases("perception", "swapped names", "stack_blocks_three blocks_ranking_rgb", [1],
           partial(Rename, RGB)),
    *cases("perception", "no such thing", "stack_blocks_three", [1],
           partial(Rename, {"red_block": "crimson_cube"})),
    *cases("perception", "block for basket", "place_object_basket", [1],
           partial(Rename, {"block": "basket"})),
    *cases("perception", "placed far off", "stack_blocks_three", [1],
           partial(Shift, (0.0, -0.14, 0.0), skills=("place",))),
    *cases("perception", "reached far off", "place_object_scale stack_blocks_two", [1],
           partial(Shift, (0.0, -0.14, 0.0))),
    *cases("memory", "wrong answer", "cover_blocks", [1], WrongAnswer),
    *cases("memory", "other cover", "cover_blocks", [1], OtherCover),
    *cases("arm allocation", "wrong answer", "spatial_sparse spatial_dense", [1], WrongAnswer),
    *cases("arm allocation", "arms swapped", "place_cans_plasticbox handover_block", [1, 2],
           SwapArms),
    *cases("unreachable goal", "beyond reach", "stack_blocks_three place_burger_fries", [1],
           partial(Shift, (0.7, 0.0, 0.0), skills=("place",))),
    *cases("unreachable goal", "beyond reach", "place_object_scale", [1],
           partial(Shift, (0.7, 0.0, 0.0))),
    *cases("sequencing", "backwards", "stack_blocks_three place_cans_plasticbox", [1], Reverse),
    *cases("sequencing", "top first", "stack_blocks_three", [1, 2], TopFirst),
    *cases("sequencing", "never takes", "place_burger_fries", [1], partial(Skip, "grasp")),
    *cases("sequencing", "stops at once", "lift_pot stack_blocks_two", [1], Stop),
    *cases("sequencing", "stops early", "stack_blocks_three", [1], partial(Stop, 1)),
    *cases("sequencing", "never lifts", "grab_roller", [1], partial(Skip, "move_by")),
    *cases("inter-arm conflict", "same place", "place_cans_plasticbox", [1], Clash),
    *cases("inter-arm conflict", "parked in the way", "stack_blocks_three", [1], Park),
    *cases("inter-arm conflict", "one moves", "lift_pot", [1], OneMoves),
    *cases("inter-arm conflict", "uneven", "lift_pot carry_tray", [1], Uneven),
    *cases("action parameter", "a little off", "stack_blocks_three place_cans_plasticbox", [1],
           partial(Shift, NEAR, skills=("place",))),
    *cases("action parameter", "into the table", "blocks_ranking_rgb", [1],
           partial(Shift, (0, 0, -0.08), skills=("place",))),
    *cases("action parameter", "too high", "stack_blocks_three", [1],
           partial(Shift, (0, 0, 0.08), skills=("place",))),
    *cases("action parameter", "too short", "lift_pot", [1], partial(Scale, 0.3)),
    *cases("action parameter", "a little off", "place_object_scale stack_blocks_two", [1],
           partial(Shift, (0.04, 0.0, 0.0))),
    *cases("grasp lost", "let go", "stack_blocks_three place_burger_fries place_object_scale",
           [1], policy=LetGo),
    *cases("control error", "frozen", "stack_blocks_three place_object_scale", [1],
           policy=partial(Freeze, 2.0)),
    *cases("control error", "never moves", "lift_pot", [1], policy=HoldPolicy),
    *cases("control error", "not a number", "lift_pot", [1], policy=partial(Faulty, "nan")),
    *cases("control error", "crash", "stack_blocks_two", [1],
           policy=partial(Faulty, "crash", 1.0)),
    *cases("control error", "joint off", "stack_blocks_three place_object_scale", [1],
           policy=partial(Offset, 0, 0.08)),
    *cases("timeout", "slow to think", "stack_blocks_three place_object_scale", [1],
           latency="30"),
    *cases("timeout", "little per plan", "blocks_ranking_rgb place_object_scale", [1], Dawdle),
    *cases("output format", "plan is prose", "lift_pot", [1], partial(Malformed, "text")),
    *cases("output format", "no such skill", "stack_blocks_two", [1], partial(Malformed, "skill")),
    *cases("output format", "answer is prose", "spatial_sparse cover_blocks", [1], NoAnswer),
    *cases("model error", "crash", "lift_pot", [1], partial(Broken, "crash")),
    *cases("model error", "server", "stack_blocks_two", [1], partial(Broken, "server", 1)),
]  # fmt: skip

HELD_OUT = [
    *cases("perception", "swapped names", "stack_blocks_three blocks_ranking_rgb", [11, 12],
           partial(Rename, RGB)),
    *cases("perception", "swapped names", "blocks_tower blocks_ranking_size", [11, 12],
           partial(Rename, SIZE)),
    *cases("perception", "no such thing", "place_burger_fries lift_pot", [11],
           partial(Rename, {"burger": "hamburger", "pot": "kettle"})),
    *cases("perception", "another thing", "place_bread_skillet", [11],
           partial(Rename, {"skillet": "bread", "bread": "skillet"})),
    *cases("perception", "placed far off", "blocks_tower place_cans_plasticbox stack_bowls_three",
           [11, 12], partial(Shift, (-0.02, -0.11, 0.0), skills=("place",))),
    *cases("perception", "reached far off", "place_burger_fries_ee place_bread_skillet_ee", [11],
           partial(Shift, (0.0, -0.12, 0.0))),
    *cases("memory", "wrong answer", "cover_blocks", [11, 12], WrongAnswer),
    *cases("memory", "other cover", "cover_blocks", [11, 12], OtherCover),
    *cases("arm allocation", "wrong answer", "spatial_cluttered spatial_depth spatial_occluded",
           [11], WrongAnswer),
    *cases("arm allocation", "arms swapped", "place_burger_fries place_bread_skillet hanging_mug "
           "place_object_basket handover_block", [11, 12], SwapArms),
    *cases("unreachable goal", "beyond reach",
           "blocks_tower blocks_ranking_rgb handover_block stack_bowls_three", [11],
           partial(Shift, (0.6, 0.0, 0.1), skills=("place",))),
    *cases("unreachable goal", "beyond reach", "stack_blocks_two grab_roller_ee", [11, 12],
           partial(Shift, (0.65, 0.0, 0.0))),
    *cases("sequencing", "backwards", "blocks_tower hanging_mug stack_bowls_three", [11], Reverse),
    *cases("sequencing", "top first", "blocks_tower stack_blocks_three", [11, 12], TopFirst),
    *cases("sequencing", "never takes", "place_bread_skillet hanging_mug", [11],
           partial(Skip, "grasp")),
    *cases("sequencing", "stops at once", "place_object_scale handover_mic", [11], Stop),
    *cases("sequencing", "stops early", "blocks_tower place_bread_skillet hanging_mug", [11],
           partial(Stop, 1)),
    *cases("sequencing", "never lifts", "lift_pot place_object_basket", [11],
           partial(Skip, "move_by")),
    *cases("inter-arm conflict", "same place", "blocks_tower place_burger_fries", [11, 12], Clash),
    *cases("inter-arm conflict", "parked in the way", "blocks_tower place_cans_plasticbox",
           [11, 12], Park),
    *cases("inter-arm conflict", "one moves", "grab_roller carry_tray", [11, 12], OneMoves),
    *cases("inter-arm conflict", "uneven", "grab_roller lift_pot", [11], Uneven),
    *cases("action parameter", "a little off", "blocks_tower stack_bowls_three hanging_mug "
           "place_bread_skillet", [11], partial(Shift, (0.03, 0.025, 0.0), skills=("place",))),
    *cases("action parameter", "into the table", "blocks_tower place_burger_fries", [11],
           partial(Shift, (0, 0, -0.1), skills=("place",))),
    *cases("action parameter", "too high", "blocks_tower", [11, 12],
           partial(Shift, (0, 0, 0.07), skills=("place",))),
    *cases("action parameter", "too short", "grab_roller", [11, 12], partial(Scale, 0.4)),
    *cases("action parameter", "a little off", "place_burger_fries_ee grab_roller_ee "
           "stack_blocks_two", [11], partial(Shift, (-0.045, 0.0, 0.0))),
    *cases("grasp lost", "let go", "blocks_tower place_cans_plasticbox stack_bowls_three "
           "blocks_ranking_rgb stack_blocks_two", [11, 12], policy=LetGo),
    *cases("control error", "frozen", "blocks_tower lift_pot place_burger_fries_ee", [11],
           policy=partial(Freeze, 1.4)),
    *cases("control error", "never moves", "blocks_ranking_size place_object_scale", [11],
           policy=HoldPolicy),
    *cases("control error", "not a number", "blocks_tower grab_roller_ee", [11],
           policy=partial(Faulty, "nan", 0.6)),
    *cases("control error", "crash", "handover_mic", [11], policy=partial(Faulty, "crash", 0.4)),
    *cases("control error", "joint off", "blocks_tower stack_blocks_two blocks_ranking_rgb",
           [11, 12], policy=partial(Offset, 0, -0.07)),
    *cases("timeout", "slow to think", "blocks_tower lift_pot stack_blocks_two hanging_mug", [11],
           latency="25"),
    *cases("timeout", "little per plan", "place_cans_plasticbox blocks_tower stack_blocks_two",
           [11], Dawdle),
    *cases("output format", "plan is prose", "blocks_tower grab_roller_ee", [11],
           partial(Malformed, "text", 1)),
    *cases("output format", "raised", "handover_mic", [11], partial(Malformed, "raise")),
    *cases("output format", "one arm twice", "carry_tray", [11], partial(Malformed, "arms")),
    *cases("output format", "wrong argument", "hanging_mug", [11], partial(Malformed, "argument")),
    *cases("output format", "answer is prose", "spatial_depth", [11], NoAnswer),
    *cases("model error", "crash", "grab_roller blocks_tower", [11], partial(Broken, "crash", 1)),
    *cases("timeout", "budget", "place_burger_fries_ee", [11], partial(Broken, "budget")),
    *cases("model error", "server", "handover_block", [11], partial(Broken, "server", 1)),
]  # fmt: skip
