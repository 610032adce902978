(* What a rank holds: one activation of a microbatch from the start of its forward to the end of its
   backward (Stores.v). The peak of 1F1B on rank i is min(p - i, m), that of GPipe is m, for all
   p, m >= 1 and tF, tB >= 0. What it costs to hold less is in MemoryBound.v. *)

Require Import ZArith Lia List FinFun PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Packing Pipeline OneF1B GPipe.
Import ListNotations.
Open Scope Z_scope.

Section Peaks.

Variables (p m : nat) (tF tB : Z).
Notation given := (pipeline p m tF tB).

Definition activations (i : nat) : store action := Store action 0 None
  (map (fun j => Event action (F i j) false 1) (seq 0 m) ++
   map (fun j => Event action (B i j) true (-1)) (seq 0 m)).

Definition held (rows : schedule action) (i : nat) (now : Z) : Z :=
  load action same_action given rows (activations i) now.

Definition peak_is (rows : schedule action) (i : nat) (n : Z) :=
  (forall now, held rows i now <= n) /\ exists now, held rows i now = n.

(* ---- What is held, counted. ---- *)

Fixpoint total (f : nat -> Z) (n : nat) : Z :=
  match n with O => 0 | S k => total f k + f k end.

Definition yes (b : bool) : Z := if b then 1 else 0.
Definition begun (s : action -> Z) i now j := yes (s (F i j) <=? now).
Definition over (s : action -> Z) i now j := yes (s (B i j) + tB <=? now).

Lemma total_more : forall f g n, (forall j, (j < n)%nat -> f j <= g j) -> total f n <= total g n.
Proof.
  intros f g. induction n as [|n IH]; intros H; cbn; [lia|].
  assert (f n <= g n) by (apply H; lia). assert (total f n <= total g n); [|lia].
  apply IH. intros j L. apply H. lia.
Qed.

Lemma total_same : forall f g n, (forall j, (j < n)%nat -> f j = g j) -> total f n = total g n.
Proof.
  intros f g n H. apply Z.le_antisymm; apply total_more; intros j L; rewrite (H j L); lia.
Qed.

Lemma total_shift : forall f k n, total f (k + n) = total f k + total (fun j => f (k + j)%nat) n.
Proof.
  intros f k. induction n as [|n IH]; cbn; [rewrite Nat.add_0_r; lia|].
  rewrite Nat.add_succ_r. cbn. rewrite IH. lia.
Qed.

Lemma total_one : forall n, total (fun _ => 1) n = Z.of_nat n.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [total]. rewrite IH. lia. Qed.

Lemma total_zero : forall n, total (fun _ => 0) n = 0.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [total]. rewrite IH. lia. Qed.

Lemma added_app : forall rows now l k, added action same_action given rows now (l ++ k) =
  added action same_action given rows now l + added action same_action given rows now k.
Proof. intros rows now l k. induction l as [|e l IH]; cbn [added app]; [lia|]. rewrite IH. lia. Qed.

Section OfRows.

Variable rows : schedule action.
Hypothesis all_there : complete action given rows.
Notation s := (first_start action same_action rows).

Lemma moment_of : forall t at_e d, In t (tasks _ given) ->
  moment action same_action given rows (Event action t at_e d) =
  Some (if at_e then s t + duration _ given t else s t).
Proof.
  intros t at_e d I. unfold moment, first_start. cbn [owner at_end].
  destruct (find _ rows) as [x|] eqn:E.
  - apply find_some in E as [_ E]. apply same_task_iff in E. unfold finish. rewrite E. reflexivity.
  - exfalso. destruct all_there as (H & _ & _).
    assert (exists r, In r (homes _ given t)) as (r & Ir).
    { destruct t as [i j|i j]; exists (Z.of_nat i); left; reflexivity. }
    specialize (H t r I Ir). apply in_map_iff in H as (x & Ex & Ix).
    unfold site in Ex. injection Ex as _ Et. apply (find_none _ _ E) in Ix.
    rewrite (proj2 (same_task_iff _ _ _ _) Et) in Ix. discriminate.
Qed.

Lemma added_each : forall (f : nat -> action) at_e d now n,
  (n <= m)%nat -> (forall j, (j < m)%nat -> In (f j) (tasks _ given)) ->
  added action same_action given rows now (map (fun j => Event action (f j) at_e d) (seq 0 n)) =
  total (fun j => if (if at_e then s (f j) + duration _ given (f j) else s (f j)) <=? now
                  then d else 0) n.
Proof.
  intros f at_e d now. induction n as [|n IH]; intros L H; [reflexivity|].
  rewrite seq_S, map_app, added_app, IH by (lia || exact H). cbn [map added total Nat.add].
  rewrite moment_of by (apply H; lia). cbn [delta]. rewrite Z.add_0_r. reflexivity.
Qed.

Lemma held_counts : forall i now, (i < p)%nat ->
  held rows i now = total (begun s i now) m - total (over s i now) m.
Proof.
  intros i now Hi. unfold held, load, activations. cbn [base events]. rewrite added_app.
  rewrite (added_each (F i) false 1 now m), (added_each (B i) true (-1) now m); try lia;
    try (intros j Hj; first [apply is_F | apply is_B]; lia).
  rewrite Z.add_0_l. unfold Z.sub. apply f_equal2; [reflexivity|].
  assert (E : forall n, total (fun j => if s (B i j) + duration _ given (B i j) <=? now
    then -1 else 0) n = - total (over s i now) n); [|apply E].
  induction n as [|n IH]; [reflexivity|]. cbn [total]. rewrite IH. unfold over, yes. cbn [duration].
  change (duration _ given (B i n)) with tB. destruct (_ <=? now); lia.
