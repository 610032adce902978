"""State, solve, prove and run pipeline-parallel training schedules.

Start with ``theory`` (what a schedule is) and ``verify`` (whether one is right). This module
imports neither torch nor a solver.
"""
