(* What the theorems rest on beyond Coq's logic: nothing. Each line prints "Closed under the global
   context", and would name each axiom and each unfinished proof. *)

From Bubbleproof Require Import Definitions Stores AllRules Starts Exchange Packing
  Pipeline OneF1B GPipe Instances OneMachine PricesSound InOrder FreeEdges OneStore VolumeSound Peaks BPipe WaitGraph
  Semantics Lowered ZBH1 Orders.

Print Assumptions check_complete_iff.
Print Assumptions check_placed_iff.
Print Assumptions check_dependencies_iff.
Print Assumptions check_exclusive_iff.
Print Assumptions check_iff.
Print Assumptions check_sound.
Print Assumptions check_accepts.
Print Assumptions check_within_iff.
Print Assumptions check_within_sound.
Print Assumptions order_is_exclusive.
Print Assumptions check_memory_iff.
Print Assumptions check_ordered_iff.
Print Assumptions check_all_iff.
Print Assumptions right_is_valid.
Print Assumptions packing.
Print Assumptions timed_is_valid.
Print Assumptions valid_is_timed.
Print Assumptions starts_alike.
Print Assumptions in_index_order.
Print Assumptions exchange.
Print Assumptions one_after_another.
Print Assumptions order_is_free.
Print Assumptions load_alike.
Print Assumptions bound_on_ordered_is_one_on_all.
Print Assumptions pipeline_lower_bound.
Print Assumptions valid_1f1b.
Print Assumptions optimal_1f1b.
Print Assumptions valid_gpipe.
Print Assumptions optimal_gpipe.
Print Assumptions check_spans_iff.
Print Assumptions rows_are_a_plan.
Print Assumptions rows_lie.
Print Assumptions heads_hold.
Print Assumptions tails_hold.
Print Assumptions one_machine_bound.
Print Assumptions one_machine_sound.
Print Assumptions peak_1f1b.
Print Assumptions peak_gpipe.
Print Assumptions in_flight_waits.
Print Assumptions memory_bound.
Print Assumptions fastest_holds.
Print Assumptions no_plan_is_better.
Print Assumptions no_cycle_ends.
Print Assumptions cycle_never_happens.
Print Assumptions ends_iff_no_cycle.
Print Assumptions falling_ends.
Print Assumptions one_order_ends.
Print Assumptions every_valid_schedule_ends.
Print Assumptions pipeline_never_stuck.
Print Assumptions valid_zbh1.
Print Assumptions optimal_zbh1.
Print Assumptions by_start_permutes.
Print Assumptions by_start_sorted.
Print Assumptions prices_sound.
Print Assumptions in_order_of_groups.
Print Assumptions memory_edge_kept.
Print Assumptions plan_with_free_edges.
Print Assumptions free_edges.
Print Assumptions one_machine_on_the_problem.
Print Assumptions most_done_is.
Print Assumptions one_store_bound.
Print Assumptions one_store_on_the_problem.
Print Assumptions volume_fits.
Print Assumptions volume_on_the_problem.
