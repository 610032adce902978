"""How orders are found and lengthened: list scheduling, and periods that repeat."""
