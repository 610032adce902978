"""T-Pipe's families: rounds of chunks, recomputed or off-loaded."""
