"""Whatever a YAML file of a user's holds, every reader of one answers in one line."""

from __future__ import annotations

import pytest

from bench_tasks.config import read_config
from bench_tasks.errors import UsageError
from bench_tasks.object_sets import read_set
from bench_tasks.options import read_spec
from bench_tasks.yaml_file import read_yaml
from policies.remote import embodiment

ODD = {
    "x: !!timestamp foo": "groupdict",
    'x: !!int ""': "index out of range",
    'x: !!float ""': "index out of range",
    "x: !!bool maybe": "maybe",
    'x: !!binary "é"': "base64",
    "format_version: 0x" + "f" * 8000: "absurdly large",
    "seed: 1\nseed: 2": "key 'seed' is given twice",
    "[" * 100_000: "recursion",
    "x: !!python/name:os.system": "python/name",
    "\x00": "special characters",
}
READERS = {
    "config": read_config,
    "set": lambda path: read_set(str(path)),
    "options": lambda path: read_spec(f"openai:{path}"),
    "embodiment": lambda path: embodiment.load(str(path)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_yaml_is_one_line_for_every_reader(tmp_path, reader, text):
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"odd\.yaml is not valid YAML") as caught:
        READERS[reader](path)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 1000
    assert (ODD[text] in said) == (reader != "options"), "options may hold secrets: not quoted"


def test_what_is_plain_data_is_read(tmp_path):
    path = tmp_path / "plain.yaml"
    path.write_text("base: &b {a: 1}\nmore:\n  <<: *b\n  c: [0x1f, 1.5, ü]\n", encoding="utf-8")
    assert read_yaml(path) == {"base": {"a": 1}, "more": {"a": 1, "c": [31, 1.5, "ü"]}}
    with pytest.raises(OSError):
        read_yaml(tmp_path / "missing.yaml")
