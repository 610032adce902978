"""Why ranks are idle: a cause for every idle tick, and the critical path (design.md §2).

``idle_stretches(problem, schedule)`` cuts the idle time of every rank into stretches, each with one
cause; ``critical_path(problem, schedule)`` leads from the first start to the last end.
"""

from bubbleproof.theory.idle.critical_path import PathStep as PathStep
from bubbleproof.theory.idle.critical_path import critical_path as critical_path
from bubbleproof.theory.idle.critical_path import critical_tasks as critical_tasks
from bubbleproof.theory.idle.idle_causes import IdleCause as IdleCause
from bubbleproof.theory.idle.idle_causes import IdleStretch as IdleStretch
from bubbleproof.theory.idle.idle_causes import IdleStretches as IdleStretches
from bubbleproof.theory.idle.idle_stretches import idle_stretches as idle_stretches
