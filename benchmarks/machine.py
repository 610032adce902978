"""The machine and the versions behind a measurement, to stand beside its numbers."""

from bubbleproof.reference_exec.evidence.machine_versions import PACKAGES, Machine, this_machine

__all__ = ["PACKAGES", "Machine", "this_machine"]
