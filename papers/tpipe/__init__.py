"""T-Pipe: claims with their readings, theorems about its orders, its planner and formulas."""

from bubbleproof.papers.tpipe import tpipe_formulas as tpipe_formulas
