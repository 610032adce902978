"""The verdicts on generators: what they say against other routes, the sweep, and its pages."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.verdicts.archives import loaded, named
from benchmarks.verdicts.deepspeed_generators import actions_of
from benchmarks.verdicts.generated import (
    OWN,
    UNBATCHED,
    Generated,
    Generator,
    NotGenerated,
    with_late_receives,
)
from benchmarks.verdicts.judged import CROSSED, FOLLOW, MATCHES, SAME, STUCK, communication, judge
from benchmarks.verdicts.megatron_generators import megatron_generators
from benchmarks.verdicts.our_generators import our_generators
from benchmarks.verdicts.pages import Sweep, examples_page, page
from benchmarks.verdicts.smallest import smallest
from benchmarks.verdicts.sweep import grid, sweep, wanted
from bubbleproof.theory.families import member
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import Semantics, check_communication
from proofs_tests.cases import without
from proofs_tests.sized import sized
from proofs_tests.verify.implied_semantics import proof

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "verdicts.md"
OURS = {each.name: each for each in our_generators()}
MEGATRON = {each.name: each for each in megatron_generators()}
LOOPED = MEGATRON["interleaved v=2"]


def judged_fully(problem: Problem, program: Program) -> dict[Semantics, str]:
    """Every semantics by the checker itself, none left out."""
    decisions = check_communication(problem, program, tuple(Semantics)).decisions
    told = {}
    for semantics, decision in zip(Semantics, decisions, strict=True):
        first = next((v.message for d in decisions for v in d.violations), "")
        message = decision.violations[0].message if decision.violations else first
        word = STUCK if message.startswith("deadlock") else CROSSED
        told[semantics] = MATCHES if decision.ok else word
    return told


def test_what_is_not_judged_again_is_proved_to_follow() -> None:
    for strict, others in FOLLOW.items():
        assert all(each is strict or proof(strict, each) for each in others)
    for each, other in SAME.items():
        assert proof(each, other)
        assert proof(other, each)


def made_of(name: str) -> Generated:
    """Of the shapes the first that there is: some families take even ranks alone."""
    for p, m in ((3, 4), (4, 8)):
        with suppress(NotGenerated):
            return OURS[name].make(p, m)
    pytest.skip(f"{name} has no such shape")


@pytest.mark.parametrize("name", sized(("1f1b", "bfs"), full=tuple(OURS)))
def test_the_shortcut_says_what_the_checker_says(name: str) -> None:
    made = made_of(name)
    for program in made.placed.values():
        assert communication(made.problem, program) == judged_fully(made.problem, program)


def test_megatron_shows_each_kind_of_wrong() -> None:
    """Batches of two ranks cross, as Megatron's own arguments refuse; three do not."""
    for p, m, word in ((2, 4, CROSSED), (3, 6, MATCHES)):
        made = LOOPED.make(p, m)
        assert communication(made.problem, made.placed[OWN])[Semantics.BATCHED] == word
        unbatched = communication(made.problem, made.placed[UNBATCHED])
        assert unbatched[Semantics.RANK_PARITY] == MATCHES
        assert judged_fully(made.problem, made.placed[OWN])[Semantics.BATCHED] == word


@pytest.mark.parametrize(
    ("p", "m", "v"), sized(((3, 6, 2),), full=((2, 4, 2), (4, 8, 4), (5, 15, 2)))
)
def test_megatrons_order_is_that_of_its_paper(p: int, m: int, v: int) -> None:
    """Another route to the same order: the family ``interleaved`` where p divides m, and 1F1B."""
    looped = MEGATRON[f"interleaved v={v}"].make(p, m)
    family = member("interleaved", p=p, m=m, v=v)
    assert looped.order.orders(p) == family.schedule.program.orders(p)
    plain = MEGATRON["1F1B"].make(p, m)
    assert plain.order.orders(p) == member("1f1b", p=p, m=m).schedule.program.orders(p)


def test_megatron_refuses_what_it_refuses() -> None:
    for p, m in ((1, 4), (4, 3), (4, 6)):
        with pytest.raises(NotGenerated):
            LOOPED.make(p, m)


def test_receives_stand_right_before_what_reads_them() -> None:
    made = member("1f1b", p=2, m=2)
    late = with_late_receives(made.problem, lower(made.problem, made.schedule))
    # rank 0 receives the gradient of microbatch 0 only after F1, which stands before B0
    assert [str(a) for a in late.orders(2)[0]] == (
        ["0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"]
    )
    assert [str(a) for a in late.orders(2)[1]] == (
        ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RECV_F1", "1F1", "1B1", "1SEND_B1"]
    )
    found = communication(made.problem, late)
    # 0SEND_F1 waits for 1RECV_F1, which stands behind 1SEND_B0, which waits for 0RECV_B0
    assert (found[Semantics.BUFFERED], found[Semantics.RENDEZVOUS]) == (MATCHES, STUCK)


