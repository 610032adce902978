(* GPipe is valid and no schedule is faster, for all p, m >= 1 and tF, tB >= 0.

   Each rank runs all its forwards, and then all its backwards, in the order of the microbatches.
   Left-shifted:

       F(i,j) starts at (i + j) tF
       B(i,j) starts at (m + p - 1) tF + (p - 1 - i + j) tB *)

Require Import ZArith Lia List.
From Bubbleproof Require Import Definitions Starts Pipeline.
Open Scope Z_scope.

Section GPipe.

Variables (p m : nat) (tF tB : Z).

Definition start_gpipe (t : action) : Z :=
  match t with
  | F i j => (Z.of_nat i + Z.of_nat j) * tF
  | B i j => (Z.of_nat m + Z.of_nat p - 1) * tF
             + (Z.of_nat p - 1 - Z.of_nat i + Z.of_nat j) * tB
  end.

Definition schedule_gpipe : schedule action := rows_of action (pipeline p m tF tB) start_gpipe.

Ltac product a b := assert (0 <= a * b) by (apply Z.mul_nonneg_nonneg; lia).
Ltac products a := product a tF; product a tB.

Theorem valid_gpipe : (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  valid action (pipeline p m tF tB) schedule_gpipe /\
  within action (pipeline p m tF tB) schedule_gpipe 0
    ((Z.of_nat m + Z.of_nat p - 1) * (tF + tB)).
Proof.
  intros Hp Hm HF HB. apply closed_form; cbn [start_gpipe].
  - intros i j Hi Hj. products (Z.of_nat i + Z.of_nat j).
    products (Z.of_nat m - 1 - Z.of_nat j + (Z.of_nat p - 1 - Z.of_nat i)).
    products (Z.of_nat m + Z.of_nat p - 1). lia.
  - intros i j Hi Hj. products (Z.of_nat m + Z.of_nat p - 1).
    products (Z.of_nat p - 1 - Z.of_nat i + Z.of_nat j).
    products (Z.of_nat m - 1 - Z.of_nat j + Z.of_nat i). lia.
  - intros i j Hi Hj. products (Z.of_nat p - 1 - Z.of_nat i + Z.of_nat j).
    products (Z.of_nat m - 1 - Z.of_nat j + (Z.of_nat p - 1 - Z.of_nat i)). lia.
  - intros i j Hi Hj. lia.
  - intros i j Hi Hj. lia.
  - intros i j k Hi L Hk. products (Z.of_nat k - Z.of_nat j - 1). lia.
  - intros i j k Hi L Hk. products (Z.of_nat k - Z.of_nat j - 1). lia.
  - intros i j k Hi Hj Hk. left. products (Z.of_nat p - 1 - Z.of_nat i + Z.of_nat k).
    products (Z.of_nat m - 1 - Z.of_nat j + (Z.of_nat p - 1 - Z.of_nat i)). lia.
Qed.

Theorem optimal_gpipe : (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  (valid action (pipeline p m tF tB) schedule_gpipe /\
   within action (pipeline p m tF tB) schedule_gpipe 0
     ((Z.of_nat m + Z.of_nat p - 1) * (tF + tB))) /\
  forall rows first last,
    valid action (pipeline p m tF tB) rows -> within action (pipeline p m tF tB) rows first last ->
    (Z.of_nat m + Z.of_nat p - 1) * (tF + tB) <= last - first.
Proof.
  intros Hp Hm HF HB. split; [apply valid_gpipe | apply pipeline_lower_bound]; assumption.
Qed.

End GPipe.
