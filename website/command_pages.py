"""The command line's pages: one for each command, with what its own help says."""

from __future__ import annotations

from typer import Context
from typer.main import get_command

from bubbleproof.cli import app

WIDTH = 100  # of the help


def command_pages() -> dict[str, str]:
    """The pages by their place in the site: an index with a line a command, and one for each."""
    command = get_command(app)
    top = Context(command, info_name="bubbleproof", max_content_width=WIDTH, terminal_width=WIDTH)
    pages, lines = {}, ["# Command line", "", "`bubbleproof COMMAND --help` prints the same.", ""]
    lines += ["| command | what it does |", "|---|---|"]
    for name in command.list_commands(top):  # type: ignore[attr-defined]  # a group
        one = command.get_command(top, name)  # type: ignore[attr-defined]
        context = Context(one, info_name=name, parent=top, terminal_width=WIDTH)
        first = (one.help or "").strip().splitlines()[0]
        pages[f"commands/{name}.md"] = (
            f"# bubbleproof {name}\n\n{first}\n\n```text\n{one.get_help(context).strip()}\n```\n"
        )
        lines.append(f"| [{name}]({name}.md) | {first} |")
    pages["commands/index.md"] = "\n".join([*lines, ""])
    return pages
