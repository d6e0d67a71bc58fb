"""The transformers planner with a tiny random Qwen3-VL made on the spot, in the real simulation."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from bench_tasks import bag, tasks  # noqa: E402
from bench_tasks.episode import Options, run_episode  # noqa: E402
from bench_tasks.errors import BenchError, UsageError  # noqa: E402
from bench_tasks.recording import BagSink  # noqa: E402
from policies import make_planner  # noqa: E402

SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}"
    "{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a Qwen3-VL of some 240 thousand random parameters, its tokenizer and all."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3VLConfig, Qwen3VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    folder = tmp_path_factory.mktemp("tiny")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(SPECIAL)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = TEMPLATE
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": 309, "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 16, "rope_scaling": rope, "max_position_embeddings": 32768,
        },
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2,
            "patch_size": 16, "spatial_merge_size": 2, "out_hidden_size": 64,
            "deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64,
        },
        image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
    )  # fmt: skip
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = ids["<|im_end|>"]
    model.generation_config.pad_token_id = ids["<|endoftext|>"]
    assert sum(p.numel() for p in model.parameters()) < 400_000
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(patch_size=16, merge_size=2).save_pretrained(folder)
    return folder


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
        ("model={none}", "cannot load model"), ("model=", "needs a model"),
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
