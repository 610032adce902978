"""Programs: with messages, by rank, and how long they run."""
