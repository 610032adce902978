(* Where the activations of a pipeline as fast as 1F1B lie, whoever moves them where and when, and
   in whatever order it runs.

   It holds p (p + 1) / 2 in all at every steady moment (Moments.v), so some rank has ceil((p + 1) /
   2) of them (`some_rank_has_half`). Where an activation that moves counts on both ranks for a
   moment, some rank has ceil((p + 2) / 2) at some moment (`bpipe_is_best`): BPipe's objective (Kim
   et al., ICML 2023, section 3.3) is the least of all plans of transfers of all such schedules.
   Otherwise every rank is full at each steady moment, with nothing twice; but an activation of rank
   0 lies elsewhere then, and is back for its backward. *)

Require Import ZArith Lia Bool.
From Bubbleproof Require Import Definitions Starts Pipeline Sums StageStarts Peaks Frontier Moments.
Open Scope Z_scope.

Section Fast.

Variables (p m : nat) (tF tB : Z).
Notation P := (tF + tB).
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis F_takes : 0 <= tF.
Hypothesis B_takes : 0 <= tB.
Variables F B : nat -> nat -> Z.
Variables first last : Z.
Hypothesis V : uniform p m tF tB 0 F B first last.
Hypothesis as_fast : last - first <= (Z.of_nat m + Z.of_nat p - 1) * P.

Notation steady := (steady p m tF tB first).
Notation in_all := (in_all p m tB F B).
Notation fastest_holds_everywhere_of_starts := (fastest_holds_everywhere_of_starts p m tF tB
  some_ranks F_takes B_takes F B first last V as_fast).
Notation fastest_holds_in_all_of_starts := (fastest_holds_in_all_of_starts p m tF tB
  some_ranks F_takes B_takes F B first last V as_fast).
Notation not_faster := (not_faster p m tF tB some_ranks F_takes B_takes F B first last V).
Notation some_moment := (some_moment p m tF tB some_ranks F_takes B_takes first).

Notation alike lemma := (lemma p m (fun _ => tF) (fun _ => tB) (fun _ => 0) (fun _ => 0) F B
  (fun _ => F_takes) (fun _ => B_takes) (fun _ => Z.le_refl 0) (fun _ => Z.le_refl 0) first last V).
Notation alive i now j := (during (F i j) now (B i j + tB)).

(* ---- Wherever they lie. ---- *)

