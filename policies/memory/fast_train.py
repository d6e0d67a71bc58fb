"""Trains the fast weights by next-sequence prediction, after REFINE (arXiv 2602.16704).

A stream of things said, and at times a question, after which the items that answer it come again:
what follows it. With c chunks a stream, of the questions at the end of each chunk one is drawn by
the entropy of what is predicted there; of it G continuations of k items are drawn from the policy
(a softmax over the items told so far), each is rewarded with the mean cosine of its embeddings to
those of the true continuation, and the policy is moved by the group-relative advantage (GRPO). The
loss of next-item prediction is kept beside it. `--nsp 0` is that alone.

    python -m policies.memory.fast_train --out weights.npz

What is said has other names and things than the probes that the memory is measured with.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from bench_tasks.probes.talk import QUESTIONS, SENTENCES, put
from policies.memory.fast_weights import FastWeights
from policies.sentences import DIM, embed_all

__all__ = ["Net", "Stream", "evaluate", "loss_of", "streams", "train"]

WORLDS = {
    "train": (("Uma", "Karl", "Ines", "Tom"), "alpha beta gamma delta eta iota kappa".split()),
    "test": (("Rosa", "Lars", "Amir"), "sigma omega theta lambda zeta rho".split()),
}
STEPS, CHUNKS, ASKED = 48, 6, 3
TAU_ENTROPY, TAU = 0.5, 0.08
ROLLOUTS = 8


@dataclass(frozen=True)
class Stream:
    """Texts that are told, and (chunk, question, numbers of the texts that answer it)."""

    told: tuple[str, ...]
    asked: tuple[tuple[int, str, tuple[int, ...]], ...]


def streams(rng: np.random.Generator, count: int, world: str = "train") -> list[Stream]:
    """Streams in which people say, change and do things; each is asked about as it stands."""
    return [_stream(rng, *WORLDS[world]) for _ in range(count)]


def _stream(rng: np.random.Generator, people: Sequence[str], things: Sequence[str]) -> Stream:
    told: list[str] = []
    known: dict[tuple[str, ...], int] = {}
    asked: list[tuple[int, str, tuple[int, ...]]] = []

    def one(of: Sequence[str]) -> str:
        return str(of[int(rng.integers(len(of)))])

    def tell(who: str, kind: str, key: tuple[str, ...], **slots: str) -> None:
        known[key] = len(told)
        told.append(f"{who}: {put(kind, int(rng.integers(len(SENTENCES[kind]))), **slots)}")

    for chunk in range(CHUNKS):
        while len(told) < (chunk + 1) * STEPS // CHUNKS:
            who, thing, place = one(people), f"{one(things)} box", f"near the {one(things)} wall"
            kind = one(("has", "place", "means", "did"))
            if kind == "has":
                key = (kind, who, f"{one(things)} code")
                tell(who, "changed" if key in known else "has", key, attribute=key[2],
                     value=str(rng.integers(10, 30)))  # fmt: skip
            elif kind == "place":
                key = (kind, thing)
                tell(who, "put" if key in known else "lies", key, object=thing, place=place)
            elif kind == "means":
                word = f"{one(things)[::-1]}o"
                tell(who, "means", (kind, who, word, thing), word=word, object=thing)
            else:
                event = f"painted the {one(things)} door"
                tell(who, "did", (kind, who, event), event=event)
        keys = list(known)
        for k in rng.choice(len(keys), ASKED, replace=False):
            asked.append((chunk, *_question(keys[int(k)], known, rng)))
    return Stream(tuple(told), tuple(asked))


def _question(
    key: tuple[str, ...], known: dict[tuple[str, ...], int], rng: np.random.Generator
) -> tuple[str, tuple[int, ...]]:
    kind, *slots = key
    follows = (known[key],)
    if kind == "has":
        form, more = "attribute", {"person": slots[0], "attribute": slots[1]}
    elif kind == "place":
        form, more = "place", {"object": slots[0]}
    elif kind == "did":
        form, more = "who", {"event": slots[1]}
    else:
        form, more = "place_of_word", {"person": slots[0], "word": slots[1]}
        at = known.get(("place", slots[2]))
        follows += () if at is None else (at,)
    return put(form, int(rng.integers(len(QUESTIONS[form]))), **more), follows


class Net(nn.Module):
    """`FastWeights` with gradients; the same rule for a batch of streams."""

    def __init__(self, dim: int = 64) -> None:
        """Random projections."""
        super().__init__()
        shared = torch.randn(dim, DIM) / DIM**0.5
        self.key = nn.Parameter(shared.clone())
        self.query = nn.Parameter(shared.clone())
        self.value = nn.Parameter(torch.randn(dim, DIM) / DIM**0.5)
        self.gate = nn.Parameter(torch.zeros(DIM + 1))

    def states(self, told: Tensor) -> list[Tensor]:
        """The states (b, d, d) at the end of each chunk of what was told (b, t, 384)."""
        keys = normalize(told @ self.key.T, dim=-1)
        values = normalize(told @ self.value.T, dim=-1)
        gates = torch.sigmoid(told @ self.gate[:-1] + self.gate[-1])
        state = torch.zeros(len(told), len(self.value), len(self.key))
        found = []
        for t in range(told.shape[1]):
            key = keys[:, t, :, None]
            wrong = values[:, t, :, None] - state @ key
            state = state + gates[:, t, None, None] * wrong @ key.transpose(1, 2)
            if (t + 1) % (told.shape[1] // CHUNKS) == 0:
                found.append(state)
        return found

    def logits(self, state: Tensor, asked: Tensor, told: Tensor, upto: Tensor) -> Tensor:
        """Of each item (n, t) to be what follows `asked` (n, 384), those not told yet left out."""
        query = normalize(asked @ self.query.T, dim=-1)
        read = normalize((state @ query[..., None])[..., 0], dim=-1)
        values = normalize(told @ self.value.T, dim=-1)
        scores = (values @ read[..., None])[..., 0] / TAU
        return scores.masked_fill(torch.arange(told.shape[1]) >= upto[:, None], -torch.inf)

    def weights(self) -> FastWeights:
        """For use without torch."""
        return FastWeights(*(p.detach().numpy().astype(np.float32)
                             for p in (self.key, self.query, self.value, self.gate)))  # fmt: skip


Embedded = Callable[[Sequence[str]], Tensor]


def embedder() -> Embedded:
    """Embeds texts, each one once."""
    known: dict[str, np.ndarray] = {}

    def embedded(texts: Sequence[str]) -> Tensor:
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            known.update(zip(new, embed_all(new), strict=True))
        return torch.from_numpy(np.stack([known[text] for text in texts]))

    return embedded


def loss_of(net: Net, batch: Sequence[Stream], embedded: Embedded, nsp: float,
            generator: torch.Generator) -> Tensor:
    """Next-item loss of all questions, and `nsp` times that of next sequences of those drawn."""
    told = torch.stack([embedded(stream.told) for stream in batch])
    states = torch.stack(net.states(told), 1)
    rows = [(k, *asked) for k, stream in enumerate(batch) for asked in stream.asked]
    of = torch.tensor([row[0] for row in rows])
    chunk = torch.tensor([row[1] for row in rows])
    asked = embedded([row[2] for row in rows])
    first = torch.tensor([row[3][0] for row in rows])
    second = torch.tensor([row[3][-1] for row in rows])
    upto = (chunk + 1) * (told.shape[1] // CHUNKS)
    state, items = states[of, chunk], told[of]
    logits = net.logits(state, asked, items, upto)
    loss = cross_entropy(logits, first)
    long = (first != second).nonzero()[:, 0]
    if len(long):
        after = net.logits(state[long], items[long, first[long]], items[long], upto[long])
        loss = loss + cross_entropy(after, second[long]) * len(long) / len(rows)
    if not nsp:
        return loss
    # One question of each chunk of each stream, by the entropy of what is predicted there.
    chances = logits.detach().softmax(-1)
    entropy = torch.special.entr(chances).sum(-1).view(-1, ASKED)
    drawn = torch.multinomial((entropy / TAU_ENTROPY).softmax(-1), 1, generator=generator)[:, 0]
    drawn = drawn + ASKED * torch.arange(len(drawn))
    return loss + nsp * _sequences(net, state[drawn], items[drawn], upto[drawn], logits[drawn],
                                   first[drawn], second[drawn], generator)  # fmt: skip


def _sequences(net: Net, state: Tensor, items: Tensor, upto: Tensor, logits: Tensor, first: Tensor,
               second: Tensor, generator: torch.Generator) -> Tensor:
    """The policy's loss, by group-relative advantages of continuations that it draws itself."""
    n = len(state)
    chances = logits.log_softmax(-1)
    one = torch.multinomial(chances.detach().exp(), ROLLOUTS, True, generator=generator)
    rows = torch.arange(n)[:, None]
    reward = (items[rows, one] * items[rows, first[:, None]]).sum(-1)
    log_chance = chances.gather(1, one)
    long = (first != second)[:, None].expand(n, ROLLOUTS)
    spread = [t.repeat_interleave(ROLLOUTS, 0) for t in (state, items, upto)]
    after = net.logits(spread[0], items[rows, one].flatten(0, 1), *spread[1:]).log_softmax(-1)
    two = torch.multinomial(after.detach().exp(), 1, generator=generator)
    follows = (items[rows, two.view(n, ROLLOUTS)] * items[rows, second[:, None]]).sum(-1)
    reward = torch.where(long, (reward + follows) / 2, reward)
    log_chance = log_chance + torch.where(long, after.gather(1, two).view(n, ROLLOUTS), 0.0)
    advantage = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
    return -(advantage * log_chance).mean()


