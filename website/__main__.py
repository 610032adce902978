"""``python -m website FOLDER``: stage the pages, build them with warnings as errors, check them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from website.site_checks import findings
from website.staging import stage
from website.theorem_pages import theorem_page

HERE = Path(__file__).resolve().parent
JOBS = "2"


def built(source: Path, target: Path) -> int:
    """Sphinx's exit status; a warning is an error, and all of them are told."""
    words = ["-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-j", JOBS, "-c", str(HERE)]
    return subprocess.run(
        [sys.executable, *words, "-b", "html", str(source), str(target)], check=False
    ).returncode


def main(target: Path) -> int:
    """0 where a whole site stands in the folder ``target``."""
    with TemporaryDirectory() as name:
        source = Path(name) / "source"
        number = stage(source, theorem_page())
        if status := built(source, target):
            return status
    found = findings(target)
    sys.stdout.write("".join(f"{line}\n" for line in found) or f"{number} pages: {target}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")))