DEEPSPEED = """
class ForwardPass: phase = None
class BackwardPass: phase = None
class SendActivation:
    def __init__(self, phase=None): self.phase = phase
class RecvGrad: phase = 1
class CommitP2P: pass
class OptimizerStep: pass
from ..utils import word
"""


def test_instructions_are_numbered_by_kind_and_phase() -> None:
    utils = ModuleType("utils")
    utils.word = "given"  # type: ignore[attr-defined]  # a stand-in
    module = loaded(DEEPSPEED, "a.b.c", {"a.utils": utils})
    assert module.word == "given"
    blocking = [module.ForwardPass(), module.SendActivation(), module.ForwardPass()]
    told = [str(a) for a in actions_of([*blocking, module.OptimizerStep()], 1, 4)]
    assert told == ["1F0", "1SEND_F0", "1F1"]
    queued = [module.SendActivation(0), module.RecvGrad(), module.ForwardPass()]
    told = [str(a) for a in actions_of([*queued, module.CommitP2P()], 1, 4)]
    # what is queued comes where it is committed; phase 1 of rank 1 of 4 is stage 6
    assert told == ["1F0", "1SEND_F0", "6RECV_B0", "1WAIT_SEND_F0"]


def test_archives_are_named() -> None:
    assert named(Path("x/deepspeed-0.19.8.tar.gz")) == ("deepspeed", "0.19.8")
    assert named(Path("torch-2.6.0-cp311-none-any.whl")) == ("torch", "2.6.0")
    with pytest.raises(ValueError, match="is no archive"):
        named(Path("deepspeed.zip"))


def test_a_case_is_measured_and_bounded() -> None:
    found = judge(OURS["1f1b"], 3, 4)
    # (m + p - 1)(tF + tB) = 6 * 3, and rank 0 holds p
    assert (found.makespan, found.shortest, found.bound, found.peak) == (18, 18, 18, 3)
    hanayo = judge(OURS["hanayo v=4"], 2, 3)
    assert hanayo.bound is not None
    assert hanayo.shortest is not None
    assert hanayo.bound <= hanayo.shortest
    assert judge(LOOPED, 4, 3).refused


def test_a_broken_order_is_told_by_rule() -> None:
    def make(p: int, m: int) -> Generated:
        made = member("gpipe", p=p, m=m)
        program = made.schedule.program
        return Generated(problem=made.problem, order=without(program, 0), placed={})

    found = judge(Generator(name="short", source="test", make=make), 2, 2)
    assert found.broken[0] == "complete"
    assert (found.makespan, found.placed) == (None, ())


def test_a_sweep_gives_verdicts_in_the_order_of_its_items() -> None:
    items, heard = wanted("reduced", (), "bubbleproof gpipe")[::-1], list[object]()
    found = sweep(items, None, heard.append)
    assert [(each.name, each.p, each.m) for each in found] == [(i.name, i.p, i.m) for i in items]
    assert len(heard) == len(items)


def test_grids() -> None:
    assert set(grid("reduced")) <= set(grid("every"))
    assert set(grid("page")) <= set(grid("every"))
    assert (max(p for p, _ in grid("page")), max(m for _, m in grid("page"))) == (16, 64)
    with pytest.raises(ValueError, match="got 'most'"):
        list(grid("most"))


def test_a_cell_names_the_smallest_size_that_is_wrong() -> None:
    items = [each for each in wanted("reduced", (), "Megatron") if (each.p, each.m) == (2, 4)]
    found = sweep(items, None, lambda _last: None)
    made = Sweep(found=found, smallest=smallest(found, ()), archives=(), command="x")
    text, told = page(made), examples_page(made)
    assert "crossed 1, (2, 4)" in text
    assert "but for `interleaved v=2` of Megatron" in text
    assert "is sent as" in told  # the checker's own words
    headings = re.findall(r"^## (.+)$", told, re.MULTILINE)
    assert len(headings) == len(set(headings))


def matrix(text: str, source: str, name: str) -> list[str]:
    """The rows of one generator in the tables of a page."""
    return [line for line in text.splitlines() if line.startswith(f"| {source} | `{name}` |")]


WRITTEN = sized((("bubbleproof", "1f1b"),), full=tuple(("bubbleproof", name) for name in OURS))


@pytest.mark.parametrize(("source", "name"), WRITTEN)
def test_the_written_page_is_what_the_command_finds(source: str, name: str) -> None:
    items = [each for each in wanted("page", (), f"{source} {name}") if each.name == name]
    found = sweep(items, None, lambda _last: None)
    made = Sweep(found=found, smallest=smallest(found, ()), archives=(), command="x")
    lines = matrix(page(made), source, name)
    is_made = not all(each.refused for each in found)
    assert len(lines) == 3 * is_made  # two placements, and how far from the optimum
    assert lines == matrix(PAGE.read_text("utf-8"), source, name)
