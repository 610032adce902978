(* To hold fewer activations at once than 1F1B has a price.

   `memory_bound`: where on rank 0 the (K + j)-th forward waits for the j-th backward, no schedule
   is below (m + p - 1 + q (p - K)) (tF + tB), with q = (m - 1) / K. `in_flight_waits` says that a
   rank that holds K at most (Peaks.v), and runs forwards and backwards in the order of the
   microbatches, waits so; Exchange.v says that microbatches may be numbered in that order. *)

Require Import ZArith Lia List FinFun PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Packing Pipeline Peaks.
Import ListNotations.
Open Scope Z_scope.

Section MemoryBound.

Variables (p m : nat) (tF tB : Z).
Notation given := (pipeline p m tF tB).
Notation held := (held p m tF tB).
Notation over := (over tB).

Lemma total_none : forall f j n, (forall k, f k <= 1) -> (forall k, (j <= k)%nat -> f k <= 0) ->
  total f n <= Z.of_nat j.
Proof.
  intros f j n H1 H0. destruct (Nat.le_gt_cases n j) as [L|L].
  - assert (total f n <= total (fun _ => 1) n) by (apply total_more; intros; apply H1).
    rewrite total_one in *. lia.
  - replace n with (j + (n - j))%nat by lia. rewrite total_shift.
    assert (total f j <= total (fun _ => 1) j) by (apply total_more; intros; apply H1).
    assert (total (fun k => f (j + k)%nat) (n - j) <= total (fun _ => 0) (n - j))
      by (apply total_more; intros; apply H0; lia).
    rewrite total_one, total_zero in *. lia.
Qed.

Theorem in_flight_waits : forall rows i k, complete action given rows -> (i < p)%nat ->
  let s := first_start action same_action rows in
  (forall a b, (a < b)%nat -> (b < m)%nat -> s (F i a) <= s (F i b) /\ s (B i a) <= s (B i b)) ->
  (forall now, held rows i now <= Z.of_nat k) ->
  forall j, (k + j < m)%nat -> s (B i j) + tB <= s (F i (k + j)%nat).
