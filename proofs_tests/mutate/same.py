"""Mutants that mean the same as the code: (file, function, change) and why no test can kill them.

An entry that is no mutant of the tree any more is an error.
"""

from __future__ import annotations

_ONE_LENGTH = "the columns zipped are of one table, which checks that they are of one length"
SAME: dict[tuple[str, str, str], str] = {
    ("theory/model/actions.py", "ActionTable._of_columns", "True -> False"): _ONE_LENGTH,
    ("verify/spec.py", "plain_problem", "True -> False"): _ONE_LENGTH,
    ("verify/spec.py", "measures", "True -> False"): "each store has a base load and a peak",
    ("verify/spec.py", "plain_schedule", "True -> False"): _ONE_LENGTH,
    ("verify/spec.py", "_rows", "True -> False"): _ONE_LENGTH,
    (
        "verify/certificates/chains.py",
        "is_too_full",
        "return False -> return None",
    ): "who asks takes None and False alike",
    ("theory/pipelines/pipeline_problem.py", "_ProblemBuilder._static_loads", "True -> False"): (
        "both are of one length: a pipeline has a rank and a weight for each stage"
    ),
    ("verify/certificates/drup_replay.py", "Replay.learn", "2 -> 3 (no. 2)"): (
        "a third literal that is watched too is visited more often, and leads to nothing else"
    ),
    (
        "verify/certificates/drup_replay.py",
        "Replay._settle",
        "self.ends[o[2]] < o[3] and (not self.is_false(o[2:])) -> "
        "self.ends[o[2]] < o[3] or not self.is_false(o[2:])",
    ): "a decided option that is kept says what its arc says, or what is known",
    (
        "verify/certificates/drup_replay.py",
        "Replay._is_before",
        "0 -> 1",
    ): "no end comes near 2**80",
    ("verify/certificates/drup_replay.py", "Replay._add_pair", "1 -> 2"): (
        "of an order only 0 and 1 are told apart, whatever lies above"
    ),
    (
        "theory/pipelines/lowering.py",
        "_depth",
        "0 -> 1",
    ): "rows that are all on one level tie on any level",
    ("theory/pipelines/visits.py", "visits", "1 -> 2"): "a rank without stages has no visits",
    ("theory/model/memory.py", "_by_store_and_time", "2 -> 3"): (
        "twice and three times the key leave room for 0 and 1 alike"
    ),
    (
        "theory/model/memory.py",
        "_by_store_and_time",
        "store * span + time - origin -> store * span + time + origin",
    ): "all keys are shifted by one number",
    ("verify/communication/training_exchanges.py", "_holders", "True -> False"): _ONE_LENGTH,
    ("verify/explain/schedules.py", "_beyond_memory", "0 -> 1"): (
        "a level of 0 is within every capacity, and is never asked about"
    ),
    ("verify/explain/schedules.py", "_beyond_memory", "level < 0 -> level <= 0"): (
        "a level of 0 is within every capacity, and is never asked about"
    ),
}
