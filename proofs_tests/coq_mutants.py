"""False statements of ``proofs/`` by what is wrong: a file, what stands there, what instead."""

from __future__ import annotations

from proofs_tests.coq_bound_mutants import BOUND_MUTANTS
from proofs_tests.coq_frontier_mutants import FRONTIER_MUTANTS

LENGTH = "(Z.of_nat m + Z.of_nat p - 1) * (tF + tB)"
BUSY = "busy positive (ticks k) (crowd c) + least_tail c)."
MUTANTS = {
    "a bound raised by one": ("Pipeline.v", LENGTH, f"{LENGTH} + 1"),
    "no microbatches": ("Pipeline.v", "(1 <= m)%nat", "(0 <= m)%nat"),
    "no ranks": ("Pipeline.v", "(1 <= p)%nat", "(0 <= p)%nat"),
    "1F1B faster by one": ("OneF1B.v", LENGTH, f"{LENGTH} - 1"),
    "1F1B with one forward more ahead": ("OneF1B.v", "Nat.ltb j (p - i)", "Nat.ltb j (p - i + 1)"),
    "a forward of -1 ticks": ("OneF1B.v", "0 <= tF", "-1 <= tF"),
    "a backward of -1 ticks": ("OneF1B.v", "0 <= tB", "-1 <= tB"),
    "GPipe faster by one": ("GPipe.v", LENGTH, f"{LENGTH} - 1"),
    "a certificate's claim raised by one": ("OneMachine.v", BUSY, f"{BUSY[:-2]} + 1)."),
    "tasks counted twice": ("OneMachine.v", "distinct (crowd c) (Map.empty unit) &&", "true &&"),
    "an edge that is no task's": ("Instances.v", "if known k a && known k b", "if known k b"),
    "prices that prove one tick more": (
        "PricesSound.v",
        "least_makespan c <= last - first.",
        "least_makespan c < last - first.",
    ),
    "the least of a row a tick later": ("PriceTables.v", "(i <= j)%nat ->", "(i <= j + 1)%nat ->"),
    "a store's change paid a tick late": (
        "PriceTables.v",
        "later m i x = total m - total (firstn (Z.to_nat (x - i)) m)",
        "later m i x = total m - total (firstn (Z.to_nat (x - i + 1)) m)",
    ),
    "tasks of a class that differ": (
        "Groups.v",
        "ticks k t =? ticks k c",
        "ticks k t =? ticks k t",
    ),
    "an edge of one microbatch, not found in the next": ("Groups.v", "Nat.ltb (S j) n", "false"),
    "events of no task": ("InOrder.v", "well_stored (index_of l) stores &&", "true &&"),
    "more held within a life": (
        "Lifecycles.v",
        "kept_at_least f <= level j now.",
        "kept_at_least f < level j now.",
    ),
    "a memory edge a tick later": (
        "FreeEdges.v",
        "In (a, b, lag) (all_memory_edges stores lives) ->\n  s a + ticks k a + lag <= s b.",
        "In (a, b, lag) (all_memory_edges stores lives) ->\n  s a + ticks k a + lag < s b.",
    ),
    "one begun less than there is room for": (
        "OneStore.v",
        "Z.max 0 ((spare r + all_freed) / a)",
        "Z.max 0 ((spare r + all_freed) / a - 1)",
    ),
    "a release not looked at": (
        "OneStore.v",
        "then Z.max 0 (- at_finish r t) else 0",
        "then 0 else 0",
    ),
    "a moment passed a tick later": ("OneStore.v", "n + more <? begin", "n + more <? begin - 1"),
    "a store's claim raised by one": (
        "OneStore.v",
        "store_bound c <= last - first.\nProof.\n  intros counts l es stores c H s",
        "store_bound c < last - first.\nProof.\n  intros counts l es stores c H s",
    ),
    "ends in which all may be done": ("OneStore.v", "late <? work)", "late <? work + 1)"),
    "a rank's idle time raised by one": (
        "SpanIdle.v",
        "claim c <= span_idle ranks l (instance l es) rows.",
        "claim c < span_idle ranks l (instance l es) rows.",
    ),
    "a rank's work taken off twice": (
        "SpanIdle.v",
        "(Z.of_nat i) - work_of l (Z.of_nat i))",
        "(Z.of_nat i) - 2 * work_of l (Z.of_nat i))",
    ),
    "a rank that is none": ("SpanIdle.v", "(r <? ranks)", "(r <? ranks + 1)"),
    "a peak of tasks that take no time": (
        "OrderPeaks.v",
        "level most, (forall t, In t l -> 0 < d t) ->",
        "level most, (forall t, In t l -> 0 <= d t) ->",
    ),
    "a peak where ends acquire": (
        "OrderPeaks.v",
        "(forall t, In t l -> b t <= 0) -> in_turn s d from",
        "(forall t, In t l -> b t <= 1) -> in_turn s d from",
    ),
    "starts below 0": ("LeftShift.v", "(forall x, 0 <= s x) /\\", "(forall x, -1 <= s x) /\\"),
    "waits that are kept and a tick more": ("LeftShift.v", "s x + w <= s y.", "s x + w < s y."),
    "a volume raised by one": (
        "VolumeSound.v",
        "volume_bound c <= last - first.",
        "volume_bound c < last - first.",
    ),
    "one begun a tick late": ("VolumeSound.v", "now < a + n * d ->", "now <= a + n * d ->"),
    "more missing at the ends": (
        "Steps.v",
        "(Z.of_nat n * room - most * steps_to (Z.of_nat n)) <=",
        "(Z.of_nat n * room + 1 - most * steps_to (Z.of_nat n)) <=",
    ),
    "levels after the first not looked at": (
        "Volume.v",
        "highest (acquired f) (map change (stops f)).",
        "highest (acquired f) [].",
    ),
    "a use a tick longer": (
        "Volume.v",
        "Some (w + ticks k (pick j (finishes f)))",
        "Some (w + ticks k (pick j (finishes f)) + 1)",
    ),
    "a later start asked for": (
        "Definitions.v",
        "finish x + lag <=? start y",
        "finish x <? start y",
    ),
    "microbatches of different lengths": (
        "Exchange.v",
        "duration _ p (Member c i) = duration _ p (Member c j);",
        "duration _ p (Member c i) = duration _ p (Member c i);",
    ),
    "an edge of one microbatch alone": (
        "Exchange.v",
        "j = k /\\ forall i, (i < n)",
        "j = k /\\ forall i, (i < 0)",
    ),
    "an order asked for with a lag": (
        "Exchange.v",
        "(Member c j, Member c k, 0)",
        "(Member c j, Member c k, 1)",
    ),
    "a base load not looked at": ("Stores.v", "check_fits s (base s) &&", "true &&"),
    "a capacity not looked at": ("Stores.v", "Some c => n <=? c", "Some c => true"),
    "an order not looked at": ("AllRules.v", "(finish T p x <=? start _ y) &&", "true &&"),
    "turns that overlap": ("Packing.v", "s t + d t <= s u \\/", "s t <= s u \\/"),
    "a peak lowered by one": ("Peaks.v", "(Nat.min (p - i) m))", "(Nat.min (p - i) m) - 1)"),
    "a pair that holds one less": ("BPipe.v", "Z.of_nat p + 2 <= 2", "Z.of_nat p + 3 <= 2"),
    "transfers that never count twice": (
        "BPipe.v",
        "on_evictor now j = true /\\ on_acceptor now j = true;",
        "on_evictor now j = true;",
    ),
    "ZB-H1 faster by one": (
        "ZBH1.v",
        "(3 * Z.of_nat m + Z.of_nat p - 1) * t",
        "(3 * Z.of_nat m + Z.of_nat p - 2) * t",
    ),
    "ZB-H1 with fewer microbatches": ("ZBH1.v", "(p <= m)%nat", "(p <= S m)%nat"),
    "an order that falls": ("Orders.v", "if k <=? fst y then", "if fst y <=? k then"),
    "a wait that is no fall": ("WaitGraph.v", "-> h f < h e) -> ends", "-> h f <= h e) -> ends"),
    "someone needed who is not there": (
        "WaitGraph.v",
        "Theorem no_cycle_ends : closed ->",
        "Theorem no_cycle_ends : True ->",
    ),
    "a message that ends with the first of its starts": (
        "Stricter.v",
        "Nat.max (h (Started T (Send T k)))",
        "Nat.min (h (Started T (Send T k)))",
    ),
    "messages that need not match": (
        "Stricter.v",
        "pair_stream_is_weaker : matched launch_order ->",
        "pair_stream_is_weaker : True ->",
    ),
    "inputs that come later": (
        "OneOrder.v",
        "precedes (Compute T u) (Compute T t).\nHyp",
        "precedes (Compute T t) (Compute T u).\nHyp",
    ),
    "tasks of no ticks": (
        "Lowered.v",
        "In t (tasks _ p) -> 1 <= duration _ p t.",
        "In t (tasks _ p) -> 0 <= duration _ p t.",
    ),
    "a rank that sends to itself": (
        "OneOrder.v",
        " /\\\n                    source T home k <> target T home k",
        "",
    ),
    "an edge to what the program lacks": (
        "LeftShift.v",
        "In a (map snd program) /\\ In b (map snd program).",
        "In a (map snd program).",
    ),
    "a task that starts before the first": (
        "LeftShift.v",
        "keeps s -> (forall y, s x <= s y) ->",
        "keeps s -> 0 <= s x ->",
    ),
    "steps that are one": ("WaitGraph.v", "may l f -> e <> f ->", "may l f -> True ->"),
    "a load that sorting moves": (
        "InOrder.v",
        "= held (index_of l) s now (events _ st)) /\\",
        "= held (index_of l) s (now + 1) (events _ st)) /\\",
    ),
    "a life that may fill no store": (
        "FreeEdges.v",
        "base _ st + acquired f <= c.",
        "base _ st + acquired f < c.",
    ),
    **BOUND_MUTANTS,
    **FRONTIER_MUTANTS,
}
