(* Pipelines whose stages and links take whatever they take, as starts: `stages`, the problem, and
   `starts_keep`, what its valid schedules give and what gives valid schedules (`valid_keeps`,
   `keeps_valid`). No order of the microbatches is assumed here or by what rests on it. *)

Require Import ZArith Lia List Bool PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Pipeline Sums.
Import ListNotations.
Open Scope Z_scope.

(* ---- What is held of any problem, counted. ---- *)

Section Held.

Variables (T : Type) (same : forall x y : T, {x = y} + {x <> y}) (given : problem T).
Hypothesis housed : forall t, In t (tasks _ given) -> homes _ given t <> [].

(* One unit from the start of x j to the end of y j, for each j below m. *)
Definition uses (m : nat) (x y : nat -> T) : store T := Store T 0 None
  (map (fun j => Event T (x j) false 1) (seq 0 m) ++ map (fun j => Event T (y j) true (-1)) (seq 0 m)).

Section Counted.

Variable rows : schedule T.
Hypothesis all_there : complete T given rows.
Notation s := (first_start T same rows).

Lemma moment_of : forall t at_e d, In t (tasks _ given) ->
  moment T same given rows (Event T t at_e d) = Some (if at_e then s t + duration _ given t else s t).
Proof.
  intros t at_e d I. unfold moment, first_start. cbn [owner at_end].
  destruct (find _ rows) as [x|] eqn:E.
  - apply find_some in E as [_ E]. apply same_task_iff in E. unfold finish. rewrite E. reflexivity.
  - exfalso. destruct all_there as (H & _ & _). assert (N := housed t I).
    destruct (homes T given t) as [|r rs] eqn:R; [congruence|].
    specialize (H t r I ltac:(rewrite R; left; reflexivity)). apply in_map_iff in H as (x & Ex & Ix).
    unfold site in Ex. injection Ex as _ Et. apply (find_none _ _ E) in Ix.
    rewrite (proj2 (same_task_iff _ _ _ _) Et) in Ix. discriminate.
Qed.

Lemma added_app : forall now l k, added T same given rows now (l ++ k) =
  added T same given rows now l + added T same given rows now k.
Proof. intros now l k. induction l as [|e l IH]; cbn [added app]; [lia|]. rewrite IH. lia. Qed.

Lemma added_each : forall (t : nat -> T) at_e d now n, (forall j, (j < n)%nat -> In (t j) (tasks _ given)) ->
  added T same given rows now (map (fun j => Event T (t j) at_e d) (seq 0 n)) =
  sum n (fun j => one ((if at_e then s (t j) + duration _ given (t j) else s (t j)) <=? now) * d).
Proof.
  intros t at_e d now. induction n as [|n IH]; intros H; [reflexivity|].
  rewrite seq_S, map_app, added_app, IH by (intros j L; apply H; lia). cbn [map added sum Nat.add].
  rewrite moment_of by (apply H; lia). cbn [delta]. destruct (_ <=? now); cbn [one]; lia.
Qed.

Lemma uses_count : forall m x y now, (forall j, (j < m)%nat -> In (x j) (tasks _ given)) ->
  (forall j, (j < m)%nat -> In (y j) (tasks _ given)) -> load T same given rows (uses m x y) now =
  sum m (fun j => one (s (x j) <=? now)) - sum m (fun j => one (s (y j) + duration _ given (y j) <=? now)).
Proof.
  intros m x y now X Y. unfold load, uses. cbn [base events]. rewrite added_app, !added_each by assumption.
  rewrite !sum_scale. lia.
Qed.

(* Where each y j ends when its x j has started, or later. *)
Lemma uses_alive : forall m x y now, (forall j, (j < m)%nat -> In (x j) (tasks _ given)) ->
  (forall j, (j < m)%nat -> In (y j) (tasks _ given)) ->
  (forall j, (j < m)%nat -> s (x j) <= s (y j) + duration _ given (y j)) ->
  load T same given rows (uses m x y) now =
  sum m (fun j => one (during (s (x j)) now (s (y j) + duration _ given (y j)))).
