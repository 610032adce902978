"""``measure`` and ``diff``: what a schedule is worth, why its ranks are idle, and what changed."""
