"""Runs verified schedules on torch and compares gradients and peak bytes with what was promised.

``replay.replay(problem, schedule, spec.ModelSpec(...))`` gives a ``report.ReplayReport``. What is
known without running (``spec``, ``footprint``, ``plan``, ``report``) loads no torch.
"""
