"""For a framework's own tests: every schedule that a generator emits passes every rule.

``strategies`` draws training steps (with hypothesis, of the extra ``test``), ``assertions`` judges
what a generator makes of them, and ``plugin`` gives pytest the assertions as the fixtures
``assert_valid`` and ``assert_valid_file``, and ``gloo_pool``, the processes of a session in which
many schedules are replayed on gloo. A property test in whole:

>>> from hypothesis import given, settings
>>> from bubbleproof.testing import strategies
>>> from bubbleproof.testing.assertions import assert_valid
>>> from bubbleproof.theory.model.schedule import Program
>>> def all_forwards_first(pipeline):
...     orders = []
...     for rank in range(pipeline.num_ranks):
...         forward = [f"{rank}F{j}" for j in range(pipeline.num_microbatches)]
...         backward = [f"{rank}B{j}" for j in range(pipeline.num_microbatches)]
...         orders.append(forward + backward)
...     return Program.from_orders(orders)
>>> sizes = strategies.shapes(most_chunks=1, most_slices=1)
>>> @settings(max_examples=20, derandomize=True, database=None, deadline=None)
... @given(strategies.pipelines(split=False, shape=sizes, placements=["loop"]))
... def test_every_schedule_is_valid(pipeline):
...     assert_valid(pipeline, all_forwards_first(pipeline))
>>> test_every_schedule_is_valid()

A schedule that breaks a rule fails with the counterexample, after a table of all rules. Here rank 0
has room for one activation and takes a second one:

>>> from bubbleproof.theory.pipelines.pipeline import Pipeline
>>> step = Pipeline(num_ranks=2, num_microbatches=2, capacity=(1, None))
>>> try:
...     assert_valid(step, all_forwards_first(step))
... except AssertionError as error:
...     print(error.verdict.violations[0].picture)
    time  0 .. 6 ticks
  rank 0  |0F0--[0F1]                   |0B0--------
                ^   ^
  rank 1        |1F0--|1F1--|1B0--------|1B1--------

What stands in lists needs no pipeline, and an object of torch is taken as it is:

>>> import bubbleproof as bp
>>> bp.testing.assert_valid([["0F0", "0B0"], ["1F0", "1B0"]])
<Verdict: holds, makespan 6>

Nothing is imported by this package itself: a test asks for what it needs, and the assertions are
loaded when they are first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubbleproof.testing.assertions import InvalidSchedule, assert_valid, assert_valid_file

__all__ = ["InvalidSchedule", "assert_valid", "assert_valid_file"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"bubbleproof.testing has no {name!r}; it has {' '.join(__all__)}")
    found: object = getattr(import_module("bubbleproof.testing.assertions"), name)
    globals()[name] = found
    return found
