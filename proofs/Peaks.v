(* What a rank holds: one activation of a microbatch from the start of its forward to the end of its
   backward (Stores.v). The peak of 1F1B on rank i is min(p - i, m), that of GPipe is m, for all
   p, m >= 1 and tF, tB >= 0. What it costs to hold less is in Frontier.v. *)

Require Import ZArith Lia List FinFun PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Pipeline Sums StageStarts OneF1B
  GPipe.
Import ListNotations.
Open Scope Z_scope.

Section Peaks.

Variables (p m : nat) (tF tB : Z).
Notation given := (pipeline p m tF tB).

Definition held (rows : schedule action) (i : nat) (now : Z) : Z := held_in given m rows i now.

Definition peak_is (rows : schedule action) (i : nat) (n : Z) :=
  (forall now, held rows i now <= n) /\ exists now, held rows i now = n.

(* ---- What is held, counted. ---- *)

Lemma housed_here : forall t, In t (tasks _ given) -> homes _ given t <> [].
Proof. intros [i j|i j] _; discriminate. Qed.

Definition begun (s : action -> Z) i now j := one (s (F i j) <=? now).
Definition over (s : action -> Z) i now j := one (s (B i j) + tB <=? now).

Section OfRows.

Variable rows : schedule action.
Hypothesis all_there : complete action given rows.
Notation s := (first_start action same_action rows).

Lemma held_counts : forall i now, (i < p)%nat ->
  held rows i now = sum m (begun s i now) - sum m (over s i now).
Proof.
  intros i now Hi. apply (uses_count action same_action given housed_here rows all_there m (F i) (B i));
    intros j Hj; [apply is_F | apply is_B]; lia.
Qed.

(* Where the k-th forward but K never starts before the k-th backward has ended, K are held. *)
Lemma held_at_most : forall i k, (i < p)%nat ->
  (forall j, (k + j < m)%nat -> s (B i j) + tB <= s (F i (k + j))) ->
  forall now, held rows i now <= Z.of_nat k.
Proof.
  intros i k Hi H now. rewrite (held_counts i now Hi).
  assert (U : forall n, sum n (begun s i now) <= Z.of_nat n).
  { intros n. rewrite <- (sum_one n). apply sum_le. intros j _. unfold begun, one.
    destruct (_ <=? _); lia. }
  assert (N : forall n, 0 <= sum n (over s i now)).
  { intros n. rewrite <- (sum_zero n). apply sum_le. intros j _. unfold over, one.
    destruct (_ <=? _); lia. }
  destruct (Nat.le_gt_cases m k) as [L|L]; [specialize (U m); specialize (N m); lia|].
  assert (exists n, m = (k + n)%nat) as (n & E) by (exists (m - k)%nat; lia).
  assert (sum m (begun s i now) <= Z.of_nat k + sum n (over s i now)) as P.
  { rewrite E, sum_app. specialize (U k).
    enough (sum n (fun j => begun s i now (k + j)) <= sum n (over s i now)) by lia.
    apply sum_le. intros j Hj. specialize (H j). unfold begun, over, one.
    destruct (Z.leb_spec (s (F i (k + j))) now), (Z.leb_spec (s (B i j) + tB) now); lia. }
  enough (sum n (over s i now) <= sum m (over s i now)) by lia.
  replace m with (n + (m - n))%nat by lia. rewrite sum_app.
  enough (0 <= sum (m - n) (fun j => over s i now (n + j))) by lia.
  rewrite <- (sum_zero (m - n)). apply sum_le. intros j _. unfold over, one.
  destruct (_ <=? _); lia.
Qed.

(* Where the k-th forward but k has begun when the k-th backward ends, k are held. *)
Lemma held_at_least : forall i k now, (i < p)%nat -> (k <= m)%nat ->
  (forall j, (j < k)%nat -> s (F i j) <= now) ->
  (forall j, (k + j < m)%nat -> s (F i (k + j)) <= s (B i j) + tB) ->
  (forall j, (m <= k + j)%nat -> (j < m)%nat -> now < s (B i j) + tB) ->
  Z.of_nat k <= held rows i now.
Proof.
  intros i k now Hi Hk H1 H2 H3. rewrite (held_counts i now Hi).
  assert (exists n, m = (k + n)%nat) as (n & E) by (exists (m - k)%nat; lia).
  assert (sum m (begun s i now) = Z.of_nat k + sum n (fun j => begun s i now (k + j))) as ->.
  { rewrite E at 1. rewrite sum_app, (sum_ext k _ (fun _ => 1)), sum_one; [reflexivity|].
    intros j Hj. specialize (H1 j Hj). unfold begun, one.
    destruct (Z.leb_spec (s (F i j)) now); lia. }
  assert (sum m (over s i now) = sum n (over s i now)) as ->.
  { replace m with (n + k)%nat by lia. rewrite sum_app, (sum_ext k _ (fun _ => 0)), sum_zero;
      [lia|]. intros j Hj. assert (now < s (B i (n + j)) + tB) by (apply H3; lia).
    unfold over, one. destruct (Z.leb_spec (s (B i (n + j)) + tB) now); lia. }
  enough (sum n (over s i now) <= sum n (fun j => begun s i now (k + j))) by lia.
  apply sum_le. intros j Hj. assert (s (F i (k + j)) <= s (B i j) + tB) by (apply H2; lia).
  unfold begun, over, one.
  destruct (Z.leb_spec (s (F i (k + j))) now), (Z.leb_spec (s (B i j) + tB) now); lia.
Qed.

