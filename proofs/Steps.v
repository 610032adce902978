(* A load added up tick by tick, where it is limited, and in steps at both ends: what a store's volume
   rests on (Volume.v).

   `ticked f a n` is the sum of f over the n ticks from a on. Where f is c or more from u to v it is
   c (v - u) at least (`ticked_at_least`). Where f is `room` at most, k most in the k-th step of d
   ticks from the beginning and in the k-th step of e ticks from the end, k = 1 ... n, and the steps
   do not meet, (d + e) (room - k most) is missing for each k (`steps_fit`). *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import PriceTables.
Import ListNotations.
Open Scope Z_scope.

(* n (n + 1) / 2 *)
Definition steps_to (n : Z) := n * (n + 1) / 2.

Definition ticked (f : Z -> Z) (a : Z) (n : nat) := total (map (fun i => f (a + Z.of_nat i)) (seq 0 n)).

Lemma ticked_next : forall f a n, ticked f a (S n) = ticked f a n + f (a + Z.of_nat n).
Proof.
  intros f a n. unfold ticked. rewrite seq_S, map_app, total_app. cbn [map total Nat.add]. lia.
Qed.

Lemma ticked_at_least : forall f c u v a, 0 <= c -> (forall x, 0 <= f x) ->
  (forall x, u <= x -> x < v -> c <= f x) -> a <= u ->
  forall n, v <= a + Z.of_nat n -> c * (v - u) <= ticked f a n.
Proof.
  intros f c u v a C F K A.
  assert (G : forall n, 0 <= ticked f a n /\ c * (Z.min v (a + Z.of_nat n) - u) <= ticked f a n).
  { induction n as [|n [P IH]]; [cbn; split; [lia | nia]|]. rewrite ticked_next.
    pose proof (F (a + Z.of_nat n)). split; [lia|].
    destruct (Z_le_gt_dec u (a + Z.of_nat n)); [|nia].
    destruct (Z_le_gt_dec v (a + Z.of_nat n)).
    - replace (Z.min v (a + Z.of_nat (S n))) with (Z.min v (a + Z.of_nat n)) by lia. lia.
    - pose proof (K (a + Z.of_nat n) ltac:(lia) ltac:(lia)).
      replace (Z.min v (a + Z.of_nat (S n))) with (Z.min v (a + Z.of_nat n) + 1) by lia. nia. }
  intros n V. destruct (G n) as [_ H]. replace (Z.min v (a + Z.of_nat n)) with v in H by lia.
  exact H.
Qed.

Lemma total_most : forall {A} (f : A -> Z) l b, (forall x, In x l -> f x <= b) ->
  total (map f l) <= b * Z.of_nat (length l).
Proof.
  intros A f. induction l as [|x l IH]; intros b H; cbn [map total length]; [lia|].
  specialize (IH b (fun y I => H y (or_intror I))). pose proof (H x (or_introl eq_refl)). lia.
Qed.

Lemma rising : forall d most (f : nat -> Z) n,
  (forall k i, (k <= n)%nat -> (i < k * d)%nat -> f i <= Z.of_nat k * most) ->
  2 * total (map f (seq 0 (n * d))) <= Z.of_nat d * most * (Z.of_nat n * (Z.of_nat n + 1)).
Proof.
  intros d most f. induction n as [|n IH]; intros H; [cbn; lia|].
  replace (S n * d)%nat with (n * d + d)%nat by lia. rewrite seq_app, map_app, total_app.
  specialize (IH (fun k i K => H k i (le_S _ _ K))).
  pose proof (total_most f (seq (0 + n * d) d) (Z.of_nat (S n) * most)
    ltac:(intros x I; apply in_seq in I; apply H; lia)) as T. rewrite seq_length in T.
  rewrite Nat2Z.inj_succ in *. nia.
Qed.

Lemma falling : forall d most (f : nat -> Z) n a,
  (forall k i, (k <= n)%nat -> (a + n * d <= i + k * d)%nat -> (i < a + n * d)%nat ->
    f i <= Z.of_nat k * most) ->
  2 * total (map f (seq a (n * d))) <= Z.of_nat d * most * (Z.of_nat n * (Z.of_nat n + 1)).
Proof.
  intros d most f. induction n as [|n IH]; intros a H; [cbn; lia|].
  cbn [Nat.mul]. rewrite seq_app, map_app, total_app.
  assert (IH' : 2 * total (map f (seq (a + d) (n * d))) <=
    Z.of_nat d * most * (Z.of_nat n * (Z.of_nat n + 1))).
  { apply IH. intros k i K I J. apply H; cbn [Nat.mul]; lia. }
  pose proof (total_most f (seq a d) (Z.of_nat (S n) * most)
    ltac:(intros x I; apply in_seq in I; apply H; cbn [Nat.mul]; lia)) as T. rewrite seq_length in T.
  rewrite Nat2Z.inj_succ in *. nia.
Qed.

Lemma steps_twice : forall n, 2 * steps_to n = n * (n + 1).
Proof.
  intros n. unfold steps_to. destruct (Z.Even_or_Odd n) as [[a ->]|[a ->]].
  - replace (2 * a * (2 * a + 1)) with (a * (2 * a + 1) * 2) by ring. rewrite Z.div_mul; lia.
  - replace ((2 * a + 1) * (2 * a + 1 + 1)) with ((2 * a + 1) * (a + 1) * 2) by ring.
    rewrite Z.div_mul; lia.
Qed.

(* What fits between A and B where the load is at most `room`, and in steps at both ends. *)
Lemma steps_fit : forall f a (d e n rest : nat) most room,
  (forall x, f x <= room) ->
  (forall k x, (k <= n)%nat -> x < a + Z.of_nat (k * d) -> f x <= Z.of_nat k * most) ->
  (forall k x, (k <= n)%nat -> a + Z.of_nat (n * d + (rest + n * e)) <= x + Z.of_nat (k * e) ->
    f x <= Z.of_nat k * most) ->
  ticked f a (n * d + (rest + n * e)) + (Z.of_nat d + Z.of_nat e) *
    (Z.of_nat n * room - most * steps_to (Z.of_nat n)) <=
  room * Z.of_nat (n * d + (rest + n * e)).
Proof.
  intros f a d e n rest most room R Up Down. unfold ticked.
  rewrite !seq_app, !map_app, !total_app. cbn [Nat.add].
  set (g i := f (a + Z.of_nat i)).
  assert (U : 2 * total (map g (seq 0 (n * d))) <= Z.of_nat d * most * (Z.of_nat n * (Z.of_nat n + 1))).
  { apply rising. intros k i K I. apply Up; [exact K | lia]. }
  assert (D : 2 * total (map g (seq (n * d + rest) (n * e))) <=
    Z.of_nat e * most * (Z.of_nat n * (Z.of_nat n + 1))).
  { apply falling. intros k i K I J. apply Down; [exact K | lia]. }
  pose proof (total_most g (seq (n * d) rest) room (fun x _ => R _)) as M.
  rewrite seq_length in M. rewrite <- steps_twice in U, D.
  rewrite !Nat2Z.inj_add, !Nat2Z.inj_mul. fold g. nia.
Qed.
