(* 1F1B is valid and no schedule is faster, for all p, m >= 1 and tF, tB >= 0.

   Rank i runs its first p - i forwards as they arrive, and then one forward and one backward in
   turn. Left-shifted, with P = tF + tB:

       F(i,j) starts at (i + j) tF        for j < p - i  (the pipeline fills)
                     at i tF + j P        from there on  (one forward a period)
       B(i,j) starts at p tF + (p - 1 - i) tB + j P

   so that F(i,j) runs just before B(i, j - (p - i)). *)

Require Import ZArith Lia List.
From Bubbleproof Require Import Definitions Starts Pipeline.
Open Scope Z_scope.

Section OneF1B.

Variables (p m : nat) (tF tB : Z).

Definition start_1f1b (t : action) : Z :=
  let P := tF + tB in
  match t with
  | F i j => if Nat.ltb j (p - i) then (Z.of_nat i + Z.of_nat j) * tF
             else Z.of_nat i * tF + Z.of_nat j * P
  | B i j => Z.of_nat p * tF + (Z.of_nat p - 1 - Z.of_nat i) * tB + Z.of_nat j * P
  end.

Definition schedule_1f1b : schedule action := rows_of action (pipeline p m tF tB) start_1f1b.

(* The inequalities are linear once each product of a count and a duration is known to be no less
   than 0; `product` says so of one, `cases` opens the closed form. *)
Ltac product a b := assert (0 <= a * b) by (apply Z.mul_nonneg_nonneg; lia).
Ltac products a := product a tF; product a tB.
Ltac cases := cbn [start_1f1b]; cbv zeta;
  repeat match goal with |- context [Nat.ltb ?a ?b] => destruct (PeanoNat.Nat.ltb_spec a b) end;
  try (exfalso; lia).

Theorem valid_1f1b : (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  valid action (pipeline p m tF tB) schedule_1f1b /\
  within action (pipeline p m tF tB) schedule_1f1b 0
    ((Z.of_nat m + Z.of_nat p - 1) * (tF + tB)).
Proof.
  intros Hp Hm HF HB. apply closed_form.
  - intros i j Hi Hj. products (Z.of_nat i). products (Z.of_nat j).
    products (Z.of_nat m - 1 - Z.of_nat j). products (Z.of_nat p - 1 - Z.of_nat i). cases; lia.
  - intros i j Hi Hj. products (Z.of_nat i). products (Z.of_nat j).
    products (Z.of_nat m - 1 - Z.of_nat j). products (Z.of_nat p - 1 - Z.of_nat i). cases; lia.
  - intros i j Hi Hj. products (Z.of_nat j). products (Z.of_nat p - 1 - Z.of_nat i). cases; lia.
  - intros i j Hi Hj. products (Z.of_nat j). cases; lia.
  - intros i j Hi Hj. cases; lia.
  - intros i j k Hi L Hk. products (Z.of_nat k - Z.of_nat j - 1). products (Z.of_nat k).
    cases; lia.
  - intros i j k Hi L Hk. products (Z.of_nat k - Z.of_nat j - 1). cases; lia.
  - (* F(i,j) ends before B(i,k) starts where j < k + p - i, and starts after it otherwise. *)
    intros i j k Hi Hj Hk. unfold apart. products (Z.of_nat p - 1 - Z.of_nat i).
    products (Z.of_nat k).
    destruct (PeanoNat.Nat.ltb_spec j (k + (p - i))) as [L|L]; [left|right].
    + products (Z.of_nat k + (Z.of_nat p - Z.of_nat i) - 1 - Z.of_nat j). cases; [|lia].
      products (Z.of_nat p - Z.of_nat i - Z.of_nat j - 1). lia.
    + products (Z.of_nat j - Z.of_nat k - (Z.of_nat p - Z.of_nat i)). cases. lia.
Qed.

Theorem optimal_1f1b : (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  (valid action (pipeline p m tF tB) schedule_1f1b /\
   within action (pipeline p m tF tB) schedule_1f1b 0
     ((Z.of_nat m + Z.of_nat p - 1) * (tF + tB))) /\
  forall rows first last,
    valid action (pipeline p m tF tB) rows -> within action (pipeline p m tF tB) rows first last ->
    (Z.of_nat m + Z.of_nat p - 1) * (tF + tB) <= last - first.
Proof.
  intros Hp Hm HF HB. split; [apply valid_1f1b | apply pipeline_lower_bound]; assumption.
Qed.

End OneF1B.
