(* What a fast pipeline holds at every moment, on every rank, in whatever order it runs.

   `crowded`: let a schedule leave rank r idle for `slack` ticks at most, between its distance from
   the start and its distance from the end. Look at rank i <= r at tick `now`. Rank r can work from
   y = now - (the way back from r to i) to x = now + (the way from i to r) only on microbatches that
   rank i holds now: who has not begun on rank i does not reach r by x, and who has ended on rank i
   had left r by y. It works all these ticks but `slack`, and a microbatch gives it one forward and
   one backward.

   So a schedule as fast as 1F1B holds p - i activations at least on rank i at every moment from (p
   - 1)P to mP (`fastest_holds_everywhere`), hence p (p + 1) / 2 together (`fastest_holds_in_all`),
   and both are attained. *)

Require Import ZArith Lia.
From Bubbleproof Require Import Definitions Starts Pipeline Sums StageStarts Peaks Frontier.
Open Scope Z_scope.

Section Stages.

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

Notation head := (head f dn).
Notation tail := (tail b up).
Notation in_flight := (in_flight m b F B).

Variable r : nat.
Hypothesis some_r : (r < p)%nat.
Notation W := (f r + b r).

Variable slack : Z.
Hypothesis fast : last - first <= head r + Z.of_nat m * W + tail r + slack.

(* What rank r does of microbatch j in the n ticks from y on. *)
Definition part (y : Z) (n : nat) (j : nat) : Z :=
  Z.max 0 (Z.min (y + Z.of_nat n) (F r j + f r) - Z.max y (F r j)) +
  Z.max 0 (Z.min (y + Z.of_nat n) (B r j + b r) - Z.max y (B r j)).

Lemma part_range : forall y n j, 0 <= part y n j <= W.
Proof. intros y n j. unfold part. specialize (f_takes r). specialize (b_takes r). lia. Qed.

Lemma inside : forall j, (j < m)%nat ->
  first + head r <= F r j /\ F r j + f r <= B r j /\ B r j + b r <= last - tail r.