(* on now r i j: the activation of rank i's stage and microbatch j lies on rank r. *)
Record plan (on : Z -> nat -> nat -> nat -> bool) : Prop := Plan {
  somewhere : forall now i j, (i < p)%nat -> (j < m)%nat -> alive i now j = true ->
    exists r, (r < p)%nat /\ on now r i j = true;
  there_for_its_backward : forall i j, (i < p)%nat -> (j < m)%nat -> on (B i j) i i j = true;
  counts_twice : forall i j r s from until, (i < p)%nat -> (j < m)%nat -> (r < p)%nat ->
    (s < p)%nat ->
    r <> s -> from <= until -> on from r i j = true -> on until s i j = true ->
    exists now r' s', from <= now <= until /\ (r' < p)%nat /\ (s' < p)%nat /\ r' <> s' /\
      on now r' i j = true /\ on now s' i j = true }.

Definition load (on : Z -> nat -> nat -> nat -> bool) (r : nat) (now : Z) : Z :=
  sum p (fun i => sum m (fun j => one (on now r i j))).

Definition copies (on : Z -> nat -> nat -> nat -> bool) (now : Z) (i j : nat) : Z :=
  sum p (fun r => one (on now r i j)).

Lemma loads_copies : forall on now,
  sum p (fun r => load on r now) = sum p (fun i => sum m (copies on now i)).
Proof.
  intros on now. unfold load, copies. rewrite sum_swap. apply sum_ext. intros i _. apply sum_swap.
Qed.


Lemma copies_alive : forall on, plan on -> forall now i j, (i < p)%nat -> (j < m)%nat ->
  one (alive i now j) <= copies on now i j.
Proof.
  intros on Q now i j Hi Hj. unfold copies.
  assert (N : forall x, (x < p)%nat -> 0 <= one (on now x i j)) by (intros; apply one_range).
  destruct (alive i now j) eqn:A; cbn [one].
  - destruct (somewhere _ Q now i j Hi Hj A) as (r & Hr & E).
    assert (X := sum_member p (fun x => one (on now x i j)) r Hr N). cbn beta in X.
    rewrite E in X. exact X.
  - rewrite <- (Z.mul_0_r (Z.of_nat p)), <- sum_const. apply sum_le. exact N.
Qed.

Lemma all_loads : forall on, plan on -> forall now, in_all now <= sum p (fun r => load on r now).
Proof.
  intros on Q now. rewrite loads_copies. unfold Moments.in_all, holds, in_flight. apply sum_le.
  intros i Hi.
  apply sum_le. intros j Hj. apply copies_alive; assumption.
Qed.

(* At every steady moment some rank has half of p + 1. *)
Lemma some_rank_has_half_of_starts : forall on, plan on -> forall now, steady now ->
  exists r, (r < p)%nat /\ Z.of_nat p + 1 <= 2 * load on r now.
Proof.
  intros on Q now S. assert (A := all_loads on Q now).
  assert (T := fastest_holds_in_all_of_starts now S).
  assert (N : 1 <= sum p (fun r => 2 * load on r now - Z.of_nat p)).
  { assert (E := sum_add p (fun r => 2 * load on r now - Z.of_nat p) (fun _ => Z.of_nat p)).
    rewrite sum_const in E. rewrite (sum_ext p _ (fun r => load on r now * 2)),
      sum_scale in E by (intros; lia). nia. }
  apply sum_positive in N as (r & Hr & E). exists r. split; [exact Hr | lia].
Qed.

(* ---- No plan is below BPipe. ---- *)

Section Best.

Variable on : Z -> nat -> nat -> nat -> bool.
Hypothesis Q : plan on.
Variable most : Z.
Hypothesis loads_within : forall r now, (r < p)%nat -> load on r now <= most.
Hypothesis enough : (2 * p <= m)%nat.
Hypothesis pairs : (2 <= p)%nat.
Hypothesis takes_time : 1 <= P.
Hypothesis too_good : 2 * most <= Z.of_nat p + 1.

(* Then every rank is full, and nothing more is alive than must be, and nothing lies twice. *)
Lemma exact_at : forall now, steady now ->
  (forall i, (i < p)%nat -> holds m tB F B i now = Z.of_nat p - Z.of_nat i) /\
  (forall i j, (i < p)%nat -> (j < m)%nat -> copies on now i j = one (alive i now j)).
Proof.
  intros now S. assert (T := triangle p p). assert (A := all_loads on Q now).
  assert (U : 2 * sum p (fun r => load on r now) <= Z.of_nat p * (Z.of_nat p + 1)).
  { assert (sum p (fun r => load on r now) <= sum p (fun _ => most)) as X
      by (apply sum_le; intros r Hr; apply loads_within, Hr). rewrite sum_const in X. nia. }
  assert (H : forall i, (i < p)%nat -> Z.of_nat p - Z.of_nat i <= holds m tB F B i now)
    by (intros i Hi; apply fastest_holds_everywhere_of_starts; assumption).
  split.
  - apply (sum_tight p (fun i => Z.of_nat p - Z.of_nat i) (fun i => holds m tB F B i now) H).
    unfold Moments.in_all in A. lia.
  - assert (G : forall i, (i < p)%nat -> holds m tB F B i now <= sum m (copies on now i)).
    { intros i Hi. unfold holds, in_flight. apply sum_le. intros j Hj.
      apply copies_alive; assumption. }
    assert (E := sum_tight p _ _ G). rewrite <- loads_copies in E.
    assert (X := sum_le p _ _ H). specialize (E ltac:(lia)).
    intros i j Hi Hj. specialize (E i Hi). unfold holds, in_flight in E.
    apply (sum_tight m (fun j => one (alive i now j)) (copies on now i)); [|lia|exact Hj].
    intros k Hk. apply copies_alive; assumption.
Qed.

Notation work := (part (fun _ => tF) (fun _ => tB) F B (p - 1)).

Lemma heads : forall k, head (fun _ => tF) (fun _ => 0) k = Z.of_nat k * tF.
Proof. intros k. transitivity (Z.of_nat k * (tF + 0)); [exact (sum_const k (tF + 0)) | lia]. Qed.

Lemma tails : forall k, tail (fun _ => tB) (fun _ => 0) k = Z.of_nat k * tB.
Proof. intros k. transitivity (Z.of_nat k * (tB + 0)); [exact (sum_const k (tB + 0)) | lia]. Qed.

(* The last rank is never idle. *)
Lemma never_idle : forall y n, first + (Z.of_nat p - 1) * tF <= y ->
  y + Z.of_nat n <= first + Z.of_nat m * P + (Z.of_nat p - 1) * tF ->
    Z.of_nat n <= sum m (work y n).
Proof.
  intros y n L U. assert (N := not_faster ltac:(lia)).
  assert (A := (alike busy) (p - 1) ltac:(lia) 0).
  rewrite heads, tails in A. replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) in A by lia.
  specialize (A ltac:(lia) y n ltac:(lia) ltac:(lia)). lia.