Proof.
  intros m x y now X Y O. rewrite uses_count by assumption.
  enough (E : sum m (fun j => one (s (x j) <=? now)) =
    sum m (fun j => one (during (s (x j)) now (s (y j) + duration _ given (y j))) +
      one (s (y j) + duration _ given (y j) <=? now))) by (rewrite sum_add in E; lia).
  apply sum_ext. intros j Hj. specialize (O j Hj). unfold during.
  destruct (Z.leb_spec (s (x j)) now), (Z.leb_spec (s (y j) + duration T given (y j)) now),
    (Z.ltb_spec now (s (y j) + duration T given (y j))); cbn; lia.
Qed.

End Counted.

(* The rows made of starts have these starts. *)
Lemma starts_of_rows : forall (s : T -> Z) t, In t (tasks _ given) ->
  first_start T same (rows_of T given s) t = s t.
Proof.
  intros s t I. unfold first_start. destruct (find _ _) as [x|] eqn:E.
  - apply find_some in E as [Ix E]. apply same_task_iff in E. apply in_rows_of in Ix as (_ & _ & S).
    congruence.
  - exfalso. assert (N := housed t I). destruct (homes T given t) as [|r rs] eqn:R; [congruence|].
    assert (K : In (Row _ r t (s t)) (rows_of T given s)).
    { apply in_rows_of. cbn. split; [exact I|]. split; [rewrite R; left; reflexivity | reflexivity]. }
    apply (find_none _ _ E) in K. cbn in K. rewrite (proj2 (same_task_iff _ _ _ _) eq_refl) in K.
    discriminate.
Qed.

End Held.

(* What rank i holds: one activation of a microbatch from the start of its forward to the end of its
   backward, for m microbatches. *)
Definition activations (m i : nat) : store action := Store action 0 None
  (map (fun j => Event action (F i j) false 1) (seq 0 m) ++
   map (fun j => Event action (B i j) true (-1)) (seq 0 m)).

Definition held_in (given : problem action) (m : nat) rows (i : nat) (now : Z) : Z :=
  load action same_action given rows (activations m i) now.

(* Forward and backward of stage i take f i and b i ticks, the link from rank i to i + 1 and back dn
   i and up i. *)
Definition edges_between (p : nat) (dn up : nat -> Z) (c : nat * nat) : list (edge action) :=
  let (i, j) := c in
  (F i j, B i j, 0) ::
  (if Nat.ltb (S i) p then [(F i j, F (S i) j, dn i); (B (S i) j, B i j, up i)] else []).

Definition stages (p m : nat) (f b dn up : nat -> Z) : problem action := Problem action
  (map F_of (cells p m) ++ map B_of (cells p m))
  (fun t => match t with F i _ => f i | B i _ => b i end)
  (fun t => match t with F i _ | B i _ => [Z.of_nat i] end)
  (flat_map (edges_between p dn up) (cells p m)).

Lemma pipeline_is_stages : forall p m tF tB, pipeline p m tF tB =
  stages p m (fun _ => tF) (fun _ => tB) (fun _ => 0) (fun _ => 0).
Proof. reflexivity. Qed.

Section Stages.

Variables (p m : nat).
Variables f b : nat -> Z.        (* forward and backward of stage i *)
Variables dn up : nat -> Z.      (* the link from rank i to i + 1, and back *)
Variables F B : nat -> nat -> Z. (* when rank i starts them for microbatch j *)

Record starts_keep (first last : Z) : Prop := StartsKeep {
  begins : forall j, (j < m)%nat -> first <= F 0 j;
  ends   : forall j, (j < m)%nat -> B 0 j + b 0%nat <= last;
  down   : forall i j, (S i < p)%nat -> (j < m)%nat -> F i j + f i + dn i <= F (S i) j;
  turn   : forall j, (j < m)%nat -> F (p - 1)%nat j + f (p - 1)%nat <= B (p - 1)%nat j;
  back   : forall i j, (S i < p)%nat -> (j < m)%nat -> B (S i) j + b (S i) + up i <= B i j;
  turns_F : forall i j k, (i < p)%nat -> (j < k)%nat -> (k < m)%nat ->
    apart (F i j) (f i) (F i k) (f i);
  turns_B : forall i j k, (i < p)%nat -> (j < k)%nat -> (k < m)%nat ->
    apart (B i j) (b i) (B i k) (b i);
  turns_FB : forall i j k, (i < p)%nat -> (j < m)%nat -> (k < m)%nat ->
    apart (F i j) (f i) (B i k) (b i) }.

