"""The PuLP engine on CBC instead of HiGHS; see ``pulp_milp``."""

from bubbleproof.solvers.engines.pulp_milp import search_with_cbc as search

__all__ = ["search"]