Proof.
  intros rows i k C Hi s O H j Hj. apply Z.le_ngt. intros L.
  specialize (H (s (F i (k + j)%nat))). rewrite held_counts in H by assumption. fold s in H.
  assert (A : Z.of_nat (k + j + 1) <= total (begun s i (s (F i (k + j)%nat))) m).
  { replace m with ((k + j + 1) + (m - (k + j + 1)))%nat by lia. rewrite total_shift.
    rewrite (total_same _ (fun _ => 1) (k + j + 1)), total_one.
    - enough (0 <= total (fun a => begun s i (s (F i (k + j)%nat)) (k + j + 1 + a))
        (m - (k + j + 1))) by lia.
      rewrite <- (total_zero (m - (k + j + 1))). apply total_more. intros a _. unfold begun, yes.
      destruct (_ <=? _); lia.
    - intros a La. unfold begun, yes. destruct (Z.leb_spec (s (F i a)) (s (F i (k + j)%nat))) as [|G];
        [reflexivity|]. exfalso. assert (a = k + j \/ a < k + j)%nat as [->|La'] by lia; [lia|].
      destruct (O a (k + j)%nat La' Hj). lia. }
  assert (D : total (over s i (s (F i (k + j)%nat))) m <= Z.of_nat j).
  { transitivity (total (fun a => if Nat.ltb a j then 1 else 0) m).
    - apply total_more. intros a La. unfold over, yes.
      destruct (Z.leb_spec (s (B i a) + tB) (s (F i (k + j)%nat))), (Nat.ltb_spec a j); try lia.
      exfalso. assert (a = j \/ j < a)%nat as [->|La'] by lia; [lia|].
      destruct (O j a La' La). lia.
    - apply total_none; intros a; [|intros La]; destruct (Nat.ltb_spec a j); lia. }
  lia.
Qed.

Section Late.

Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis some_microbatches : (1 <= m)%nat.
Hypothesis F_takes_time : 0 <= tF.
Hypothesis B_takes_time : 0 <= tB.
Variables (s : action -> Z) (first last : Z).
Hypothesis V : timed action given s first last.
Variable k : nat.
Hypothesis some_held : (1 <= k)%nat.
Hypothesis rests : forall j, (k + j < m)%nat -> s (B 0 j) + tB <= s (F 0 (k + j)).

Lemma there : forall i j, (i < p)%nat -> (j < m)%nat -> s (F 0 j) + Z.of_nat i * tF <= s (F i j).
Proof.
  induction i as [|i IH]; intros j Hi Hj; [lia|].
  assert (E := step p m tF tB some_ranks some_microbatches s first last V _ _ (onward p m i j Hi Hj)). cbn [duration pipeline] in E.
  specialize (IH j). lia.
Qed.

Lemma back : forall i j, (i < p)%nat -> (j < m)%nat -> s (B i j) + Z.of_nat i * tB <= s (B 0 j).
Proof.
  induction i as [|i IH]; intros j Hi Hj; [lia|].
  assert (E := step p m tF tB some_ranks some_microbatches s first last V _ _ (backward p m i j Hi Hj)). cbn [duration pipeline] in E.
  specialize (IH j). lia.
Qed.

Lemma there_and_back : forall j, (j < m)%nat ->
  s (F 0 j) + Z.of_nat p * (tF + tB) <= s (B 0 j) + tB.
Proof.
  intros j Hj. assert (exists i, p = S i) as (i & Ei) by (exists (p - 1)%nat; lia).
  assert (A := there i j). assert (C := back i j).
  assert (E := step p m tF tB some_ranks some_microbatches s first last V _ _ (turn p m i j ltac:(lia) Hj)).
  cbn [duration pipeline] in E. assert (Z.of_nat p = Z.of_nat i + 1) as -> by lia. lia.
Qed.

Lemma late_forward : forall q j, (q * k <= j)%nat -> (j < m)%nat ->
  first + Z.of_nat q * (Z.of_nat p * (tF + tB)) <= s (F 0 j).
Proof.
  induction q as [|q IH]; intros j L Hj.
  - assert (I := inside _ _ _ _ _ V (F 0 j)). rewrite is_F in I. lia.
  - cbn [Nat.mul] in L. assert (exists a, j = k + a)%nat as (a & Ea) by (exists (j - k)%nat; lia).
    subst j. specialize (rests a Hj). specialize (IH a ltac:(lia) ltac:(lia)).
    assert (A := there_and_back a ltac:(lia)). lia.
Qed.

Lemma late_work : forall q, (q * k < m)%nat ->
  (Z.of_nat m + Z.of_nat p - 1 + Z.of_nat q * (Z.of_nat p - Z.of_nat k)) * (tF + tB)
    <= last - first.
Proof.
  intros q L. assert (exists i, p = S i) as (i & Ei) by (exists (p - 1)%nat; lia).
  assert (exists n, m = (q * k + S n)%nat) as (n & En) by (exists (m - q * k - 1)%nat; lia).
  pose (late := map (F i) (seq (q * k) (S n)) ++ map (B i) (seq (q * k) (S n))).
  assert (In_late : forall t, In t late <->
    exists j, (q * k <= j)%nat /\ (j < m)%nat /\ (t = F i j \/ t = B i j)).
  { intros t. unfold late. rewrite in_app_iff, !in_map_iff. split.
    - intros [(j & <- & I)|(j & <- & I)]; apply in_seq in I; exists j; (split; [|split]; [lia|lia|tauto]).
    - intros (j & L1 & L2 & [->| ->]); [left|right]; exists j; (split; [reflexivity|apply in_seq; lia]). }
  enough (busy action (duration _ given) late <= (last - Z.of_nat i * tB) -
    (first + Z.of_nat q * (Z.of_nat p * (tF + tB)) + Z.of_nat i * tF)) as P.
  { unfold late in P. rewrite busy_app, (busy_all p m tF tB some_ranks some_microbatches (F i) tF), (busy_all p m tF tB some_ranks some_microbatches (B i) tB) in P
      by reflexivity.
    replace (Z.of_nat m) with (Z.of_nat q * Z.of_nat k + Z.of_nat (S n)) by lia.
    replace (Z.of_nat p) with (Z.of_nat i + 1) in * by lia. nia. }
  apply (packing action s).
  - unfold late. discriminate.
  - unfold late. apply NoDup_app_disjoint.
    + apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
    + apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
    + intros x H1 H2. apply in_map_iff in H1 as (? & <- & _). apply in_map_iff in H2 as (? & E & _).
      discriminate E.
  - intros t I. apply In_late in I as (j & L1 & L2 & H). unfold between.
    assert (A := late_forward q j L1 L2). assert (A2 := there i j ltac:(lia) L2).
    assert (T := step p m tF tB some_ranks some_microbatches s first last V _ _ (turn p m i j ltac:(lia) L2)).
    assert (D := tail p m tF tB some_ranks some_microbatches s first last V i j ltac:(lia) L2).
    cbn [duration pipeline] in T. destruct H as [-> | ->]; cbn [duration pipeline]; lia.
  - intros t u It Iu D. apply (turns _ _ _ _ _ V t u (Z.of_nat i)); [| |exact D| |];
      apply In_late in It as (j & ? & ? & [->| ->]); apply In_late in Iu as (a & ? & ? & [->| ->]);
      try (apply is_F; lia); try (apply is_B; lia); left; reflexivity.
Qed.

End Late.

Theorem memory_bound : (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  forall k, (1 <= k)%nat -> forall rows first last,
  valid action given rows -> within action given rows first last ->
  (let s := first_start action same_action rows in
   forall j, (k + j < m)%nat -> s (B 0 j) + tB <= s (F 0 (k + j)%nat)) ->
  (Z.of_nat m + Z.of_nat p - 1 + Z.of_nat ((m - 1) / k) * (Z.of_nat p - Z.of_nat k)) * (tF + tB)
    <= last - first.
Proof.
  intros Hp Hm HF HB k Hk rows first last V W R.
  apply (late_work Hp Hm HF HB (first_start action same_action rows)); try assumption.
  - apply valid_is_timed; [|exact V|exact W]. intros t I. apply pipeline_is_well_formed, I.
  - assert (D := Nat.mul_div_le (m - 1) k ltac:(lia)). lia.
Qed.

(* Whoever is as fast as 1F1B holds p activations on rank 0, or all m. *)
Theorem fastest_holds : (1 <= p)%nat -> (1 <= m)%nat -> 1 <= tF -> 1 <= tB ->
  forall k, (1 <= k)%nat -> (k < p)%nat -> forall rows first last,
  valid action given rows -> within action given rows first last ->
  (let s := first_start action same_action rows in
   forall j, (k + j < m)%nat -> s (B 0 j) + tB <= s (F 0 (k + j)%nat)) ->
  last - first <= (Z.of_nat m + Z.of_nat p - 1) * (tF + tB) -> (m <= k)%nat.
Proof.
  intros Hp Hm HF HB k Hk Hkp rows first last V W R L.
  assert (A := memory_bound Hp Hm ltac:(lia) ltac:(lia) k Hk rows first last V W R).
  assert (E : Z.of_nat ((m - 1) / k) * (Z.of_nat p - Z.of_nat k) <= 0) by nia.
  assert (Z.of_nat ((m - 1) / k) <= 0) as Q by nia.
  assert ((m - 1) / k = 0)%nat as N by lia. apply Nat.div_small_iff in N; lia.
Qed.

End MemoryBound.