(* What rank i holds: from the start of the forward to the end of the backward. *)
Definition in_flight (i : nat) (now : Z) : Z := sum m (fun j => one (during (F i j) now (B i j + b
  i))).

Definition head (i : nat) : Z := sum i (fun k => f k + dn k).
Definition tail (i : nat) : Z := sum i (fun k => b k + up k).
Definition round_trip : Z := head (p - 1) + f (p - 1)%nat + b (p - 1)%nat + tail (p - 1).

Hypothesis f_takes : forall i, 0 <= f i.
Hypothesis b_takes : forall i, 0 <= b i.
Hypothesis dn_takes : forall i, 0 <= dn i.
Hypothesis up_takes : forall i, 0 <= up i.

Variables first last : Z.
Hypothesis V : starts_keep first last.

Lemma there : forall k i j, (i + k < p)%nat -> (j < m)%nat ->
  F i j + (head (i + k) - head i) <= F (i + k)%nat j.
Proof.
  induction k as [|k IH]; intros i j L Hj; [rewrite Nat.add_0_r; lia|].
  specialize (IH i j ltac:(lia) Hj). assert (D := down _ _ V (i + k)%nat j ltac:(lia) Hj).
  rewrite Nat.add_succ_r. unfold head in *. cbn [sum]. lia.
Qed.

Lemma home : forall k i j, (i + k < p)%nat -> (j < m)%nat ->
  B (i + k)%nat j + b (i + k)%nat + (tail (i + k) - tail i) <= B i j + b i.
Proof.
  induction k as [|k IH]; intros i j L Hj; [rewrite Nat.add_0_r; lia|].
  specialize (IH i j ltac:(lia) Hj). assert (D := back _ _ V (i + k)%nat j ltac:(lia) Hj).
  rewrite Nat.add_succ_r. unfold tail in *. cbn [sum]. lia.
Qed.

Lemma head_grows : forall i k, head i <= head (i + k).
Proof.
  intros i k. apply sum_grows. intros x. specialize (f_takes x). specialize (dn_takes x).
  apply Z.add_nonneg_nonneg; assumption.
Qed.

Lemma tail_grows : forall i k, tail i <= tail (i + k).
Proof.
  intros i k. apply sum_grows. intros x. specialize (b_takes x). specialize (up_takes x).
  apply Z.add_nonneg_nonneg; assumption.
Qed.

