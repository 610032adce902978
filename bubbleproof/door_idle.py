"""``idle`` at the door (``import bubbleproof as bp``): why ranks compute nothing, tick by tick.

>>> import bubbleproof as bp
>>> found = bp.idle(bp.family("1f1b")(p=2, m=3))
>>> found
<IdleStretches: 5 on 2 ranks; warm-up 1, drain 2, order 1, input 2>
>>> print(found.at(0, 3).sentence)
0B0 waits for 1B0 of rank 1 over link 1>0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.door_calls import door_function
from bubbleproof.door_given import pair

if TYPE_CHECKING:
    from bubbleproof.theory.idle import IdleStretches


@door_function
def idle(problem: object, schedule: object = None) -> IdleStretches:
    """Why each rank is idle: every idle tick has one cause (docs/guide/design.md §2).

    Parameters
    ----------
    problem, schedule
        As ``check`` takes them. What ``replay`` gave may stand in the schedule's place, after what
        was replayed: then the causes are of what ran, in microseconds, and ``order`` is also the
        time that the executor took between two actions.

    Returns
    -------
    IdleStretches
        An ``IdleStretch`` for each stretch of time, by rank and tick: ``rank``, ``from_tick``,
        ``to_tick``, ``cause`` (an ``IdleCause``), ``action``, ``of_action``, ``of_rank``, ``link``
        and all of it in a ``sentence``. ``at(rank, tick)`` is the one at a tick,
        ``ticks_by_cause(rank)`` the sums, which add up to the rank's ``idle_ticks``;
        ``critical_path`` are the tasks that make the schedule as long as it is. The columns are
        numpy's, for drawings of many.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also where a rank does two things at once.
    """
    from bubbleproof.theory.idle import idle_stretches

    if hasattr(schedule, "traces"):  # a replay's report
        from bubbleproof.reference_exec.evidence.measured import measured_idle

        given, found, _ = pair(problem, None, asker="idle")
        return measured_idle(given, found, schedule.traces)
    given, found, _ = pair(problem, schedule, asker="idle")
    return idle_stretches(given, found)
