(* The pipeline of p ranks and m microbatches: a forward of tF and a full backward of tB ticks of
   each microbatch on each rank, rank i with stage i; links take no time. No schedule of it, in
   whatever order and however much memory there is, is below (m + p - 1)(tF + tB).

   The proof is about the last rank. None of its forwards can start before the p - 1 stages before
   it have run one, and after each of its backwards p - 1 more follow: it works m(tF + tB) ticks
   between (p - 1)tF after the beginning and (p - 1)tB before the end. *)

Require Import ZArith Lia List FinFun PeanoNat.
From Bubbleproof Require Import Definitions Starts Packing.
Import ListNotations.
Open Scope Z_scope.

Inductive action := F (rank microbatch : nat) | B (rank microbatch : nat).

Definition same_action : forall x y : action, {x = y} + {x <> y}.
Proof. decide equality; apply Nat.eq_dec. Defined.

Section Pipeline.

Variables (p m : nat) (tF tB : Z).

Definition cells : list (nat * nat) := list_prod (seq 0 p) (seq 0 m).
Definition F_of (c : nat * nat) := F (fst c) (snd c).
Definition B_of (c : nat * nat) := B (fst c) (snd c).

(* F before B on every stage; F before the next stage's F; the next stage's B before B. *)
Definition edges_of (c : nat * nat) : list (edge action) :=
  let (i, j) := c in
  (F i j, B i j, 0) ::
  (if Nat.ltb (S i) p then [(F i j, F (S i) j, 0); (B (S i) j, B i j, 0)] else []).

Definition pipeline : problem action := Problem action
  (map F_of cells ++ map B_of cells)
  (fun t => match t with F _ _ => tF | B _ _ => tB end)
  (fun t => match t with F i _ | B i _ => [Z.of_nat i] end)
  (flat_map edges_of cells).

Definition bound : Z := (Z.of_nat m + Z.of_nat p - 1) * (tF + tB).

(* ---- What stands in these lists. ---- *)

Lemma in_cells : forall i j, In (i, j) cells <-> (i < p /\ j < m)%nat.
Proof. intros i j. unfold cells. rewrite in_prod_iff, !in_seq. lia. Qed.

Lemma is_F : forall i j, In (F i j) (tasks _ pipeline) <-> (i < p /\ j < m)%nat.
Proof.
  intros i j. cbn. rewrite in_app_iff, !in_map_iff. rewrite <- in_cells. split.
  - intros [([a b] & E & I)|([a b] & E & _)]; unfold F_of, B_of in E; cbn in E; [|discriminate].
    injection E as -> ->. exact I.
  - intros I. left. exists (i, j). split; [reflexivity | exact I].
Qed.

Lemma is_B : forall i j, In (B i j) (tasks _ pipeline) <-> (i < p /\ j < m)%nat.
Proof.
  intros i j. cbn. rewrite in_app_iff, !in_map_iff. rewrite <- in_cells. split.
  - intros [([a b] & E & _)|([a b] & E & I)]; unfold F_of, B_of in E; cbn in E; [discriminate|].
    injection E as -> ->. exact I.
  - intros I. right. exists (i, j). split; [reflexivity | exact I].
Qed.

Inductive follows : action -> action -> Prop :=
| turn : forall i j, (i < p)%nat -> (j < m)%nat -> follows (F i j) (B i j)
| onward : forall i j, (S i < p)%nat -> (j < m)%nat -> follows (F i j) (F (S i) j)
| backward : forall i j, (S i < p)%nat -> (j < m)%nat -> follows (B (S i) j) (B i j).

Lemma in_edges : forall a b lag, In (a, b, lag) (edges _ pipeline) <-> follows a b /\ lag = 0.
Proof.
  intros a b lag. cbn. rewrite in_flat_map. split.
  - intros ([i j] & C & I). apply in_cells in C as [Ci Cj]. unfold edges_of in I.
    destruct (Nat.ltb_spec (S i) p); cbn in I;
      repeat (destruct I as [I|I]; [injection I as <- <- <-|]);
      try contradiction; split; try reflexivity; constructor; assumption.
  - intros [H ->]. destruct H as [i j|i j|i j]; exists (i, j); (split; [apply in_cells; lia|]);
      unfold edges_of; [left; reflexivity| |]; destruct (Nat.ltb_spec (S i) p); try lia; cbn; tauto.
Qed.

