"""The solver benchmark: its instances, its baselines, its rule for skipping, its tables."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import typer

from benchmarks.instances import Instance, instances
from benchmarks.solver_runs import PLAIN, Run, Runner, measure
from benchmarks.solver_tables import main_table, optimum, ratio_table, shown, summary
from benchmarks.solvers import Bench, chosen_instances, main, measure_all
from bubbleproof.solvers import solve
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.own_process import run_alone
from proofs_tests.patience import PATIENCE
from proofs_tests.solvers.brute_force import least_span_idle

TINY = Instance(
    name="tiny",
    group="unsplit",
    in_table=True,
    pipeline=Pipeline(num_ranks=2, num_microbatches=2, capacity=1),
)
# One microbatch at a time: 2 * (1 + 1 + 2 + 2).
TINY_OPTIMUM = 12


@dataclass
class Scripted:
    """A runner that closes what ``closes`` names and fails on the rest."""

    closes: Sequence[tuple[str, str]]
    asked: list[tuple[str, str]] = field(default_factory=list)

    def run(self, instance: Instance, engine: str) -> Run:
        self.asked.append((instance.name, engine))
        run = Run(instance=instance.name, engine=engine, value=9, bound=7, seconds=2.0)
        if (instance.name, engine) in self.closes:
            run = replace(run, bound=9, proof="certificate")
        return run


def named(*names: str, group: str = "unsplit") -> list[Instance]:
    return [replace(TINY, name=name, group=group) for name in names]


def test_the_table_has_49_instances_and_no_name_stands_twice() -> None:
    found = instances()
    assert len({instance.name for instance in found}) == len(found)
    table = [instance for instance in found if instance.in_table]
    assert len(table) == 49
    assert sum(instance.group == "unsplit" for instance in table) == 31
    groups = {instance.group for instance in found}
    assert groups == {"unsplit", "split", "span", "chunks", "extension"}
    assert {instance.objective for instance in found} == {"makespan", "span_idle"}


@pytest.mark.parametrize(("duplex", "length"), [("full", 13), ("half", 14)])
def test_messages_occupy_their_link(duplex: str, length: int) -> None:
    # 0F 1, messages 1..4 and 4..7, 1F1 and 1B1 7..9, its message 9..12, 0B1 12..13. One link for
    # both ways: 0F 1, four messages of 3, 0B1 1.
    plain = Pipeline(num_ranks=2, num_microbatches=2, forward=1, backward=1, capacity=2)
    result = solve(plain.with_changes(message=3, bandwidth=1, duplex=duplex).problem())
    assert (result.makespan, result.gap) == (length, 0)


@pytest.mark.parametrize("engine", ["auto", "cpsat", "z3", "pulp", *PLAIN])
def test_every_column_measures_a_tiny_instance(engine: str) -> None:
    run = measure(TINY, engine, limit=20, threads=1)
    assert (run.value, run.bound, run.is_closed) == (TINY_OPTIMUM, TINY_OPTIMUM, True)
    assert run.proof == ("engine" if engine in PLAIN else "certificate")


def test_plain_encodings_know_the_other_objective() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=2, split_backward=True, capacity=1)
    spans = Instance(name="s", group="split", objective="span_idle", pipeline=pipeline)
    values = {measure(spans, engine, 20, 1).value for engine in ("auto", *PLAIN)}
    assert len(values) == 1
    value = values.pop()
    assert value is not None
    assert least_span_idle(pipeline.problem(), most=value - 1) is None


def test_open_choices_are_solved_by_auto() -> None:
    chosen = chosen_instances("recompute per stage")
    assert len(chosen) == 1
    runner = Scripted(closes=[])
    runs = measure_all(chosen, ["auto", "cpsat"], runner.run)
    assert runner.asked == [(chosen[0].name, "auto")]
    assert list(runs) == runner.asked


def test_an_engine_is_skipped_after_two_failures_in_a_group_but_auto_never() -> None:
    bench = Bench(Scripted(closes=[("b", "z3")]).run)
    notes = [run.note for run in bench.measure(named("a", "b", "c", "d", "e"), "z3")]
    assert notes == ["", "", "", "skipped", "skipped"]
    other = named("f", group="split")
    assert [run.note for run in bench.measure(other, "z3")] == [""]
    notes = [run.note for run in bench.measure(named("a", "b", "c", "d"), "auto")]
    assert notes == [""] * 4


def test_after_five_failures_an_engine_is_skipped_on_all_that_is_larger() -> None:
    bench = Bench(Scripted(closes=[]).run)
    chosen = [named(f"{group}{n}", group=group)[0] for group in "abcd" for n in (1, 2)]
    notes = [run.note for run in bench.measure(chosen, "z3")]
    assert notes == [""] * 5 + ["skipped"] * 3
    assert [run.note for run in bench.measure(chosen[-1:], "sat")] == [""]


def test_ctrl_c_keeps_what_was_measured() -> None:
    run_alone(interrupted_bench)


def interrupted_bench() -> None:
    stopped = threading.Event()

    class Interrupting(Scripted):
        def run(self, instance: Instance, engine: str) -> Run:
            if instance.name == "b":
                time.sleep(0.5)  # the main thread waits by now
                main_thread = threading.main_thread().ident
                assert main_thread is not None
                signal.pthread_kill(main_thread, signal.SIGINT)
                assert stopped.wait(60)
            return super().run(instance, engine)

    runner = Interrupting(closes=[])
    runs = measure_all(named("a", "b", "c"), ["auto", "z3"], runner.run, stopped=stopped)
    assert list(runs) == [("a", "auto"), ("b", "auto")]


def test_the_tables_are_well_formed() -> None:
    chosen, engines = named("a", "b"), ["auto", "z3", "plain z3"]
    runs = measure_all(chosen, engines, Scripted(closes=[("a", "auto"), ("a", "z3")]).run)
    lines = main_table(chosen, engines, runs).splitlines()
    assert {line.count("|") for line in lines} == {8}
    assert lines[2] == "| a | 8 | 9 | certificate | 2.00 | 2.00 | [7, 9] |"
    assert lines[3] == "| b | 8 | ? |  | [7, 9] | [7, 9] | [7, 9] |"
    # 60 s of limit over 2 s of auto.
    assert ratio_table(chosen, engines, runs, 60).splitlines()[2:] == ["| a | 2.00 | > 30.0 |"]
    assert summary(chosen, runs) == [
        "`auto` closes 1 of the 2 instances of the table, 1 with a certificate, in 4.0 s; "
        "the longest takes 2.0 s."
    ]


def test_a_contradiction_is_an_error() -> None:
    good = Run(instance="a", engine="auto", value=9, bound=9, proof="certificate")
    other = Run(instance="a", engine="z3", value=8, bound=8, proof="engine")
    beaten = Run(instance="a", engine="sat", value=None, bound=10)
    assert optimum({("a", "auto"): good}, "a") == 9
    for run in (other, beaten):
        with pytest.raises(ValueError, match="a: engines contradict each other: auto"):
            optimum({("a", "auto"): good, ("a", run.engine): run}, "a")


def test_a_process_that_hangs_is_killed() -> None:
    instance = chosen_instances("u(2,4) cap2")[0]
    run = Runner(seconds=20, threads=1, patience=0.0).run(instance, "auto")
    assert (run.note, run.is_closed, shown(run)) == ("killed", False, "killed")
    # 1F1B: (m + p - 1)(tF + tB) = 5 * 3.
    assert Runner(seconds=20, threads=1, patience=60.0).run(instance, "auto").value == 15


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "solvers.md"
    main(engines="auto,plain z3", only="u(2,4) cap2", time_limit=PATIENCE, write=page)
    text = page.read_text(encoding="utf-8")
    assert "`auto` closes 1 of the 1 instances of the table, 1 with a certificate" in text
    assert "| u(2,4) cap2 | 16 | 15 | certificate |" in text
    assert "plain z3 / auto" in text
    with pytest.raises(typer.BadParameter, match="engines must be of auto, cpsat"):
        main(engines="magic")
    with pytest.raises(typer.BadParameter, match="no instance's name contains"):
        main(only="no such instance")
