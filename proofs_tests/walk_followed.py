"""Which functions of a program handle one value: ``python walk_followed.py < ORDER > WALK``.

A program of its own, of the standard library alone, so that it runs over any commit's tree. ORDER
is a JSON object: ``number`` or ``module`` say what is followed, ``commands`` which command lines of
``bubbleproof`` are run, one after the other in one process; ``PYTHONPATH`` says of which tree.

- A number stands nowhere else in the files that the commands read. A function *handles* it when at
  its end one of its variables, or what it returns, is that number, or a list, tuple, set, dict or
  array that has it. What only holds an object that holds the number does not handle it.
- A module is a regular expression: handled are objects of the classes of modules that match.

A function is told by its file and its qualified name, and what is defined in it is a part of it.
It has the value *from* the nearest function that called it (through any others) and handles it too.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import FrameType

Place = tuple[str, str]
Is = Callable[[object], bool]
ROOMS = ("bubbleproof", "theory", "verify", "solvers", "reference_exec")


def is_number(wanted: int) -> Is:
    """Whether a value is the number, or has it."""

    def found(value: object) -> bool:
        if isinstance(value, (int, float)):
            return value == wanted
        if isinstance(value, dict):
            return any(isinstance(one, (int, float)) and one == wanted for one in value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            return any(isinstance(one, (int, float)) and one == wanted for one in value)
        if type(value).__name__ == "ndarray" and type(value).__module__ == "numpy":
            return wanted in value  # type: ignore[operator]  # known to be an array by its name
        return False

    return found


def is_of(modules: str) -> Is:
    """Whether a value is an object of a class of modules whose names match."""
    pattern = re.compile(modules)
    return lambda value: (
        not isinstance(value, type) and bool(pattern.search(type(value).__module__))
    )


class Walk:
    """The functions that handled the value, in the order of their first time, and from whom."""

    def __init__(self, is_wanted: Is, root: Path) -> None:
        self.is_wanted, self.root = is_wanted, root
        self.stack: list[Place | None] = []
        self.chains: dict[tuple[Place, ...], None] = {}

    def profile(self, frame: FrameType, event: str, result: object) -> None:
        """What ``sys.setprofile`` calls at each call and each return."""
        if event == "call":
            self.stack.append(self._place(frame))
        elif event == "return" and self.stack:
            place = self.stack.pop()
            if place is not None and self._is_handled(frame, result):
                above = tuple(one for one in self.stack if one is not None)
                self.chains.setdefault((*above, place))

    def _is_handled(self, frame: FrameType, result: object) -> bool:
        return self.is_wanted(result) or any(map(self.is_wanted, frame.f_locals.values()))

    def _place(self, frame: FrameType) -> Place | None:
        try:
            where = Path(frame.f_code.co_filename).resolve().relative_to(self.root)
        except ValueError:
            return None
        if where.parts[0] not in ROOMS or frame.f_code.co_qualname == "<module>":
            return None
        inner = where.parts[1:] if where.parts[0] == "bubbleproof" else where.parts
        return "/".join(inner), frame.f_code.co_qualname.partition(".<locals>")[0]

    @property
    def functions(self) -> list[Place]:
        return list(dict.fromkeys(chain[-1] for chain in self.chains))

    @property
    def steps(self) -> list[tuple[Place, Place]]:
        """From whom each has it."""
        handling = {chain[-1] for chain in self.chains}
        found: dict[tuple[Place, Place], None] = {}
        for chain in self.chains:
            above = [one for one in chain[:-1] if one in handling and one != chain[-1]]
            if above:
                found.setdefault((above[-1], chain[-1]))
        return list(found)


def follow(walk: Walk, run: Callable[[], object]) -> None:
    """Run something under the walk's eyes."""
    sys.setprofile(walk.profile)
    try:
        run()
    finally:
        sys.setprofile(None)


def _command(arguments: list[str]) -> None:
    from bubbleproof.cli import main

    sys.argv = ["bubbleproof", *arguments]
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            main()
    except SystemExit as ended:
        if ended.code not in (0, None):
            raise RuntimeError(f"{arguments}: {said.getvalue()}") from None


def main() -> None:
    """Read the order, run it, print the walk."""
    import bubbleproof

    order = json.loads(sys.stdin.read())
    is_wanted = is_number(order["number"]) if "number" in order else is_of(order["module"])
    walk = Walk(is_wanted, Path(bubbleproof.__file__).resolve().parents[1])
    for arguments in order["commands"]:
        follow(walk, partial(_command, arguments))
    sys.stdout.write(json.dumps({"functions": walk.functions, "steps": walk.steps}))


if __name__ == "__main__":
    main()