Qed.

(* What is alive on rank 0 is worked on by the last rank during the way there and the way back. *)
Lemma worked_on : forall now j, steady now -> (j < m)%nat -> alive 0 now j = true ->
  1 <= work (now - (Z.of_nat p - 1) * tB) (Z.to_nat ((Z.of_nat p - 1) * P + 1)) j.
Proof.
  intros now j S Hj A. apply Z.nlt_ge. intros C.
  destruct (exact_at now S) as [H _]. specialize (H 0%nat ltac:(lia)). destruct S as [L U].
  assert (0 <= (Z.of_nat p - 1) * tF) by nia. assert (0 <= (Z.of_nat p - 1) * tB) by nia.
  set (y := now - (Z.of_nat p - 1) * tB) in *. set (n := Z.to_nat ((Z.of_nat p - 1) * P + 1)) in *.
  assert (En : Z.of_nat n = (Z.of_nat p - 1) * P + 1) by (unfold n; rewrite Z2Nat.id; lia).
  assert (N := never_idle y n ltac:(unfold y; lia) ltac:(unfold y; lia)).
  set (g := fun k => one (alive 0 now k) * P - (if Nat.eqb k j then P else 0)).
  assert (G : sum m (work y n) <= sum m g).
  { apply sum_le. intros k Hk. unfold g.
    assert (O := (alike only_held) (p - 1) ltac:(lia) 0 k now y n ltac:(lia) Hk).
    rewrite !heads, !tails in O. replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) in O by lia.
    specialize (O ltac:(unfold y; lia) ltac:(unfold y; lia)).
    destruct (Nat.eqb_spec k j) as [->|]; [rewrite A; cbn [one]; lia | lia]. }
  assert (E := sum_add m g (fun k => if Nat.eqb k j then P else 0)).
  rewrite sum_single in E by exact Hj.
  rewrite (sum_ext m _ (fun k => one (alive 0 now k) * P)), sum_scale in E by (intros k _;
    unfold g; lia).
  unfold holds, in_flight in H. rewrite H in E. cbn [Z.of_nat] in *. lia.
Qed.

(* The last rank turns at once: it holds one microbatch only, and is never idle. *)
Lemma turns_at_once : forall u j, steady u -> (j < m)%nat -> F (p - 1)%nat j + tF <= u ->
  B (p - 1)%nat j <= u.
Proof.
  intros u j S Hj L. apply Z.nlt_ge. intros C.
  destruct (exact_at u S) as [H _]. specialize (H (p - 1)%nat ltac:(lia)). destruct S as [Lo Up].
  assert (0 <= (Z.of_nat p - 1) * tF) by nia. assert (0 <= (Z.of_nat p - 1) * tB) by nia.
  assert (N := never_idle u 1 ltac:(lia) ltac:(lia)).
  apply sum_positive in N as (k & Hk & E). unfold part in E.
  assert (D := (alike forward_first) (p - 1) k ltac:(lia) Hk).
  cbn beta in D.
  assert (k <> j) as Nkj by (intros ->; lia).
  assert (T := sum_two m (fun x => one (alive (p - 1)%nat u x)) k j Hk Hj Nkj ltac:(intros;
    apply one_range)).
  cbn beta in T. unfold holds, in_flight in H. rewrite H in T.
  destruct (one_during (F (p - 1)%nat k) u (B (p - 1)%nat k + tB)) as [[? Ek]|[? Ek]]; [|lia].
  destruct (one_during (F (p - 1)%nat j) u (B (p - 1)%nat j + tB)) as [[? Ej]|[? Ej]]; lia.
