"""What a link of a page in the repository is in the site.

A link to a page leads to that page, one to a picture to a copy of it, and one to any other file or
folder of the repository to a page that shows it. A link that leads nowhere is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

PICTURES = (".svg", ".png")
OUTSIDE = ("http://", "https://", "mailto:")
_LINK = re.compile(r"(?P<code>`+[^`]*`+)|(?P<open>\]\()(?P<target>[^()\s]+)(?=\))")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_PLACE = re.compile(r'<a id="([\w.-]+)"></a>')
_GONE = "](gone"
_FORGIVEN = re.compile(r"\[([^\]]*)\]\(gone\)")
_SINGLE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}


class BrokenLinkError(ValueError):
    """Links that lead nowhere, a line each."""


def place_of(path: str) -> str:
    """Where a page or a picture of the repository stands in the site's source.

    >>> place_of("docs/guide/design.md"), place_of("README.md")
    ('guide/design.md', 'index.md')
    >>> place_of("docs/guide/pictures/README.md")
    'guide/pictures/index.md'
    """
    if path in _SINGLE:
        return _SINGLE[path]
    inner = path.removeprefix("docs/")
    return f"{inner.removesuffix('README.md')}index.md" if inner.endswith("/README.md") else inner


def shown_place(path: str) -> str:
    """Where the page that shows a file or a folder stands."""
    return f"files/{path}.md"


@dataclass(slots=True)
class LinkStager:
    """Rewrites pages' links, and remembers which files they need and which lead nowhere.

    ``made`` are pages of the site that the repository does not have, by their place. Where
    ``forgives`` names a page, its lost links become text: a changelog names what is gone since.
    """

    root: Path
    forgives: frozenset[str] = frozenset({"CHANGELOG.md"})
    files: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def staged(self, text: str, page: str) -> str:
        """The text of a page of the repository with its links as the site has them."""
        return "".join(
            line if is_code else self._line(line, page) for line, is_code in lines_and_code(text)
        )

    def _line(self, line: str, page: str) -> str:
        if _PLACE.fullmatch(line.strip()):
            return _PLACE.sub(r"(\1)=", line)  # a target, in the words of MyST
        return _FORGIVEN.sub(r"\1", _LINK.sub(partial(self._staged, page), line))

    def _staged(self, page: str, match: re.Match[str]) -> str:
        target = match["target"]
        if match["code"] or target.startswith((*OUTSIDE, "#")):
            return match[0]
        path, mark, anchor = target.partition("#")
        found = normpath(PurePosixPath(page).parent / path)
        if found.startswith("..") or not (self.root / found).exists():
            if page not in self.forgives:
                self.broken.append(f"{page}: {target}")
                return match[0]
            return _GONE
        if anchor and anchor not in self._headings(found):
            self.broken.append(f"{page}: {target}, a heading that is not there")
        if anchor and anchor in _places((self.root / found).read_text("utf-8")):
            return f"](#{anchor}"  # Sphinx knows such a place by its name alone
        here = PurePosixPath(place_of(page)).parent
        return f"]({relpath(self._place(found), here)}{mark}{anchor}"

    def _place(self, found: str) -> str:
        """The place in the site of what a link leads to."""
        if found.endswith(".md"):
            return place_of(found)
        self.files.add(found)
        return place_of(found) if found.endswith(PICTURES) else shown_place(found)

    def _headings(self, found: str) -> frozenset[str]:
        """The anchors of a page: its headings', and those that it sets."""
        text = (self.root / found).read_text("utf-8")
        return anchors(text) | _places(text)

    def refuse_broken(self) -> None:
        """Raise ``BrokenLinkError`` where links lead nowhere."""
        if self.broken:
            raise BrokenLinkError("\n".join(self.broken))


def lines_and_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is part of a fenced block."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        is_edge = found is not None and (not fence or found[1].startswith(fence))
        yield line, bool(fence) or is_edge
        if found is not None and is_edge:
            fence = "" if fence else found[1]


@cache
def anchors(text: str) -> frozenset[str]:
    """What links call the headings of a page.

    >>> sorted(anchors("# A title\\n## 4. What is *trusted*\\n"))
    ['4-what-is-trusted', 'a-title']
    """
    heads = (
        line.lstrip("#").strip().lower()
        for line, is_code in lines_and_code(text)
        if line.startswith("#") and not is_code
    )
    return frozenset(re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads)


@cache
def _places(text: str) -> frozenset[str]:
    """The names of the places that a page sets by itself."""
    return frozenset(_PLACE.findall(text))
