(* BPipe's objective: of a pair of ranks that move activations between them, one holds
   ceil((p + 2) / 2) at some moment, whatever is moved when (Kim et al., ICML 2023, section 3.3).

   1F1B runs on rank i, the evictor, and on rank p - 1 - i, the acceptor. From the first backward of
   the evictor on, both are full for p - i periods: they hold p - i and i + 1 activations, p + 1
   together. For even p that is pigeonhole. For odd p both could hold half; but the evictor holds
   fewer than are in flight, so one lies on the acceptor, and on its way back it counts on both. *)

Require Import ZArith Lia List Bool PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Pipeline Sums StageStarts OneF1B Peaks.
Import ListNotations.
Open Scope Z_scope.

Section Pair.

Variables (p m : nat) (tF tB : Z).
Notation given := (pipeline p m tF tB).
Notation rows := (schedule_1f1b p m tF tB).
Notation s := (start_1f1b p tF tB).
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis enough : (2 * p <= m)%nat.
Hypothesis F_takes_time : 1 <= tF.
Hypothesis B_takes_time : 1 <= tB.

Notation acceptor i := (p - 1 - i)%nat.

Ltac product a b := assert (0 <= a * b) by (apply Z.mul_nonneg_nonneg; lia).
Ltac products a := product a tF; product a tB.
Ltac cases := cbn [start_1f1b]; cbv zeta;
  repeat match goal with |- context [Nat.ltb ?a ?b] => destruct (PeanoNat.Nat.ltb_spec a b) end;
  try (exfalso; lia).

Lemma complete_1f1b : complete action given rows.
Proof. apply valid_1f1b; lia. Qed.

(* ---- Both are full. ---- *)

(* From the last forward of the warm-up to the end of the backward beside which the last one ran. *)
Definition full (i : nat) (now : Z) := s (F i (p - i - 1)) <= now < s (B i (m - (p - i))) + tB.

Lemma full_holds : forall i now, (i < p)%nat -> full i now ->
  held p m tF tB rows i now = Z.of_nat (p - i).
Proof.
  intros i now Hi [L U]. apply Z.le_antisymm.
  - assert (P := peak_1f1b p m tF tB some_ranks ltac:(lia) F_takes_time B_takes_time i Hi).
    destruct P as [P _]. specialize (P now). replace (Nat.min (p - i) m) with (p - i)%nat in P by lia.
    exact P.
  - assert (SF : forall j, (j < m)%nat -> first_start action same_action rows (F i j) = s (F i j))
      by (intros; apply starts_of_rows, is_F; lia).
    assert (SB : forall j, (j < m)%nat -> first_start action same_action rows (B i j) = s (B i j))
      by (intros; apply starts_of_rows, is_B; lia).
    apply held_at_least; [exact complete_1f1b | exact Hi | lia|..].
    + intros j Hj. rewrite SF by lia. revert L. products (Z.of_nat p - Z.of_nat i - 1 - Z.of_nat j).
      cases. rewrite !Nat2Z.inj_sub by lia. lia.
    + intros j Hj. rewrite SF, SB by lia. products (Z.of_nat j).
      cases. rewrite Nat2Z.inj_add, Nat2Z.inj_sub by lia. lia.
    + intros j Hj Hm. rewrite SB by lia. revert U.
      products (Z.of_nat j - (Z.of_nat m - (Z.of_nat p - Z.of_nat i))).
      cases. rewrite !Nat2Z.inj_sub by lia. lia.
Qed.

(* While the evictor runs its backwards 0 to p - i - 1, both are full. *)
Lemma evictor_full : forall i j, (2 * i < p)%nat -> (j < p - i)%nat ->
  forall now, s (B i 0) <= now -> now <= s (B i j) -> full i now /\ full (acceptor i) now.
Proof.
  intros i j Hi Hj now. unfold full. replace (p - acceptor i)%nat with (i + 1)%nat by lia.
  replace (i + 1 - 1)%nat with i by lia.
  cases. rewrite !Nat2Z.inj_sub by lia. rewrite !Nat2Z.inj_add. cbn [Z.of_nat Pos.of_succ_nat].
  rewrite ?Nat2Z.inj_sub by lia. products (Z.of_nat j). products (Z.of_nat i).
  products (Z.of_nat p - 1 - Z.of_nat i). products (Z.of_nat p - 1 - 2 * Z.of_nat i).
  products (Z.of_nat m - Z.of_nat p + Z.of_nat i - Z.of_nat j).
  intros L U. split; split; lia.
Qed.

(* ---- A plan of transfers. ---- *)

Lemma sum_difference : forall f g n, sum n (fun j => f j - g j) = sum n f - sum n g.
Proof. intros f g. induction n as [|n IH]; cbn [sum]; [reflexivity|]. rewrite IH. lia. Qed.

Lemma sum_above : forall f g n j, (forall k, (k < n)%nat -> f k <= g k) -> (j < n)%nat ->
  f j + 1 <= g j -> sum n f + 1 <= sum n g.
Proof.
  intros f g. induction n as [|n IH]; intros j H L E; [lia|]. cbn [sum].
  assert (f n <= g n) by (apply H; lia).
  assert (M : forall k, (k < n)%nat -> f k <= g k) by (intros k K; apply H; lia).
  destruct (Nat.eq_dec j n) as [->|D].
  - assert (sum n f <= sum n g) by (apply sum_le; exact M). lia.
  - specialize (IH j M ltac:(lia) E). lia.
