"""What the page of ``serve`` asks for: a schedule, its numbers and caps, and perhaps other orders.

One JSON object, of one of two origins: a family with its parameters, or (``family`` null) one of
the schedules that are offered, by its number. ``changes`` and ``capacity`` (memory units of each
rank) replace the pipeline's own; ``orders`` (actions as text, a list for each resource in the
problem's order) replace those of the schedule. It comes from a browser, so that nothing in it is
believed.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from bubbleproof.commands.serving.pipeline_changes import MOST_STAGES, ChangesLayout
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.json_text import parse_json
from bubbleproof.formats.validation import Layout, Natural, validate

MOST_SECONDS = 600
Asked = TypeVar("Asked", bound=Layout)
_Word = Annotated[str, Field(max_length=80)]


class CapacityLayout(Layout):
    """The capacity of each rank, one for all or a list; null for none at all."""

    units: Natural | Annotated[list[Natural | None], Field(max_length=MOST_STAGES)] | None


class ViewRequest(Layout):
    """One question of the page; ``beside``: the orders as they were given are drawn below."""

    family: _Word | None
    given: Natural = 0
    parameters: dict[_Word, _Word] = Field(default_factory=dict)
    changes: ChangesLayout | None = None
    capacity: CapacityLayout | None = None
    orders: list[list[_Word]] | None = None
    beside: bool = False

    @property
    def words(self) -> list[str]:
        """The parameters as on the command line."""
        return [f"{key}={value}" for key, value in self.parameters.items()]


class SolveRequest(Layout):
    """Whether, and from which orders on, to look for a shorter schedule, for so many seconds."""

    view: ViewRequest
    seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS)]


class FileRequest(Layout):
    """A file that the reader opens: its name tells its kind, its text is all of it."""

    name: Annotated[str, Field(max_length=200)]
    text: str


def read_request(text: str, layout: type[Asked]) -> Asked:
    """Raises ``UnusableInput`` in one line for anything that is no such object.

    Numbers that the page changes are named as on the page, not by where they stand in the object.
    """
    data = parse_json(text)
    if not isinstance(data, dict):
        raise UnusableInput("", "one object", type(data).__name__)
    try:
        return validate(layout, data)
    except UnusableInput as error:
        raise error.at(error.where.removeprefix("view.").removeprefix("changes.")) from None
