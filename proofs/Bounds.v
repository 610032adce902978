(* Bounds on the plans of a problem: what certificates of all kinds show, and what is made of them.

   A bound on plans is one on every schedule that keeps the rules and the capacities of the stores
   (`bounded_schedules`), as its starts are a plan. Bounds of plans can be put together, where one
   problem is a part of another (Relaxation.v, Windows.v). *)

Require Import ZArith Lia List.
From Bubbleproof Require Import Definitions Stores Starts Instances.
Import ListNotations.
Open Scope Z_scope.

(* Whatever counts takes at least so many ticks, from its first start to its last end. *)
Definition bounds (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (least : Z) :=
  forall s first last, plan (index_of l) es stores s -> lies (index_of l) counts s first last ->
    least <= last - first.

Theorem bounded_schedules : forall counts l es stores least, well_written l stores = true ->
  bounds counts l es stores least ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> least <= last - first.
Proof.
  intros counts l es stores least W B rows first last R M S.
  exact (B _ first last (rows_are_a_plan l es stores W rows R M)
    (rows_lie l es rows R counts first last S)).
Qed.
