"""A vision-language model of the Qwen3-VL class on this machine, by transformers; a batch of one.

Nothing of torch or transformers is imported before the first episode.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.errors import unknown
from bench_tasks.vocabulary import CameraFrame, Scene
from policies.planners.chat import ChatOptions, ChatPlanner, Completion, Message, PlannerError
from policies.planners.local import DECODING, digest, likeliest

__all__ = ["TransformersOptions", "TransformersPlanner", "pick_device"]

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class TransformersOptions(ChatOptions):
    """Options besides those of every model planner.

    model: folder or hub name. device: auto takes CUDA where there is one, else the CPU. dtype:
    auto is bfloat16 on CUDA and float32 on the CPU. download: whether weights may be fetched from
    the hub; by default only what is on this disk is used.
    """

    device: str = "auto"
    dtype: str = "auto"
    revision: str = "main"
    download: bool = False


def pick_device(device: str, dtype: str) -> tuple[str, Any]:
    """(device, torch dtype) for these options; PlannerError when the device is not there."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise PlannerError(f"device {device} was asked for, but torch sees no CUDA device")
    if dtype == "auto":
        dtype = "bfloat16" if device.startswith("cuda") else "float32"
    return device, getattr(torch, dtype)


class TransformersPlanner(ChatPlanner):
    """Loads the model at the first episode and keeps it."""

    name = "transformers"
    Options = TransformersOptions
    options: TransformersOptions

    def __init__(self, options: TransformersOptions | None = None) -> None:
        """Nothing is loaded yet. UsageError when an option is wrong."""
        super().__init__(options)
        if self.options.dtype not in DTYPES:
            raise unknown("dtype", self.options.dtype, DTYPES)
        self._model: Any = None
        self._weights = ""

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode; the first one loads the model. PlannerError when it cannot be."""
        super().reset(scene, seed)
        self._load_once()

    def _load_once(self) -> None:
        if self._model is None:
            self._load()

    def _load(self) -> None:
        name = self.options.model
        try:
            from transformers import (
                AutoImageProcessor,
                AutoModelForImageTextToText,
                AutoTokenizer,
            )
        except ImportError:
            raise PlannerError(
                "planner transformers needs the policies extra: "
                "pip install -r requirements/policies.txt"
            ) from None
        device, dtype = pick_device(self.options.device, self.options.dtype)
        source = {
            "local_files_only": not self.options.download, "revision": self.options.revision,
        }  # fmt: skip
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(name, **source)
            # On Pillow: the same with and without torchvision, which does not fit every torch.
            self._images = AutoImageProcessor.from_pretrained(name, backend="pil", **source)
            model = AutoModelForImageTextToText.from_pretrained(name, dtype=dtype, **source)
        except (OSError, ValueError, ImportError, KeyError) as error:
            raise PlannerError(f"cannot load model {name}: {_first_line(error)}") from None
        if not self._tokenizer.chat_template:
            raise PlannerError(f"model {name} has no chat template: it is not for conversation")
        self._device = device
        self._model = model.to(device).eval()

    def _complete(self, messages: list[Message], schema: dict[str, Any]) -> Completion:
        """Generate one answer: greedy at temperature 0, else sampled by the episode's seed."""
        import torch

        chat, pictures = self._chat(messages)
        inputs = self._inputs(chat, pictures)
        count = int(inputs["input_ids"].shape[1])
        sampling: dict[str, Any] = {"do_sample": False}
        if self.options.temperature > 0.0:
            torch.manual_seed(self._seed * 1000 + self._calls)
            sampling = {"do_sample": True, "temperature": self.options.temperature}
        with _room_for(count), torch.inference_mode():
            out = self._model.generate(
                **inputs, max_new_tokens=self.options.max_tokens, **sampling
            )
        answer = out[0, count:]
        ended = len(answer) < self.options.max_tokens or self._is_end(int(answer[-1]))
        return Completion(
            self._tokenizer.decode(answer, skip_special_tokens=True), count, len(answer),
            truncated=not ended, details={"device": self._device, "images": len(pictures)},
        )  # fmt: skip

    def choose(self, system: str, text: str, name: str, values: Sequence[str]) -> Completion:
        """As for every model; the answer has always the form that is asked for."""
        self._load_once()
        chat, _ = self._chat([Message("system", [system]), Message("user", [text])])
        prompt = self._inputs(chat, [])["input_ids"]
        with _room_for(int(prompt.shape[1])):
            return likeliest(self._model, self._tokenizer, prompt, name, values)

    def identity(self) -> dict[str, Any]:
        """As for every model, with how `choose` finds an answer."""
        return {**super().identity(), "revision": self.options.revision,
                "dtype": self.options.dtype, "decoding": DECODING}  # fmt: skip

    def served(self, done: Completion) -> dict[str, Any]:
        """The digest of the files it was loaded from, the hub's commit, and numbers' type."""
        self._weights = self._weights or digest(list(self._folder().iterdir()))
        return {
            "weights_sha256": self._weights, "dtype": str(self._model.dtype).rpartition(".")[2],
            "commit": getattr(self._model.config, "_commit_hash", None) or "",
        }  # fmt: skip

    def _folder(self) -> Path:
        """Where the files of the loaded model are: the folder it was named by, or the cache's."""
        from transformers.utils.hub import cached_file

        folder = Path(self.options.model)
        if folder.is_dir():
            return folder
        found = cached_file(self.options.model, "config.json", local_files_only=True,
                            revision=self.options.revision)  # fmt: skip
        return Path(str(found)).parent

    def _is_end(self, token: int) -> bool:
        ends = self._model.generation_config.eos_token_id
        return token in (ends if isinstance(ends, list) else [ends])

    def _chat(self, messages: list[Message]) -> tuple[list[dict[str, Any]], list[Any]]:
        """The conversation in the form of chat templates, and its pictures in order."""
        from PIL import Image

        pictures: list[Any] = []
        chat = []
        for message in messages:
            content: list[dict[str, Any]] = []
            for part in message.parts:
                if isinstance(part, CameraFrame):
                    pictures.append(Image.open(io.BytesIO(part.data)).convert("RGB"))
                    content.append({"type": "image"})
                else:
                    content.append({"type": "text", "text": part})
            chat.append({"role": message.role, "content": content})
        return chat, pictures

    def _inputs(self, chat: list[dict[str, Any]], pictures: list[Any]) -> dict[str, Any]:
        """Tensors on the device; each picture's placeholder is widened to its number of tokens."""
        text = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=False
        )
        inputs: dict[str, Any] = {}
        if pictures:
            inputs = dict(self._images(images=pictures, return_tensors="pt"))
            pad = self._tokenizer.convert_ids_to_tokens(self._model.config.image_token_id)
            merged = self._model.config.vision_config.spatial_merge_size**2
            pieces = text.split(pad)
            if len(pieces) != len(pictures) + 1:
                raise PlannerError(
                    f"the chat template made {len(pieces) - 1} places for {len(pictures)} pictures"
                )
            counts = [int(grid.prod()) // merged for grid in inputs["image_grid_thw"]]
            text = pieces[0] + "".join(
                pad * n + piece for n, piece in zip(counts, pieces[1:], strict=True)
            )
        tokens = self._tokenizer(text, return_tensors="pt", add_special_tokens=False)
        inputs |= {key: tokens[key] for key in ("input_ids", "attention_mask")}
        if pictures and "mm_token_type_ids" in self._accepted():
            image = inputs["input_ids"] == self._model.config.image_token_id
            inputs["mm_token_type_ids"] = image.long()
        return {key: value.to(self._device) for key, value in inputs.items()}

    def _accepted(self) -> set[str]:
        return set(inspect.signature(self._model.forward).parameters)


@contextmanager
def _room_for(count: int) -> Iterator[None]:
    """PlannerError, a refusal, when so many tokens are too much for the memory of the GPU."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise PlannerError(
            f"out of GPU memory with a prompt of {count} tokens", refused=True
        ) from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
