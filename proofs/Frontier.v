(* How fast a pipeline can be where rank 0 holds K activations at once, links take l ticks, and the
   microbatches run in whatever order: the least makespan, for all p, m, K, tF, tB.

   The lower bound is that of StagesBound.v with all stages alike. In the schedule that meets it
   (`starts_F`, `starts_B`) microbatch j is launched at s_j and never waits. On rank i its backward
   follows its forward by tF modulo P = tF + tB, and the s_j are distinct multiples of P, so that no
   two actions of a rank meet. *)

Require Import ZArith Lia.
From Bubbleproof Require Import Definitions Starts Pipeline Sums StageStarts StagesBound.
Open Scope Z_scope.

(* All stages alike; a link takes l ticks, either way. *)
Definition linked (p m : nat) (tF tB l : Z) : problem action :=
  stages p m (fun _ => tF) (fun _ => tB) (fun _ => l) (fun _ => l).

Section Frontier.

Variables (p m K : nat) (tF tB l : Z).
Notation P := (tF + tB).
Notation q := ((m - 1) / K)%nat.

(* The round trip of one microbatch where a link and back take L ticks, and the claim. *)
Definition trip (L : Z) : Z := Z.of_nat p * P + (Z.of_nat p - 1) * L.
Definition least (L : Z) : Z :=
  (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * L +
  Z.of_nat q * Z.max 0 ((Z.of_nat p - Z.of_nat K) * P + (Z.of_nat p - 1) * L).

(* A schedule in [first, last) of a forward and a backward a microbatch and rank. *)
Definition uniform (F B : nat -> nat -> Z) (first last : Z) : Prop :=
  starts_keep p m (fun _ => tF) (fun _ => tB) (fun _ => l) (fun _ => l) F B first last.
Definition holds (F B : nat -> nat -> Z) (i : nat) (now : Z) :
  Z := in_flight m (fun _ => tB) F B i now.

Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis some_microbatches : (1 <= m)%nat.
Hypothesis some_room : (1 <= K)%nat.
Hypothesis F_takes : 0 <= tF.
Hypothesis B_takes : 0 <= tB.
Hypothesis link_takes : 0 <= l.

(* Where rank c holds K at most. *)
Lemma lower_at_of_starts : forall c F B first last, (c < p)%nat -> uniform F B first last ->
  (forall now, holds F B c now <= Z.of_nat K) ->
  (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * (2 * l) +
  Z.of_nat q * Z.max 0 ((Z.of_nat p - Z.of_nat c - Z.of_nat K) * P + (Z.of_nat p - 1 - Z.of_nat c)
    * (2 * l))
    <= last - first.
Proof.
  intros c F B first last Hc V C. unfold uniform, holds in *.
  assert (Heads : forall i, head (fun _ => tF) (fun _ => l) i = Z.of_nat i * (tF + l))
    by (intros i; exact (sum_const i (tF + l))).
  assert (Tails : forall i, tail (fun _ => tB) (fun _ => l) i = Z.of_nat i * (tB + l))
    by (intros i; exact (sum_const i (tB + l))).
  assert (A : forall n, (n * K < m)%nat ->
    Z.of_nat n * ((Z.of_nat p - Z.of_nat c) * P + (Z.of_nat p - 1 - Z.of_nat c) * (2 * l)) +
    (Z.of_nat m - Z.of_nat n * Z.of_nat K) * P + (Z.of_nat p - 1) * (P + 2 * l) <= last - first).
  { intros n Hn. assert (E := stages_bound_of_starts p m (fun _ => tF) (fun _ => tB) (fun _ => l)
      (fun _ => l) F B
      (fun _ => F_takes) (fun _ => B_takes) (fun _ => link_takes) (fun _ => link_takes)
      first last V c K Hc C (p - 1) n ltac:(lia) ltac:(lia) Hn).
    unfold round_trip in E. rewrite !Heads, !Tails in E.
    replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) in E by lia. rewrite Nat2Z.inj_mul in E. lia. }
  assert (D := Nat.mul_div_le (m - 1) K ltac:(lia)).
  assert (A0 := A 0%nat ltac:(lia)). assert (Aq := A q ltac:(lia)). clear A. cbn [Z.of_nat] in A0.
  destruct (Z.max_spec 0 ((Z.of_nat p - Z.of_nat c - Z.of_nat K) * P + (Z.of_nat p - 1 - Z.of_nat
    c) * (2 * l)))
    as [[_ ->]|[_ ->]]; lia.
Qed.

Lemma lower_of_starts : forall F B first last, uniform F B first last ->
  (forall now, holds F B 0 now <= Z.of_nat K) -> least (2 * l) <= last - first.
Proof.
  intros F B first last V C. assert (A := lower_at_of_starts 0 F B first last ltac:(lia) V C).
  unfold least. cbn [Z.of_nat] in A. rewrite !Z.sub_0_r in A. exact A.
Qed.

(* ---- The schedule that meets it. ---- *)

Section Fastest.

Variables (L c : Z).                     (* L: what a link and back take, waits included *)
Hypothesis in_step : L = c * P.
Hypothesis link_and_back : 2 * l <= L.

Definition lap : Z := Z.max (Z.of_nat K * P) (trip L).
Definition launch (j : nat) : Z := Z.of_nat (j mod K) * P + Z.of_nat (j / K) * lap.
Definition starts_F (i j : nat) : Z := Z.of_nat i * (tF + l) + launch j.
Definition starts_B (i j : nat) : Z :=
  Z.of_nat p * tF + (Z.of_nat p - 1) * l + (Z.of_nat p - 1 - Z.of_nat i) * (tB + L - l) + launch j.

Lemma lap_steps : exists n, lap = n * P.
Proof.
  unfold lap, trip. rewrite in_step. destruct (Z.max_spec (Z.of_nat K * P) (Z.of_nat p * P +
    (Z.of_nat p - 1) * (c * P))) as [[_ ->]|[_ ->]]; [exists (Z.of_nat p + (Z.of_nat p - 1) * c);
      ring|].
  exists (Z.of_nat K). reflexivity.
Qed.

Lemma launch_steps : forall j, exists n, launch j = n * P.
Proof.
  intros j. destruct lap_steps as (n & E). unfold launch. rewrite E.
  exists (Z.of_nat (j mod K) + Z.of_nat (j / K) * n). ring.
Qed.

Lemma launch_later : forall j k, (j < k)%nat -> launch j + P <= launch k.
Proof.
  intros j k J. unfold launch.
  assert (Ej := Nat.div_mod j K ltac:(lia)). assert (Ek := Nat.div_mod k K ltac:(lia)).
  assert (Mj := Nat.mod_upper_bound j K ltac:(lia)).
  assert (Mk := Nat.mod_upper_bound k K ltac:(lia)).
  assert (D := Nat.div_le_mono j k K ltac:(lia) ltac:(lia)).
  assert (U : Z.of_nat K * P <= lap) by (unfold lap; lia).
  set (x := (j / K)%nat) in *. set (y := (k / K)%nat) in *.
  set (r := (j mod K)%nat) in *. set (t := (k mod K)%nat) in *.
  destruct (Nat.eq_dec x y) as [E|N].
  - rewrite E in *. assert (r < t)%nat by nia. nia.
  - assert (Z.of_nat x + 1 <= Z.of_nat y) by lia. assert (Z.of_nat r + 1 <= Z.of_nat K) by lia.
    assert (0 <= Z.of_nat K * P) by nia.
    assert ((Z.of_nat x + 1) * lap <= Z.of_nat y * lap) by nia.
    assert ((Z.of_nat r + 1) * P <= Z.of_nat K * P) by nia.
    assert (0 <= Z.of_nat t * P) by nia. lia.
Qed.

Lemma launch_lap : forall j, launch (j + K) = launch j + lap.
Proof.
  intros j. unfold launch. replace (j + K)%nat with (j + 1 * K)%nat by lia.
  rewrite Nat.mod_add, Nat.div_add by lia. lia.
Qed.

Lemma launch_last : launch (m - 1) + trip L = least L.
Proof.
  unfold launch, lap, least, trip. assert (E := Nat.div_mod (m - 1) K ltac:(lia)).
  assert (Em : Z.of_nat m = Z.of_nat K * Z.of_nat q + Z.of_nat ((m - 1) mod K) + 1) by nia.
  rewrite Em. set (x := Z.of_nat q). set (r := Z.of_nat ((m - 1) mod K)).
  destruct (Z.max_spec (Z.of_nat K * P) (Z.of_nat p * P + (Z.of_nat p - 1) * L)) as [[H ->]|[H ->]].
  - rewrite Z.max_r by lia. ring.
  - rewrite Z.max_l by lia. ring.
Qed.

(* Rank i itself needs no more than its own round trip: where links take no time, p - i. *)
Lemma fastest_needs_of_starts : L = 0 -> l = 0 -> forall i now, (i < p)%nat ->
  holds starts_F starts_B i now <= Z.of_nat (p - i).
Proof.
  intros EL El i now Hi. unfold holds, in_flight. apply few_alive; [lia|]. intros j k J _.
  assert (A : forall n, launch j + Z.of_nat n * P <= launch (j + n)).
  { induction n as [|n IH]; [rewrite Nat.add_0_r; lia|].
    assert (B := launch_later (j + n) (j + S n) ltac:(lia)). lia. }
  specialize (A (k - j)%nat). replace (j + (k - j))%nat with k in A by lia.
  unfold starts_F, starts_B. rewrite EL, El. nia.
Qed.

Lemma fastest_of_starts : uniform starts_F starts_B 0 (least L) /\
  forall i now, (i < p)%nat -> holds starts_F starts_B i now <= Z.of_nat K.
Proof.
  assert (Apart : forall j k, (j < k)%nat -> launch j + tF <= launch k /\ launch j + tB <= launch k)
    by (intros j k J; assert (A := launch_later j k J); lia).
  assert (Launch0 : forall j, 0 <= launch j).
  { intros j. assert (0 <= launch 0); [|destruct j as [|j]; [assumption|
      assert (A := launch_later 0 (S j) ltac:(lia)); lia]].
    unfold launch. rewrite Nat.mod_0_l, Nat.div_0_l by lia. lia. }
  split.
  - constructor; unfold starts_F, starts_B, apart.
    + intros j _. specialize (Launch0 j). lia.
    + intros j Hj. rewrite <- launch_last. unfold trip.
      assert (launch j <= launch (m - 1)).
      { destruct (Nat.eq_dec j (m - 1)) as [->|N]; [lia|].
        specialize (Apart j (m - 1)%nat ltac:(lia)). lia. }
      nia.
    + intros i j _ _. nia.
    + intros j _. replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) by lia. nia.
    + intros i j Hi _. rewrite Nat2Z.inj_succ. nia.
    + intros i j k _ J _. specialize (Apart j k J). lia.
    + intros i j k _ J _. specialize (Apart j k J). lia.
    + intros i j k Hi _ _. destruct (launch_steps j) as (n & Ej).
      destruct (launch_steps k) as (n' & Ek).
      (* the backward starts tF after the forward, modulo P *)
      set (d := Z.of_nat p - 1 - Z.of_nat i).
      assert (E : Z.of_nat p * tF + (Z.of_nat p - 1) * l + d * (tB + L - l) + launch k =
        Z.of_nat i * (tF + l) + launch j + tF + (d * (1 + c) + n' - n) * P)
        by (rewrite Ej, Ek, in_step; unfold d; ring).
      rewrite E. set (z := d * (1 + c) + n' - n).
      destruct (Z_le_gt_dec 0 z) as [G|G]; [left|right]; nia.
  - intros i now Hi. unfold holds, in_flight.
    (* those that it holds lie less than K apart *)
    assert (Near : forall j k, (j + K <= k)%nat -> starts_B i j + tB <= starts_F i k).
    { intros j k J. assert (launch j + lap <= launch k) as A.
      { rewrite <- launch_lap. destruct (Nat.eq_dec (j + K) k) as [->|N]; [lia|].
        specialize (Apart (j + K)%nat k ltac:(lia)). lia. }
      assert (trip L <= lap) as A2 by (unfold lap; lia). unfold starts_B, starts_F, trip in *.
      assert (0 <= Z.of_nat i * (P + L)) by nia. nia. }
    apply (few_alive (starts_F i) (fun j => starts_B i j + tB)); [lia|].
    intros; apply Near; assumption.
Qed.

End Fastest.

(* ---- The theorems, about schedules as rows. ---- *)

Notation given := (linked p m tF tB l).
Notation capped rows i := (forall now, held_in given m rows i now <= Z.of_nat K).

Lemma uniform_of_rows : forall rows first last,
  valid action given rows -> within action given rows first last ->
  let s := first_start action same_action rows in
  uniform (fun i j => s (F i j)) (fun i j => s (B i j)) first last /\
  forall i now, (i < p)%nat -> held_in given m rows i now =
    holds (fun i j => s (F i j)) (fun i j => s (B i j)) i now.
Proof.
  intros rows first last V W s. split.
  - exact (valid_keeps p m _ _ _ _ some_ranks rows first last V W).
  - exact (held_is_in_flight p m _ _ _ _ (fun _ => F_takes) (fun _ => B_takes)
      (fun _ => link_takes) (fun _ => link_takes) some_ranks rows first last V W).
Qed.

(* Where rank c holds K at most. *)
Theorem lower_at : forall c rows first last, (c < p)%nat ->
  valid action given rows -> within action given rows first last -> capped rows c ->
  (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * (2 * l) +
  Z.of_nat q * Z.max 0 ((Z.of_nat p - Z.of_nat c - Z.of_nat K) * P +
                        (Z.of_nat p - 1 - Z.of_nat c) * (2 * l)) <= last - first.
Proof.
  intros c rows first last Hc V W C. destruct (uniform_of_rows rows first last V W) as [U H].
  apply (lower_at_of_starts c _ _ first last Hc U). intros now. rewrite <- H by exact Hc. apply C.
Qed.

Theorem lower : forall rows first last,
  valid action given rows -> within action given rows first last -> capped rows 0 ->
  least (2 * l) <= last - first.
Proof.
  intros rows first last V W C. destruct (uniform_of_rows rows first last V W) as [U H].
  apply (lower_of_starts _ _ first last U). intros now. rewrite <- H by exact some_ranks. apply C.
Qed.

Lemma meets : forall L c, L = c * P -> 2 * l <= L -> exists rows,
  valid action given rows /\ within action given rows 0 (least L) /\
  (forall i, (i < p)%nat -> capped rows i) /\
  (L = 0 -> l = 0 -> forall i now, (i < p)%nat ->
    held_in given m rows i now <= Z.of_nat p - Z.of_nat i).
Proof.
  intros L c E G. destruct (fastest_of_starts L c E G) as [V C].
  destruct (keeps_valid p m _ _ _ _ (fun _ => F_takes) (fun _ => B_takes)
    (fun _ => link_takes) (fun _ => link_takes) some_ranks _ _ _ V) as (rows & Vr & Wr & H).
  exists rows. split; [exact Vr|]. split; [exact Wr|]. unfold linked.
  split; [intros i Hi now | intros EL El i now Hi]; rewrite H by exact Hi; [apply C, Hi|].
  rewrite <- Nat2Z.inj_sub by lia. apply fastest_needs_of_starts; assumption.
Qed.

(* The least makespan: exact where 2l is a multiple of tF + tB, l = 0 among them. *)
Theorem frontier : forall c, 2 * l = c * P ->
  (forall rows first last, valid action given rows -> within action given rows first last ->
    capped rows 0 -> least (2 * l) <= last - first) /\
  exists rows, valid action given rows /\ within action given rows 0 (least (2 * l)) /\
    (forall i, (i < p)%nat -> capped rows i) /\
    (l = 0 -> forall i now, (i < p)%nat ->
      held_in given m rows i now <= Z.of_nat p - Z.of_nat i).
Proof.
  intros c E. split; [exact lower|].
  destruct (meets (2 * l) c E ltac:(lia)) as (rows & V & W & C & N).
  exists rows. split; [exact V|]. split; [exact W|]. split; [exact C|].
  intros El. apply N; lia.
Qed.

(* For any latency: within (p - 1)(q + 1) times what 2l lacks to the next multiple. *)
Theorem nearly : forall c, 2 * l <= c * P -> exists rows,
  valid action given rows /\ within action given rows 0 (least (c * P)) /\
  (forall i, (i < p)%nat -> capped rows i) /\
  least (c * P) <= least (2 * l) + (Z.of_nat p - 1) * (Z.of_nat q + 1) * (c * P - 2 * l).
Proof.
  intros c E. destruct (meets (c * P) c eq_refl E) as (rows & V & W & C & _).
  exists rows. split; [exact V|]. split; [exact W|]. split; [exact C|].
  unfold least. set (x := c * P) in *.
  assert (0 <= (Z.of_nat p - 1) * (x - 2 * l)) by nia.
  assert (Z.max 0 ((Z.of_nat p - Z.of_nat K) * P + (Z.of_nat p - 1) * x) <=
    Z.max 0 ((Z.of_nat p - Z.of_nat K) * P + (Z.of_nat p - 1) * (2 * l)) +
      (Z.of_nat p - 1) * (x - 2 * l)) by lia.
  nia.
Qed.

(* Who loses nothing to memory has room for a round trip on rank 0, or for all. *)
Theorem room_for_a_round_trip : 1 <= P -> forall rows first last,
  valid action given rows -> within action given rows first last -> capped rows 0 ->
  last - first <= (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * (2 * l) ->
  (m <= K)%nat \/ trip (2 * l) <= Z.of_nat K * P.
Proof.
  intros HP rows first last V W C S. assert (A := lower rows first last V W C).
  unfold least, trip in *. destruct (Nat.le_gt_cases m K) as [|G]; [left; assumption|right].
  assert (1 <= q)%nat as Q by (apply Nat.div_le_lower_bound; lia). nia.
Qed.

End Frontier.
