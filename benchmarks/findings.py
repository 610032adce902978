"""Everything ``pytorch_tables`` found, for its page and its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from benchmarks.case_files import CaseFile
from benchmarks.tally import ScheduleSurvey
from benchmarks.torch_mutations import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Largest relative gradient error of PyTorch's runtime on gloo; None where it had no end."""

    schedule: str
    size: str
    default_error: float | None
    deferred_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything the page tells; ``cases`` is None where the folder is absent."""

    max_ranks: int
    versions: dict[str, str]
    surveys: list[ScheduleSurvey]
    mutations: list[Judgement]
    cases: list[CaseFile] | None
    runs: list[Run]

    def to_json(self) -> dict[str, object]:
        """All findings by name."""
        return {
            "max_ranks": self.max_ranks,
            "versions": self.versions,
            "schedules": [survey.to_json() for survey in self.surveys],
            "mutations": [judgement.to_json() for judgement in self.mutations],
            "cases": "absent, not checked"
            if self.cases is None
            else [
                {"file": case.name, "reading": case.reading, **case.survey.to_json()}
                for case in self.cases
            ],
            "runs_on_gloo": [asdict(run) for run in self.runs],
        }
