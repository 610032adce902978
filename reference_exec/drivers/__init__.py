"""How ranks run together: in one process, in processes on gloo, or under torchrun."""