Qed.

Lemma contradiction : False.
Proof.
  set (t0 := first + (Z.of_nat p - 1) * P).
  assert (S0 : steady t0) by (apply some_moment; lia).
  destruct (exact_at t0 S0) as [H _]. specialize (H 0%nat ltac:(lia)).
  (* one of rank 0's activations lies elsewhere *)
  assert (exists j, (j < m)%nat /\ alive 0 t0 j = true /\
    on t0 0%nat 0%nat j = false) as (j & Hj & A & O).
  { assert (W := loads_within 0%nat t0 ltac:(lia)).
    assert (M := sum_member p (fun i => sum m (fun j => one (on t0 0%nat i j))) 0 ltac:(lia)).
    cbn beta in M. fold (load on 0 t0) in M.
    specialize (M ltac:(intros x _; rewrite <- (Z.mul_0_r (Z.of_nat m)), <- sum_const;
      apply sum_le; intros; apply one_range)).
    assert (E := sum_add m (fun j => one (alive 0 t0 j) - one (on t0 0%nat 0%nat j)) (fun j => one
      (on t0 0%nat 0%nat j))).
    rewrite (sum_ext m _ (fun j => one (alive 0 t0 j))) in E by (intros; lia).
    unfold holds, in_flight in H. rewrite H in E.
    assert (X : 1 <= sum m (fun j => one (alive 0 t0 j) - one (on t0 0%nat 0%nat j))) by lia.
    apply sum_positive in X as (j & Hj & X). exists j.
    destruct (alive 0 t0 j), (on t0 0%nat 0%nat j); cbn in X; first [tauto | lia]. }
  assert (Al : F 0%nat j <= t0 < B 0%nat j + tB).
  { destruct (one_during (F 0%nat j) t0 (B 0%nat j + tB)) as [[X _]|[_ X]]; [exact X|].
    rewrite A in X. discriminate. }
  destruct (somewhere _ Q t0 0 j ltac:(lia) Hj A) as (r & Hr & On).
  assert (Nr : r <> 0%nat) by (intros ->; congruence).
  assert (R := round p m (fun _ => tF) (fun _ => tB) (fun _ => 0) (fun _ => 0) F B first last V 0
    j ltac:(lia) Hj).
  unfold round_trip in R. rewrite !heads, !tails in R.
  replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) in R by lia. cbn [Z.of_nat] in R.
  assert (Bg := begins _ _ _ _ _ _ _ _ _ _ V j Hj).
  assert (T0 : t0 <= B 0%nat j) by (unfold t0; nia).
  destruct (counts_twice _ Q 0 j r 0 t0 (B 0%nat j) ltac:(lia) Hj Hr ltac:(lia) Nr T0 On
    (there_for_its_backward _ Q 0 j ltac:(lia) Hj)) as (now & r' & s' & Hnow & Hr' & Hs' & Nrs &
      O1 & O2).
  assert (Early : B 0%nat j < first + Z.of_nat m * P).
  { apply Z.nle_gt. intros Late. set (t := first + (2 * Z.of_nat p - 1) * P).
    assert (St : steady t) by (unfold steady, t; nia).
    assert (At : alive 0 t j = true).
    { destruct (one_during (F 0%nat j) t (B 0%nat j + tB)) as [[_ X]|[X _]].
      - destruct (alive 0 t j); [reflexivity | discriminate X].
      - destruct X. unfold steady, t, t0 in *. nia. }
    assert (W0 := worked_on t0 j S0 Hj A). assert (W1 := worked_on t j St Hj At).
    unfold part in W0, W1.
    assert (0 <= (Z.of_nat p - 1) * P) by (clear - some_ranks takes_time; nia).
    rewrite !Z2Nat.id in W0, W1 by lia.
    assert (D := (alike forward_first) (p - 1) j ltac:(lia) Hj).
    cbn beta in D.
    assert (F1 : F (p - 1)%nat j <= t0 + (Z.of_nat p - 1) * tF) by (clear - W0 D B_takes F_takes;
      lia).
    assert (B1 : t - (Z.of_nat p - 1) * tB < B (p - 1)%nat j + tB) by (clear - W1 D B_takes
      F_takes; lia).
    clear W0 W1 R.
    set (u := Z.max t0 (F (p - 1)%nat j + tF)).
    assert (0 <= (Z.of_nat p - 1) * tF) by nia.
    assert (0 <= Z.of_nat p * tF) by nia.
    assert (Uu : u <= t0 + Z.of_nat p * tF) by (unfold u; lia).
    assert (Su : steady u).
    { split; [unfold u, t0; lia|]. assert (Z.of_nat p * tF <= Z.of_nat p * P) by nia.
      assert (2 * Z.of_nat p * P <= Z.of_nat m * P) by nia. unfold t0 in *. lia. }
    assert (X := turns_at_once u j Su Hj ltac:(unfold u; lia)).
    unfold t, t0 in *. lia. }
  assert (Sn : steady now) by (unfold steady; unfold t0 in *; lia).
  destruct (exact_at now Sn) as [_ C]. specialize (C 0%nat j ltac:(lia) Hj).
  assert (T := sum_two p (fun x => one (on now x 0%nat j)) r' s' Hr' Hs' Nrs ltac:(intros;
    apply one_range)).
  cbn beta in T. fold (copies on now 0 j) in T. rewrite O1, O2, C in T. cbn [one] in T.
  assert (Rn := one_range (alive 0 now j)). lia.
