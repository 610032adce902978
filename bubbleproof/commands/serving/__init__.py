"""``bubbleproof serve``: a schedule that one shapes by hand while the checker judges."""
