"""What a page of ``serve`` has asked for and been shown: the last views, each under its number.

One question is judged at a time, whichever thread asks. A view stays while its page or files may
still be fetched: the last ``KEPT``.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from bubbleproof.commands.serving.judged_view import JudgedView, judged_view
from bubbleproof.commands.serving.view_request import read_request
from bubbleproof.formats import ScheduleFile

KEPT = 16


class ServedViews:
    """The views of one server, whose page begins with what is ``offered``."""

    def __init__(self, offered: Sequence[ScheduleFile]) -> None:
        self._offered = tuple(offered)
        self._views: dict[int, JudgedView] = {}
        self._number = 0
        self._lock = Lock()

    def judge(self, text: str) -> dict[str, object]:
        """Answer a question (JSON): what is told of the view, and its ``number``.

        Raises ``ValueError`` in one line for what cannot be judged.
        """
        with self._lock:
            view = judged_view(read_request(text), self._offered)
            self._number += 1
            self._views[self._number] = view
            self._views.pop(self._number - KEPT, None)
            return {"number": self._number, **view.told}

    def view(self, number: int) -> JudgedView:
        """The view of that number. Raises ``KeyError`` for one that is not kept."""
        return self._views[number]
