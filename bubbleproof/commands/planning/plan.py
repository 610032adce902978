"""``bubbleproof plan FILE.toml``: the best pipeline over shapes and choices, with proof.

The file states a problem with a table ``[plan]`` (``planning.problem_answer``), or starts from
``[model] [cluster] [batch]`` (``planning.cluster_answer``). A model in its place, by its name or
its configuration, takes its cards and its batch from options. With ``-o`` the folder then holds
the plan; ``--certificate`` writes the proofs of all candidates, which ``verify DIR --certificate
FILE`` reads. With ``--paper`` what a paper's planner would run is among the candidates.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from threading import Event, Thread

from bubbleproof.commands.options.option_groups import GivenOptions
from bubbleproof.commands.options.shared_options import PlanRequest
from bubbleproof.commands.options.targets import kept_file
from bubbleproof.commands.output import print_json, say
from bubbleproof.commands.planning.cluster_answer import ClusterQuestion
from bubbleproof.commands.planning.plan_answer import AskedPlan, FoundAnswer, PlanAnswer
from bubbleproof.commands.planning.problem_answer import ProblemQuestion
from bubbleproof.costs import known_models
from bubbleproof.costs.configurations.config_file import is_configuration
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.clusters.changed_cluster import numbers_of
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text, is_cluster_file
from bubbleproof.formats.clusters.job_text import job_text
from bubbleproof.formats.errors import about
from bubbleproof.formats.inputs import require_problem_file
from bubbleproof.formats.layouts.cluster_layout import ClusterLayout
from bubbleproof.parallel import open_executor
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.asked_jobs import JobAsked
from bubbleproof.solvers.search_limits import SearchLimits


def run_plan(problem: str, request: PlanRequest) -> int:
    """Plan one file, print the answer, and write what is asked for."""
    if request.json:
        request.shown.leave_out("--json, which has all", "verbose", "all", "why")
    asked = _question(_file_of(problem, request), request)
    options = options_of(request.limits, asked, quiet=request.json)
    with _workers_of(request) as executor, heartbeat(options) as telling:
        answer = asked.answer(telling, executor)
    wrote = _write(answer, request)
    if request.json:
        print_json(answer.to_json())
    else:
        answer.print(request.shown, wrote)
    return answer.exit_status


def _file_of(problem: str, request: PlanRequest) -> str:
    """The problem file, or of a model one of its job. Raises ``ValueError`` for half of a job."""
    told = {"--card": request.card, "--framework": request.framework}
    if not is_configuration(problem) and problem.lower() not in known_models():
        if names := [name for name, value in told.items() if value is not None]:
            raise ValueError(
                f"{names[0]} goes with a model in place of a file, such as llama-2-13b or "
                f"hf:config.json; {problem} tells its own"
            )
        return problem
    ranges = request.ranges.told
    first = {key: numbers_of(key, given)[0] for key, given in ranges.items() if given is not None}
    if request.card is None or not {"cards", "samples"} <= first.keys():
        raise ValueError(
            f"{problem} is a model: tell its cards and the batch too, such as --card h100 "
            "--cards 64 --batch 512; bubbleproof cards names cards"
        )
    cluster = ClusterLayout(card=request.card, cards=first["cards"])
    job = job_text(problem, cluster, first["samples"], first.get("sequence"), request.framework)
    with about(problem):  # rather than the file that nobody wrote
        cluster_file_of_text(job, name=problem)
    return kept_file("job.toml", job)


def _question(problem: str, request: PlanRequest) -> AskedPlan:
    """What the file asks. Raises ``ValueError`` for one that is none, or that has no such words."""
    require_problem_file(problem, asker="plan")
    asked = JobAsked(
        ranges=request.ranges.told,
        hardware=request.hardware,
        yours=tuple(request.yours or ()),
        what_if=tuple(request.what_if or ()),
        tokens=request.tokens,
    )
    if not is_cluster_file(problem):
        if told := [*asked.names, *["assumptions"] * request.assumptions]:
            raise ValueError(
                f"--{told[0].replace('_', '-')} is for a model on a cluster, and {problem} tells "
                "neither; use a file that starts from [model] [cluster] [batch]"
            )
        return ProblemQuestion.of(problem, request.paper)
    if request.assumptions or asked.is_several:
        what = "several jobs, or two of --yours"
        if request.assumptions:
            what = "--assumptions, without a plan"
            request.leave_out(what, "yours")
        request.leave_out(what, "certificate", "paper", "output", "what_if", "tokens")
    shown = request.shown
    return ClusterQuestion.of(
        problem,
        request.paper,
        asked=asked,
        is_whole=request.json or shown.verbose or shown.why or request.output is not None,
        is_proved=request.certificate is not None,
        is_sheet=request.assumptions,
    )


def _write(answer: PlanAnswer, request: PlanRequest) -> str:
    """The folder of what was found, and the proofs, together or not at all; what was written."""
    output = request.output if isinstance(answer, FoundAnswer) else None
    certificate, names = (request.certificate if answer.proofs else None), ""
    with written_together(output, certificate) as (folder, path):
        if isinstance(answer, FoundAnswer) and output is not None:
            answer.write_with_page(folder)
            names = ", ".join(sorted(each.name for each in folder.iterdir()))
        for write in answer.proofs if certificate is not None else ():
            write(path)
    if output is None:
        return f"wrote {certificate}" if certificate is not None else ""
    proofs = f" --certificate {certificate}" if certificate is not None else ""
    return f"wrote {output}/{{{names}}}     next: bubbleproof verify {output}{proofs}"


def options_of(limits: GivenOptions[SearchLimits], asked: AskedPlan, *, quiet: bool) -> PlanOptions:
    """How to plan, as the command line or the file says."""
    tell = None if quiet or not sys.stderr.isatty() else say
    return GivenOptions(PlanOptions, limits.values).options(asked, tell=tell)


def _workers_of(request: PlanRequest) -> AbstractContextManager[Executor | None]:
    """Who looks at candidates."""
    address = request.elsewhere.scheduler
    if address is not None:
        request.leave_out("the workers of a scheduler", "workers")
    return open_executor(request.workers if address is None else None, address=address)


SILENCE = 10.0  # seconds without a line, after which one is due


@contextmanager
def heartbeat(options: PlanOptions, silence: float = SILENCE) -> Iterator[PlanOptions]:
    """The options with a ``tell`` that also says that a search goes on, after ``silence`` seconds
    without a line; as they are without a ``tell``."""
    tell = options.tell
    if tell is None:
        yield options
        return
    limit = f"{options.time_limit:g} s" if options.work is None else f"{options.work:g} of work"
    begun, told, ended = time.monotonic(), Event(), Event()

    def tell_and_note(line: str) -> None:
        told.set()
        tell(line)

    def watch() -> None:
        while not ended.is_set():
            if told.wait(silence):
                told.clear()
            elif not ended.is_set():
                seconds = time.monotonic() - begun
                tell(f"{seconds:7.2f} s  searching on, limit {limit}")

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield replace(options, tell=tell_and_note)
    finally:
        ended.set()
        told.set()
        watcher.join()
