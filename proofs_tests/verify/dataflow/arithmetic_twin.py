"""A second judge of rule 7: run the program on numbers and compare the gradients.

Every stage g is a function of one weight w, on numbers modulo a prime. Slice k of a sample:

    h = w x + S,  y = h^2 + x,  S = sum of w x of its earlier slices (the key/value states)

and the loss is a random combination of the last stage's outputs, so with

    dh = 2 dy h + sum over later slices of (2 dy h):  dw = dh x,  dx = dy + dh w.

Piece q of a cut W computes (q + 2) dw of a weight gradient of its own. Nothing is checked as the
program runs: what is not where an action looks for it is a random number, so a mistake that matters
makes a gradient wrong (but for a chance of about 2^-61). Nothing is shared with ``verify``; the
true gradients come from plain loops over whole samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from random import Random

from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.theory.model.problem import Problem

PRIME = (1 << 61) - 1
Part = tuple[int, int, int]
Tensor = tuple[str, int, int, int]  # "F" or "B" of (stage, microbatch, slice)
Gradients = dict[tuple[int, int], int]  # by (stage, piece of W)
MESSAGES = {
    Kind.SEND_F: ("F", 1),
    Kind.RECV_F: ("F", -1),
    Kind.SEND_B: ("B", -1),
    Kind.RECV_B: ("B", 1),
}


def number(*name: object) -> int:
    """A number that is random but for its name."""
    return Random(repr(name)).randrange(1, PRIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The tasks of a problem by kind: which rank each (stage, microbatch, slice) runs on."""

    tasks: dict[Kind, dict[Part, int]]
    pieces: dict[Part, list[int]]
    num_stages: int
    slices: dict[int, int]

    @classmethod
    def of(cls, problem: Problem) -> Shape:
        tasks: dict[Kind, dict[Part, int]] = {kind: {} for kind in Kind}
        pieces: dict[Part, list[int]] = defaultdict(list)
        for action, rank in zip(problem.actions, problem.rank_of_task.tolist(), strict=True):
            for one in parts(action):
                tasks[one.kind][one.stage, one.microbatch, one.slice] = rank
            if action.kind is Kind.W:
                pieces[action.stage, action.microbatch, action.slice].append(action.part)
        forwards = tasks[Kind.F]
        slices: dict[int, int] = {}
        for _, j, k in forwards:
            slices[j] = max(slices.get(j, 0), k + 1)
        return cls(
            tasks=tasks,
            pieces=pieces,
            num_stages=1 + max(g for g, _, _ in forwards),
            slices=slices,
        )

    @property
    def trains(self) -> bool:
        """Whether there is any backward."""
        return bool(self.tasks[Kind.B] or self.tasks[Kind.I])

    def _through(self, j: int) -> tuple[list[list[int]], list[list[int]]]:
        """A sample through all stages: the inputs of each and, last, the output; each h."""
        s = self.slices[j]
        inputs, inner = [[number("x", j, k) for k in range(s)]], []
        for g in range(self.num_stages):
            x = inputs[-1]
            h = [number("w", g) * sum(x[: k + 1]) for k in range(s)]
            inner.append(h)
            inputs.append([(h[k] * h[k] + x[k]) % PRIME for k in range(s)])
        return inputs, inner

    def true_outputs(self) -> dict[tuple[int, int], int]:
        """By (microbatch, slice), what the last stage puts out."""
        return {(j, k): y for j in self.slices for k, y in enumerate(self._through(j)[0][-1])}

    def true_gradients(self) -> Gradients:
        """By plain loops: every sample through all stages and back."""
        total: Gradients = defaultdict(int)
        for j, s in self.slices.items():
            inputs, inner = self._through(j)
            dy = [number("t", j, k) for k in range(s)]
            for g in reversed(range(self.num_stages)):
                h, w = inner[g], number("w", g)
                dh = [sum(2 * dy[n] * h[n] for n in range(k, s)) for k in range(s)]
                for k in range(s):
                    for piece in self.pieces.get((g, j, k), [NONE]):
                        total[g, piece] += dh[k] * inputs[g][k] * (piece + 2)
                dy = [(dy[k] + dh[k] * w) % PRIME for k in range(s)]
        return {key: value % PRIME for key, value in total.items()}


def parts(action: Action) -> list[Action]:
    """An action, or the F and the B of an overlapped pair."""
    if action.partner is None:
        return [action]
    forward = Action(
        stage=action.stage, kind=Kind.F, microbatch=action.microbatch, slice=action.slice
    )
    return [forward, action.partner]


