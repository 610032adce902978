"""A family's own schedule with collectives, for a replay on several replicas.

Schedules that have none of their own get theirs when they are replayed (``replicated``).
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.replaying.replay_options import ReplayRequest
from bubbleproof.formats import ScheduleFile
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels
from bubbleproof.theory.families import families, family, parse_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding

TICKS = 1


def read_to_replay(request: ReplayRequest) -> ScheduleFile:
    """What is to be replayed, with the collectives that so many replicas or the levels ask for."""
    levels = request.training.levels()
    given = read_sharded(request.schedule, levels) if request.is_sharded else None
    return given or read_schedule_input(request.schedule, dialect=request.run.dialect)


def read_sharded(words: Sequence[str], levels: ZeroLevels | None) -> ScheduleFile | None:
    """PipeMesh's schedule with the collectives that the levels need, by default level 3.

    Each collective takes one tick, a RESHARD none. None where the words name anything else.
    """
    if not words or words[0] not in families():
        return None
    params = parse_parameters(words[1:])
    chosen = family(words[0]).variant(params)
    if not isinstance(chosen, PipeMesh):
        return None
    zero = 3 if levels is None else levels.highest
    sharding = Sharding(zero=zero, gather=TICKS, reduce=TICKS)
    pipeline = chosen.sharded(chosen.pipeline(params), sharding)
    problem = pipeline.problem()
    schedule = chosen.schedule(pipeline, problem)
    name = f"{' '.join(words)} with ZeRO-{zero}"
    return ScheduleFile.of(problem, schedule, pipeline=pipeline, name=name)


def known_pipeline(given: ScheduleFile) -> Pipeline:
    """The pipeline. Raises ``ValueError`` for a problem that was built by hand."""
    if given.pipeline is None:
        raise ValueError(
            f"replay runs pipelines; {given.name} comes with a problem built by hand, which "
            "does not say what its tasks compute: write the file with its pipeline"
        )
    return given.pipeline
