"""What the page of ``serve`` asks for: a schedule, its shape and caps, and perhaps other orders.

One JSON object, of one of two origins: a family with its parameters, or (``family`` null) one of
the schedules that the command was given, by its number. ``capacity`` (memory units of each rank)
replaces the pipeline's own; ``orders`` (actions as text, a list for each resource in the problem's
order) replace those of the schedule. It comes from a browser, so that nothing in it is believed.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.json_text import parse_json
from bubbleproof.formats.validation import Layout, Natural, validate

MOST_ACTIONS = 200_000  # of a shape that is judged while somebody waits: some seconds
_Word = Annotated[str, Field(max_length=80)]


class CapacityLayout(Layout):
    """The capacity of each rank; ``units`` null for none at all."""

    units: Natural | None


class ViewRequest(Layout):
    """One question of the page."""

    family: _Word | None
    given: Natural = 0
    parameters: dict[_Word, _Word] = Field(default_factory=dict)
    capacity: CapacityLayout | None = None
    orders: list[list[_Word]] | None = None

    @property
    def words(self) -> list[str]:
        """The parameters as on the command line."""
        return [f"{key}={value}" for key, value in self.parameters.items()]


def read_request(text: str) -> ViewRequest:
    """Raises ``UnusableInput`` in one line for anything that is no such object."""
    data = parse_json(text)
    if not isinstance(data, dict):
        raise UnusableInput("", "one object", type(data).__name__)
    return validate(ViewRequest, data)