class Twin:
    """The numbers of a run, wherever they lie."""

    def __init__(self, problem: Problem, *, explicit: bool) -> None:
        self.shape, self.explicit = Shape.of(problem), explicit
        self.num_ranks = problem.num_ranks
        self.noise = Random(0)
        tasks, stages = self.shape.tasks, range(self.shape.num_stages)
        steps = {g: rank for (g, _, _), rank in tasks[Kind.STEP].items()}
        self.hosted = {g for g, _, _ in tasks[Kind.OFFLOAD] if steps.get(g, 0) == NONE}
        self.away = {g for g, _, _ in tasks[Kind.UNSHARD]} | self.hosted
        self.weight = {g: number("w", g) for g in stages}
        self.memory: dict[tuple[Hashable, ...], tuple[int, ...]] = {
            ("copy", g, NONE): (self.weight[g],) for g in stages if g not in self.away
        }
        self.sums: dict[Hashable, Gradients] = defaultdict(lambda: defaultdict(int))
        self.seen_by_step: dict[int, list[Gradients]] = defaultdict(list)
        self.copies_at_begin: dict[Hashable, set[Hashable]] = {}
        self.running: dict[Hashable, tuple[int, ...]] = {}

    # What lies where.
    def get(self, *place: Hashable) -> tuple[int, ...]:
        """The numbers at a place; noise where there are none (three suffice everywhere)."""
        found = self.memory.get(place)
        return found or (self.junk(), self.junk(), self.junk())

    def pop(self, *place: Hashable) -> tuple[int, ...]:
        found = self.get(*place)
        self.memory.pop(place, None)
        return found

    def junk(self) -> int:
        return self.noise.randrange(PRIME)

    def parameter(self, g: int, rank: int) -> int:
        if not any(r == rank for (h, _, _), r in self.shape.tasks[Kind.F].items() if h == g):
            return self.junk()
        copies = [v[0] for place, v in self.memory.items() if place[:2] == ("copy", g)]
        fresh = number("w", g)
        return fresh if fresh in copies else copies[0] if copies else self.junk()

    def knows(self, action: Action) -> bool:
        """Whether the action works on a sample and stage of the problem, or on a whole stage."""
        if action.microbatch == NONE:
            return action.stage < self.shape.num_stages
        return (action.stage, action.microbatch, action.slice) in self.shape.tasks[Kind.F]

    def copies(self, g: int) -> set[Hashable]:
        """The places, with their numbers, where the stage's weight lies."""
        return {(at, v) for at, v in self.memory.items() if at[:2] == ("copy", g)}

    def at(self, rank: int) -> int:
        return rank if self.explicit else NONE

    # The work: what it takes as it begins, and what it leaves as it ends.
    def begin(self, action: Action, resource: int, row: int = 0) -> None:
        g, j, k = action.stage, action.microbatch, action.slice
        taken: tuple[int, ...] = ()
        if action.kind is Kind.F:
            x = number("x", j, k) if g == 0 else self.pop("F", self.at(resource), g - 1, j, k)[0]
            states = [self.get("state", resource, g, j, n)[0] for n in range(k)]
            taken = (x, sum(states), self.parameter(g, resource))
        elif action.kind in (Kind.B, Kind.I):
            last = g == self.shape.num_stages - 1
            dy = number("t", j, k) if last else self.pop("B", self.at(resource), g + 1, j, k)[0]
            x, h = self.pop("saved", resource, g, j, k)[:2]
            later = [
                self.get("added", resource, g, j, n)[0] for n in range(k + 1, self.shape.slices[j])
            ]
            self.memory.pop(("state", resource, g, j, k), None)
            taken = (dy, x, h, sum(later), self.parameter(g, resource))
        elif action.kind is Kind.W:
            taken = self.get("left", resource, g, j, k)[:2]
        elif action.kind is Kind.R:
            taken = (*self.pop("kept", resource, g, j, k)[:2], self.parameter(g, resource))
        else:
            taken = self.begin_transfer(action, resource)
        self.running[action, row] = taken
        self.copies_at_begin[action, row] = self.copies(g)

    def begin_transfer(self, action: Action, resource: int) -> tuple[int, ...]:
        g, j, k = action.stage, action.microbatch, action.slice
        rank = self.shape.tasks[Kind.F].get((g, j, k), NONE)
        if action.kind is Kind.RESHARD or (action.kind is Kind.OFFLOAD and g in self.hosted):
            self.memory.pop(("copy", g, k), None)
        if action.kind is Kind.REDUCE_GRAD or (action.kind is Kind.OFFLOAD and g in self.hosted):
            moving = self.sums["moving", action]
            for r in range(self.num_ranks):
                for key, value in self.sums.pop((r, g), {}).items():
                    moving[key] += value
        if action.kind is Kind.STEP:
            self.seen_by_step[g].append(self.summed(g, resource))
        if g in self.hosted:
            return ()
        if action.kind in (Kind.EVICT, Kind.OFFLOAD):
            return self.pop("saved", rank, g, j, k)
        if action.kind is Kind.LOAD:
            return self.pop("parked", resource, g, j, k)
        return self.pop("host", g, j, k) if action.kind is Kind.RELOAD else ()

    def summed(self, g: int, resource: int) -> Gradients:
        """The gradient as a STEP on that resource finds it."""
        if self.shape.tasks[Kind.REDUCE_GRAD] and any(
            h == g for h, _, _ in self.shape.tasks[Kind.REDUCE_GRAD]
        ):
            return dict(self.sums["moved", g])
        if g in self.hosted:
            return dict(self.sums["moved", g])
        ranks = [resource] if resource < self.num_ranks else range(self.num_ranks)
        total: Gradients = defaultdict(int)
        for r in ranks:
            for key, value in self.sums[r, g].items():
                total[key] += value
        return total

    def end(self, action: Action, resource: int, row: int = 0) -> None:
        g, j, k = action.stage, action.microbatch, action.slice
        taken = self.running.pop((action, row))
        if action.kind in (Kind.F, Kind.R, Kind.B, Kind.I):
            still_there = self.copies_at_begin.pop((action, row)) & self.copies(g)
            taken = taken if still_there else tuple(self.junk() for _ in taken)
        if action.kind in (Kind.F, Kind.R):
            x, states, w = taken
            h = (w * x + states) % PRIME
            recomputed = (g, j, k) in self.shape.tasks[Kind.R] and action.kind is Kind.F
            self.memory["kept" if recomputed else "saved", resource, g, j, k] = (
                (x, states) if recomputed else (x, h)
            )
            if action.kind is Kind.F:
                self.memory["state", resource, g, j, k] = (w * x,)
                self.memory["F", self.at(resource), g, j, k] = ((h * h + x) % PRIME,)
        elif action.kind in (Kind.B, Kind.I):
            dy, x, h, later, w = taken
            own = 2 * dy * h % PRIME
            self.memory["added", resource, g, j, k] = (own,)
            self.memory["B", self.at(resource), g, j, k] = ((dy + (own + later) * w) % PRIME,)
            if action.kind is Kind.I:
                self.memory["left", resource, g, j, k] = (x, own + later)
            else:
                self.sums[resource, g][g, NONE] += (own + later) * x
        elif action.kind is Kind.W:
            x, dh = taken
            self.sums[resource, g][g, action.part] += dh * x * (action.part + 2)
        else:
            self.end_transfer(action, resource, taken)

    def end_transfer(self, action: Action, resource: int, taken: tuple[int, ...]) -> None:
        g, j, k = action.stage, action.microbatch, action.slice
        rank = self.shape.tasks[Kind.F].get((g, j, k), NONE)
        if ("moving", action) in self.sums:
            moved = self.sums["moved", g]
            for key, value in self.sums.pop(("moving", action)).items():
                moved[key] += value
        if action.kind is Kind.STEP:
            self.weight[g] = number("new w", g)
            if ("copy", g, NONE) in self.memory:
                self.memory["copy", g, NONE] = (self.weight[g],)
        elif action.kind is Kind.UNSHARD or (action.kind is Kind.RELOAD and g in self.hosted):
            self.memory["copy", g, k] = (self.weight[g],)
        elif g in self.hosted:
            return
        elif action.kind is Kind.EVICT:
            self.memory["parked", resource, g, j, k] = taken
        elif action.kind is Kind.OFFLOAD:
            self.memory["host", g, j, k] = taken
        elif action.kind in (Kind.LOAD, Kind.RELOAD):
            self.memory["saved", rank, g, j, k] = taken

    # The verdict.
    def is_right(self) -> bool:
        """Whether every gradient is the true one, where STEP saw it and at the end.

        Where nothing is trained, whether every output is.
        """
        if not self.shape.trains:
            last = self.shape.num_stages - 1
            home = self.shape.tasks[Kind.F]
            return all(
                self.get("F", self.at(home[last, j, k]), last, j, k)[0] == output
                for (j, k), output in self.shape.true_outputs().items()
            )
        true = self.shape.true_gradients()
        for g in range(self.shape.num_stages):
            mine = {key: value for key, value in true.items() if key[0] == g}
            total: Gradients = defaultdict(int, self.sums["moved", g])
            unmoved = [s for r in range(self.num_ranks) for s in self.sums[r, g].items()]
            for key, value in unmoved:
                total[key] += value
            if _reduced(total) != mine:
                return False
            if unmoved and any(h == g for h, _, _ in self.shape.tasks[Kind.REDUCE_GRAD]):
                return False
            if any(h == g for h, _, _ in self.shape.tasks[Kind.STEP]) and (
                [_reduced(seen) for seen in self.seen_by_step[g]] != [mine]
            ):
                return False
        return True


def _reduced(gradients: Gradients) -> Gradients:
    return {key: value % PRIME for key, value in gradients.items()}
