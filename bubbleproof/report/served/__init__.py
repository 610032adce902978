"""The page of ``serve``: its text, its style and its script."""
