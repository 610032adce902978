"""Commands that run on torch: replays and profiles."""
