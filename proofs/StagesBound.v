(* What it costs that a rank holds K activations at most, whatever stages and links take and in
   whatever order the microbatches run (`stages_bound`).

   A microbatch holds its activation on rank c for at least one round trip of R ticks, from c to the
   last rank and back. All that start within R ticks are held together in the last of them, so at
   most K start within R ticks, and all but q K start q R or more after the first can. These then
   keep any one rank r >= c busy between its distance from the start and its distance from the end.
   No order of the microbatches is assumed, and nothing is sorted. *)

Require Import ZArith Lia.
From Bubbleproof Require Import Definitions Starts Pipeline Sums StageStarts.
Open Scope Z_scope.

Section Capped.

Variables (p m : nat).
Variables f b : nat -> Z.
Variables dn up : nat -> Z.
Variables F B : nat -> nat -> Z.
Hypothesis f_takes : forall i, 0 <= f i.
Hypothesis b_takes : forall i, 0 <= b i.
Hypothesis dn_takes : forall i, 0 <= dn i.
Hypothesis up_takes : forall i, 0 <= up i.
Variables first last : Z.
Hypothesis V : starts_keep p m f b dn up F B first last.

Notation in_flight := (in_flight m b F B).
Notation head := (head f dn).
Notation tail := (tail b up).
Notation round_trip := (round_trip p f b dn up).
Notation round := (round p m f b dn up F B first last V).
Notation there := (there p m f b dn up F B first last V).
Notation home := (home p m f b dn up F B first last V).
Notation forward_first := (forward_first p m f b dn up F B f_takes b_takes dn_takes up_takes first
  last V).
Notation work_in := (work_in p m f b dn up F B f_takes b_takes dn_takes up_takes first last V).
Notation work_of := (work_of m f b F B f_takes b_takes).

Variables c K : nat.
Hypothesis some_c : (c < p)%nat.
Hypothesis capped : forall now, in_flight c now <= Z.of_nat K.
Notation trip_c := (round_trip - head c - tail c).

(* How many microbatches start on rank c launched t. *)
Definition launched (t : Z) : Z := sum m (fun j => one (F c j <? t)).

(* At most K start during a round trip: they are in_flight together in its last tick. *)
Lemma few_start : forall t, launched (t + trip_c) <= launched t + Z.of_nat K.
Proof.
  intros t. specialize (capped (t + trip_c - 1)). unfold launched, in_flight in *.
  enough (sum m (fun j => one (F c j <? t + trip_c)) <= sum m (fun j => one (F c j <? t) +
    one (during (F c j) (t + trip_c - 1) (B c j + b c)))) by (rewrite sum_add in *; lia).
  apply sum_le. intros j Hj. assert (R := round c j some_c Hj).
  destruct (one_during (F c j) (t + trip_c - 1) (B c j + b c)) as [[? ->]|[? ->]];
    destruct (Z.ltb_spec (F c j) (t + trip_c)), (Z.ltb_spec (F c j) t); cbn [one]; lia.
Qed.

