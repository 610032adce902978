"""The models that replays train, and their closed-form bytes."""
