"""What Coq derives of a pipeline (``proofs/Given.v``) and of a plan's space (``Plans.v``).

The problem of a pipeline, the candidates of a space and what each makes of the pipeline, and what a
rank shows of it are the same as those of the package, on drawn ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats.coq.coq_words import (
    edge_text,
    list_text,
    stores_text,
    table_text,
)
from bubbleproof.formats.coq.pipeline_words import (
    given_text,
    pipeline_edges,
    require_known,
    task_names,
)
from bubbleproof.formats.coq.plan_theorem import (
    candidate_text,
    entry_text,
    space_text,
    words_of,
)
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.rank_claims import NoRoom, RankMemory, RankWork, ShownByRanks
from proofs_tests.coq import answer, needs_coq
from proofs_tests.sized import sized

HEADER = """Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances.
From Bubbleproof Require Given Plans.
Import ListNotations.
Open Scope Z_scope.
"""
TWO = Pipeline(num_ranks=2, num_microbatches=2)


def drawn(random: Random) -> Pipeline:
    """A pipeline of any shape that Coq has words for, and any numbers."""
    ranks, chunks = random.randint(1, 4), random.randint(1, 3)
    stages, microbatches, slices = ranks * chunks, random.randint(1, 4), random.randint(1, 2)

    def numbers(least: int = 0) -> tuple[int, ...]:
        return tuple(random.randint(least, 9) for _ in range(stages))

    def ticks() -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(random.randint(0, 9) for _ in range(slices)) for _ in range(stages))

    listed = [*range(ranks)] * chunks
    random.shuffle(listed)
    placements: list[str | tuple[int, ...]] = ["loop", "wave", tuple(listed)]
    rows = tuple(tuple(random.random() < 0.5 for _ in range(microbatches)) for _ in range(stages))
    held = numbers()
    others = [(a, b) for a in range(ranks) for b in range(a)]
    return Pipeline(
        num_ranks=ranks,
        num_chunks=chunks,
        num_microbatches=microbatches,
        num_slices=slices,
        placement=random.choice(placements),
        split_backward=rows if random.random() < 0.3 else random.random() < 0.5,
        forward=ticks(),
        backward=ticks(),
        input_backward=ticks(),
        weight_backward=ticks(),
        activation=held,
        released_at_input=tuple(random.randint(-3, most) for most in held),
        static=numbers(),
        capacity=tuple(random.choice([None, 1000 + r]) for r in range(ranks)),
        latency=random.randint(0, 3),
        message=numbers(),
        bandwidth=random.choice([None, 1, 4, Fraction(2, 3)]),
        duplex=random.choice(["half", "full"]),
        links=tuple(
            Link(ranks=pair, latency=5, bandwidth=random.choice([None, 2]), duplex=duplex)
            for pair, duplex in product(others, [None, "half", "full"])
            if random.random() < 0.2
        ),
    )


def statement(pipeline: Pipeline, number: int) -> str:
    """That the problem of the pipeline is that of the package."""
    problem = pipeline.problem()
    parts = {
        "tasks_of": (list_text(table_text(problem)), "table"),
        "edges_of": (
            list_text(map(edge_text, pipeline_edges(problem, pipeline))),
            "list (edge positive)",
        ),
        "stores_of": (list_text(stores_text(problem)), "list (store positive)"),
    }
    given = f"Definition given{number} := {{| {given_text(pipeline)} |}}.\n"
    return given + "".join(
        f"Goal Given.{name} given{number} = ({text} : {kind}).\n"
        "Proof. vm_compute. reflexivity. Qed.\n"
        for name, (text, kind) in parts.items()
    )


@needs_coq
def test_coq_derives_the_problem_that_the_package_does(
    coq_library: tuple[Path, dict[str, str]],
) -> None:
    random = Random(39)
    pipelines = [drawn(random) for _ in range(sized(40, full=400))]
    assert {str(p.placement)[:2] for p in pipelines} >= {"lo", "wa", "(0"}
    assert any(p.links for p in pipelines)
    assert any(isinstance(p.split_backward, tuple) for p in pipelines)
    assert any(p.num_slices > 1 for p in pipelines)
    text = HEADER + "".join(statement(one, number) for number, one in enumerate(pipelines))
    done = answer(coq_library[0], "Derived", text)
    assert done.returncode == 0, done.stderr
    # another number of the last pipeline is another problem
    last = text.rindex("Given.forward := [[")
    place = re.compile(r"\d+").search(text, last)
    assert place is not None
    other = text[: place.start()] + str(int(place[0]) + 1) + text[place.end() :]
    assert answer(coq_library[0], "Other", other).returncode


def drawn_space(random: Random) -> PlanSpace:
    """A space of which some candidates are legal."""
    ranks = random.randint(1, 3)
    unit = random.choice([1, 2, 6, 12])

    def numbers(most: int = 3) -> tuple[int, ...]:
        return tuple(unit * random.randint(0, most) for _ in range(ranks))

    whole_or_split = [("whole",), ("split", "whole"), ("mixed",), (tuple([True] * ranks), "split")]
    pipeline = Pipeline(
        num_ranks=ranks,
        num_microbatches=random.randint(1, 3),
        forward=numbers(),
        backward=numbers(),
        input_backward=numbers(),
        weight_backward=numbers(),
        activation=numbers(),
        released_at_input=0,
        static=numbers(2),
        capacity=random.choice([None, 3 * unit, 9 * unit]),
        message=random.choice([0, 2]),
        bandwidth=random.choice([None, 1]),
        latency=random.randint(0, 2),
    )
    odd = (*range(ranks), *range(ranks), 0)
    return PlanSpace(
        pipeline=pipeline,
        chunks=tuple(random.sample([1, 2, 3], 2)),
        placements=random.choice([("loop", "wave"), ("wave", odd[:-1], odd)]),
        backward=random.choice(whole_or_split),
        slices=tuple(random.sample([1, 2, 3], 2)),
    )


def shape_of(space: PlanSpace, candidate: Candidate) -> Pipeline | None:
    """What the candidate makes of the pipeline, None where it is not legal."""
    try:
        return shaped(space, candidate).pipeline
    except NotLegalError:
        return None


@needs_coq
def test_coq_derives_the_candidates_that_the_package_does(
    coq_library: tuple[Path, dict[str, str]],
) -> None:
    random, text, legal = Random(7), HEADER, []
    for number in range(sized(12, full=200)):
        space = drawn_space(random)
        found = [shape_of(space, one) for one in space.candidates()]
        named = list_text(map(candidate_text, space.candidates()))
        shapes = list_text(
            "None" if one is None else f"Some {{| {given_text(one)} |}}" for one in found
        )
        text += (
            f"Module Space{number}.\n{space_text(space)}"
            f"Goal Plans.candidates space = {named}.\nProof. vm_compute. reflexivity. Qed.\n"
            f"Goal map (Plans.shaped space) (Plans.candidates space) = {shapes}.\n"
            f"Proof. vm_compute. reflexivity. Qed.\nEnd Space{number}.\n"
        )
        legal += [one is not None for one in found]
    assert 0.2 < sum(legal) / len(legal) < 0.8
    done = answer(coq_library[0], "Shapes", text)
    assert done.returncode == 0, done.stderr


def claims_of(space: PlanSpace, candidate: Candidate) -> Iterator[tuple[CandidateBound, bool]]:
    """What each rank shows of a candidate, and whether one tick more is too much for it."""
    pipeline = shaped(space, candidate).pipeline
    shown = ShownByRanks(pipeline)
    for rank, (work, held, room) in enumerate(
        zip(shown.work, shown.memory, shown.room, strict=True)
    ):
        kinds = {RankWork: work, RankMemory: held}
        kinds |= {NoRoom: 10**6} if room is not None and room < 0 else {}
        for kind, bound in kinds.items():
            claim = kind(rank=rank, bound=bound)
            if bound > 0:
                entry = CandidateBound(candidate=candidate, bound=bound, certificate=claim)
                yield entry, kind is not NoRoom


@needs_coq
def test_coq_sees_of_a_candidate_what_a_rank_shows(
    coq_library: tuple[Path, dict[str, str]],
) -> None:
    random, text, kinds = Random(11), HEADER, Counter[str]()
    for number in range(sized(8, full=100)):
        space = drawn_space(random)
        text += f"Module Space{number}.\n{space_text(space)}"
        legal = [one for one in space.candidates() if shape_of(space, one) is not None]
        for one in random.sample(legal, min(2, len(legal))):
            words = words_of(space, one)
            for entry, is_tight in claims_of(space, one):
                try:
                    told = entry_text(words, entry, entry.bound)
                except ValueError as why:  # where only some ranks split, Coq counts no way out
                    assert "shows less" in str(why)  # noqa: PT017 - counted too
                    kinds["refused"] += 1
                    continue
                kinds[type(entry.certificate).__name__] += 1
                claims = [(entry.bound, "true"), *([(entry.bound + 1, "false")] * is_tight)]
                text += "".join(
                    "Goal option_map (Plans.check_bounded space "
                    f"{bound} ({told})) (Plans.shaped space ({candidate_text(one)})) = Some {seen}."
                    "\nProof. vm_compute. reflexivity. Qed.\n"
                    for bound, seen in claims
                )
        text += f"End Space{number}.\n"
    assert min(kinds[kind.__name__] for kind in (RankWork, RankMemory, NoRoom)) > 0, kinds
    done = answer(coq_library[0], "Ranks", text)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("pipeline", "word"),
    [
        (TWO.with_changes(recompute=Recompute(stages=(0,))), "recompute"),
        (TWO.with_changes(placement="bidirectional"), "placement bidirectional"),
        (TWO.with_changes(split_backward=True, weight_parts=(1,)), "weight_parts"),
        (TWO.with_changes(split_backward=True, weight_workspace=1), "weight_workspace"),
        (TWO.with_changes(frozen_stages=(0,)), "frozen_stages"),
    ],
    ids=("recompute", "bidirectional", "parts", "workspace", "frozen"),
)
def test_a_choice_without_a_word_is_refused_by_name(pipeline: Pipeline, word: str) -> None:
    with pytest.raises(ValueError, match=f"--coq does not know {word}"):
        require_known(pipeline)


def test_names_of_tasks_are_names_in_coq_each_once() -> None:
    sliced = TWO.with_changes(num_slices=2, split_backward=True)
    names = task_names(sliced.problem())
    assert names[:2] == ["F_0_0_0", "F_0_0_1"]
    recomputed = TWO.with_changes(recompute=Recompute(stages=(0,)))
    moved = TWO.with_changes(message=3, bandwidth=1)
    for problem in (sliced.problem(), recomputed.problem(), moved.problem()):
        names = task_names(problem)
        assert len({*names}) == len(names)
        assert all(re.fullmatch("[A-Z][A-Za-z_0-9]*", name) for name in names)
