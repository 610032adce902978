"""A schedule written in another format, and what that format cannot say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bubbleproof.facts import Fact, FactSource
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.format_table import Format, written, written_as
from bubbleproof.formats.pytorch_words import chosen_version, handed_to
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.pytorch_runtime import Version


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenFile(FactSource):
    """What was written to ``path``: ``losses``, a sentence each, and which ``runtime`` takes it."""

    path: str
    losses: tuple[str, ...]
    runtime: str = ""

    def facts(self) -> list[Fact]:
        """The file, what is not written, and who takes it."""
        return [
            Fact(key="path", label="file", value=self.path),
            Fact(key="losses", value=self.losses),
            *(Fact(label="not written", value=loss) for loss in self.losses),
            Fact(key="runtime", label="runtime" if self.runtime else "", value=self.runtime),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What is to be written: the file ``target``, messages too, and for which torch.

    Raises ``ValueError`` for an ending that is not written, and for what goes with a table alone.
    """

    target: str
    communication: bool = False
    torch: str | None = None

    def __post_init__(self) -> None:
        is_of_torch = self.is_table and self.communication
        chosen_version(self.torch)
        if self.torch is not None and not is_of_torch:
            raise ValueError(
                "--torch is for a table with messages: convert SCHEDULE x.csv --communication"
            )

    @property
    def form(self) -> Format:
        """The format of the target. Raises ``ValueError`` for an ending that is not written."""
        if (found := written_as(self.target)) is None:
            raise ValueError(
                f"convert SCHEDULE TARGET: the target must end in {' '.join(written())}, got "
                f"{self.target!r}; it is the last word"
            )
        return found

    @property
    def is_table(self) -> bool:
        """Whether it is a table of PyTorch."""
        return bool(self.form.dialects)

    def write(self, given: ScheduleFile) -> WrittenFile:
        """Write it, whole or not at all. Raises ``UnusableInput`` where that fails."""
        version, losses, runtime = chosen_version(self.torch), tuple[str, ...](), ""
        with written_together(None, self.target) as (_, new):
            if self.is_table:
                losses = self._write_table(given, new, version)
                runtime = handed_to(version, communication=self.communication)
            else:
                self.form.write(new, _as_file(given))
                if given.collectives and self.form.reader:
                    losses = ("the collectives of the table: a schedule has none of their own",)
        return WrittenFile(path=self.target, losses=losses, runtime=runtime)

    def _write_table(self, given: ScheduleFile, target: Path, version: Version) -> tuple[str, ...]:
        """What is lost. A table's own messages and collectives are kept."""
        if not self.communication:
            return write_table(target, given.compute, problem=given.problem, communication=False)
        program = given.lowered or lower(given.problem, given.timed())
        return write_table(
            target,
            program,
            problem=given.problem,
            collectives=given.collectives or () if given.lowered else (),
            torch=version,
            communication=True,
        )


def _as_file(given: ScheduleFile) -> ScheduleFile:
    if given.schedule is not None and not given.has_communication:
        return ScheduleFile.of(
            given.problem, given.schedule, pipeline=given.pipeline, name=given.name
        )
    return ScheduleFile(
        problem=given.problem, program=given.program, pipeline=given.pipeline, name=given.name
    )
