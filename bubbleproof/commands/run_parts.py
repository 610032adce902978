"""What one process of a replay under torchrun was given, for all processes to compare.

Every option counts unless it is named in ``OF_ONE_PROCESS``, so that an option that
is added later is compared without a word here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from bubbleproof.commands.inputs import ScheduleInput
from bubbleproof.commands.replay_options import ReplayRequest
from bubbleproof.reference_exec.drivers.agreement import Paper
from bubbleproof.reference_exec.drivers.identity import (
    Part,
    content_digest,
    model_parts,
    own_files,
    versions,
)
from bubbleproof.reference_exec.drivers.place import Place
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.theory.model.schedule import Schedule

# What is read, and how, shows in schedule and problem; only the first process prints and writes.
OF_ONE_PROCESS = ("dialect", "output", "json", "torchrun")


class RunParts:
    """The parts that a process has come to know: at first its options and versions."""

    def __init__(self, request: ReplayRequest) -> None:
        self._spec = request.model.spec()
        self._parts = {**dict(_option_parts(request)), **versions(), **own_files()}

    def know(self, given: ScheduleInput, schedule: Schedule) -> None:
        """The schedule and its problem have been read; a user's model is loaded here."""
        orders = (given.program.actions, given.program.resource, schedule.program, schedule.start)
        self._parts["schedule"] = Part.of_content(content_digest(orders), given.name)
        self._parts["problem"] = Part.of_content(content_digest(given.problem))
        self._parts |= model_parts(self._spec)

    def know_plan(self, plan: Plan) -> None:
        """The programs that the ranks are to run have been made."""
        self._parts["program"] = Part.of_content(content_digest(plan))

    def paper(self, place: Place, refusal: str | None) -> Paper:
        """What this process tells the others, and why it cannot run."""
        parts = {name: (part.mark, part.shown) for name, part in self._parts.items()}
        return Paper(rank=place.rank, node=place.node, parts=parts, refusal=refusal)


def _option_parts(request: ReplayRequest) -> Iterator[tuple[str, Part]]:
    for group in (request.run, request.model, request.training, request.communication):
        for field in fields(group):
            if field.name not in OF_ONE_PROCESS:
                value = getattr(group, field.name)
                option = f"--{field.name.replace('_', '-')}"
                yield option, Part.of("not given" if value is None else value)
