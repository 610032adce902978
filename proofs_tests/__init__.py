"""The tests, room by room; ``strategies`` is the public module of hypothesis strategies."""
