(* A pipeline by the numbers of its stages, and what they say of a problem written out.

   Microbatches go through the stages, slice by slice, and come back: a task `to` (F) and a task
   `fro` (B, or I where the backward is split) of each stage g, microbatch j and slice k, so many ticks
   or more each. From one stage to the next a message takes its time, either way; slices come one
   after another, the other way round when they come back. `own` are all the tasks of a sample that
   its rank has to compute: these two, W, parts of W. Each runs after F has begun, and where
   `whole`, ends when B has ended or before.

   `check_staged` sees that a problem has these tasks, durations and precedences; messages may be
   tasks on links, which `path_to` and `path_fro` list. It may have more: what a choice adds, or what has
   nothing to do with the pipeline. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances PriceTables Lifecycles.
Import ListNotations.
Open Scope Z_scope.

Record stage_numbers := Numbers {
  stages : nat;
  microbatches : nat;
  slices : nat;
  rank_of : nat -> Z;
  fwd : nat -> nat -> Z;  (* ticks, by stage and slice *)
  bwd : nat -> nat -> Z;  (* of what hands the gradient on *)
  work : nat -> nat -> Z;  (* of all that the rank computes of a sample *)
  message : nat -> Z;  (* ticks between a stage and the next *)
  whole : bool;  (* nothing of a sample is computed after the gradient has been handed on *)
  units : nat -> Z }.  (* what a slice holds on a stage *)

Record stage_names := Names {  (* by stage, microbatch and slice *)
  to : nat -> nat -> nat -> positive;
  fro : nat -> nat -> nat -> positive;
  own : nat -> nat -> nat -> list positive;
  path_to : nat -> nat -> nat -> list positive;
  path_fro : nat -> nat -> nat -> list positive }.

Definition all_samples (n : stage_numbers) (f : nat -> nat -> nat -> bool) : bool :=
  forallb (fun g => forallb (fun j => forallb (f g j) (seq 0 (slices n)))
    (seq 0 (microbatches n))) (seq 0 (stages n)).
Definition is_sample (n : stage_numbers) (g j k : nat) :=
  (g < stages n)%nat /\ (j < microbatches n)%nat /\ (k < slices n)%nat.

(* ---- The checker. ---- *)

Section Check.
Variables (n : stage_numbers) (nm : stage_names) (k : index) (m : arcs).

(* b starts when a has ended, or later. *)
Definition ends_before (a b : positive) : bool :=
  match lag_of m a b with Some lag => (0 <=? lag) && known k a && known k b | None => false end.
Definition path_takes (a : positive) (path : list positive) (least : Z) : bool :=
  match walk k m a path with Some w => least <=? w | None => false end.

Definition is_there (g j i : nat) : bool :=
  let f := to nm g j i in let b := fro nm g j i in
  known k f && known k b && (0 <=? fwd n g i) && (fwd n g i <=? ticks k f) && (0 <=? bwd n g i) &&
  (bwd n g i <=? ticks k b) && (0 <=? message n g) && (0 <=? units n g) &&
  existsb (Z.eqb (rank_of n g)) (sites k f) && existsb (Z.eqb (rank_of n g)) (sites k b).

Definition is_in_order (g j i : nat) : bool :=
  let f := to nm g j i in let b := fro nm g j i in
  ends_before f b &&
  (if Nat.ltb (S i) (slices n) then ends_before f (to nm g j (S i)) && ends_before (fro nm g j (S i)) b
   else true) &&
  (if Nat.ltb (S g) (stages n) then
     path_takes f (path_to nm g j i ++ [to nm (S g) j i]) (ticks k f + message n g) &&
     path_takes (fro nm (S g) j i) (path_fro nm g j i ++ [b]) (ticks k (fro nm (S g) j i) + message n g)
   else true).

Definition is_own (g j i : nat) (t : positive) : bool :=
  let f := to nm g j i in let b := fro nm g j i in
  known k t && (0 <=? ticks k t) && existsb (Z.eqb (rank_of n g)) (sites k t) &&
  (Pos.eqb t f || ends_before f t || Pos.eqb t b || ends_before b t) &&
  (negb (whole n) || Pos.eqb t b || ends_before t b).

Definition works (g j i : nat) : bool :=
  forallb (is_own g j i) (own nm g j i) &&
  (work n g i <=? busy positive (ticks k) (own nm g j i)).

Definition check_staged : bool :=
  all_samples n is_there && all_samples n is_in_order && all_samples n works.
End Check.

(* ---- What is so of every plan. ---- *)

Lemma every_sample : forall n f, all_samples n f = true ->
  forall g j i, is_sample n g j i -> f g j i = true.
Proof.
  intros n f H g j i (G & J & I). unfold all_samples in H. rewrite forallb_forall in H.
  specialize (H g ltac:(apply in_seq; lia)). rewrite forallb_forall in H.
  specialize (H j ltac:(apply in_seq; lia)). rewrite forallb_forall in H.
  apply H, in_seq. lia.
Qed.

Lemma is_site : forall r l, existsb (Z.eqb r) l = true -> In r l.
Proof. intros r l H. apply existsb_exists in H as (q & I & E). apply Z.eqb_eq in E. congruence. Qed.

(* What takes so long from the first computation on, and after the last; and from F to B. *)
Fixpoint head (n : stage_numbers) (g : nat) : Z :=
  match g with O => 0 | S h => head n h + fwd n h 0 + message n h end.
Fixpoint way_back (n : stage_numbers) (g : nat) : Z :=
  match g with O => 0 | S h => way_back n h + bwd n h 0 + message n h end.
Definition tail (n : stage_numbers) (g : nat) := if whole n then way_back n g else 0.
Fixpoint life_behind (n : stage_numbers) (more g i : nat) : Z :=
  fwd n g i + bwd n g i +
  match more with O => 0 | S less => 2 * message n g + life_behind n less (S g) i end.
Definition life_of (n : stage_numbers) (g i : nat) := life_behind n (stages n - S g) g i.

Section Staged.
Variables (n : stage_numbers) (nm : stage_names) (l : table) (es : list (edge positive)).
Variables (stores : list (store positive)) (s : positive -> Z).
Let k := index_of l.
Hypothesis Checked : check_staged n nm k (arcs_of es) = true.
Hypothesis V : plan k es stores s.

Definition ending (t : positive) := s t + ticks k t.

Lemma followed : forall a b, ends_before k (arcs_of es) a b = true -> ending a <= s b.
Proof.
  intros a b H. unfold ends_before in H. destruct (lag_of (arcs_of es) a b) as [lag|] eqn:L; [|discriminate].
  rewrite !andb_true_iff, Z.leb_le in H. destruct H as [[P Ka] Kb]. apply lag_is_edge in L.
  pose proof (kept _ _ _ _ V a b lag L Ka Kb). unfold ending. lia.
Qed.

Lemma taken : forall a path b least, path_takes k (arcs_of es) a (path ++ [b]) least = true ->
  s a + least <= s b.
Proof.
  intros a path b least H. unfold path_takes in H. destruct (walk k (arcs_of es) a _) as [w|] eqn:W;
    [|discriminate]. apply Z.leb_le in H. apply (walk_true l es stores s V) in W.
  rewrite last_last in W. lia.
Qed.

Lemma there_is : forall g j i, is_sample n g j i ->
  known k (to nm g j i) = true /\ known k (fro nm g j i) = true /\ 0 <= fwd n g i /\
  fwd n g i <= ticks k (to nm g j i) /\ 0 <= bwd n g i /\ bwd n g i <= ticks k (fro nm g j i) /\
  0 <= message n g /\ 0 <= units n g /\ In (rank_of n g) (sites k (to nm g j i)) /\
  In (rank_of n g) (sites k (fro nm g j i)).
Proof.
  intros g j i I. assert (H := Checked). unfold check_staged in H. rewrite !andb_true_iff in H.
  destruct H as [[H _] _]. apply (every_sample n _ H) in I. unfold is_there in I.
  rewrite !andb_true_iff, !Z.leb_le in I. pose proof is_site. intuition auto.
Qed.

Lemma order_is : forall g j i, is_sample n g j i ->
  ending (to nm g j i) <= s (fro nm g j i) /\
  (is_sample n g j (S i) -> ending (to nm g j i) <= s (to nm g j (S i)) /\
    ending (fro nm g j (S i)) <= s (fro nm g j i)) /\
  (is_sample n (S g) j i -> ending (to nm g j i) + message n g <= s (to nm (S g) j i) /\
    ending (fro nm (S g) j i) + message n g <= s (fro nm g j i)).
Proof.
  intros g j i I. assert (H := Checked). unfold check_staged in H. rewrite !andb_true_iff in H.
  destruct H as [[_ H] _]. apply (every_sample n _ H) in I. unfold is_in_order in I.
  rewrite !andb_true_iff in I. destruct I as [[T Sl] St]. split; [apply followed, T|]. split.
  - intros (_ & _ & L). destruct (Nat.ltb_spec (S i) (slices n)); [|lia].
    apply andb_true_iff in Sl as [A B]. split; apply followed; assumption.
  - intros (L & _). destruct (Nat.ltb_spec (S g) (stages n)); [|lia].
    apply andb_true_iff in St as [A B]. apply taken in A, B. unfold ending. lia.
Qed.

Lemma slices_later : forall g j i, is_sample n g j i -> forall a, (a <= i)%nat ->
  s (to nm g j a) <= s (to nm g j i) /\ ending (fro nm g j i) <= ending (fro nm g j a).
Proof.
  intros g j. induction i as [|i IH]; intros I a L.
  - replace a with 0%nat by lia. lia.
  - assert (I' : is_sample n g j i) by (destruct I as (? & ? & ?); repeat split; lia).
    destruct (Nat.eq_dec a (S i)) as [->|D]; [lia|]. destruct (IH I' a ltac:(lia)).
    destruct (order_is g j i I') as (_ & O & _). specialize (O I).
    destruct (there_is g j i I') as (_ & _ & F0 & F & B0 & B & _).
    destruct (there_is g j (S i) I) as (_ & _ & _ & _ & B0' & B' & _). unfold ending in *. lia.
Qed.

Lemma stages_later : forall j i more g, is_sample n (g + more)%nat j i ->
  s (to nm g j i) <= s (to nm (g + more)%nat j i) /\
  ending (fro nm (g + more)%nat j i) <= ending (fro nm g j i).
Proof.
  intros j i. induction more as [|more IH]; intros g I; [rewrite Nat.add_0_r; lia|].
  replace (g + S more)%nat with (S g + more)%nat in * by lia.
  assert (I1 : is_sample n (S g) j i) by (destruct I as (? & ? & ?); repeat split; lia).
  assert (I0 : is_sample n g j i) by (destruct I as (? & ? & ?); repeat split; lia).
  destruct (IH (S g) I). destruct (order_is g j i I0) as (_ & _ & O). specialize (O I1).
  destruct (there_is g j i I0) as (_ & _ & F0 & F & B0 & B & M & _). unfold ending in *. lia.
Qed.

Lemma head_is : forall j g i first, is_sample n g j i -> first <= s (to nm 0 j 0) ->
  first + head n g <= s (to nm g j i).
Proof.
  intros j g i first I A. destruct (slices_later g j i I 0 ltac:(lia)) as [L _].
  enough (first + head n g <= s (to nm g j 0)) by lia. clear L.
  assert (I0 : is_sample n g j 0) by (destruct I as (? & ? & ?); repeat split; lia).
  clear I. induction g as [|g IH]; [cbn; lia|]. cbn [head].
  assert (I1 : is_sample n g j 0) by (destruct I0 as (? & ? & ?); repeat split; lia).
  specialize (IH I1). destruct (order_is g j 0 I1) as (_ & _ & O). specialize (O I0).
  destruct (there_is g j 0 I1) as (_ & _ & F0 & F & _). unfold ending in *. lia.
Qed.

Lemma way_back_is : forall j g i last, is_sample n g j i -> ending (fro nm 0 j 0) <= last ->
  ending (fro nm g j i) + way_back n g <= last.
Proof.
  intros j g i last I A. destruct (slices_later g j i I 0 ltac:(lia)) as [_ L].
  enough (ending (fro nm g j 0) + way_back n g <= last) by lia. clear L.
  assert (I0 : is_sample n g j 0) by (destruct I as (? & ? & ?); repeat split; lia).
  clear I. induction g as [|g IH]; [cbn; lia|]. cbn [way_back].
  assert (I1 : is_sample n g j 0) by (destruct I0 as (? & ? & ?); repeat split; lia).
  specialize (IH I1). destruct (order_is g j 0 I1) as (_ & _ & O). specialize (O I0).
  destruct (there_is g j 0 I1) as (_ & _ & F0 & F & B0 & B & _). unfold ending in *. lia.
Qed.

Lemma life_is : forall g j i, is_sample n g j i ->
  s (to nm g j i) + life_of n g i <= ending (fro nm g j i).
Proof.
  intros g j i I. unfold life_of.
  enough (forall more g, is_sample n g j i -> (g + S more <= stages n)%nat ->
    s (to nm g j i) + life_behind n more g i <= ending (fro nm g j i)) as G.
  { apply G; [exact I | destruct I; lia]. }
  clear g I. induction more as [|more IH]; intros g I L; cbn [life_behind];
    destruct (there_is g j i I) as (_ & _ & F0 & F & B0 & B & _);
    destruct (order_is g j i I) as (T & _ & O).
  - unfold ending in *. lia.
  - assert (I1 : is_sample n (S g) j i) by (destruct I as (? & ? & ?); repeat split; lia).
    specialize (O I1). specialize (IH (S g) I1 ltac:(lia)). unfold ending in *. lia.
Qed.

Lemma own_is : forall g j i t, is_sample n g j i -> In t (own nm g j i) ->
  known k t = true /\ 0 <= ticks k t /\ In (rank_of n g) (sites k t) /\ s (to nm g j i) <= s t /\
  (whole n = true -> ending t <= ending (fro nm g j i)).
Proof.
  intros g j i t I It. assert (H := Checked). unfold check_staged in H. rewrite !andb_true_iff in H.
  destruct H as [_ H]. pose proof (every_sample n _ H g j i I) as W. unfold works in W.
  rewrite andb_true_iff, forallb_forall in W. destruct W as [W _]. specialize (W t It).
  unfold is_own in W. rewrite !andb_true_iff, !orb_true_iff, !Pos.eqb_eq, Z.leb_le in W.
  destruct W as [[[[K D] R] A] E]. apply is_site in R.
  destruct (there_is g j i I) as (_ & _ & F0 & F & B0 & B & _).
  destruct (order_is g j i I) as (T & _). repeat split; try assumption.
  - destruct A as [[[A|A]|A]|A]; try (subst; lia); try apply followed in A; unfold ending in *;
      subst; lia.
  - intros Wh. rewrite Wh in E. destruct E as [[E|E]|E]; [discriminate|subst; lia|].
    apply followed in E. unfold ending in *. lia.
Qed.

Lemma work_is : forall g j i, is_sample n g j i ->
  work n g i <= busy positive (ticks k) (own nm g j i).
Proof.
  intros g j i I. assert (H := Checked). unfold check_staged in H. rewrite !andb_true_iff in H.
  destruct H as [_ H]. pose proof (every_sample n _ H g j i I) as W. unfold works in W.
  apply andb_true_iff in W as [_ W]. apply Z.leb_le, W.
Qed.
End Staged.
