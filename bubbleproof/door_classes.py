"""Classes at the door: what is wrong with the arguments of one is said in its own words.

Python says of ``bp.Pipeline(4, 8)`` that an ``__init__`` takes 1 positional argument; here it is
how the class is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

# How each is written, and whether it takes only the names of its signature.
WRITTEN = {
    "Cluster": ('card="h100", cards=64', True),
    "Model": ("layers=32, hidden=4096, heads=32, vocabulary=32000, feed_forward=11008", True),
    "OwnModel": ("stages=[...], batch=..., loss=...", True),
    "Pipeline": ("num_ranks=4, num_microbatches=8", False),  # each choice has a name as well
}


def told_by_name(kind: Any, name: str) -> Any:
    """The class that the door calls so; its arguments have names."""
    written, is_closed = WRITTEN[name]
    example, init = f"write bp.{name}({written})", kind.__init__
    fields: Mapping[str, Any] = getattr(kind, "model_fields", {})  # of pydantic
    needed = [name for name, field in fields.items() if field.is_required()]
    if not fields:
        fields = inspect.signature(kind).parameters
        needed = [name for name, each in fields.items() if each.default is each.empty]

    @wraps(init)
    def made(self: object, *unnamed: object, **given: object) -> None:
        lacking = [each for each in needed if each not in given]
        others = [each for each in given if each not in fields] if is_closed else []
        try:
            if unnamed or others or (lacking and given.keys() <= fields.keys()):
                raise TypeError(f"{name}: {_wrong(unnamed, others, lacking, fields)}; {example}")
            init(self, **given)
        except (TypeError, ValueError) as error:
            raise _told(error, kind, given) from error.__cause__

    kind.__init__ = made
    return kind


def _wrong(
    unnamed: Sequence[object], others: Sequence[str], lacking: Sequence[str], known: Iterable[str]
) -> str:
    """What is wrong with the names of arguments."""
    from bubbleproof.suggestions import did_you_mean

    if unnamed:
        return "arguments have names"
    if others:
        return f"no argument {others[0]!r}{did_you_mean(others[0], known)}"
    return f"{' and '.join(lacking)} missing"


def _told(error: TypeError | ValueError, kind: Any, given: Mapping[str, object]) -> Exception:
    """The error as one of ours, in a line."""
    from bubbleproof.error_base import Error
    from bubbleproof.faults import WrongType, WrongValue

    if isinstance(error, Error):
        return error
    if hasattr(error, "errors"):  # of pydantic, in several lines
        from bubbleproof.formats.validation import validate

        try:
            validate(kind, given)
        except Error as first:
            return first
    return (WrongType if isinstance(error, TypeError) else WrongValue)(str(error))
