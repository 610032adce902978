"""Options of a plan that looks at every candidate once, however slow the machine, and no more."""

from __future__ import annotations

from bubbleproof.planners import PlanOptions
from proofs_tests.patience import PATIENCE

FIRST_LOOKS = PlanOptions(time_limit=PATIENCE, work=0.01, threads=1)
