"""The transformers planner with a tiny random Qwen3-VL made on the spot, in the real simulation."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from bench_tasks import tasks  # noqa: E402
from bench_tasks.bags import bag  # noqa: E402
from bench_tasks.bags.recording import BagSink  # noqa: E402
from bench_tasks.episode import Options, run_episode  # noqa: E402
from bench_tasks.errors import BenchError, UsageError  # noqa: E402
from policies import make_planner  # noqa: E402


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with the tiny model, its tokenizer and all."""
    import tiny_model

    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


def plans(world, skills, planner, path):
    sink = BagSink(path)
    task = tasks.get("lift_pot")
    verdict, _ = run_episode(task, 0, world, planner, skills, sink, Options())
    sink.writer.close()
    return verdict, [e.data for e in bag.read_bag(path).events if e.kind == "plan"]


def test_a_random_model_looks_talks_nonsense_and_fails_for_it(tiny, world, skills, tmp_path):
    planner = make_planner(f"transformers:model={tiny},max_tokens=8,budget_calls=2")
    verdict, said = plans(world, skills, planner, tmp_path / "a")
    assert verdict.cause == "planner error: budget spent: 2 of 2 calls" and len(said) == 2
    assert said[0]["refused"]
    told = said[0]["transcript"]
    assert told["device"] in ("cpu", "cuda") and told["images"] == 2
    assert told["tokens"]["prompt"] > 500 and 0 < told["tokens"]["answer"] <= 8
    _, again = plans(world, skills, planner, tmp_path / "b")
    assert [p["raw"] for p in again] == [p["raw"] for p in said], "greedy decoding repeats itself"


def test_pictures_reach_the_model(tiny, world):
    """The same prompt with another picture gives other logits."""
    import torch

    planner = make_planner(f"transformers:model={tiny},max_tokens=1")
    scene, state = world.reset("lift_pot", 0)
    planner.reset(scene, 0)
    from policies.planners.chat import Message

    logits = []
    for camera in ("head", "third", "head"):
        (frame,) = world.capture((camera,))
        inputs = planner._inputs(*planner._chat([Message("user", ["what?", frame])]))
        grid = inputs["image_grid_thw"][0].tolist()
        pads = int((inputs["input_ids"] == planner._model.config.image_token_id).sum())
        assert pads == grid[0] * grid[1] * grid[2] // 4
        with torch.inference_mode():
            logits.append(planner._model(**inputs).logits[0, -1])
    assert torch.equal(logits[0], logits[2]) and not torch.allclose(logits[0], logits[1])


def test_blind_sends_no_picture(tiny, world, skills, tmp_path):
    planner = make_planner(f"blind:inner=transformers,model={tiny},max_tokens=4,budget_calls=1")
    assert planner.metadata.cameras == () and planner.metadata.name.startswith("blind:transformers")
    _, said = plans(world, skills, planner, tmp_path / "a")
    assert said[0]["transcript"]["images"] == 0
    with pytest.raises(UsageError, match="unknown planner inside blind 'expert'"):
        make_planner("blind:inner=expert")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("model={none}", "cannot load model"),
        ("model={tiny},device=cuda:9", "no CUDA device"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_loaded_is_named(options, message, tiny, world, tmp_path):
    import torch

    if "cuda" in options and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    planner = make_planner("transformers:" + options.format(none=tmp_path / "none", tiny=tiny))
    scene, _ = world.reset("lift_pot", 0)
    with pytest.raises(BenchError, match=message) as caught:
        planner.reset(scene, 0)
    assert "\n" not in str(caught.value)


def test_the_likeliest_of_some_answers_is_chosen_and_says_by_whom(tiny, tmp_path):
    """Against the whole text read at once, for each answer."""
    import json
    import shutil

    import torch

    from policies.planners.chat import Message

    planner = make_planner(f"transformers:model={tiny}")
    values = ("right", "wrong", "left")
    for text in ("Is it?", "Or not?"):
        done = planner.choose("You judge.", text, "verdict", values)
        chat = [Message("system", ["You judge."]), Message("user", [text])]
        prompt = planner._inputs(*planner._chat(chat))["input_ids"]
        wanted = {}
        for value in values:
            answer = json.dumps({"verdict": value})
            tokens = planner._tokenizer(answer, return_tensors="pt")["input_ids"]
            whole = torch.cat([prompt, tokens.to(prompt.device)], 1)
            with torch.inference_mode():
                found = planner._model(input_ids=whole).logits[0, prompt.shape[1] - 1 : -1]
            each = torch.log_softmax(found, -1).gather(1, whole[0, prompt.shape[1] :, None])
            wanted[answer] = float(each.sum())
        scores = done.details["log_probabilities"]
        assert scores == pytest.approx(wanted, abs=1e-3)
        assert done.text == max(wanted, key=lambda answer: wanted[answer])
    served = planner.served(done)
    assert len(served["weights_sha256"]) == 64 and served["dtype"] == "float32"
    other = tmp_path / "other"
    shutil.copytree(tiny, other)
    copied = make_planner(f"transformers:model={other}")
    assert copied.served(copied.choose("You judge.", text, "verdict", values)) == served
    (weights,) = other.glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    changed = make_planner(f"transformers:model={other}")
    assert changed.served(changed.choose("You judge.", text, "verdict", values)) != served
