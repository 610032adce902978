"""The built site as a reader sees it, and its search without a network.

    python -m benchmarks.site_pictures SITE FOLDER [PAGE ...]

Takes pictures of pages in light, in dark and as on a phone, from files, and asks the search page
for a word. Fails where a page asks for anything that is not a file of the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.browser import Browser

PAGES = ("index", "guide/design", "api/check", "measured/index")
WORD = "deadlock"
LOOKS = {"light": (1400, 1000, False), "dark": (1400, 1000, True), "phone": (400, 860, False)}
_ASKED = "performance.getEntriesByType('resource').map(each => each.name)"
_FOUND = """new Promise(done => { let last = -1; (function wait() {
  const now = document.querySelectorAll('#search-results ul.search li').length;
  if (now && now === last) done(now); else { last = now; setTimeout(wait, 300); } })(); })"""


def photograph_site(browser: Browser, site: Path, folder: Path, page: str) -> list[str]:
    """Write a page's pictures; gives what it asked for outside the site."""
    away: list[str] = []
    for look, (width, height, is_dark) in LOOKS.items():
        browser.resize(width, height, ratio=2 if look == "phone" else 1, is_phone=look == "phone")
        browser.darken(is_dark)
        browser.open(site / f"{page}.html")
        asked = browser.run(_ASKED)
        assert isinstance(asked, list)
        away += [each for each in asked if not str(each).startswith(("file:", "data:"))]
        picture = browser.screenshot(is_whole=False)
        (folder / f"{page.replace('/', '-')}-{look}.png").write_bytes(picture)
    return away


def found_by_search(browser: Browser, site: Path, word: str) -> int:
    """How many pages the site's own search finds, read from files."""
    browser.open(f"{(site / 'search.html').resolve().as_uri()}?q={word}")
    found = browser.run(_FOUND)
    assert isinstance(found, int)
    return found


def main(site: Path, folder: Path, pages: tuple[str, ...]) -> int:
    """Write the pictures; 1 where a page asks for something elsewhere or nothing is found."""
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        away = [each for page in pages for each in photograph_site(browser, site, folder, page)]
        found = found_by_search(browser, site, WORD)
        (folder / "search.png").write_bytes(browser.screenshot(is_whole=False))
    sys.stdout.write("".join(f"asked for {each}\n" for each in away))
    sys.stdout.write(f"{found} pages found for {WORD!r}\n")
    return 1 if away or not found else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(Path(words[0]), Path(words[1]), tuple(words[2:]) or PAGES))
