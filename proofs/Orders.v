(* The orders of the theorems as programs: each rank's tasks in the order of their starts in closed
   form, to be compared with the package's families (proofs/orders.ml prints them). *)

Require Import ZArith List Lia Permutation Sorted.
From Bubbleproof Require Import Definitions Pipeline OneF1B GPipe ZBH1.
Import ListNotations.
Open Scope Z_scope.

Section ByStart.

Variable A : Type.
Variable start : A -> Z.

Fixpoint put (k : Z) (x : A) (l : list (Z * A)) : list (Z * A) :=
  match l with
  | [] => [(k, x)]
  | y :: rest => if k <=? fst y then (k, x) :: l else y :: put k x rest
  end.

Definition by_start (l : list A) : list A :=
  map snd (fold_right (fun x => put (start x) x) [] l).

(* It is the same tasks, and each starts no later than the next. *)
Lemma put_permutes : forall k x l, Permutation ((k, x) :: l) (put k x l).
Proof.
  intros k x. induction l as [|y rest IH]; cbn; [reflexivity|].
  destruct (k <=? fst y); [reflexivity|]. rewrite <- IH. constructor.
Qed.

Theorem by_start_permutes : forall l, Permutation l (by_start l).
Proof.
  intros l. unfold by_start.
  assert (P : Permutation (map (fun x => (start x, x)) l)
    (fold_right (fun x => put (start x) x) [] l)).
  { induction l as [|x l IH]; cbn; [constructor|]. rewrite <- put_permutes. constructor. exact IH. }
  apply (Permutation_map snd) in P. rewrite map_map, map_id in P. exact P.
Qed.

Definition rising (x y : Z * A) := fst x <= fst y.

Lemma put_sorted : forall k x l, StronglySorted rising l -> StronglySorted rising (put k x l).
Proof.
  intros k x l S. induction S as [|y rest S IH F]; cbn; [repeat constructor|].
  rewrite Forall_forall in F. destruct (Z.leb_spec k (fst y)) as [L|L].
  - constructor; [constructor; [exact S | apply Forall_forall, F]|].
    apply Forall_forall. intros z [<-|I]; [exact L|]. specialize (F z I). unfold rising in *. cbn in *. lia.
  - constructor; [exact IH|]. apply Forall_forall. intros z I.
    apply (Permutation_in _ (Permutation_sym (put_permutes k x rest))) in I.
    destruct I as [<-|I]; [unfold rising; cbn; lia | exact (F z I)].
Qed.

Theorem by_start_sorted : forall l, StronglySorted (fun x y => start x <= start y) (by_start l).
Proof.
  intros l. unfold by_start.
  assert (S : StronglySorted rising (fold_right (fun x => put (start x) x) [] l)).
  { induction l as [|x l IH]; cbn; [constructor|]. apply put_sorted, IH. }
  assert (K : forall y, In y (fold_right (fun x => put (start x) x) [] l) -> fst y = start (snd y)).
  { induction l as [|x l IH]; cbn; [intros y []|]. intros y I.
    apply (Permutation_in _ (Permutation_sym (put_permutes _ _ _))) in I.
    inversion S as [|? ? ? ?]; [|]; destruct I as [<-|I]; try reflexivity; apply IH; try exact I;
      clear; induction l as [|z l IH']; cbn; try constructor; apply put_sorted, IH'. }
  induction S as [|y rest S IH F]; cbn; constructor.
  - apply IH. intros z I. apply K. right. exact I.
  - apply Forall_forall. intros z I. apply in_map_iff in I as (w & <- & I).
    rewrite Forall_forall in F. specialize (F w I). unfold rising in F.
    rewrite (K y (or_introl eq_refl)), (K w (or_intror I)) in F. exact F.
Qed.

End ByStart.

(* What stands in a program: a letter's number (F 0, B 1, I 2, W 3), a stage, a microbatch. *)
Definition told := (nat * (nat * nat))%type.

Definition told_action (a : action) : told :=
  match a with F i j => (0, (i, j))%nat | B i j => (1, (i, j))%nat end.
Definition told_split (x : part * (nat * nat)) : told :=
  (match fst x with Fwd => 0 | Inp => 2 | Wgt => 3 end%nat, snd x).

Definition order_1f1b (p m i : nat) : list told :=
  map told_action (by_start action (start_1f1b p 1 2) (work m i)).
Definition order_gpipe (p m i : nat) : list told :=
  map told_action (by_start action (start_gpipe p m 1 2) (work m i)).
Definition order_zbh1 (p m i : nat) : list told :=
  map told_split (by_start _ (start_zbh1 p m 1) (split_work m i)).

(* Interleaved 1F1B with p | m by its places: theorem `interleaved` (Z3) has their starts. Place x of
   the forwards is microbatch x mod p of a group of p, on chunk (x / p) mod v. *)
Definition at_place (p v x : nat) : nat * nat :=
  (Nat.modulo (x / p) v, x / (p * v) * p + Nat.modulo x p)%nat.
Definition interleaved_forward (p v r x : nat) : told :=
  let (c, j) := at_place p v x in (0, (c * p + r, j))%nat.
Definition interleaved_backward (p v r x : nat) : told :=
  let (c, j) := at_place p v x in (1, ((v - 1 - c) * p + r, j))%nat.
Definition order_interleaved (p v m r : nat) : list told :=
  let n := (m * v)%nat in
  let warm := Nat.min ((v - 1) * p + 1 + 2 * (p - 1 - r)) n in
  map (interleaved_forward p v r) (seq 0 warm) ++
  flat_map (fun x => interleaved_backward p v r x ::
    (if Nat.ltb (warm + x) n then [interleaved_forward p v r (warm + x)] else [])) (seq 0 n).
