if __name__ == "theory":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.theory: theory/ is one with it")
