"""The shapes that one training step may take."""
