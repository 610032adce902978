"""The readers that hand-over asks, beside a wheel on a CPU: reads rows, prints answers.

Runs where ``wheels`` has unpacked a wheel. Reads ``[[script, folder, [word, ...]], ...]``; the
script is one of ``hand_over.launched`` that has a function ``asked``, called in the folder.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from pathlib import Path
from runpy import run_path

LAUNCHED = Path(__file__).parents[2] / "bubbleproof" / "hand_over" / "launched"


def main() -> None:
    """Answer what stands in the standard input."""
    warnings.simplefilter("ignore")
    run_path(str(Path(__file__).with_name("stand_in.py")))["stand_in"]()
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, "")
    answers = []
    for script, folder, (cards, *words) in json.load(sys.stdin):
        os.chdir(folder)
        sys.modules.pop("planned_model", None)
        given = words if script == "read_torchtitan" else words[0]
        answers.append(run_path(str(LAUNCHED / f"{script}.py"))["asked"](int(cards), given))
    sys.stdout.write(f"\n{json.dumps(answers)}\n")


if __name__ == "__main__":
    main()
