"""What a built site must be: whole, and complete without a network.

    python -m website.site_checks FOLDER

Every page is read: a script, style, picture, font or frame from elsewhere is a finding, as is a
link to a page, a file or a heading that is not there. Links that a reader follows may lead away.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # what a browser loads by itself: (tag, attribute)
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"),
    ("source", "srcset"), ("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src"),
    ("use", "href"), ("image", "href"),
}  # fmt: skip
_ASSETS = "_static"  # a theme keeps templates there, too
NAVIGATED = {"next", "prev", "index", "search", "canonical", "author", "license"}  # of <link>
_AWAY = re.compile(r"^\s*(https?:)?//")
_STYLE = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])\s*((?:https?:)?//[^'")\s]+)""")


@dataclass(slots=True)
class _Page(HTMLParser):
    """What a page loads, where its links lead, and the places in it that links can name."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    _is_style: bool = False

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [value for name, value in given.items() if (tag, name) in LOADED]
        if tag == "link" and not NAVIGATED & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += _STYLE.findall(given.get("style", ""))
        self._is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.loads += _STYLE.findall(data)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def findings(site: Path) -> list[str]:
    """A line for each thing that is wrong; none for a whole site."""
    paths = (each for each in sorted(site.rglob("*.html")) if _ASSETS not in each.parts)
    pages = {path: _read(path) for path in paths}
    found = [] if pages else [f"{site} has no page"]
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found += [f"{name} loads {each} from elsewhere" for each in page.loads if _AWAY.match(each)]
        found += [f"{name} links to {each}" for each in _lost(path, page, pages)]
    for path in sorted(site.rglob("*.css")):
        away = _STYLE.findall(path.read_text("utf-8"))
        found += [f"{path.relative_to(site)} loads {each} from elsewhere" for each in away]
    return found


def _lost(path: Path, page: _Page, pages: dict[Path, _Page]) -> Iterator[str]:
    """The links and loaded files of a page that are not there."""
    for target in [*page.links, *page.loads]:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or target in ("", "#"):
            continue
        inner = Path(unquote(parts.path))
        there = path if not parts.path else (path.parent / inner).resolve()
        if not there.exists():
            yield f"{target}, which is not there"
        elif (
            parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].places
        ):
            yield f"{target}, a heading that is not there"


def main(site: Path) -> int:
    """Print the findings; 1 where there are any."""
    found = findings(site.resolve())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
