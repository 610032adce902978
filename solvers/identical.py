"""Problems whose microbatches are all identical, which some searches need.

Lengthened and repeated schedules (``large``, ``modulo``) and models without names (``choices``)
take any microbatch for any other; where there are several groups
(``verify.certificates.index_order``) they are not tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Ints
from bubbleproof.verify.certificates.index_order import IndexOrder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdenticalClasses:
    """``members[c, j]`` is the task of class c for microbatch j, and there is no other task."""

    order: IndexOrder
    members: Ints

    @property
    def num_microbatches(self) -> int:
        return int(self.members.shape[1])


def identical(order: IndexOrder) -> IdenticalClasses | None:
    """The one group of a problem, its microbatches 0, 1, ..., or None where there is more."""
    members, actions = order.groups[0], order.problem.actions
    if len(order.groups) > 1 or not members.size or (actions.partner_stage != NONE).any():
        return None
    if (actions.microbatch[members] != np.arange(members.shape[1])).any():
        return None
    return IdenticalClasses(order=order, members=members)
