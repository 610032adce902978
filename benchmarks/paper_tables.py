"""The papers' tables beside ours.

``python -m benchmarks.paper_tables NAME --write docs/measured/papers`` makes a page.
Without a NAME all of ``PAGES`` are made; without ``--write`` they are printed. Each page is a
function of no arguments in a module of its own.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

# Module and function; what several pages share is in ``paper_numbers``.
PAGES = {
    "bpipe": "benchmarks.bpipe_page.page",
    "headlines": "benchmarks.headlines_page.page",
    "mepipe": "benchmarks.mepipe_page.page",
    "pipemesh": "benchmarks.pipemesh_page.page",
    "tpipe": "benchmarks.tpipe_page.page",
}


def page_of(name: str) -> str:
    """The page of a paper."""
    module, _, function = PAGES[name].rpartition(".")
    text: str = getattr(import_module(module), function)()
    return text


def main(arguments: list[str] | None = None) -> int:
    """Print or write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAGES)}")
    parser.add_argument("--write", type=Path, help="the folder to write NAME.md to")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in PAGES]:
        parser.error(f"NAME must be one of {', '.join(PAGES)}, got {unknown[0]}")
    for name in given.names or PAGES:
        text = page_of(name)
        if given.write is None:
            sys.stdout.write(text)
        else:
            given.write.mkdir(parents=True, exist_ok=True)
            (given.write / f"{name}.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
