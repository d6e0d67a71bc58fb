"""A checkpoint gives back what was saved; what is none is refused in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from tiny_wam import TINY, steady_checkpoint  # noqa: E402

from bench_tasks.errors import UsageError  # noqa: E402
from policies.wam.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402


def test_a_checkpoint_gives_back_what_was_saved(tmp_path):
    path = steady_checkpoint(tmp_path / "a.safetensors")
    found = load_checkpoint(path)
    assert found.model.shape == TINY and found.made["steps"] == 0
    assert not found.model.training and not found.autoencoder.training
    save_checkpoint(tmp_path / "b.safetensors", found)
    again = load_checkpoint(tmp_path / "b.safetensors")
    for first, second in ((found.model, again.model), (found.autoencoder, again.autoencoder)):
        for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(),
                                strict=True):  # fmt: skip
            assert torch.equal(a, b) and a.dtype == torch.float32, name
    assert np.array_equal(found.scaler.state, again.scaler.state)
    assert np.array_equal(found.scaler.action, again.scaler.action)
    assert path.read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert not list(tmp_path.glob("*.tmp"))


def rewritten(path, change):
    """The file with another head."""
    with safe_open(path, "pt") as file:
        head = json.loads(file.metadata()["bench_tasks"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(head, tensors)
    save_file(tensors, path, {"bench_tasks": json.dumps(head)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head, _: head.update(format_version=2), "no checkpoint of format_version 1: it"),
        (lambda head, _: head["shape"].update(depth=3), "does not fit this version: .*depth"),
        (lambda head, _: head["shape"].update(dim=64), "does not fit this version: .*size mis"),
        (lambda head, _: head["shape"].update(dim=-1), "dim must be a whole number from 1 to 4096"),
        # Hundreds of gigabytes, if it were made before it is compared with the weights.
        (lambda head, _: head["shape"].update(dim=4096, layers=64), "fit this version: .*Missing"),
        (lambda head, _: head["shape"].update(dim=4096 * 8), "dim must be a whole number from 1 t"),
        (lambda head, _: head["shape"].update(frames=4000), "at most 4096 rows, got 8000"),
        (lambda head, _: head["shape"].update(video="no"), "video must be true or false, got 'no'"),
        (lambda head, _: head.pop("scaler"), "does not fit this version: 'scaler'"),
        (lambda _, tensors: tensors.pop("model.kind"), "does not fit this version: .*kind"),
        (lambda _, tensors: tensors["model.kind"][0].fill_(torch.nan), "model.kind is not finite"),
        (lambda _, tensors: tensors["autoencoder.spread"].fill_(torch.inf), "spread is not finite"),
        (lambda head, _: head["scaler"].update(state=[[0.0] * 16]), "scaler state must be two"),
        (lambda head, _: head["scaler"].update(action=[[0.0], [1.0, 2.0]]), "fit this version"),
        (lambda head, _: head["scaler"]["action"][1].__setitem__(3, float("nan")), "action must"),
        (lambda head, _: head["scaler"]["action"][1].__setitem__(3, -9.0), "first below the secon"),
        (lambda head, _: head.update(made=[1]), "its made, or the recipe in it, is not a mapping"),
        (lambda head, _: head["made"].update(recipe="flash"), "the recipe in it, is not a mapping"),
        (lambda head, _: head["made"].update(data=[{}]), "does not fit this version: 'hash'"),
    ],
)
def test_another_checkpoint_is_refused_in_one_line(tmp_path, change, message):
    path = steady_checkpoint(tmp_path / "a.safetensors")
    rewritten(path, change)
    with pytest.raises(UsageError, match=message) as told:
        load_checkpoint(path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("content", [None, b"", b"not safetensors at all", b"\xff" * 100])
def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "a.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot read the checkpoint .*a.safetensors"):
        load_checkpoint(path)


def test_half_a_checkpoint_is_refused(tmp_path):
    path = steady_checkpoint(tmp_path / "a.safetensors")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UsageError, match="cannot read the checkpoint"):
        load_checkpoint(path)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(UsageError, match="is a folder: name a file"):
        load_checkpoint(tmp_path)