Lemma cells_once : NoDup cells.
Proof.
  unfold cells. generalize (seq_NoDup p 0) (seq_NoDup m 0). generalize (seq 0 p) (seq 0 m).
  intros l k L K. induction L as [|i l I L IH]; cbn; [constructor|].
  apply NoDup_app_disjoint; [|exact IH|].
  - apply Injective_map_NoDup; [|exact K]. intros a b E. congruence.
  - intros [a b] H1 H2. apply in_map_iff in H1 as (c & E & _). apply in_prod_iff in H2 as [H2 _].
    congruence.
Qed.

Lemma pipeline_is_well_formed : well_formed action pipeline.
Proof.
  split.
  - cbn. apply NoDup_app_disjoint.
    + apply Injective_map_NoDup; [|exact cells_once]. intros [a b] [c d] [= -> ->]. reflexivity.
    + apply Injective_map_NoDup; [|exact cells_once]. intros [a b] [c d] [= -> ->]. reflexivity.
    + intros x H1 H2. apply in_map_iff in H1 as (c & <- & _).
      apply in_map_iff in H2 as (d & E & _). discriminate E.
  - intros [i j|i j] _; cbn; (split; [|discriminate]); (constructor; [intros []|constructor]).
Qed.

(* ---- The lower bound. ---- *)

Section Bound.

Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis some_microbatches : (1 <= m)%nat.
Hypothesis F_takes_time : 0 <= tF.
Hypothesis B_takes_time : 0 <= tB.

Variables (s : action -> Z) (first last : Z).
Hypothesis V : timed action pipeline s first last.

Lemma step : forall a b, follows a b -> s a + duration _ pipeline a <= s b.
Proof.
  intros a b H.
  assert (K := kept _ _ _ _ _ V a b 0 (proj2 (in_edges a b 0) (conj H eq_refl))).
  destruct H; rewrite ?is_F, ?is_B in K; lia.
Qed.

Lemma head : forall i j, (i < p)%nat -> (j < m)%nat -> first + Z.of_nat i * tF <= s (F i j).
Proof.
  induction i as [|i IH]; intros j Hi Hj.
  - destruct (inside _ _ _ _ _ V (F 0 j)); [apply is_F; lia | lia].
  - specialize (IH j). assert (E := step _ _ (onward i j Hi Hj)). cbn in E. lia.
Qed.

Lemma tail : forall i j, (i < p)%nat -> (j < m)%nat ->
  s (B i j) + tB + Z.of_nat i * tB <= last.
Proof.
  induction i as [|i IH]; intros j Hi Hj.
  - destruct (inside _ _ _ _ _ V (B 0 j)) as [_ E]; [apply is_B; lia | cbn in E; lia].
  - specialize (IH j). assert (E := step _ _ (backward i j Hi Hj)). cbn in E. lia.
Qed.

(* The actions of rank i. *)
Definition work (i : nat) := map (F i) (seq 0 m) ++ map (B i) (seq 0 m).

Lemma in_work : forall i t, In t (work i) <->
  exists j, (j < m)%nat /\ (t = F i j \/ t = B i j).
Proof.
  intros i t. unfold work. rewrite in_app_iff, !in_map_iff. split.
  - intros [(j & <- & I)|(j & <- & I)]; apply in_seq in I; exists j; (split; [lia|tauto]).
  - intros (j & Hj & [->| ->]); [left|right]; exists j; (split; [reflexivity|apply in_seq; lia]).
Qed.

Lemma busy_all : forall (f : nat -> action) t n k, (forall j, duration _ pipeline (f j) = t) ->
  busy action (duration _ pipeline) (map f (seq k n)) = Z.of_nat n * t.
Proof.
  intros f t n. induction n as [|n IH]; intros k H; [reflexivity|].
  cbn [seq map busy]. rewrite (IH (S k) H), H. lia.
Qed.

Lemma busy_work : forall i, busy action (duration _ pipeline) (work i) = Z.of_nat m * (tF + tB).
Proof.
  intros i. unfold work.
  rewrite busy_app, (busy_all (F i) tF), (busy_all (B i) tB); try reflexivity.
  lia.
Qed.

Lemma work_once : forall i, NoDup (work i).
Proof.
  intros i. unfold work. apply NoDup_app_disjoint.
  - apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
  - apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
  - intros x H1 H2. apply in_map_iff in H1 as (? & <- & _). apply in_map_iff in H2 as (? & E & _).
    discriminate E.
