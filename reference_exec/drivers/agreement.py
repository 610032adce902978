"""Whether all processes were given the same: each says what it would run, and one compares.

Processes that others start, on one machine or many, have a command line, files and packages each.
A replay that joined two schedules could look as if each held. So nothing runs before all have said
the same of every ``IdentityPart``, and the refusal names who differs from whom, and in what.

What a process is about to run, part by part, in texts short enough for all to compare.

A *part* has a name (``schedule``, ``--seed``, ``torch``), a mark that is equal exactly where the
part is, and what people are shown of it. Marks of large things are digests of their content, which
every process writes alike: sets and mappings in the order of what they contain, not of hashes.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import bubbleproof
from bubbleproof.reference_exec.drivers.place import at_nodes
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import description, in_its_type, own_batch, source_digest

# beside the package's folder in a checkout; papers need not be there
BESIDE = ("theory", "verify", "solvers", "reference_exec", "papers")
SHOWN_DIGITS = 12  # of a digest, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPart:
    """One part of what a process runs: equal where ``mark`` is, ``shown`` to people."""

    mark: str
    shown: str

    @classmethod
    def of(cls, value: object) -> IdentityPart:
        """A part whose text says all: a number, a name, a version."""
        return cls(mark=str(value), shown=str(value))

    @classmethod
    def of_content(cls, mark: str, name: str = "") -> IdentityPart:
        """A part that is known by a digest, perhaps with a name for people."""
        short = f"sha256 {mark[:SHOWN_DIGITS]}"
        return cls(mark=mark, shown=f"{name} ({short})" if name else short)


Parts = Mapping[str, IdentityPart]


def content_digest(value: object) -> str:
    """The digest of a value: data classes, arrays, tensors, containers, enums, plain values.

    Raises ``TypeError`` for anything else, rather than call two values equal that are not.
    """
    return hashlib.sha256(_canonical(value)).hexdigest()


def _canonical(value: object) -> bytes:
    """A value's content as bytes; equal for equal values, whatever the process's hash seed."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return _framed(str(value.dtype), tuple(value.shape), flat.numpy())
    if isinstance(value, np.ndarray):
        return _framed(value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
    if isinstance(value, bytes):
        return b"bytes " + value
    if isinstance(value, Enum):
        return _framed(type(value).__name__, value.name)
    if value is None or isinstance(value, bool | int | float | str | Fraction | np.generic):
        return f"{type(value).__name__} {value!r}".encode()
    if is_dataclass(value) and not isinstance(value, type):
        values = [(field.name, getattr(value, field.name)) for field in fields(value)]
        return _framed(type(value).__name__, *values)
    if isinstance(value, Mapping):
        return _framed("mapping", *sorted(_framed(k, v) for k, v in value.items()))
    if isinstance(value, Set):
        return _framed("set", *sorted(map(_canonical, value)))
    if isinstance(value, Sequence):
        return _framed("sequence", *value)
    raise TypeError(f"{type(value).__name__} has no digest")


def _framed(*values: object) -> bytes:
    """Values one after another, each behind its length, so that no two rows read alike."""
    pieces = [_canonical(value) for value in values]
    return b"".join(b"%d:%b" % (len(piece), piece) for piece in pieces)


@cache
def versions() -> Parts:
    """What is loaded here: this package, Python's minor version, numpy, torch."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "bubbleproof": IdentityPart.of(this_machine().versions.get("bubbleproof", "not installed")),
        "Python": IdentityPart.of(f"{sys.implementation.name} {python}"),
        "numpy": IdentityPart.of(np.__version__),
        "torch": IdentityPart.of(torch.__version__),
    }


@cache
def own_files() -> Parts:
    """The files of this package: a checkout in work changes without its version."""
    specs = ((room, find_spec(f"bubbleproof.{room}")) for room in BESIDE)
    homes = {room: Path(*(spec.submodule_search_locations or ())) for room, spec in specs if spec}
    homes[""] = Path(bubbleproof.__file__).resolve().parent
    files = {
        (Path(room) / path.relative_to(home)).as_posix(): path
        for room, home in homes.items()
        for path in home.rglob("*.py")
    }
    read = [(name, files[name].read_bytes()) for name in sorted(files)]
    return {"files of bubbleproof": IdentityPart.of_content(content_digest(read))}


def model_parts(spec: ModelSpec) -> Parts:
    """A user's model: the file that makes it, and the weights and first batch that come of it.

    Two machines can make other weights by one file. Empty for our own models, which follow from
    their options. Raises ``ValueError`` as ``own.build`` does.
    """
    if not spec.factory:
        return {}
    spec = in_its_type(spec)
    model = description(spec)
    made = ([stage.state_dict() for stage in model.stages], own_batch(spec, 0))
    return {
        "model file": IdentityPart.of_content(source_digest(spec.factory), spec.factory),
        "weights and first batch of the model": IdentityPart.of_content(content_digest(made)),
    }


def require_same(caller: Parts, spec: ModelSpec) -> None:
    """Raise ``ValueError`` where a process that a caller started has loaded something else.

    A user's model file may have been edited since the caller loaded it.
    """
    own = {**versions(), **model_parts(spec)}
    for name, part in caller.items():
        if own[name].mark != part.mark:
            raise ValueError(
                f"{name} is {own[name].shown} here and {part.shown} in the calling process, which "
                "loaded it before; start that anew"
            )


MAX_GROUPS = 4  # of ranks that differ in one part, before the rest is counted
OUTCOME = "program"  # what differs wherever anything else does; told where nothing else is


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What one process would run: (mark, text) of each part; or why it cannot run it.

    A process that cannot may have come to know some parts only.
    """

    rank: int
    node: str
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    refusal: str | None = None

    @classmethod
    def from_json(cls, said: object) -> Paper:
        """What ``asdict`` of one became on its way. Raises ``ValueError`` for what is no paper."""
        match said:
            case {
                "rank": int(rank),
                "node": str(node),
                "parts": dict(parts),
                "refusal": None | str() as refusal,
            }:
                pairs = {str(name): _pair(part) for name, part in parts.items()}
                return cls(rank=rank, node=node, parts=pairs, refusal=refusal)
        raise ValueError(f"a process said nothing of what it runs, got {said!r:.80}")


def _pair(part: object) -> tuple[str, str]:
    match part:
        case (str(mark), str(text)):
            return mark, text
    raise ValueError(f"a process said nothing of a part of it, got {part!r:.80}")


def disagreement(papers: Sequence[Paper]) -> str | None:
    """In what the processes differ, and who says what; None where they agree.

    Parts that some have not come to know are compared among the others.
    """
    names = dict.fromkeys(name for paper in papers for name in paper.parts)
    differing = [name for name in names if len(_marks(papers, name)) > 1]
    causes = [name for name in differing if name != OUTCOME] or differing
    told = [f"{name}: {_who_says_what(papers, name)}" for name in causes]
    if not told:
        return None
    return (
        f"the processes differ, nothing was run: {'; '.join(told)}; "
        "start all of them with one schedule, one model, the same options and versions"
    )


def refusal(papers: Sequence[Paper]) -> str | None:
    """Why one cannot run what it was given, its rank in front unless all say so; None if all can.

    Precondition: the processes agree.
    """
    refusing = [paper for paper in papers if paper.refusal is not None]
    if not refusing:
        return None
    first = min(refusing, key=lambda paper: paper.rank)
    if all(paper.refusal == first.refusal for paper in papers):
        return first.refusal
    nodes = {paper.rank: paper.node for paper in papers}
    return f"{at_nodes([first.rank], nodes)}: {first.refusal}"


def _marks(papers: Iterable[Paper], name: str) -> dict[str, list[Paper]]:
    """The papers by what they say of a part."""
    found: dict[str, list[Paper]] = {}
    for paper in papers:
        if name in paper.parts:
            found.setdefault(paper.parts[name][0], []).append(paper)
    return found


def _who_says_what(papers: Sequence[Paper], name: str) -> str:
    nodes = {paper.rank: paper.node for paper in papers}
    groups = sorted(_marks(papers, name).values(), key=lambda group: group[0].rank)
    said = [
        f"{group[0].parts[name][1]} on {at_nodes([paper.rank for paper in group], nodes)}"
        for group in groups[:MAX_GROUPS]
    ]
    if len(groups) > MAX_GROUPS:
        said.append(f"others on {len(groups) - MAX_GROUPS} groups of ranks")
    return ", ".join(said)
