(* What a rank holds: one activation of a microbatch from the start of its forward to the end of its
   backward (Stores.v). The peak of 1F1B on rank i is min(p - i, m), that of GPipe is m, for all
   p, m >= 1 and tF, tB >= 0; and to hold no more than K at once has a price.

   `memory_bound`: where on rank 0 the (K + j)-th forward waits for the j-th backward, no schedule
   is below (m + p - 1 + q (p - K)) (tF + tB), with q = (m - 1) / K. `in_flight_waits` says that a
   rank that holds K at most, and runs forwards and backwards in the order of the microbatches,
   waits so; Exchange.v says that microbatches may be numbered in that order. *)

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

(* ---- To hold less takes longer. ---- *)

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

End Peaks.
