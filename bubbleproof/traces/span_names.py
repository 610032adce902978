"""What a framework calls its pipeline actions in a trace.

PyTorch's names hold the action itself: ``PP:3F7``. For others a TOML file says how names read::

    [[span]]
    pattern = "forward_step"       # a regular expression for the whole name
    kind = "F"
    stage = "{rank}"               # optional; or a group (?P<stage>...) of the pattern
    microbatches = 8               # of a step, where names do not number them

Named groups ``stage``, ``microbatch`` and ``slice`` give the numbers. Without ``stage`` a span is
of the stage that has its rank's number; without ``microbatch`` the k-th span of a kind and stage in
a step is of microbatch k.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bubbleproof.formats.errors import UnusableInput, about, quoted
from bubbleproof.formats.files import MEBIBYTE, read_text
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.theory.model.actions import Action, Kind

Naming = Callable[[str, Mapping[str, object]], Action | None]
_PREFIX = "PP:"
_GROUPS = ("stage", "microbatch", "slice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPattern:
    """Names that match ``pattern`` are actions of ``kind``; ``microbatches`` of a step."""

    pattern: re.Pattern[str]
    kind: Kind
    microbatches: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanNames:
    """How names become actions; without patterns they are PyTorch's."""

    patterns: Sequence[SpanPattern] = ()

    @property
    def expected(self) -> str:
        """What a trace should hold, in words."""
        if self.patterns:
            return "spans with the names of --names: " + ", ".join(
                each.pattern.pattern for each in self.patterns
            )
        return (
            "spans such as PP:0F0 (of _PipelineScheduleRuntime; Schedule1F1B and ScheduleGPipe "
            "write none: run their CSV in it, or name your spans with --names)"
        )

    def reader(self) -> Naming:
        """A function of a span's name and the trace's keys, which counts what has no number."""
        if not self.patterns:
            return _pytorch
        counts: Counter[tuple[Kind, int]] = Counter()

        def named(name: str, about_trace: Mapping[str, object]) -> Action | None:
            for each in self.patterns:
                if (match := each.pattern.fullmatch(name)) is not None:
                    return _action(each, match.groupdict(), about_trace, counts)
            return None

        return named


PYTORCH = SpanNames()


def _pytorch(name: str, about_trace: Mapping[str, object]) -> Action | None:
    del about_trace
    if not name.startswith(_PREFIX):
        return None
    try:
        return Action.parse(name.removeprefix(_PREFIX))
    except ValueError as error:
        raise UnusableInput("", "PP:<action>", f"{quoted(name)} ({error})") from None


def _action(
    pattern: SpanPattern,
    groups: Mapping[str, str | None],
    about_trace: Mapping[str, object],
    counts: Counter[tuple[Kind, int]],
) -> Action:
    group = about_trace.get("distributedInfo")
    rank = group.get("rank", 0) if isinstance(group, dict) else 0
    stage = _number(groups, "stage", rank)
    counted = counts[pattern.kind, stage]
    number = _number(groups, "microbatch", counted % (pattern.microbatches or 1 << 20))
    if groups.get("microbatch") is None:
        counts[pattern.kind, stage] += 1
    slice_ = _number(groups, "slice", 0)
    return Action(stage=stage, kind=pattern.kind, microbatch=number, slice=slice_)


def _number(groups: Mapping[str, str | None], name: str, default: object) -> int:
    """What a group of the pattern matched, as a number."""
    found = groups.get(name)
    text = str(default) if found is None and isinstance(default, int) else found
    if text is None or not re.fullmatch("[0-9]{1,9}", text):
        raise UnusableInput("", f"a name whose {name} is a whole number", quoted(found))
    return int(text)


def read_names(path: str) -> SpanNames:
    """Read ``--names FILE``. Raises ``UnusableInput`` naming the entry."""
    with about(path):
        content = parse_toml(read_text(path, limit=MEBIBYTE))
        entries = content.get("span")
        if not isinstance(entries, list) or not entries or content.keys() != {"span"}:
            raise UnusableInput("", "entries [[span]]", f"keys {sorted(content)}")
        return SpanNames(patterns=[_pattern(row, entry) for row, entry in enumerate(entries)])


def _pattern(row: int, entry: object) -> SpanPattern:
    where = f"span[{row}]"
    known = {"pattern", "kind", "microbatches"}
    if not isinstance(entry, dict) or not {"pattern", "kind"} <= entry.keys() <= known:
        raise UnusableInput(where, "pattern, kind and perhaps microbatches", quoted(entry))
    kind, text = entry["kind"], entry["pattern"]
    if not isinstance(kind, str) or kind not in Kind.__members__:
        raise UnusableInput(f"{where}.kind", f"one of {', '.join(Kind.__members__)}", quoted(kind))
    if not isinstance(text, str):
        raise UnusableInput(f"{where}.pattern", "a regular expression", quoted(text))
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnusableInput(f"{where}.pattern", "a regular expression", str(error)) from None
    if unknown := pattern.groupindex.keys() - set(_GROUPS):
        raise UnusableInput(f"{where}.pattern", f"groups {', '.join(_GROUPS)}", ", ".join(unknown))
    count = entry.get("microbatches")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise UnusableInput(f"{where}.microbatches", "a number of 1 or more", quoted(count))
    if count is None and "microbatch" not in pattern.groupindex:
        expected = "a group (?P<microbatch>...) in the pattern, or microbatches = N"
        raise UnusableInput(where, expected, "neither")
    return SpanPattern(pattern=pattern, kind=Kind[kind], microbatches=count)