Proof.
  intros j Hj. assert (A := there p m f b dn up F B first last V r 0 j some_r Hj).
  assert (C := home p m f b dn up F B first last V r 0 j some_r Hj). cbn [Nat.add] in *.
  assert (D := forward_first p m f b dn up F B f_takes b_takes dn_takes up_takes first last V r j
    some_r Hj).
  assert (G := ends _ _ _ _ _ _ _ _ _ _ V j Hj). assert (G' := begins _ _ _ _ _ _ _ _ _ _ V j Hj).
  change (StageStarts.head f dn 0) with 0 in A. change (StageStarts.tail b up 0) with 0 in C. lia.
Qed.

(* Rank r is idle for `slack` ticks at most of any that lie in its time. *)
Lemma busy : forall y n, first + head r <= y -> y + Z.of_nat n <= last - tail r ->
  Z.of_nat n - slack <= sum m (part y n).
Proof.
  intros y n A Z. unfold part. rewrite <- (work_of m f b F B f_takes b_takes r y n).
  set (a := first + head r) in *. set (z := last - tail r) in *.
  assert (T : Z.of_nat m * W <= ticks a (Z.to_nat (z - a)) (fun t => sum m (at_work f b F B r t))).
  { rewrite work_of by assumption. rewrite <- sum_const. apply sum_le. intros j Hj.
    rewrite Z2Nat.id by lia. specialize (inside j Hj). fold a z. specialize (f_takes r).
    specialize (b_takes r). lia. }
  assert (U : forall s k, ticks s k (fun t => sum m (at_work f b F B r t)) <= Z.of_nat k)
    by (intros s k; exact (work_in p m f b dn up F B f_takes b_takes dn_takes up_takes first last
      V r s k some_r)).
  replace (Z.to_nat (z - a)) with (Z.to_nat (y - a) + (n + Z.to_nat (z - (y + Z.of_nat n))))%nat
    in T by lia.
  rewrite !ticks_app in T. replace (a + Z.of_nat (Z.to_nat (y - a))) with y in T by lia.
  assert (U1 := U a (Z.to_nat (y - a))). assert (U2 := U (y + Z.of_nat n) (Z.to_nat (z - (y +
    Z.of_nat n)))).
  lia.
Qed.

(* Rank r works only for whom rank i holds. *)
Lemma only_held : forall i j now y n, (i <= r)%nat -> (j < m)%nat ->
  now - (tail r - tail i) <= y -> y + Z.of_nat n <= now + (head r - head i) + 1 ->
  part y n j <= one (during (F i j) now (B i j + b i)) * W.
Proof.
  intros i j now y n Hi Hj Y X. assert (R := part_range y n j).
  destruct (one_during (F i j) now (B i j + b i)) as [[_ ->]|[O ->]]; [lia|].
  assert (A := there p m f b dn up F B first last V (r - i) i j ltac:(lia) Hj).
  assert (C := home p m f b dn up F B first last V (r - i) i j ltac:(lia) Hj).
  replace (i + (r - i))%nat with r in * by lia.
  assert (D := forward_first p m f b dn up F B f_takes b_takes dn_takes up_takes first last V r j
    some_r Hj).
  specialize (f_takes r). specialize (b_takes r). unfold part. lia.
Qed.

Lemma crowded_of_starts : forall i now, (i <= r)%nat ->
  first + head r + (tail r - tail i) <= now -> now + (head r - head i) + 1 <= last - tail r ->
  (head r - head i) + (tail r - tail i) + 1 - slack <= in_flight i now * W.
Proof.
  intros i now Hi L U.
  assert (G := head_grows f dn f_takes dn_takes i (r - i)).
  assert (G' := tail_grows b up b_takes up_takes i (r - i)).
  replace (i + (r - i))%nat with r in * by lia.
  set (y := now - (tail r - tail i)). set (n := Z.to_nat ((head r - head i) + (tail r - tail i) +
    1)).
  assert (A := busy y n ltac:(unfold y; lia) ltac:(unfold y, n; lia)).
  unfold StageStarts.in_flight. rewrite <- sum_scale.
  transitivity (sum m (part y n)); [unfold n in *; lia|]. apply sum_le. intros j Hj.
  apply only_held; [exact Hi | exact Hj | unfold y; lia | unfold y, n; lia].
Qed.

End Stages.

(* ---- All stages alike. ---- *)

Section Alike.

Variables (p m : nat) (tF tB l : Z).
Notation P := (tF + tB).
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis F_takes : 0 <= tF.
Hypothesis B_takes : 0 <= tB.
Hypothesis link_takes : 0 <= l.

Variables F B : nat -> nat -> Z.
Variables first last : Z.

Section Slack.

Hypothesis V : uniform p m tF tB l F B first last.

(* `slack` ticks above the fastest, rank i holds (p - 1 - i)(P + 2l) + 1 - slack ticks' worth of
   work. *)
Lemma holds_everywhere_of_starts : forall slack,
  last - first <= (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * (2 * l) + slack ->
  forall i now, (i < p)%nat ->
  first + (Z.of_nat p - 1) * (tF + l) + (Z.of_nat p - 1 - Z.of_nat i) * (tB + l) <= now ->
  now + 1 <= last - (Z.of_nat p - 1) * (tB + l) - (Z.of_nat p - 1 - Z.of_nat i) * (tF + l) ->
  (Z.of_nat p - 1 - Z.of_nat i) * (P + 2 * l) + 1 - slack <= holds m tB F B i now * P.
Proof.
  intros slack S i now Hi L U. unfold holds.
  assert (Heads : forall k, head (fun _ => tF) (fun _ => l) k = Z.of_nat k * (tF + l))
    by (intros k; exact (sum_const k (tF + l))).
  assert (Tails : forall k, tail (fun _ => tB) (fun _ => l) k = Z.of_nat k * (tB + l))
    by (intros k; exact (sum_const k (tB + l))).
  assert (E := crowded_of_starts p m (fun _ => tF) (fun _ => tB) (fun _ => l) (fun _ => l) F B
    (fun _ => F_takes) (fun _ => B_takes) (fun _ => link_takes) (fun _ => link_takes) first last V
    (p - 1) ltac:(lia) slack).
  rewrite !Heads, !Tails in E. replace (Z.of_nat (p - 1)) with (Z.of_nat p - 1) in E by lia.
  specialize (E ltac:(lia) i now ltac:(lia)). rewrite !Heads, !Tails in E.
  specialize (E ltac:(lia) ltac:(lia)). lia.
Qed.

End Slack.

End Alike.

Lemma triangle : forall p n, 2 * sum n (fun i => Z.of_nat p - Z.of_nat i) =
  Z.of_nat n * (2 * Z.of_nat p - Z.of_nat n + 1).
Proof.
  intros p. induction n as [|n IH]; [reflexivity|]. cbn [sum]. rewrite Z.mul_add_distr_l, IH. nia.
Qed.

(* ---- As fast as 1F1B, and links take no time. ---- *)

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

Notation alive i now j := (during (F i j) now (B i j + tB)).

(* From the moment when the pipeline can be full to the moment when it must drain. *)
Definition steady (now : Z) := first + (Z.of_nat p - 1) * P <= now < first + Z.of_nat m * P.

(* No schedule is faster: rank p - 1 has m P to do. *)
Lemma not_faster : (1 <= m)%nat -> (Z.of_nat m + Z.of_nat p - 1) * P <= last - first.
Proof.
  intros Hm. assert (H := lower_of_starts p m m tF tB 0 some_ranks Hm Hm F_takes B_takes
    ltac:(lia) F B first last V).
  unfold least in H. rewrite (Nat.div_small (m - 1) m) in H by lia. cbn [Z.of_nat] in H.
  enough (forall now, holds m tB F B 0 now <= Z.of_nat m) as C by (specialize (H C); lia).
  intros now. unfold holds, in_flight. rewrite <- (Z.mul_1_r (Z.of_nat m)), <- sum_const.
  apply sum_le.
  intros; apply one_range.
Qed.

Lemma alive_enough : forall i now, (i < p)%nat -> steady now ->
  (Z.of_nat p - 1 - Z.of_nat i) * P + 1 <= holds m tB F B i now * P.
Proof.
  intros i now Hi [L U]. assert (1 <= P) by nia. assert (1 <= m)%nat by nia.
  assert (N := not_faster ltac:(lia)).
  assert (A := holds_everywhere_of_starts p m tF tB 0 some_ranks F_takes B_takes ltac:(lia) F B
    first last V 0 ltac:(lia) i now Hi).
  assert (0 <= Z.of_nat i * tF) by nia. assert (0 <= Z.of_nat i * tB) by nia. 
  specialize (A ltac:(nia) ltac:(nia)). lia.
Qed.

Lemma fastest_holds_everywhere_of_starts : forall i now, (i < p)%nat -> steady now ->
  Z.of_nat p - Z.of_nat i <= holds m tB F B i now.
Proof.
  intros i now Hi S. assert (A := alive_enough i now Hi S). nia.
Qed.

Definition in_all (now : Z) : Z := sum p (fun i => holds m tB F B i now).

Lemma fastest_holds_in_all_of_starts : forall now,
  steady now -> Z.of_nat p * (Z.of_nat p + 1) <= 2 * in_all now.
Proof.
  intros now S. assert (E := triangle p p). unfold in_all.
  enough (sum p (fun i => Z.of_nat p - Z.of_nat i) <= sum p (fun i => holds m tB F B i now)) by lia.
  apply sum_le. intros i Hi. apply fastest_holds_everywhere_of_starts; assumption.
Qed.

(* There is such a moment where m >= p. *)
Lemma some_moment : (p <= m)%nat -> 1 <= P -> steady (first + (Z.of_nat p - 1) * P).
Proof. intros. unfold steady. nia. Qed.

End Fast.

(* ---- The theorems, about schedules as rows. ---- *)

Theorem crowded : forall p m f b dn up,
  (forall i, 0 <= f i) -> (forall i, 0 <= b i) -> (forall i, 0 <= dn i) -> (forall i, 0 <= up i) ->
  let given := stages p m f b dn up in
  forall rows first last, valid action given rows -> within action given rows first last ->
  forall r slack, (r < p)%nat ->
  last - first <= head f dn r + Z.of_nat m * (f r + b r) + tail b up r + slack ->
  forall i now, (i <= r)%nat ->
  first + head f dn r + (tail b up r - tail b up i) <= now ->
  now + (head f dn r - head f dn i) + 1 <= last - tail b up r ->
  (head f dn r - head f dn i) + (tail b up r - tail b up i) + 1 - slack
    <= held_in given m rows i now * (f r + b r).
Proof.
  intros p m f b dn up Hf Hb Hd Hu given rows first last V W r slack Hr S i now Hi L U.
  assert (Hp : (1 <= p)%nat) by lia.
  assert (K := valid_keeps p m f b dn up Hp rows first last V W). cbv zeta in K.
  unfold given. rewrite (held_is_in_flight p m f b dn up Hf Hb Hd Hu Hp rows first last V W) by lia.
  exact (crowded_of_starts p m f b dn up _ _ Hf Hb Hd Hu first last K r Hr slack S i now Hi L U).
Qed.

Section Rows.

Variables (p m : nat) (tF tB : Z).
Notation P := (tF + tB).
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis F_takes : 0 <= tF.
Hypothesis B_takes : 0 <= tB.

(* `slack` ticks above the fastest, with links of l ticks. *)
Theorem holds_everywhere : forall l rows first last slack, 0 <= l ->
  valid action (linked p m tF tB l) rows -> within action (linked p m tF tB l) rows first last ->
  last - first <= (Z.of_nat m + Z.of_nat p - 1) * P + (Z.of_nat p - 1) * (2 * l) + slack ->
  forall i now, (i < p)%nat ->
  first + (Z.of_nat p - 1) * (tF + l) + (Z.of_nat p - 1 - Z.of_nat i) * (tB + l) <= now ->
  now + 1 <= last - (Z.of_nat p - 1) * (tB + l) - (Z.of_nat p - 1 - Z.of_nat i) * (tF + l) ->
  (Z.of_nat p - 1 - Z.of_nat i) * (P + 2 * l) + 1 - slack
    <= held_in (linked p m tF tB l) m rows i now * P.
Proof.
  intros l rows first last slack Hl V W S i now Hi L U.
  destruct (uniform_of_rows p m tF tB l some_ranks F_takes B_takes Hl rows first last V W) as [K H].
  rewrite H by exact Hi.
  exact (holds_everywhere_of_starts p m tF tB l some_ranks F_takes B_takes Hl _ _ first last K
    slack S i now Hi L U).
Qed.

Section AsFast.

Variables (rows : schedule action) (first last : Z).
Hypothesis V : valid action (pipeline p m tF tB) rows.
Hypothesis W : within action (pipeline p m tF tB) rows first last.
Hypothesis as_fast : last - first <= (Z.of_nat m + Z.of_nat p - 1) * P.

Notation s := (first_start action same_action rows).
Notation starts_of_F := (fun i j => s (F i j)).
Notation starts_of_B := (fun i j => s (B i j)).

Lemma uniform_of_fast : uniform p m tF tB 0 starts_of_F starts_of_B first last /\
  forall i now, (i < p)%nat ->
    held p m tF tB rows i now = holds m tB starts_of_F starts_of_B i now.
Proof.
  exact (uniform_of_rows p m tF tB 0 some_ranks F_takes B_takes (Z.le_refl 0) rows first last V W).
Qed.

Theorem fastest_holds_everywhere : forall i now, (i < p)%nat ->
  first + (Z.of_nat p - 1) * P <= now < first + Z.of_nat m * P ->
  Z.of_nat p - Z.of_nat i <= held p m tF tB rows i now.
Proof.
  intros i now Hi S. destruct uniform_of_fast as [K H]. rewrite H by exact Hi.
  exact (fastest_holds_everywhere_of_starts p m tF tB some_ranks F_takes B_takes _ _ first last K
    as_fast i now Hi S).
Qed.

Theorem fastest_holds_in_all : forall now,
  first + (Z.of_nat p - 1) * P <= now < first + Z.of_nat m * P ->
  Z.of_nat p * (Z.of_nat p + 1) <= 2 * sum p (fun i => held p m tF tB rows i now).
Proof.
  intros now S. destruct uniform_of_fast as [K H].
  rewrite (sum_ext p _ (fun i => holds m tB starts_of_F starts_of_B i now))
    by (intros; apply H; assumption).
  exact (fastest_holds_in_all_of_starts p m tF tB some_ranks F_takes B_takes _ _ first last K
    as_fast now S).
Qed.

End AsFast.

(* Both are attained: the schedule of Frontier.v with p activations is as fast and holds no more. *)
Theorem attained : (1 <= m)%nat -> exists rows, valid action (pipeline p m tF tB) rows /\
  within action (pipeline p m tF tB) rows 0 ((Z.of_nat m + Z.of_nat p - 1) * P) /\
  forall i now, (i < p)%nat -> held p m tF tB rows i now <= Z.of_nat p - Z.of_nat i.
Proof.
  intros Hm. destruct (frontier p m p tF tB 0 some_ranks Hm some_ranks F_takes B_takes
    (Z.le_refl 0) 0 eq_refl) as [_ (rows & V & W & _ & N)].
  assert (E : least p m p tF tB (2 * 0) = (Z.of_nat m + Z.of_nat p - 1) * P)
    by (unfold least; replace (Z.max 0 _) with 0 by lia; lia).
  rewrite E in W. exists rows. split; [exact V|]. split; [exact W | exact (N eq_refl)].
Qed.

End Rows.
