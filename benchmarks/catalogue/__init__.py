"""The catalogue of families: a page each, and an index (``__main__``)."""