Qed.

Lemma one_is_absent : forall (f : nat -> bool) n, sum n (fun j => one (f j)) < Z.of_nat n ->
  exists j, (j < n)%nat /\ f j = false.
Proof.
  intros f. induction n as [|n IH]; intros L; cbn [sum] in L; [lia|].
  destruct (f n) eqn:E; cbn [one] in L; [|exists n; split; [lia | exact E]].
  destruct IH as (j & Hj & Ej); [lia|]. exists j. split; [lia | exact Ej].
Qed.

Lemma sum_part : forall (f : nat -> bool) k n, (k <= n)%nat ->
  sum k (fun j => one (f j)) <= sum n (fun j => one (f j)).
Proof.
  intros f k n L. replace n with (k + (n - k))%nat by lia. rewrite sum_app.
  enough (0 <= sum (n - k) (fun j => one (f (k + j)%nat))) by lia.
  rewrite <- (sum_zero (n - k)). apply sum_le. intros j _. destruct (f _); cbn; lia.
Qed.

(* Microbatch j of the evictor is in flight. *)
Definition in_flight (i : nat) (now : Z) (j : nat) := s (F i j) <= now < s (B i j) + tB.

(* Where the evictor's activations lie: somewhere while in flight, on the evictor while its backward
   runs, and for a moment on both when one comes back; neither rank holds more than `most`, the
   acceptor's own counted. *)
Record plan (i : nat) (most : Z) (on_evictor on_acceptor : Z -> nat -> bool) : Prop := Plan {
  kept_somewhere : forall now j, (j < m)%nat -> in_flight i now j ->
    on_evictor now j = true \/ on_acceptor now j = true;
  there_for_its_backward : forall j, (j < m)%nat -> on_evictor (s (B i j)) j = true;
  counts_twice : forall j from until, from <= until ->
    on_acceptor from j = true -> on_evictor from j = false -> on_evictor until j = true ->
    exists now, from <= now <= until /\ on_evictor now j = true /\ on_acceptor now j = true;
  evictor_within : forall now, sum m (fun j => one (on_evictor now j)) <= most;
  acceptor_within : forall now,
    sum m (fun j => one (on_acceptor now j)) + held p m tF tB rows (acceptor i) now <= most }.

Lemma flight_begins : forall i j, (i < p)%nat -> (j < p - i)%nat ->
  s (F i j) <= s (B i 0) /\ s (B i 0) <= s (B i j).
Proof.
  intros i j Hi Hj. products (Z.of_nat j). products (Z.of_nat p - Z.of_nat i - 1 - Z.of_nat j).
  products (Z.of_nat p - 1 - Z.of_nat i). cases. lia.
Qed.

Theorem no_plan_is_better : forall i most on_evictor on_acceptor,
  (2 * i < p)%nat -> most < Z.of_nat (p - i) -> plan i most on_evictor on_acceptor ->
  Z.of_nat p + 2 <= 2 * most.
Proof.
  intros i most e a Hi Hmost P.
  assert (exists j, (j < p - i)%nat /\ e (s (B i 0)) j = false) as (j & Hj & Ej).
  { apply one_is_absent. assert (W := evictor_within _ _ _ _ P (s (B i 0))).
    assert (L := sum_part (e (s (B i 0))) (p - i) m ltac:(lia)). lia. }
  destruct (flight_begins i j ltac:(lia) Hj) as [F1 F2].
  assert (Aj : a (s (B i 0)) j = true).
  { destruct (kept_somewhere _ _ _ _ P (s (B i 0)) j ltac:(lia)); [|congruence|assumption].
    unfold in_flight. lia. }
  destruct (counts_twice _ _ _ _ P j _ _ F2 Aj Ej (there_for_its_backward _ _ _ _ P j ltac:(lia)))
    as (now & Hnow & En & An).
  destruct (evictor_full i j Hi Hj now) as [FE FA]; [lia | lia|].
  apply full_holds in FE; [|lia]. apply full_holds in FA; [|lia].
  assert (W1 := evictor_within _ _ _ _ P now). assert (W2 := acceptor_within _ _ _ _ P now).
  rewrite held_counts, <- sum_difference in FE by (exact complete_1f1b || lia).
  assert (SF : forall k, (k < m)%nat -> first_start action same_action rows (F i k) = s (F i k))
    by (intros; apply starts_of_rows, is_F; lia).
  assert (SB : forall k, (k < m)%nat -> first_start action same_action rows (B i k) = s (B i k))
    by (intros; apply starts_of_rows, is_B; lia).
  match type of FE with sum m ?f = _ =>
    assert (K : sum m f + 1 <= sum m (fun k => one (e now k) + one (a now k))) end.
  { apply sum_above with (j := j); [|lia|].
    - intros k Hk. unfold begun, over. rewrite SF, SB by exact Hk.
      destruct (Z.leb_spec (s (F i k)) now), (Z.leb_spec (s (B i k) + tB) now); cbn [one];
        destruct (e now k) eqn:E1, (a now k) eqn:E2; cbn [one]; try lia.
      destruct (kept_somewhere _ _ _ _ P now k Hk); [unfold in_flight; lia | congruence..].
    - rewrite En, An. unfold begun, over, one. destruct (_ <=? _), (_ <=? _); lia. }
  rewrite sum_add in K. lia.
Qed.

End Pair.
