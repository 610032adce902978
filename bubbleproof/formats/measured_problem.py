"""Problem files written from measured times and bytes; ``problem_toml`` reads them.

Times are rounded to whole ticks of a length that the file states as its ``unit``. Half a tick is
the most that rounding changes, so a tick of a twentieth of the shortest time (``fitting_tick``)
is off by at most 1/40 of any of them; fewer ticks make a problem that is solved faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TICK = re.compile(r"([1-9][0-9]*) ?(ns|us|ms|s)")
SHORTEST_TICKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The length of a tick, in whole nanoseconds."""

    nanoseconds: int

    @classmethod
    def parsed(cls, text: str) -> Tick:
        """The tick that a text such as ``10us`` or ``1 ms`` names; else ``ValueError``."""
        found = _TICK.fullmatch(text)
        if found is None:
            raise ValueError(
                f"a tick must be a whole number of ns, us, ms or s such as 10us, got {text!r}"
            )
        return cls(nanoseconds=int(found[1]) * _UNITS[found[2]])

    def of(self, seconds: float) -> int:
        """The seconds in ticks, rounded, and at least one."""
        return max(1, round(Fraction(seconds) * 10**9 / self.nanoseconds))

    @property
    def unit(self) -> str:
        """What a problem file calls it: ``us``, or ``ticks of 5 us``."""
        return str(self)[2:] if str(self).startswith("1 ") else f"ticks of {self}"

    def __str__(self) -> str:
        name = max((u for u in _UNITS if self.nanoseconds % _UNITS[u] == 0), key=_UNITS.__getitem__)
        return f"{self.nanoseconds // _UNITS[name]} {name}"


def fitting_tick(seconds: Sequence[float]) -> Tick:
    """The longest of 1, 2, 5, 10, 20, ... ns that is in each of the times 20 times or more."""
    limit = min(seconds) * 10**9 / SHORTEST_TICKS
    fitting = 1
    for power in range(10):
        for digit in (1, 2, 5):
            if digit * 10**power <= limit:
                fitting = digit * 10**power
    return Tick(nanoseconds=fitting)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStage:
    """Medians in seconds, and bytes, of one stage."""

    forward: float
    input_backward: float
    weight_backward: float
    backward: float
    activation_bytes: int
    released_at_input_bytes: int
    static_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredProblem:
    """A training step of measured stages; ``capacity`` is a size such as "80 GiB", of each rank.

    ``remarks`` say what was measured, and where; they become comments.
    """

    name: str
    ranks: int
    microbatches: int
    chunks: int
    placement: str
    is_split: bool
    tick: Tick
    latency: int
    capacity: str | None
    stages: tuple[MeasuredStage, ...]
    remarks: tuple[str, ...] = ()


def problem_text(problem: MeasuredProblem) -> str:
    """The problem file."""
    stages, tick = problem.stages, problem.tick
    lines = [f"# {line}" for remark in problem.remarks for line in remark.splitlines()]
    lines += [
        f"name = {_quoted(problem.name)}",
        f"unit = {_quoted(tick.unit)}",
        'memory_unit = "bytes"',
        f"ranks = {problem.ranks}",
        f"microbatches = {problem.microbatches}",
        f"chunks = {problem.chunks}",
        f"placement = {_quoted(problem.placement)}",
        f"split_backward = {'true' if problem.is_split else 'false'}",
        "",
        "[durations]",
        f"forward = {[tick.of(stage.forward) for stage in stages]}",
    ]
    if problem.is_split:
        lines += [
            f"input = {[tick.of(stage.input_backward) for stage in stages]}",
            f"weight = {[tick.of(stage.weight_backward) for stage in stages]}",
        ]
    else:
        lines.append(f"backward = {[tick.of(stage.backward) for stage in stages]}")
    lines += ["", "[memory]"]
    if problem.capacity is not None:
        lines.append(f"capacity = {_quoted(problem.capacity)}")
    lines += [
        f"activation = {[stage.activation_bytes for stage in stages]}",
        f"released_at_input = {[stage.released_at_input_bytes for stage in stages]}",
        f"static = {[stage.static_bytes for stage in stages]}",
        "",
        "[links]",
        f"latency = {problem.latency}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)
