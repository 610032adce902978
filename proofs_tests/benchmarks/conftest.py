"""Makes ``benchmarks`` importable where pytest was not started as ``python -m pytest``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)
