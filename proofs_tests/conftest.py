"""Hypothesis settings of the whole suite: the same examples on every run, no deadline.

``HYPOTHESIS_PROFILE=explore`` draws fresh and more examples instead. ``benchmarks`` is importable
also where pytest was not started as ``python -m pytest``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.append(ROOT)

settings.register_profile(
    "proof",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],  # the machine may be shared
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "proof"))
