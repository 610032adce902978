"""The commands ``prove`` and ``claims``, which ``bubbleproof`` finds by entry points."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option, Typer

from bubbleproof.commands.options.option_groups import runs
from bubbleproof.commands.options.shared_options import Json, below_help
from bubbleproof.papers.commands.claims_options import ClaimsRequest

EXAMPLES = {
    "prove": ("bubbleproof prove 1f1b",),
    "claims": (
        "bubbleproof claims --paper bpipe",
        "bubbleproof claims bpipe.mu --set p=8 m=32 s=3",
        "bubbleproof claims --paper bpipe --engine z3",
    ),
}

app = Typer(rich_markup_mode=None)


@app.command(epilog=below_help(EXAMPLES["prove"]))
@runs("papers.commands.prove.run_prove")
def prove(
    theorems: Annotated[
        list[str] | None, Argument(metavar="[THEOREM]...", help="Default: all.")
    ] = None,
    timeout: Annotated[float, Option(help="Seconds for each query to a prover.")] = 10.0,
    cvc5: Annotated[
        bool, Option("--cvc5", help="Ask cvc5 too; 1 where it and Z3 answer differently.")
    ] = False,
    json: Json = False,
) -> None:
    """Prove the theorems for all sizes; list assumptions, obligations and times."""


@app.command(epilog=below_help(EXAMPLES["claims"]))
@runs("papers.commands.claims.run_claims")
def claims(request: ClaimsRequest) -> None:
    """List the papers' claims; with --audit, decide each by measuring every case."""