Qed.

(* Where the k-th forward but K never starts before the k-th backward has ended, K are held. *)
Lemma held_at_most : forall i k, (i < p)%nat ->
  (forall j, (k + j < m)%nat -> s (B i j) + tB <= s (F i (k + j))) ->
  forall now, held rows i now <= Z.of_nat k.
Proof.
  intros i k Hi H now. rewrite (held_counts i now Hi).
  assert (U : forall n, total (begun s i now) n <= Z.of_nat n).
  { intros n. rewrite <- (total_one n). apply total_more. intros j _. unfold begun, yes.
    destruct (_ <=? _); lia. }
  assert (N : forall n, 0 <= total (over s i now) n).
  { intros n. rewrite <- (total_zero n). apply total_more. intros j _. unfold over, yes.
    destruct (_ <=? _); lia. }
  destruct (Nat.le_gt_cases m k) as [L|L]; [specialize (U m); specialize (N m); lia|].
  assert (exists n, m = (k + n)%nat) as (n & E) by (exists (m - k)%nat; lia).
  assert (total (begun s i now) m <= Z.of_nat k + total (over s i now) n) as P.
  { rewrite E, total_shift. specialize (U k).
    enough (total (fun j => begun s i now (k + j)) n <= total (over s i now) n) by lia.
    apply total_more. intros j Hj. specialize (H j). unfold begun, over, yes.
    destruct (Z.leb_spec (s (F i (k + j))) now), (Z.leb_spec (s (B i j) + tB) now); lia. }
  enough (total (over s i now) n <= total (over s i now) m) by lia.
  replace m with (n + (m - n))%nat by lia. rewrite total_shift.
  enough (0 <= total (fun j => over s i now (n + j)) (m - n)) by lia.
  rewrite <- (total_zero (m - n)). apply total_more. intros j _. unfold over, yes.
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
  assert (total (begun s i now) m = Z.of_nat k + total (fun j => begun s i now (k + j)) n) as ->.
  { rewrite E at 1. rewrite total_shift, (total_same _ (fun _ => 1) k), total_one; [reflexivity|].
    intros j Hj. specialize (H1 j Hj). unfold begun, yes.
    destruct (Z.leb_spec (s (F i j)) now); lia. }
  assert (total (over s i now) m = total (over s i now) n) as ->.
  { replace m with (n + k)%nat by lia. rewrite total_shift, (total_same _ (fun _ => 0) k), total_zero;
      [lia|]. intros j Hj. assert (now < s (B i (n + j)) + tB) by (apply H3; lia).
    unfold over, yes. destruct (Z.leb_spec (s (B i (n + j)) + tB) now); lia. }
  enough (total (over s i now) n <= total (fun j => begun s i now (k + j)) n) by lia.
  apply total_more. intros j Hj. assert (s (F i (k + j)) <= s (B i j) + tB) by (apply H2; lia).
  unfold begun, over, yes.
  destruct (Z.leb_spec (s (F i (k + j))) now), (Z.leb_spec (s (B i j) + tB) now); lia.
Qed.

(* At `now` the first k forwards have begun, no other, and no backward is over. *)
Lemma held_exactly : forall i k now, (i < p)%nat -> (k <= m)%nat ->
  (forall j, (j < k)%nat -> s (F i j) <= now) ->
  (forall j, (k <= j)%nat -> (j < m)%nat -> now < s (F i j)) ->
  (forall j, (j < m)%nat -> now < s (B i j) + tB) -> held rows i now = Z.of_nat k.
Proof.
  intros i k now Hi Hk H1 H2 H3. rewrite (held_counts i now Hi).
  assert (E : total (over s i now) m = 0).
  { rewrite <- (total_zero m). apply total_same. intros j Hj. specialize (H3 j Hj).
    unfold over, yes. destruct (Z.leb_spec (s (B i j) + tB) now); lia. }
  rewrite E. replace m with (k + (m - k))%nat by lia. rewrite total_shift.
  rewrite (total_same _ (fun _ => 1) k), total_one, (total_same _ (fun _ => 0) (m - k)), total_zero.
  - lia.
  - intros j Hj. assert (now < s (F i (k + j))) by (apply H2; lia). unfold begun, yes.
    destruct (Z.leb_spec (s (F i (k + j))) now); lia.
  - intros j Hj. assert (s (F i j) <= now) by (apply H1; lia). unfold begun, yes.
    destruct (Z.leb_spec (s (F i j)) now); lia.
Qed.

End OfRows.

(* The rows made of starts have these starts. *)
Lemma starts_of_rows : forall (s : action -> Z) t, In t (tasks _ given) ->
  first_start action same_action (rows_of action given s) t = s t.
Proof.
  intros s t I. unfold first_start. destruct (find _ _) as [x|] eqn:E.
  - apply find_some in E as [Ix E]. apply same_task_iff in E. apply in_rows_of in Ix as (_ & _ & S).
    congruence.
  - exfalso. assert (K : In (Row _ (match t with F i _ | B i _ => Z.of_nat i end) t (s t))
      (rows_of action given s)).
    { apply in_rows_of. cbn. destruct t as [i j|i j]; (split; [exact I|]); cbn; tauto. }
    apply (find_none _ _ E) in K. cbn in K.
    rewrite (proj2 (same_task_iff _ _ _ _) eq_refl) in K. discriminate.
Qed.

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
