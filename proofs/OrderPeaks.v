(* The peak of a store, where one resource runs all that change it, depends on their order alone, not
   on durations or starts: lemma 4 of docs/guide/formal.md.

   `l` lists the tasks in the order in which they run, with their changes `a` at the start and `b` at
   the end. `order_fits` looks at the sums after each start: all starts so far, and the ends of the
   tasks before. It mentions no time. That durations are positive is needed (a task of no ticks holds
   nothing), and that no end acquires. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import PriceTables Loads.
Import ListNotations.
Open Scope Z_scope.

Section OrderPeaks.
Variables a b : positive -> Z.

Fixpoint order_fits (level most : Z) (l : list positive) : Prop :=
  match l with
  | [] => True
  | t :: rest => level + a t <= most /\ order_fits (level + a t + b t) most rest
  end.

(* One after another, none before a moment. *)
Fixpoint in_turn (s d : positive -> Z) (from : Z) (l : list positive) : Prop :=
  match l with
  | [] => True
  | t :: rest => from <= s t /\ in_turn s d (s t + d t) rest
  end.

Lemma not_yet : forall s d l from now, (forall t, In t l -> 0 < d t) -> in_turn s d from l ->
  now < from -> load_at l d a b s now = 0.
Proof.
  intros s d. induction l as [|t l IH]; intros from now D O L; [reflexivity|].
  destruct O as [F O]. unfold load_at in *. cbn [map total].
  pose proof (D t (or_introl eq_refl)).
  rewrite (IH (s t + d t) now (fun u I => D u (or_intror I)) O) by lia.
  destruct (Z.leb_spec (s t) now), (Z.leb_spec (s t + d t) now); lia.
Qed.

Theorem peak_of_order : forall s d l from level most, (forall t, In t l -> 0 < d t) ->
  (forall t, In t l -> b t <= 0) -> in_turn s d from l ->
  ((forall now, level + load_at l d a b s now <= most) <->
   level <= most /\ order_fits level most l).
Proof.
  intros s d. induction l as [|t l IH]; intros from level most D B O.
  - unfold load_at. cbn. split; [intros H; specialize (H 0); split; [lia | exact I] | lia].
  - destruct O as [F O]. pose proof (D t (or_introl eq_refl)) as Dt.
    pose proof (B t (or_introl eq_refl)) as Bt.
    assert (Later : forall now, now < s t + d t -> load_at l d a b s now = 0).
    { intros now. apply not_yet; [intros u I; apply D; right; exact I | exact O]. }
    assert (Split : forall now, load_at (t :: l) d a b s now = (if s t <=? now then a t else 0) +
      (if s t + d t <=? now then b t else 0) + load_at l d a b s now) by reflexivity.
    specialize (IH (s t + d t) (level + a t + b t) most (fun u I => D u (or_intror I))
      (fun u I => B u (or_intror I)) O).
    split.
    + intros H. assert (L0 : level <= most).
      { specialize (H (s t - 1)). rewrite Split, Later in H by lia.
        destruct (Z.leb_spec (s t) (s t - 1)), (Z.leb_spec (s t + d t) (s t - 1)); lia. }
      assert (L1 : level + a t <= most).
      { specialize (H (s t)). rewrite Split, Later in H by lia.
        destruct (Z.leb_spec (s t) (s t)), (Z.leb_spec (s t + d t) (s t)); lia. }
      split; [exact L0|]. split; [exact L1|]. apply IH. intros now. specialize (H now).
      rewrite Split in H. destruct (Z.leb_spec (s t + d t) now) as [E|E].
      * destruct (Z.leb_spec (s t) now); lia.
      * rewrite (Later now E). lia.
    + intros (L0 & L1 & R). assert (L2 : level + a t + b t <= most) by lia.
      assert (H := proj2 IH (conj L2 R)). intros now.
      specialize (H now). rewrite Split. destruct (Z.leb_spec (s t + d t) now) as [E|E].
      * destruct (Z.leb_spec (s t) now); lia.
      * rewrite (Later now E) in *. destruct (Z.leb_spec (s t) now); lia.
Qed.

(* So two schedules in one order hold as much, whatever their durations. *)
Theorem peaks_alike : forall s d s' d' l from from' level most,
  (forall t, In t l -> 0 < d t) -> (forall t, In t l -> 0 < d' t) ->
  (forall t, In t l -> b t <= 0) -> in_turn s d from l -> in_turn s' d' from' l ->
  ((forall now, level + load_at l d a b s now <= most) <->
   (forall now, level + load_at l d' a b s' now <= most)).
Proof.
  intros s d s' d' l from from' level most D D' B O O'.
  rewrite (peak_of_order s d l from), (peak_of_order s' d' l from') by assumption. reflexivity.
Qed.
End OrderPeaks.
