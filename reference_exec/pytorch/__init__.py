"""The second executor: PyTorch's own pipeline runtime on the same program."""
