"""What the literature says of schedules, decided: claims and theorems."""

if __name__ == "papers":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.papers: papers/ is one with it")
