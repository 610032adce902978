"""A verdict on every generator of schedules that can be had here.

    python -m benchmarks.verdicts [ARCHIVE ...] [--grid reduced|page|every] [--workers N]
        [--scheduler ADDRESS] [--only TEXT] [--write FILE] [--examples FILE]

The schedule classes of the installed torch, Megatron-LM's orders (written from their definition),
our families, and of a wheel or source archive of DeepSpeed its instruction schedules: each at every
size of the grid is judged by every rule and under every semantics (``judged``). ``--scheduler``
gives the work to the workers of a ``dask.distributed`` scheduler, which must have the archives at
the same paths.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn

from benchmarks.verdicts.judged import Judged
from benchmarks.verdicts.pages import Sweep, examples_page, page
from benchmarks.verdicts.smallest import smallest
from benchmarks.verdicts.sweep import sweep, wanted
from bubbleproof.formats.files import write_text
from bubbleproof.parallel import open_executor


def main(
    archives: Annotated[list[Path] | None, typer.Argument(help="Of DeepSpeed.")] = None,
    grid: Annotated[str, typer.Option(help="reduced, page or every.")] = "reduced",
    workers: int | None = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    only: Annotated[str, typer.Option(help="Generators whose source and name hold this.")] = "",
    write: Annotated[Path | None, typer.Option(help="Write the page here.")] = None,
    examples: Annotated[Path | None, typer.Option(help="Write counterexamples here.")] = None,
) -> None:
    """Sweep, and write or print the page; see the module's text."""
    given = tuple(archives or ())
    items = wanted(grid, given, only)
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    with open_executor(workers, address=scheduler) as executor, bar as progress:
        task = progress.add_task("judging", total=len(items), what="")

        def advance(last: Judged) -> None:
            what = f"{last.source} {last.name} p={last.p} m={last.m}"
            progress.update(task, advance=1, what=what)

        found = sweep(items, executor, advance)
    names = [path.name for path in given]
    words = [*names, f"--grid {grid}", *([f"--only '{only}'"] if only else [])]
    words.append("--write docs/measured/verdicts.md")
    made = Sweep(
        found=found,
        smallest=smallest(found, given),
        archives=given,
        command=f"python -m benchmarks.verdicts {' '.join(words)}",
    )
    if examples is not None:
        write_text(examples, examples_page(made))
    if write is None:
        sys.stdout.write(page(made))
    else:
        write_text(write, page(made))


if __name__ == "__main__":
    typer.run(main)
