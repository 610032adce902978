"""Mutants that mean the same as the code: (file, function, change) and why no test can kill them.

An entry that is no mutant of the tree any more is an error.
"""

from __future__ import annotations

_WIDER = "a wider span of times leaves the order as it is"
_EITHER = "the packed key fits up to there, and both ways of sorting give one order"
_NOTHING = "a change by 0 may stand anywhere in its instant"
_FILLED = "what fills up a row to the width of the others is the same in all rows of its kind"
_OUTSIDE = "numbers of tasks outside stay apart, and the same edge's other row says if it is inside"
_CERTIFICATES = "verify/certificates/"
_INDEX = _CERTIFICATES + "index_order.py"
_CHAINS = _CERTIFICATES + "chains.py"
SAME: dict[tuple[str, str, str], str] = {
    (
        "verify/certificates/chains.py",
        "is_too_full",
        "return False -> return None",
    ): "who asks takes None and False alike",
    (
        "theory/pipelines/shapes/few_candidates.py",
        "num_cuts",
        "layers - total -> layers + total",
    ): "what goes beyond the layers never comes back to them, and is not counted",
    (
        "verify/communication/steps.py",
        "Steps._misplaced",
        "recv[0] > consumer != NONE -> recv[0] >= consumer != NONE",
    ): "two actions do not stand in one row",
    ("verify/certificates/drup_replay.py", "DrupReplay.learn", "2 -> 3 (no. 2)"): (
        "a third literal that is watched too is visited more often, and leads to nothing else"
    ),
    (
        "verify/certificates/drup_replay.py",
        "DrupReplay._settle",
        "self.ends[o[2]] < o[3] and (not self.is_false(o[2:])) -> "
        "self.ends[o[2]] < o[3] or not self.is_false(o[2:])",
    ): "a decided option that is kept says what its arc says, or what is known",
    (
        "verify/certificates/drup_replay.py",
        "DrupReplay._is_before",
        "0 -> 1",
    ): "no end comes near 2**80",
    ("verify/certificates/drup_replay.py", "DrupReplay._add_pair", "1 -> 2"): (
        "of an order only 0 and 1 are told apart, whatever lies above"
    ),
    (
        "theory/pipelines/programs/lowering.py",
        "_depth",
        "0 -> 1",
    ): "rows that are all on one level tie on any level",
    ("theory/pipelines/sharding.py", "visits", "1 -> 2"): "a rank without stages has no visits",
    ("theory/model/memory.py", "_by_store_and_time", "2 -> 3"): (
        "twice and three times the key leave room for 0 and 1 alike"
    ),
    (
        "theory/model/memory.py",
        "_by_store_and_time",
        "store * span + time - origin -> store * span + time + origin",
    ): "all keys are shifted by one number",
    ("verify/explain/schedules.py", "_beyond_memory", "0 -> 1"): (
        "a level of 0 is within every capacity, and is never asked about"
    ),
    ("verify/explain/schedules.py", "_beyond_memory", "level < 0 -> level <= 0"): (
        "a level of 0 is within every capacity, and is never asked about"
    ),
    ("theory/model/actions.py", "ActionTable.require_actions", "1 -> 2"): (
        "the first wrong row raises"
    ),
    ("theory/model/measures.py", "measure_rows", "first <= last -> first < last"): (
        "a rank whose first start is its last end has a span of 0 either way"
    ),
    ("theory/model/memory.py", "_by_store_and_time", "0 -> 1"): _WIDER,
    ("theory/model/memory.py", "_by_store_and_time", "0 -> 1 (no. 2)"): _WIDER,
    ("theory/model/memory.py", "_by_store_and_time", "0 -> 1 (no. 3)"): _WIDER,
    ("theory/model/memory.py", "_by_store_and_time", "1 -> 2"): _WIDER,
    ("theory/model/memory.py", "_by_store_and_time", "1 -> 2 (no. 2)"): _EITHER,
    ("theory/model/memory.py", "_by_store_and_time", "1 -> 2 (no. 3)"): _EITHER,
    ("theory/model/memory.py", "_by_store_and_time", "1 << 61 -> 1 >> 61"): _EITHER,
    ("theory/model/memory.py", "_by_store_and_time", "61 -> 62"): _EITHER,
    (
        "theory/model/memory.py",
        "_by_store_and_time",
        "span * (int(store.max(initial=0)) + 1) < 1 << 61 -> "
        "span * (int(store.max(initial=0)) + 1) <= 1 << 61",
    ): _EITHER,
    ("theory/model/memory.py", "_by_store_and_time", "delta > 0 -> delta >= 0"): _NOTHING,
    ("theory/model/memory.py", "_by_store_and_time", "delta > 0 -> delta >= 0 (no. 2)"): _NOTHING,
    (
        "verify/communication/evict_load.py",
        "PeerTransfers._in_order",
        "post < self._row_of[forward] -> post <= self._row_of[forward]",
    ): "two actions do not stand in one row",
    (
        "verify/communication/evict_load.py",
        "PeerTransfers._in_order",
        "post < evicted.wait[transfer.peer] -> post <= evicted.wait[transfer.peer]",
    ): "two actions do not stand in one row",
    ("verify/dataflow/activations.py", "Activations.of_backward", "0 -> 1"): (
        "every microbatch that has a backward has a last slice"
    ),
    (
        _CHAINS,
        "ForcedOrder._paths",
        "np.isin(edges.before, self.tasks) & np.isin(edges.after, self.tasks) -> "
        "np.isin(edges.before, self.tasks) | np.isin(edges.after, self.tasks)",
    ): "the tasks given are whole microbatches, and an edge counts within one alone",
    (_INDEX, "index_order", "0 -> 1"): "any microbatch will do, if names have the same one",
    (_INDEX, "index_order", "0 -> 1 (no. 3)"): (
        "a task's row ends like that of a resource only if its partner is that of stage 0 and "
        "microbatch 0, which one task alone has"
    ),
    **{(_INDEX, "index_order", f"0 -> 1 (no. {n})"): _FILLED for n in (4, 5, 6, 7)},
    **{
        (_INDEX, "index_order", change): _OUTSIDE
        for change in (
            "-1 -> 1",
            "-1 -> 1 (no. 2)",
            "1 -> 2 (no. 3)",
            "1 -> 2 (no. 4)",
            "-1 - edges.before -> -1 + edges.before",
            "-1 - edges.after -> -1 + edges.after",
        )
    },
    (_INDEX, "index_order", "2 -> 3"): (
        "an edge inside is said twice, and one to a task outside has a number below 0, as no "
        "change has"
    ),
    (_INDEX, "index_order", "4 -> 5"): "any number that no other kind of row has",
    (_INDEX, "index_order", "1 -> 2 (no. 11)"): (
        "numpy takes any number below 0 for the length that is left to it"
    ),
    (_INDEX, "_waits", "0 * after.ravel() -> 0 // after.ravel()"): "a lag of 0 either way",
    **{
        (_CERTIFICATES + "one_store.py", "most_done", change): "a change by 0 releases nothing"
        for change in ("0 -> 1 (no. 5)", "change < 0 -> change <= 0")
    },
    (_CERTIFICATES + "volume.py", "volume_refusal", "0 -> 1 (no. 2)"): (
        "paths for the makespan ask for no resource"
    ),
    (
        _CERTIFICATES + "drup_replay.py",
        "DrupReplay.reject",
        "return False -> return None",
    ): "who asks takes None and False alike",
    ("verify/candidates/bundle.py", "_legal", "continue -> pass"): "nothing follows in the loop",
    (
        _CERTIFICATES + "drup_replay.py",
        "DrupReplay.learn",
        "self.ends[node] < value -> self.ends[node] <= value",
    ): "a clause of which one literal holds for good leads to nothing",
    (_CERTIFICATES + "drup_replay.py", "DrupReplay._visit", "i > 1 -> i >= 1"): (
        "the second literal is false there, and false ones are passed over"
    ),
    (_CERTIFICATES + "drup_replay.py", "DrupReplay.__init__", "-1 -> 1"): (
        "the order in which ends are raised changes none of them"
    ),
    (_CERTIFICATES + "drup_replay.py", "DrupReplay.learn", "self.trail.clear() -> pass"): (
        "what is never undone is remembered in vain"
    ),
    (
        _CERTIFICATES + "drup_replay.py",
        "DrupReplay._settle",
        "self.ends[o[2]] < o[3] -> self.ends[o[2]] <= o[3]",
    ): "a decided option that is kept says what its arc says",
    (
        _CERTIFICATES + "drup_replay.py",
        "DrupReplay._visit",
        "self.ends[clause[0][0]] < clause[0][1] -> self.ends[clause[0][0]] <= clause[0][1]",
    ): "a clause of which one literal holds may watch any two",
}