Qed.

End Best.

(* BPipe holds ceil((p + 2) / 2) on each rank. No plan for any schedule as fast holds less. *)
Lemma bpipe_is_best_of_starts : forall on most, plan on ->
  (forall r now, (r < p)%nat -> load on r now <= most) ->
  (2 * p <= m)%nat -> (2 <= p)%nat -> 1 <= P -> Z.of_nat p + 2 <= 2 * most.
Proof.
  intros on most Q W E2 E1 HP. apply Z.nlt_ge. intros C.
  exact (contradiction on Q most W E2 E1 HP ltac:(lia)).
Qed.

End Fast.

(* ---- The theorems, about schedules as rows. ---- *)

Section Rows.

Variables (p m : nat) (tF tB : Z).
Notation given := (pipeline p m tF tB).
Notation P := (tF + tB).
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis F_takes : 0 <= tF.
Hypothesis B_takes : 0 <= tB.
Variables (rows : schedule action) (first last : Z).
Hypothesis V : valid action given rows.
Hypothesis W : within action given rows first last.
Hypothesis as_fast : last - first <= (Z.of_nat m + Z.of_nat p - 1) * P.

Notation s := (first_start action same_action rows).
Notation starts_of_F := (fun i j => s (F i j)).
Notation starts_of_B := (fun i j => s (B i j)).

Variable on : Z -> nat -> nat -> nat -> bool.
Hypothesis Q : plan p m tB starts_of_F starts_of_B on.

Lemma fast : uniform p m tF tB 0 starts_of_F starts_of_B first last.
Proof. exact (proj1 (uniform_of_fast p m tF tB some_ranks F_takes B_takes rows first last V W)).
Qed.

Theorem some_rank_has_half : forall now,
  first + (Z.of_nat p - 1) * P <= now < first + Z.of_nat m * P ->
  exists r, (r < p)%nat /\ Z.of_nat p + 1 <= 2 * load p m on r now.
Proof.
  exact (some_rank_has_half_of_starts p m tF tB some_ranks F_takes B_takes _ _ first last fast
    as_fast on Q).
Qed.

(* BPipe holds ceil((p + 2) / 2) on each rank. No plan for any schedule as fast holds less. *)
Theorem bpipe_is_best : forall most,
  (forall r now, (r < p)%nat -> load p m on r now <= most) ->
  (2 * p <= m)%nat -> (2 <= p)%nat -> 1 <= P -> Z.of_nat p + 2 <= 2 * most.
Proof.
  intros most. exact (bpipe_is_best_of_starts p m tF tB some_ranks F_takes B_takes _ _ first last
    fast as_fast on most Q).
Qed.

End Rows.
