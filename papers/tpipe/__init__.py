"""T-Pipe: claims with their readings, theorems about its orders, its planner and formulas."""
