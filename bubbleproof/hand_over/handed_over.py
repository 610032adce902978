"""Handing over in one call: the files that start a training, what is lost, what was checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bubbleproof.facts import Fact, FactSource, valued, verdict
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.files import write_text
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.handed import HandedSchedule, planned_of
from bubbleproof.hand_over.targets_list import (
    UNSUPPORTED,
    handed_to,
    page_of_losses,
    require_target,
)
from bubbleproof.torch_limits import require_torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandedOver(FactSource):
    """``files`` by name in ``folder``, the command that ``start``s them, ``losses`` in a sentence
    each, and of each check what differs ("" where nothing does); ``unloaded`` is why the target's
    own reader was not asked.
    """

    target: str
    name: str
    folder: str
    files: Mapping[str, str]
    start: str
    losses: tuple[str, ...]
    checks: tuple[tuple[str, str], ...] = ()
    unloaded: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing that was checked differs."""
        return not any(difference for _, difference in self.checks)

    def facts(self) -> list[Fact]:
        """All of it, but the text of the files."""
        checks = [{"what": what, "holds": not why, "difference": why} for what, why in self.checks]
        return [
            *valued("", target=self.target, name=self.name, folder=self.folder),
            *valued("", files=[*self.files]),
            *(Fact(label="file", value=f"{self.folder}/{each}") for each in self.files),
            Fact(key="start", label="start", value=self.start),
            Fact(key="losses", value=[*self.losses]),
            *(Fact(label="not written", value=loss) for loss in self.losses),
            *(Fact(label="not loaded", value=why) for why in (self.unloaded,) if why),
            Fact(key="checks", value=checks),
            *(
                Fact(
                    label="differs" if why else "holds",
                    value=why or what,
                    verdict=verdict(not why),
                    detail=(why,) if why else (),
                )
                for what, why in self.checks
            ),
        ]


def handed_over(
    given: ScheduleFile | PlanFile,
    target: str,
    folder: str,
    *,
    check: bool = False,
    say: Callable[[str], None] = lambda _line: None,
) -> HandedOver:
    """Write what starts a training in ``folder``, and say what is lost.

    Parameters
    ----------
    target
        A framework with its version, such as ``torch-2.13`` (``target_runtimes``).
    check
        Train ten steps by PyTorch's runtime as well, and compare bits.
    say
        Hears of what takes long.

    Raises
    ------
    ValueError
        For what the target would get wrong, and without PyTorch where a check is asked for.
    """
    require_target(target)
    target = framework_named(target, "--to").name
    if check:
        require_torch("hand-over --check")
    handed = handed_schedule(given)
    made = handed_to(target, handed)
    files = {**made.files, UNSUPPORTED: page_of_losses(target, handed, made)}
    with written_together(folder) as (new,):
        for name, text in files.items():
            write_text(new / name, text)
    checks = [(what, "") for what in (*made.read.loaded, *(made.checked if check else ()))]
    if check and made.has_table:
        from bubbleproof.hand_over.trained_check import trained_check

        say("training ten steps by PyTorch's runtime, twice")
        checks.append(trained_check(handed))
    return HandedOver(
        target=target,
        name=handed.name,
        folder=folder,
        files=files,
        start=made.start,
        losses=made.losses,
        checks=tuple(checks),
        unloaded=made.read.unloaded,
    )


def handed_schedule(given: ScheduleFile | PlanFile) -> HandedSchedule:
    """What is handed over of a plan or a schedule. Raises ``ValueError`` where it has no stages."""
    if isinstance(given, PlanFile):
        return _of_plan(given)
    if given.pipeline is None:
        raise ValueError(
            f"hand-over: {given.name} is a problem built by hand, which has no stages to hand over"
        )
    return HandedSchedule(name=given.name, given=given, pipeline=given.pipeline)


def _of_plan(plan: PlanFile) -> HandedSchedule:
    pipeline = plan.schedule.pipeline
    if pipeline is None:
        raise ValueError(f"hand-over: the schedule of plan {plan.name} tells no pipeline")
    return HandedSchedule(
        name=plan.name, given=plan.schedule, pipeline=pipeline, planned=planned_of(plan)
    )