def train(steps: int, nsp: float, seed: int, pool: int = 64, batch: int = 8,
          embedded: Embedded | None = None) -> Net:
    """Trained on streams drawn from a pool; the same for the same arguments."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    embedded = embedded or embedder()
    made = streams(rng, pool)
    net = Net()
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        chosen = [made[int(k)] for k in rng.choice(pool, batch, replace=False)]
        loss = loss_of(net, chosen, embedded, nsp, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
    return net


def evaluate(net: Net, made: Sequence[Stream], embedded: Embedded, within: int = 4) -> list[float]:
    """How often the first, and the second, of what follows is among the `within` best."""
    hits: list[list[bool]] = [[], []]
    with torch.no_grad():
        for stream in made:
            told = embedded(stream.told)[None]
            states = net.states(told)
            for chunk, question, follows in stream.asked:
                upto = torch.tensor([(chunk + 1) * told.shape[1] // CHUNKS])
                row = embedded([question])
                for step, number in enumerate(follows):
                    best = net.logits(states[chunk], row, told, upto)[0].topk(within).indices
                    hits[step].append(number in best.tolist())
                    row = told[0, number][None]
    return [float(np.mean(of)) for of in hits]


def main() -> None:
    """Train, say how often what follows is found on streams not trained on, and write weights."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--nsp", type=float, default=0.4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    embedded = embedder()
    held_out = streams(np.random.default_rng(10_000), 24, "test")
    for seed in arguments.seeds:
        net = train(arguments.steps, arguments.nsp, seed, embedded=embedded)
        found = evaluate(net, held_out, embedded)
        line = f"seed {seed}: first {found[0]:.3f}, second {found[1]:.3f}"
        sys.stdout.write(line + " among the best 4\n")
        sys.stdout.flush()
        if arguments.out and seed == arguments.seeds[0]:
            kept = {name: array.astype(np.float16) for name, array in vars(net.weights()).items()}
            np.savez(arguments.out, **kept)


if __name__ == "__main__":
    main()