Qed.

Lemma starts_are_far_apart : bound <= last - first.
Proof.
  assert (exists i, (i < p)%nat /\ Z.of_nat i = Z.of_nat p - 1) as (i & Hi & Ei)
    by (exists (p - 1)%nat; lia).
  enough (busy action (duration _ pipeline) (work i) <=
    (last - Z.of_nat i * tB) - (first + Z.of_nat i * tF)) as P
    by (rewrite busy_work, Ei in P; unfold bound; lia).
  apply (packing action s).
  - unfold work. destruct m; [lia|discriminate].
  - apply work_once.
  - intros t I. apply in_work in I as (j & Hj & H). unfold between.
    assert (T := step _ _ (turn i j Hi Hj)). assert (E := tail i j Hi Hj).
    assert (A := head i j Hi Hj). cbn in T. destruct H as [-> | ->]; cbn; lia.
  - intros t u It Iu D. apply (turns _ _ _ _ _ V t u (Z.of_nat i)); [| |exact D| |];
      apply in_work in It as (j & Hj & [->| ->]); apply in_work in Iu as (k & Hk & [->| ->]);
      try (apply is_F; lia); try (apply is_B; lia); left; reflexivity.
Qed.

End Bound.

Theorem pipeline_lower_bound :
  (1 <= p)%nat -> (1 <= m)%nat -> 0 <= tF -> 0 <= tB ->
  forall rows first last, valid action pipeline rows -> within action pipeline rows first last ->
  (Z.of_nat m + Z.of_nat p - 1) * (tF + tB) <= last - first.
Proof.
  intros Hp Hm HF HB rows first last V W.
  apply (starts_are_far_apart Hp Hm HF HB (first_start action same_action rows)).
  apply valid_is_timed; [|exact V|exact W]. intros t I. apply pipeline_is_well_formed, I.
Qed.

(* ---- What a schedule in closed form has to show: nine inequalities. ---- *)

Lemma closed_form : forall (s : action -> Z) last,
  (forall i j, (i < p)%nat -> (j < m)%nat -> 0 <= s (F i j) /\ s (F i j) + tF <= last) ->
  (forall i j, (i < p)%nat -> (j < m)%nat -> 0 <= s (B i j) /\ s (B i j) + tB <= last) ->
  (forall i j, (i < p)%nat -> (j < m)%nat -> s (F i j) + tF <= s (B i j)) ->
  (forall i j, (S i < p)%nat -> (j < m)%nat -> s (F i j) + tF <= s (F (S i) j)) ->
  (forall i j, (S i < p)%nat -> (j < m)%nat -> s (B (S i) j) + tB <= s (B i j)) ->
  (forall i j k, (i < p)%nat -> (j < k)%nat -> (k < m)%nat -> s (F i j) + tF <= s (F i k)) ->
  (forall i j k, (i < p)%nat -> (j < k)%nat -> (k < m)%nat -> s (B i j) + tB <= s (B i k)) ->
  (forall i j k, (i < p)%nat -> (j < m)%nat -> (k < m)%nat ->
    apart (s (F i j)) tF (s (B i k)) tB) ->
  valid action pipeline (rows_of action pipeline s) /\
  within action pipeline (rows_of action pipeline s) 0 last.
Proof.
  intros s last HF HB HT Hon Hback FF BB FB.
  apply timed_is_valid; [exact pipeline_is_well_formed | lia | constructor].
  - intros [i j|i j] I; [apply is_F in I; apply HF | apply is_B in I; apply HB]; tauto.
  - intros a b lag I _ _. apply in_edges in I as [[i j|i j|i j] ->]; cbn; rewrite Z.add_0_r; auto.
  - intros t u r It Iu D Rt Ru. destruct t as [i j|i j], u as [i' k|i' k];
      cbn in Rt, Ru; destruct Rt as [Rt|[]], Ru as [Ru|[]];
      assert (i' = i) by lia; subst i';
      rewrite ?is_F, ?is_B in *; cbn.
    + assert (j < k \/ k < j)%nat as [L|L] by (assert (j <> k) by congruence; lia);
        [left|right]; apply FF; lia.
    + apply FB; lia.
    + destruct (FB i k j) as [L|L]; try lia; [right|left]; exact L.
    + assert (j < k \/ k < j)%nat as [L|L] by (assert (j <> k) by congruence; lia);
        [left|right]; apply BB; lia.
Qed.

End Pipeline.