Lemma late : forall q, launched (first + head c + Z.of_nat q * trip_c) <= Z.of_nat (q * K).
Proof.
  induction q as [|q IH].
  - cbn [Z.of_nat Nat.mul]. rewrite Z.mul_0_l, Z.add_0_r. unfold launched.
    rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; lia|].
    intros j Hj. assert (A := begins _ _ _ _ _ _ _ _ _ _ V j Hj).
    assert (A' := there c 0 j some_c Hj).
    cbn [Nat.add] in A'. change (head 0) with 0 in A'.
    destruct (Z.ltb_spec (F c j) (first + head c)); cbn; lia.
  - assert (A := few_start (first + head c + Z.of_nat q * trip_c)).
    replace (first + head c + Z.of_nat (S q) * trip_c) with (first + head c + Z.of_nat q * trip_c
      + trip_c) by lia.
    lia.
Qed.

(* Rank c holds K at most: for any rank r from c on, and any q. *)
Lemma stages_bound_of_starts : forall r q, (c <= r)%nat -> (r < p)%nat -> (q * K < m)%nat ->
  Z.of_nat q * trip_c + (Z.of_nat m - Z.of_nat (q * K)) * (f r + b r) + head r + tail r <=
    last - first.
Proof.
  intros r q Hcr Hr Hq. set (T := first + head c + Z.of_nat q * trip_c).
  assert (L := late q). fold T in L.
  (* from a on, until z, rank r has the late ones to do *)
  set (a := T + head r - head c). set (z := last - tail r).
  assert (In : forall j, (j < m)%nat -> T <= F c j ->
    a <= F r j /\ F r j + f r <= B r j /\ B r j + b r <= z).
  { intros j Hj E. assert (A := there (r - c) c j ltac:(lia) Hj).
    replace (c + (r - c))%nat with r in A by lia.
    assert (C := home r 0 j Hr Hj). cbn [Nat.add] in C.
    assert (D := forward_first r j Hr Hj). assert (G := ends _ _ _ _ _ _ _ _ _ _ V j Hj).
    change (tail 0) with 0 in C. unfold a, z. lia. }
  assert (N : sum m (fun j => 1 - one (F c j <? T)) = Z.of_nat m - launched T).
  { assert (E := sum_add m (fun j => 1 - one (F c j <? T)) (fun j => one (F c j <? T))).
    rewrite (sum_ext _ _ (fun _ => 1)), sum_const in E by (intros; lia). unfold launched. lia. }
  assert (Z : a <= z).
  { assert (1 <= sum m (fun j => 1 - one (F c j <? T))) as P by lia.
    apply sum_positive in P as (j & Hj & E). destruct (Z.ltb_spec (F c j) T); cbn in E; [lia|].
    destruct (In j Hj H) as (? & ? & ?). specialize (f_takes r). specialize (b_takes r). lia. }
  assert (W := work_in r a (Z.to_nat (z - a)) Hr). rewrite work_of in W.
  rewrite Z2Nat.id in W by lia.
  enough ((Z.of_nat m - launched T) * (f r + b r) <= z - a) as E.
  { specialize (f_takes r). specialize (b_takes r). unfold a, z, T in *. nia. }
  rewrite <- N, <- sum_scale. etransitivity; [|exact W]. apply sum_le. intros j Hj.
  specialize (f_takes r). specialize (b_takes r).
  destruct (Z.ltb_spec (F c j) T) as [E|E]; cbn [one]; [lia|].
  destruct (In j Hj E) as (? & ? & ?). lia.
Qed.

End Capped.

Theorem stages_bound : forall p m f b dn up,
  (forall i, 0 <= f i) -> (forall i, 0 <= b i) -> (forall i, 0 <= dn i) -> (forall i, 0 <= up i) ->
  let given := stages p m f b dn up in
  forall rows first last, valid action given rows -> within action given rows first last ->
  forall c K, (c < p)%nat -> (forall now, held_in given m rows c now <= Z.of_nat K) ->
  forall r q, (c <= r)%nat -> (r < p)%nat -> (q * K < m)%nat ->
  Z.of_nat q * (round_trip p f b dn up - head f dn c - tail b up c) +
  (Z.of_nat m - Z.of_nat (q * K)) * (f r + b r) + head f dn r + tail b up r <= last - first.
Proof.
  intros p m f b dn up Hf Hb Hd Hu given rows first last V W c K Hc C.
  assert (Hp : (1 <= p)%nat) by lia.
  assert (S := valid_keeps p m f b dn up Hp rows first last V W). cbv zeta in S.
  apply (stages_bound_of_starts p m f b dn up _ _ Hf Hb Hd Hu first last S c K Hc).
  assert (H := held_is_in_flight p m f b dn up Hf Hb Hd Hu Hp rows first last V W).
  intros now. rewrite <- H by exact Hc. apply C.
Qed.

(* The same where an activation of rank c takes w units and the rank has room for C: it holds C / w
   of them at most. *)
Theorem weights_bound : forall p m f b dn up,
  (forall i, 0 <= f i) -> (forall i, 0 <= b i) -> (forall i, 0 <= dn i) -> (forall i, 0 <= up i) ->
  let given := stages p m f b dn up in
  forall rows first last, valid action given rows -> within action given rows first last ->
  forall c w C, (c < p)%nat -> 1 <= w -> (forall now, w * held_in given m rows c now <= C) ->
  forall r q, (c <= r)%nat -> (r < p)%nat -> Z.of_nat q * (C / w) < Z.of_nat m ->
  Z.of_nat q * (round_trip p f b dn up - head f dn c - tail b up c) +
  (Z.of_nat m - Z.of_nat q * (C / w)) * (f r + b r) + head f dn r + tail b up r <= last - first.
Proof.
  intros p m f b dn up Hf Hb Hd Hu given rows first last V W c w C Hc Hw H r q Hcr Hr Hq.
  assert (Hp : (1 <= p)%nat) by lia.
  assert (I := held_is_in_flight p m f b dn up Hf Hb Hd Hu Hp rows first last V W c).
  assert (C0 : 0 <= C).
  { assert (0 <= held_in given m rows c 0); [|specialize (H 0); nia].
    unfold given. rewrite I by exact Hc. unfold in_flight. rewrite <- (sum_zero m). apply sum_le.
    intros; apply one_range. }
  assert (E : Z.of_nat (Z.to_nat (C / w)) = C / w) by (apply Z2Nat.id, Z.div_pos; lia).
  assert (A := stages_bound p m f b dn up Hf Hb Hd Hu rows first last V W c (Z.to_nat (C / w)) Hc).
  rewrite <- E in Hq. rewrite <- E. rewrite <- Nat2Z.inj_mul in *. apply A; [|exact Hcr|exact Hr|lia].
  intros now. rewrite E. apply Z.div_le_lower_bound; [lia | apply H].
Qed.