(* On every rank a forward has ended when the backward of its microbatch starts. *)
Lemma forward_first : forall i j, (i < p)%nat -> (j < m)%nat -> F i j + f i <= B i j.
Proof.
  intros i j Hi Hj. assert (exists k, p = S (i + k)) as (k & E) by (exists (p - S i)%nat; lia).
  assert (T := turn _ _ V j Hj). replace (p - 1)%nat with (i + k)%nat in T by lia.
  destruct k as [|k]; [rewrite Nat.add_0_r in T; exact T|].
  assert (D := down _ _ V i j ltac:(lia) Hj). assert (U := back _ _ V i j ltac:(lia) Hj).
  replace (i + S k)%nat with (S i + k)%nat in T by lia.
  assert (A := there k (S i) j ltac:(lia) Hj). assert (C := home k (S i) j ltac:(lia) Hj).
  assert (G := head_grows (S i) k).
  assert (G' := tail_grows (S i) k).
  assert (X := f_takes (S i + k)%nat). assert (Y := b_takes (S i + k)%nat).
  specialize (dn_takes i). specialize (up_takes i). specialize (b_takes (S i)).
  specialize (f_takes (S i)). lia.
Qed.

(* ---- What a rank does at a tick: one action at most. ---- *)

Definition at_work (i : nat) (now : Z) (j : nat) : Z :=
  one (during (F i j) now (F i j + f i)) + one (during (B i j) now (B i j + b i)).

Lemma one_at_a_time : forall i now, (i < p)%nat -> sum m (at_work i now) <= 1.
Proof.
  intros i now Hi. apply sum_alone; unfold at_work.
  - intros j Hj. assert (A := forward_first i j Hi Hj).
    destruct (one_during (F i j) now (F i j + f i)) as [[? ->]|[? ->]],
      (one_during (B i j) now (B i j + b i)) as [[? ->]|[? ->]]; lia.
  - intros j k L Hk E. assert (A := turns_F _ _ V i j k Hi L Hk).
    assert (C := turns_B _ _ V i j k Hi L Hk).
    assert (D := turns_FB _ _ V i j k Hi ltac:(lia) Hk).
    assert (D' := turns_FB _ _ V i k j Hi Hk ltac:(lia)).
    unfold apart in *. revert E.
    destruct (one_during (F i j) now (F i j + f i)) as [[? ->]|[? ->]],
      (one_during (B i j) now (B i j + b i)) as [[? ->]|[? ->]],
      (one_during (F i k) now (F i k + f i)) as [[? ->]|[? ->]],
      (one_during (B i k) now (B i k + b i)) as [[? ->]|[? ->]]; lia.
Qed.

Lemma work_in : forall i a n, (i < p)%nat -> ticks a n (fun t => sum m (at_work i t)) <= Z.of_nat n.
Proof.
  intros i a n Hi. unfold ticks. rewrite <- (Z.mul_1_r (Z.of_nat n)), <- sum_const. apply sum_le.
  intros x _. apply one_at_a_time, Hi.
Qed.

Lemma work_of : forall i a n, ticks a n (fun t => sum m (at_work i t)) =
  sum m (fun j => Z.max 0 (Z.min (a + Z.of_nat n) (F i j + f i) - Z.max a (F i j)) +
                  Z.max 0 (Z.min (a + Z.of_nat n) (B i j + b i) - Z.max a (B i j))).
Proof.
  intros i a n. unfold ticks. rewrite sum_swap. apply sum_ext. intros j _. unfold at_work.
  rewrite sum_add. f_equal; apply covered; [apply f_takes | apply b_takes].
Qed.

Lemma round : forall c j, (c < p)%nat -> (j < m)%nat ->
  F c j + (round_trip - head c - tail c) <= B c j + b c.
Proof.
  intros c j Hc Hj. assert (A := there (p - 1 - c) c j ltac:(lia) Hj).
  assert (C := home (p - 1 - c) c j ltac:(lia) Hj). assert (T := turn _ _ V j Hj).
  replace (c + (p - 1 - c))%nat with (p - 1)%nat in * by lia. unfold round_trip. lia.
Qed.

End Stages.

(* ---- Schedules as rows. ---- *)

Section Rows.

Variables (p m : nat) (f b dn up : nat -> Z).
Notation given := (stages p m f b dn up).

Lemma in_edges_between : forall i j, (i < p)%nat -> (j < m)%nat ->
  In (F i j, B i j, 0) (edges _ given) /\
  ((S i < p)%nat -> In (F i j, F (S i) j, dn i) (edges _ given) /\
                    In (B (S i) j, B i j, up i) (edges _ given)).
Proof.
  intros i j Hi Hj. assert (C : In (i, j) (cells p m)) by (apply in_cells; lia).
  assert (E : forall e, In e (edges_between p dn up (i, j)) -> In e (edges _ given))
    by (intros e I; cbn; apply in_flat_map; exists (i, j); split; assumption).
  split; [apply E; left; reflexivity|]. intros L.
  split; apply E; unfold edges_between; destruct (Nat.ltb_spec (S i) p); (lia || cbn; auto).
Qed.

Lemma edges_are : forall x y lag, In (x, y, lag) (edges _ given) ->
  exists i j, (i < p)%nat /\ (j < m)%nat /\ ((x = F i j /\ y = B i j /\ lag = 0) \/
    (S i < p)%nat /\ ((x = F i j /\ y = F (S i) j /\ lag = dn i) \/
                      (x = B (S i) j /\ y = B i j /\ lag = up i))).
Proof.
  intros x y lag I. cbn in I. apply in_flat_map in I as ([i j] & C & I).
  apply in_cells in C as [Ci Cj]. exists i, j. unfold edges_between in I.
  destruct (Nat.ltb_spec (S i) p); cbn in I;
    repeat (destruct I as [I|I]; [injection I as <- <- <-; auto 9|]); contradiction.
Qed.

Lemma stages_well_formed : well_formed action given.
Proof. exact (pipeline_is_well_formed p m 0 0). Qed.

Lemma all_housed : forall t, In t (tasks _ given) -> homes _ given t <> [].
Proof. intros [i j|i j] _; discriminate. Qed.

(* ---- What valid schedules give. ---- *)

Hypothesis f_takes : forall i, 0 <= f i.
Hypothesis b_takes : forall i, 0 <= b i.
Hypothesis dn_takes : forall i, 0 <= dn i.
Hypothesis up_takes : forall i, 0 <= up i.
Hypothesis some_ranks : (1 <= p)%nat.

Lemma timed_keeps : forall s first last, timed action given s first last ->
  starts_keep p m f b dn up (fun i j => s (F i j)) (fun i j => s (B i j)) first last.
Proof.
  intros s first last V.
  assert (TF : forall i j, (i < p)%nat -> (j < m)%nat -> In (F i j) (tasks _ given))
    by (intros; apply (is_F p m 0 0); lia).
  assert (TB : forall i j, (i < p)%nat -> (j < m)%nat -> In (B i j) (tasks _ given))
    by (intros; apply (is_B p m 0 0); lia).
  assert (K := kept _ _ _ _ _ V). assert (A := turns _ _ _ _ _ V). constructor.
  - intros j Hj. apply (inside _ _ _ _ _ V (F 0%nat j)), TF; lia.
  - intros j Hj. apply (inside _ _ _ _ _ V (B 0%nat j)), TB; lia.
  - intros i j Hi Hj. destruct (in_edges_between i j ltac:(lia) Hj) as [_ E].
    apply (K _ _ _ (proj1 (E Hi))); apply TF; lia.
  - intros j Hj. destruct (in_edges_between (p - 1) j ltac:(lia) Hj) as [E _].
    specialize (K _ _ _ E). cbn in K. rewrite Z.add_0_r in K. apply K; [apply TF | apply TB]; lia.
  - intros i j Hi Hj. destruct (in_edges_between i j ltac:(lia) Hj) as [_ E].
    apply (K _ _ _ (proj2 (E Hi))); apply TB; lia.
  - intros i j k Hi L Hk. apply (A (F i j) (F i k) (Z.of_nat i));
      [apply TF; lia | apply TF; lia | intros [= E]; lia | left; reflexivity | left; reflexivity].
  - intros i j k Hi L Hk. apply (A (B i j) (B i k) (Z.of_nat i));
      [apply TB; lia | apply TB; lia | intros [= E]; lia | left; reflexivity | left; reflexivity].
  - intros i j k Hi Hj Hk. apply (A (F i j) (B i k) (Z.of_nat i));
      [apply TF; lia | apply TB; lia | discriminate | left; reflexivity | left; reflexivity].
Qed.

Lemma valid_keeps : forall rows first last,
  valid action given rows -> within action given rows first last ->
  let s := first_start action same_action rows in
  starts_keep p m f b dn up (fun i j => s (F i j)) (fun i j => s (B i j)) first last.
Proof.
  intros rows first last V W. apply timed_keeps, valid_is_timed; try assumption.
  intros t I. apply stages_well_formed, I.
Qed.

Lemma held_is_in_flight : forall rows first last,
  valid action given rows -> within action given rows first last -> forall i now, (i < p)%nat ->
  let s := first_start action same_action rows in
  held_in given m rows i now = in_flight m b (fun i j => s (F i j)) (fun i j => s (B i j)) i now.
Proof.
  intros rows first last V W i now Hi s. assert (K := valid_keeps rows first last V W).
  apply (uses_alive action same_action given all_housed rows (proj1 V) m (F i) (B i) now);
    intros j Hj; [apply (is_F p m 0 0); lia | apply (is_B p m 0 0); lia|].
  assert (A := forward_first _ _ _ _ _ _ _ _ f_takes b_takes dn_takes up_takes _ _ K i j Hi Hj).
  cbn beta in A. fold s. fold s in A. specialize (f_takes i). specialize (b_takes i).
  cbn [duration stages]. lia.
Qed.

(* ---- And what gives valid schedules. ---- *)

Lemma keeps_timed : forall (s : action -> Z) first last,
  starts_keep p m f b dn up (fun i j => s (F i j)) (fun i j => s (B i j)) first last ->
  timed action given s first last.
Proof.
  intros s first last K.
  assert (A := forward_first _ _ _ _ _ _ _ _ f_takes b_takes dn_takes up_takes _ _ K).
  assert (In_ : forall i j, (i < p)%nat -> (j < m)%nat ->
    first <= s (F i j) /\ s (B i j) + b i <= last).
  { intros i j Hi Hj. assert (H := there _ _ _ _ _ _ _ _ _ _ K i 0 j Hi Hj).
    assert (T := home _ _ _ _ _ _ _ _ _ _ K i 0 j Hi Hj). cbn [Nat.add] in H, T.
    assert (G := head_grows f dn f_takes dn_takes 0 i).
    assert (G' := tail_grows b up b_takes up_takes 0 i).
    cbn [Nat.add] in G, G'. assert (X := begins _ _ _ _ _ _ _ _ _ _ K j Hj).
    assert (Y := ends _ _ _ _ _ _ _ _ _ _ K j Hj). cbn beta in *. lia. }
  constructor.
  - intros [i j|i j] I; [apply (proj1 (is_F p m 0 0 _ _)) in I | apply (proj1 (is_B p m 0 0 _ _))
      in I]; cbn [duration stages];
      destruct I as [Hi Hj]; specialize (A i j Hi Hj); specialize (In_ i j Hi Hj); cbn beta in A;
      specialize (f_takes i); specialize (b_takes i); lia.
  - intros x y lag I _ _. apply edges_are in I as (i & j & Hi & Hj & [(-> & -> & ->)|
      (L & [(-> & -> & ->)|(-> & -> & ->)])]); cbn [duration stages].
    + rewrite Z.add_0_r. exact (A i j Hi Hj).
    + exact (down _ _ _ _ _ _ _ _ _ _ K i j L Hj).
    + exact (back _ _ _ _ _ _ _ _ _ _ K i j L Hj).
  - intros t u r It Iu D Rt Ru.
    assert (FF := turns_F _ _ _ _ _ _ _ _ _ _ K). assert (BB := turns_B _ _ _ _ _ _ _ _ _ _ K).
    assert (FB := turns_FB _ _ _ _ _ _ _ _ _ _ K). cbn beta in *. unfold apart in *.
    destruct t as [i j|i j], u as [i' k|i' k];
      cbn [homes stages] in Rt, Ru; destruct Rt as [Rt|[]], Ru as [Ru|[]];
      assert (i' = i) by lia; subst i'; cbn [duration stages].
    all: first [apply (proj1 (is_F p m 0 0 _ _)) in It | apply (proj1 (is_B p m 0 0 _ _)) in It].
    all: first [apply (proj1 (is_F p m 0 0 _ _)) in Iu | apply (proj1 (is_B p m 0 0 _ _)) in Iu].
    + assert (j < k \/ k < j)%nat as [L|L] by (assert (j <> k) by congruence; lia);
        [destruct (FF i j k) | destruct (FF i k j)]; unfold apart; lia.
    + destruct (FB i j k); unfold apart; lia.
    + destruct (FB i k j); unfold apart; lia.
    + assert (j < k \/ k < j)%nat as [L|L] by (assert (j <> k) by congruence; lia);
        [destruct (BB i j k) | destruct (BB i k j)]; unfold apart; lia.
Qed.

Lemma keeps_valid : forall sF sB last, starts_keep p m f b dn up sF sB 0 last ->
  exists rows, valid action given rows /\ within action given rows 0 last /\
    forall i now, (i < p)%nat -> held_in given m rows i now = in_flight m b sF sB i now.
Proof.
  intros sF sB last K. pose (s := fun t => match t with F i j => sF i j | B i j => sB i j end).
  destruct (timed_is_valid action given stages_well_formed s 0 last (Z.le_refl 0)
    (keeps_timed s 0 last K)) as [V W].
  exists (rows_of action given s). split; [exact V|]. split; [exact W|]. intros i now Hi.
  rewrite (held_is_in_flight _ _ _ V W) by exact Hi. unfold in_flight. apply sum_ext. intros j Hj.
  rewrite !(starts_of_rows _ _ _ all_housed) by (first [apply (is_F p m 0 0) | apply (is_B p m 0 0)]; lia).
  reflexivity.
Qed.

End Rows.
