"""Sets of evolved objects as files: what is written is read, and what was changed is refused."""

from __future__ import annotations

import pytest
import yaml

from bench_tasks.errors import UsageError
from bench_tasks.object_sets import Edit, Evolved, ObjectSet, read_set, shipped

THIN = Edit("length", {"name": "radius", "factor": 0.9})
CAN = Evolved("can", (Edit("taper", {"share": 0.1}), THIN), ("can",))
BLOCK = Evolved("block", (Edit("bevel", {"share": 0.2}),), ("block",))
SET = ObjectSet((CAN, BLOCK), 7, "made by hand")


def written(tmp_path, change=lambda raw: None) -> str:
    path = tmp_path / "set.yaml"
    raw = yaml.safe_load(SET.to_yaml())
    change(raw)
    path.write_text(yaml.safe_dump(raw))
    return str(path)


def test_a_set_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text(SET.to_yaml())
    assert read_set(str(path)) == SET
    assert read_set(written(tmp_path)) == SET


def test_the_hash_is_of_what_the_objects_are_and_of_nothing_else():
    other = Evolved("can", CAN.edits, ("another",))
    assert other.name == CAN.name
    assert ObjectSet((other, BLOCK), 8, "").hash == SET.hash
    assert ObjectSet((BLOCK, CAN)).hash != SET.hash


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw["objects"][0]["edits"][0].update(share=0.11), "can-.* was changed"),
        (lambda raw: raw["objects"].pop(), "its hash is [0-9a-f]{12}, not"),
        (lambda raw: raw["objects"].append(raw["objects"][0]), "is there twice"),
        (lambda raw: raw.update(objects=[]), "holds no objects"),
        (lambda raw: raw.update(format_version=2), "format_version must be 1, got 2"),
        (lambda raw: raw.update(colour="red"), "unknown key of the set 'colour'"),
        (lambda raw: raw.pop("seed"), "seed must be of type int, got None"),
        (lambda raw: raw["objects"][0]["edits"].append("drill"), "an edit must be a mapping"),
        (lambda raw: raw["objects"][0]["edits"][0].update(share=[1]), "no number, no word"),
        (lambda raw: raw["objects"][0].update(kind=3), "kind must be of type str, got 3"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, change, message):
    with pytest.raises(UsageError, match=message) as caught:
        read_set(written(tmp_path, change))
    assert "\n" not in str(caught.value)


def test_files_that_are_no_sets(tmp_path):
    for text in ("- 1", "{", "!!python/object/apply:os.getcwd []", "\x00"):
        (tmp_path / "x.yaml").write_text(text)
        with pytest.raises(UsageError, match=r"x\.yaml"):
            read_set(str(tmp_path / "x.yaml"))
    with pytest.raises(UsageError, match="cannot read the object set nowhere: .*heldout_v1"):
        read_set("nowhere")


@pytest.mark.parametrize("name", shipped())
def test_shipped_sets_are_what_their_hashes_say(name):
    assert read_set(name).to_yaml() == shipped()[name].read_text(encoding="utf-8")
