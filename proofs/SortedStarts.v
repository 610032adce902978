(* Sorted lists of numbers: what each pair of two lists keeps, their i-th smallest keep, and what
   any two of a list keep, any two of it keep in another order. `Exchange.v` sorts starts so. *)

Require Import ZArith Lia List Permutation Sorted Mergesort Orders.
Import ListNotations.
Open Scope Z_scope.

Module ZOrder <: TotalLeBool.
  Definition t := Z.
  Definition leb := Z.leb.
  Lemma leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End ZOrder.
Module ZSort := Sort ZOrder.

(* ---- Sorted lists of numbers. ---- *)

Fixpoint count (l : list Z) (v : Z) : nat :=
  match l with [] => 0%nat | x :: rest => ((if (x <=? v)%Z then 1 else 0) + count rest v)%nat end.

Lemma count_permuted : forall l k v, Permutation l k -> count l v = count k v.
Proof. intros l k v H. induction H; cbn; lia. Qed.

Definition ascending := StronglySorted (fun x y => x <= y).

Lemma sort_ascending : forall l, ascending (ZSort.sort l).
Proof.
  intros l. unfold ascending.
  assert (H : StronglySorted (fun x y => is_true (Z.leb x y)) (ZSort.sort l)).
  { apply ZSort.StronglySorted_sort. intros x y z. unfold is_true, ZOrder.leb.
    rewrite !Z.leb_le. lia. }
  induction H as [|x rest H IH F]; constructor; [exact IH|].
  apply Forall_forall. intros y I. rewrite Forall_forall in F. apply Z.leb_le, F, I.
Qed.

Lemma none_counted : forall l v, Forall (fun x => v < x) l -> count l v = 0%nat.
Proof.
  intros l v H. induction H as [|x rest L H IH]; [reflexivity|]. cbn.
  destruct (Z.leb_spec x v); lia.
Qed.

(* The i-th smallest is at most v where more than i of them are. *)
Lemma counted : forall l v i, ascending l -> (i < length l)%nat ->
  (nth i l 0 <= v <-> (i < count l v)%nat).
Proof.
  intros l v. induction l as [|x rest IH]; intros i S L; cbn in L; [lia|].
  inversion S as [|? ? S' F]; subst. cbn. destruct (Z.leb_spec x v) as [X|X].
  - destruct i as [|i]; [lia|]. rewrite IH by (assumption || lia). lia.
  - assert (G : Forall (fun y => v < y) rest).
    { apply Forall_forall. intros y I. rewrite Forall_forall in F. specialize (F y I). cbn in F.
      lia. }
    rewrite (none_counted rest v G). destruct i as [|i]; [lia|].
    rewrite Forall_forall in G. specialize (G (nth i rest 0)).
    assert (In (nth i rest 0) rest) as I by (apply nth_In; lia). specialize (G I). lia.
Qed.

Lemma fewer_counted : forall (l : list nat) f g d v, (forall j, In j l -> f j + d <= g j) ->
  (count (map g l) v <= count (map f l) (v - d))%nat.
Proof.
  induction l as [|j rest IH]; intros f g d v H; [apply le_n|]. cbn.
  specialize (IH f g d v (fun k I => H k (or_intror I))). specialize (H j (or_introl eq_refl)).
  destruct (Z.leb_spec (g j) v), (Z.leb_spec (f j) (v - d)); lia.
Qed.

(* What each pair keeps, the i-th smallest of both keep. *)
Lemma sorted_apart : forall f g d n i, (forall j, (j < n)%nat -> f j + d <= g j) -> (i < n)%nat ->
  nth i (ZSort.sort (map f (seq 0 n))) 0 + d <= nth i (ZSort.sort (map g (seq 0 n))) 0.
Proof.
  intros f g d n i H L.
  set (x := map f (seq 0 n)). set (y := map g (seq 0 n)). set (v := nth i (ZSort.sort y) 0).
  assert (Lx : length (ZSort.sort x) = n).
  { rewrite <- (Permutation_length (ZSort.Permuted_sort x)). unfold x.
    rewrite map_length, seq_length. reflexivity. }
  assert (Ly : length (ZSort.sort y) = n).
  { rewrite <- (Permutation_length (ZSort.Permuted_sort y)). unfold y.
    rewrite map_length, seq_length. reflexivity. }
  enough (nth i (ZSort.sort x) 0 <= v - d) by lia.
  apply counted; [apply sort_ascending | lia |].
  rewrite <- (count_permuted _ _ _ (ZSort.Permuted_sort x)).
  assert (C : (i < count (ZSort.sort y) v)%nat)
    by (apply counted; [apply sort_ascending | lia | unfold v; lia]).
  rewrite <- (count_permuted _ _ _ (ZSort.Permuted_sort y)) in C.
  enough (count y v <= count x (v - d))%nat by lia. apply fewer_counted.
  intros j I. apply in_seq in I. apply H. lia.
Qed.

Lemma ascending_nth : forall l j k, ascending l -> (j <= k)%nat -> (k < length l)%nat ->
  nth j l 0 <= nth k l 0.
Proof.
  induction l as [|x rest IH]; intros j k S J K; cbn in K; [lia|].
  inversion S as [|? ? S' F]; subst. rewrite Forall_forall in F.
  destruct j as [|j], k as [|k]; cbn; try lia.
  - apply F, nth_In. lia.
  - apply IH; [exact S' | lia | lia].
Qed.

Lemma all_nth : forall l : list Z, map (fun j => nth j l 0) (seq 0 (length l)) = l.
Proof.
  induction l as [|x rest IH]; [reflexivity|]. cbn. f_equal. rewrite <- seq_shift, map_map.
  exact IH.
Qed.

(* ---- A relation between any two of a list, in whatever order. ---- *)

Section Pairs.
Variable R : Z -> Z -> Prop.
Hypothesis both_ways : forall x y, R x y -> R y x.

Lemma pairs_permuted : forall l k, Permutation l k ->
  ForallOrdPairs R l -> ForallOrdPairs R k.
Proof.
  intros l k P. induction P as [|x l k P IH|x y l|l k q _ IH1 _ IH2]; intros H.
  - exact H.
  - inversion H as [|? ? F G]; subst. constructor; [|exact (IH G)].
    apply (Permutation_Forall P F).
  - inversion H as [|? ? F G]; subst. inversion G as [|? ? F' G']; subst.
    inversion F as [|? ? XY F'']; subst. constructor; [constructor; [apply both_ways, XY|]|].
    + exact F'.
    + constructor; assumption.
  - exact (IH2 (IH1 H)).
Qed.

Lemma pairs_nth : forall l j k, ForallOrdPairs R l -> (j < k)%nat -> (k < length l)%nat ->
  R (nth j l 0) (nth k l 0).
Proof.
  induction l as [|x rest IH]; intros j k H J K; cbn in K; [lia|].
  inversion H as [|? ? F G]; subst. destruct k as [|k]; [lia|]. destruct j as [|j]; cbn.
  - rewrite Forall_forall in F. apply F, nth_In. lia.
  - apply IH; [exact G | lia | lia].
Qed.

Lemma pairs_seq : forall (f : nat -> Z) n a, (forall j k, (a <= j)%nat -> (j < k)%nat ->
  (k < a + n)%nat -> R (f j) (f k)) -> ForallOrdPairs R (map f (seq a n)).
Proof.
  intros f. induction n as [|n IH]; intros a H; cbn; constructor.
  - apply Forall_forall. intros y I. apply in_map_iff in I as (k & <- & I). apply in_seq in I.
    apply H; lia.
  - apply IH. intros j k A J K. apply H; lia.
Qed.
End Pairs.