(* At `now` the first k forwards have begun, no other, and no backward is over. *)
Lemma held_exactly : forall i k now, (i < p)%nat -> (k <= m)%nat ->
  (forall j, (j < k)%nat -> s (F i j) <= now) ->
  (forall j, (k <= j)%nat -> (j < m)%nat -> now < s (F i j)) ->
  (forall j, (j < m)%nat -> now < s (B i j) + tB) -> held rows i now = Z.of_nat k.
Proof.
  intros i k now Hi Hk H1 H2 H3. rewrite (held_counts i now Hi).
  assert (E : sum m (over s i now) = 0).
  { rewrite <- (sum_zero m). apply sum_ext. intros j Hj. specialize (H3 j Hj).
    unfold over, one. destruct (Z.leb_spec (s (B i j) + tB) now); lia. }
  rewrite E. replace m with (k + (m - k))%nat by lia. rewrite sum_app.
  rewrite (sum_ext k _ (fun _ => 1)), sum_one, (sum_ext (m - k) _ (fun _ => 0)), sum_zero.
  - lia.
  - intros j Hj. assert (now < s (F i (k + j))) by (apply H2; lia). unfold begun, one.
    destruct (Z.leb_spec (s (F i (k + j))) now); lia.
  - intros j Hj. assert (s (F i j) <= now) by (apply H1; lia). unfold begun, one.
    destruct (Z.leb_spec (s (F i j)) now); lia.
Qed.

End OfRows.

Lemma starts_of_rows : forall (s : action -> Z) t, In t (tasks _ given) ->
  first_start action same_action (rows_of action given s) t = s t.
Proof. exact (starts_of_rows action same_action given housed_here). Qed.

Ltac product a b := assert (0 <= a * b) by (apply Z.mul_nonneg_nonneg; lia).
Ltac products a := product a tF; product a tB.
Ltac cases := cbn [start_1f1b start_gpipe]; cbv zeta;
  repeat match goal with |- context [Nat.ltb ?a ?b] => destruct (PeanoNat.Nat.ltb_spec a b) end;
  try (exfalso; lia).

Theorem peak_1f1b : (1 <= p)%nat -> (1 <= m)%nat -> 1 <= tF -> 1 <= tB ->
  forall i, (i < p)%nat -> peak_is (schedule_1f1b p m tF tB) i (Z.of_nat (Nat.min (p - i) m)).
Proof.
  intros Hp Hm HF HB i Hi.
  assert (V : valid action given (schedule_1f1b p m tF tB)) by (apply valid_1f1b; lia).
  assert (C : complete action given (schedule_1f1b p m tF tB)) by apply V.
  assert (SF : forall j, (j < m)%nat -> first_start action same_action (schedule_1f1b p m tF tB) (F i j)
    = start_1f1b p tF tB (F i j)) by (intros; apply starts_of_rows, is_F; lia).
  assert (SB : forall j, (j < m)%nat -> first_start action same_action (schedule_1f1b p m tF tB) (B i j)
    = start_1f1b p tF tB (B i j)) by (intros; apply starts_of_rows, is_B; lia).
  split.
  - apply held_at_most; [exact C | exact Hi|]. intros j Hj. rewrite SF, SB by lia.
    products (Z.of_nat j). products (Z.of_nat (Nat.min (p - i) m) - (Z.of_nat p - Z.of_nat i)).
    all: assert (Nat.min (p - i) m = p - i)%nat as -> by lia; cases; nia.
  - exists (start_1f1b p tF tB (F i (Nat.min (p - i) m - 1))).
    apply held_exactly; [exact C | exact Hi | lia|..].
    + intros j Hj. rewrite SF by lia. products (Z.of_nat (Nat.min (p - i) m - 1) - Z.of_nat j).
      cases; nia.
    + intros j Hj Hm'. rewrite SF by lia.
      products (Z.of_nat j - Z.of_nat (Nat.min (p - i) m - 1) - 1). products (Z.of_nat j).
      cases; nia.
    + intros j Hj. rewrite SB by lia. products (Z.of_nat j).
      products (Z.of_nat p - 1 - Z.of_nat i).
      products (Z.of_nat (Nat.min (p - i) m - 1)).
      products (Z.of_nat p - Z.of_nat i - 1 - Z.of_nat (Nat.min (p - i) m - 1)).
      cases; nia.
Qed.

Theorem peak_gpipe : (1 <= p)%nat -> (1 <= m)%nat -> 1 <= tF -> 1 <= tB ->
  forall i, (i < p)%nat -> peak_is (schedule_gpipe p m tF tB) i (Z.of_nat m).
Proof.
  intros Hp Hm HF HB i Hi.
  assert (V : valid action given (schedule_gpipe p m tF tB)) by (apply valid_gpipe; lia).
  assert (C : complete action given (schedule_gpipe p m tF tB)) by apply V.
  assert (SF : forall j, (j < m)%nat -> first_start action same_action (schedule_gpipe p m tF tB) (F i j)
    = start_gpipe p m tF tB (F i j)) by (intros; apply starts_of_rows, is_F; lia).
  assert (SB : forall j, (j < m)%nat -> first_start action same_action (schedule_gpipe p m tF tB) (B i j)
    = start_gpipe p m tF tB (B i j)) by (intros; apply starts_of_rows, is_B; lia).
  split.
  - apply held_at_most; [exact C | exact Hi | intros j Hj; lia].
  - exists (start_gpipe p m tF tB (F i (m - 1))).
    apply held_exactly; [exact C | exact Hi | lia|..].
    + intros j Hj. rewrite SF by lia. products (Z.of_nat (m - 1) - Z.of_nat j). cases. nia.
    + intros j Hj Hm'. lia.
    + intros j Hj. rewrite SB by lia. products (Z.of_nat p - 1 - Z.of_nat i + Z.of_nat j).
      products (Z.of_nat p - 1 - Z.of_nat i). cases. nia.
Qed.

End Peaks.
