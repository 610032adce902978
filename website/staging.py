"""The source tree of the site: pages as they are in the repository, and those that are made here.

    python -m website.staging FOLDER

Pages keep their words; links become those of the site (``staged_links``). Each section has an index
with a line a page, the front is the README with the tutorials before it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from os.path import relpath
from pathlib import Path

from website.api_pages import api_pages
from website.command_pages import command_pages
from website.page_text import first_sentence, title_of
from website.sections import TUTORIALS, Group, Placed, placed
from website.shown_files import shown_file
from website.staged_links import PICTURES, LinkStager, place_of, shown_place

ROOT = Path(__file__).resolve().parents[1]
TOP = ("CONTRIBUTING.md", "CHANGELOG.md")


def repository_pages(root: Path = ROOT) -> dict[str, str]:
    """The text of each page by its path in the repository, the README apart."""
    paths = [*(root / name for name in TOP), *sorted((root / "docs").rglob("*.md"))]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


def stage(folder: Path, made: Mapping[str, str] | None = None, root: Path = ROOT) -> int:
    """Write the tree to a folder, which is emptied; gives the number of pages.

    ``made`` are further pages and pictures by their place. Raises ``BrokenLinkError``.
    """
    pages = repository_pages(root)
    links = LinkStager(root)
    made = {**api_pages(), **command_pages(), **(made or {})}
    tree = {place_of(page): links.staged(text, page) for page, text in pages.items()}
    tree |= made
    navigation = placed([*pages, *(each for each in made if each.endswith("/index.md"))])
    tree |= {f"{each.section.key}/index.md": _index(each, tree) for each in navigation}
    front = links.staged((root / "README.md").read_text("utf-8"), "README.md")
    tree["index.md"] = _front(front, navigation, tree)
    links.refuse_broken()
    shutil.rmtree(folder, ignore_errors=True)
    for place, text in (tree | _files(links.files, root, folder)).items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return len(tree)


def _files(paths: Iterable[str], root: Path, folder: Path) -> dict[str, str]:
    """Pages that show files; pictures and the files themselves are copied."""
    shown = {}
    for path in sorted(paths):
        if path.endswith(PICTURES):
            target = folder / place_of(path)
        else:
            shown[shown_place(path)] = shown_file(root / path, path)
            target = folder / "files" / path
        if (root / path).is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, target)
    if missing := [path for path in paths if not (root / path).exists()]:
        raise FileNotFoundError(", ".join(missing))
    return shown


def _index(each: Placed, tree: Mapping[str, str]) -> str:
    """A section's first page: its own where it has one, or what it is and a line a page."""
    if own := tree.get(place := f"{each.section.key}/index.md"):
        pages = [page for group in each.groups for page in group.pages if place_of(page) != place]
        return f"{own}\n{chr(10).join(_toctree(Group('', tuple(pages))))}\n"
    lines = [f"# {each.section.title}", "", each.section.text, ""]
    for group in each.groups:
        lines += [f"## {group.title}", ""] if group.title else []
        lines += _described(group, each.section.key, tree)
        lines += [*_toctree(group), ""]
    return "\n".join(lines) + "\n"


def _described(group: Group, key: str, tree: Mapping[str, str]) -> list[str]:
    rows = []
    for page in group.pages:
        place = place_of(page)
        text = tree[place]
        rows.append(f"[{title_of(text)}]({relpath(place, key)})\n: {first_sentence(text)}\n")
    return rows


def _toctree(group: Group) -> list[str]:
    caption = [f":caption: {group.title}"] if group.title else []
    places = [f"/{place_of(page)}".removesuffix(".md") for page in group.pages]
    return ["```{toctree}", ":hidden:", ":maxdepth: 1", *caption, "", *places, "```"]


def _front(readme: str, navigation: tuple[Placed, ...], tree: Mapping[str, str]) -> str:
    """The README, with the tutorials before its second heading."""
    head, mark, rest = readme.partition("\n## ")
    cards = [_card(place, tree[place]) for place in map(place_of, TUTORIALS) if place in tree]
    shown = "\n".join(["", "::::{container} cards", *cards, "::::", ""]) if cards else ""
    sections = [f"{each.section.key}/index" for each in navigation]
    tail = ["", "```{toctree}", ":hidden:", ":maxdepth: 2", "", *sections, "```", ""]
    return f"{head}{shown}{mark}{rest}" + "\n".join(tail)


def _card(place: str, text: str) -> str:
    return (
        f":::{{container}} card\n**[{title_of(text)}]({place})**\n\n{first_sentence(text)}\n:::\n"
    )


if __name__ == "__main__":
    sys.stdout.write(f"{stage(Path(sys.argv[1]))} pages\n")
