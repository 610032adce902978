(* Certificates of `span_idle`: how long a rank is idle between its first start and its last end.

   The span of a rank is its last end less its first start, its work what its tasks take together,
   and `span_idle` of a schedule the greatest of span less work over all ranks: definition 3 of
   docs/guide/formal.md, the zero-bubble papers' measure.

   The theorems about certificates by one resource (OneMachine.v) and one store (OneStore.v) hold
   whatever resources count for a makespan. Where a rank alone counts, the makespan is its span
   (`span_is_spanned`); so what such a certificate claims, with the rank's work added, is at most the
   span of the rank, and what it claims is at most span_idle. Free edges may be asked for as before:
   sorting microbatches moves no start off its rank. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Packing Instances Groups Lifecycles OneMachine
  FreeEdges OneStore.
Import ListNotations.
Open Scope Z_scope.

Definition work_of (l : table) (r : Z) : Z :=
  let k := index_of l in
  busy positive (ticks k) (filter (fun t => existsb (Z.eqb r) (sites k t)) (map fst l)).

Definition on_rank (r : Z) (rows : schedule positive) := filter (fun x => r =? place _ x) rows.

Definition span_of (p : problem positive) (rows : schedule positive) (r : Z) : Z :=
  match on_rank r rows with
  | [] => 0
  | x :: rest =>
      fold_right (fun y n => Z.max (finish _ p y) n) (finish _ p x) rest -
      fold_right (fun y n => Z.min (start _ y) n) (start _ x) rest
  end.

(* The ranks are resources 0 to ranks - 1. *)
Definition span_idle (ranks : Z) (l : table) (p : problem positive) (rows : schedule positive) : Z :=
  fold_right Z.max 0 (map (fun i => span_of p rows (Z.of_nat i) - work_of l (Z.of_nat i))
    (seq 0 (Z.to_nat ranks))).

(* ---- The checkers: those of makespans, where the rank alone counts. ---- *)

Definition is_rank (ranks r : Z) := (0 <=? r) && (r <? ranks).

Definition check_idle_machine (ranks : Z) (l : table) (es : list (edge positive)) (c : certificate) :=
  is_rank ranks (resource c) && check_one_machine (Z.eqb (resource c)) l es
    (Certificate (resource c) (crowd c) (least_head c) (least_tail c)
      (claim c + work_of l (resource c))).

Definition check_idle_store (ranks : Z) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (c : store_claim) :=
  is_rank ranks (at_resource c) && check_one_store (Z.eqb (at_resource c)) l es stores
    (StoreClaim (at_resource c) (at_store c) (begin_ticks c) (end_ticks c)
      (store_bound c + work_of l (at_resource c))).

(* ---- They are sound. ---- *)

Theorem span_is_spanned : forall p rows r, exists first last,
  spans (Z.eqb r) p rows first last /\ last - first = span_of p rows r.
Proof.
  intros p rows r. unfold span_of.
  assert (In_ : forall x, In x rows -> (r =? place _ x) = true -> In x (on_rank r rows))
    by (intros x I E; apply filter_In; split; assumption).
  destruct (on_rank r rows) as [|x rest].
  - exists 0, 0. split; [|reflexivity]. intros y I E. destruct (In_ y I E).
  - exists (fold_right (fun y n => Z.min (start _ y) n) (start _ x) rest),
      (fold_right (fun y n => Z.max (finish _ p y) n) (finish _ p x) rest).
    split; [|reflexivity]. intros y I E. specialize (In_ y I E). clear I E.
    induction rest as [|z rest IH]; cbn [fold_right].
    + destruct In_ as [->|[]]. lia.
    + destruct In_ as [->|[->|I]].
      * specialize (IH (or_introl eq_refl)). lia.
      * lia.
      * specialize (IH (or_intror I)). lia.
Qed.

Lemma idle_is_most : forall ranks l p rows r, is_rank ranks r = true ->
  span_of p rows r - work_of l r <= span_idle ranks l p rows.
Proof.
  intros ranks l p rows r H. unfold is_rank in H. rewrite andb_true_iff, Z.leb_le, Z.ltb_lt in H.
  unfold span_idle. assert (I : In (Z.to_nat r) (seq 0 (Z.to_nat ranks))) by (apply in_seq; lia).
  revert I. generalize (seq 0 (Z.to_nat ranks)) as numbered.
  induction numbered as [|i more IH]; intros I; [destruct I|]. cbn [map fold_right].
  destruct I as [->|I]; [rewrite Z2Nat.id by lia; lia | specialize (IH I); lia].
Qed.

Theorem idle_by_one_machine : forall ranks l es stores gs lives all c,
  check_free l es stores gs lives all && check_idle_machine ranks l all c = true ->
  forall rows,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    claim c <= span_idle ranks l (instance l es) rows.
Proof.
  intros ranks l es stores gs lives all c H rows R M. unfold check_idle_machine in H.
  rewrite !andb_true_iff in H.
  destruct H as [F [Rank C]].
  destruct (span_is_spanned (instance l es) rows (resource c)) as (first & last & S & E).
  pose proof (one_machine_on_the_problem (Z.eqb (resource c)) l es stores gs lives all
    (Certificate (resource c) (crowd c) (least_head c) (least_tail c) (claim c + work_of l (resource c)))
    ltac:(rewrite F, C; reflexivity) rows first last R M S) as B.
  cbn [claim] in B. pose proof (idle_is_most ranks l (instance l es) rows (resource c) Rank). lia.
Qed.

Theorem idle_by_one_store : forall ranks l es stores gs lives all c,
  check_free l es stores gs lives all && check_idle_store ranks l all stores c = true ->
  forall rows,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    store_bound c <= span_idle ranks l (instance l es) rows.
Proof.
  intros ranks l es stores gs lives all c H rows R M. unfold check_idle_store in H.
  rewrite !andb_true_iff in H.
  destruct H as [F [Rank C]].
  destruct (span_is_spanned (instance l es) rows (at_resource c)) as (first & last & S & E).
  pose proof (one_store_on_the_problem (Z.eqb (at_resource c)) l es stores gs lives all
    (StoreClaim (at_resource c) (at_store c) (begin_ticks c) (end_ticks c)
      (store_bound c + work_of l (at_resource c)))
    ltac:(rewrite F, C; reflexivity) rows first last R M S) as B.
  cbn [store_bound] in B.
  pose proof (idle_is_most ranks l (instance l es) rows (at_resource c) Rank). lia.
Qed.
