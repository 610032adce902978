(* ZB-H1 with tF = tI = tW = t and m >= p: valid, takes (3m + p - 1) t, and no schedule whose
   backwards are split takes less, for all p, m and t.

   The starts are t times whole numbers, the closed form of theorem `zb-h1`, so that what has to be
   shown is linear arithmetic. The bound is the last rank's: none of its 3m tasks starts before p - 1
   forwards have run. *)

Require Import ZArith Lia List FinFun PeanoNat.
From Bubbleproof Require Import Definitions Starts Packing Pipeline.
Import ListNotations.
Open Scope Z_scope.

(* A forward, an input backward and a weight backward. *)
Inductive part := Fwd | Inp | Wgt.
Notation split := (part * (nat * nat))%type.   (* what, on which rank, of which microbatch *)

Definition same_split : forall x y : split, {x = y} + {x <> y}.
Proof. repeat decide equality. Defined.

Section Split.

Variables (p m : nat) (t : Z).

Definition edges_of_split (c : nat * nat) : list (edge split) :=
  let (i, j) := c in
  [((Fwd, c), (Inp, c), 0); ((Inp, c), (Wgt, c), 0)] ++
  (if Nat.ltb (S i) p
   then [((Fwd, c), (Fwd, (S i, j)), 0); ((Inp, (S i, j)), (Inp, c), 0)] else []).

Definition split_pipeline : problem split := Problem split
  (list_prod [Fwd; Inp; Wgt] (cells p m))
  (fun _ => t)
  (fun x => [Z.of_nat (fst (snd x))])
  (flat_map edges_of_split (cells p m)).

Lemma is_split : forall k i j, In (k, (i, j)) (tasks _ split_pipeline) <-> (i < p /\ j < m)%nat.
Proof.
  intros k i j. cbn [tasks split_pipeline]. rewrite in_prod_iff, in_cells.
  split; [tauto|]. intros H. split; [destruct k; cbn; auto | exact H].
Qed.

Inductive split_follows : split -> split -> Prop :=
| turns_back : forall i j, (i < p)%nat -> (j < m)%nat -> split_follows (Fwd, (i, j)) (Inp, (i, j))
| weights : forall i j, (i < p)%nat -> (j < m)%nat -> split_follows (Inp, (i, j)) (Wgt, (i, j))
| goes_on : forall i j, (S i < p)%nat -> (j < m)%nat -> split_follows (Fwd, (i, j)) (Fwd, (S i, j))
| goes_back : forall i j, (S i < p)%nat -> (j < m)%nat ->
    split_follows (Inp, (S i, j)) (Inp, (i, j)).

Lemma in_split_edges : forall a b lag,
  In (a, b, lag) (edges _ split_pipeline) <-> split_follows a b /\ lag = 0.
Proof.
  intros a b lag. cbn [edges split_pipeline]. rewrite in_flat_map. split.
  - intros ([i j] & C & I). apply in_cells in C as [Ci Cj]. unfold edges_of_split in I.
    destruct (Nat.ltb_spec (S i) p); cbn in I;
      repeat (destruct I as [I|I]; [injection I as <- <- <-|]);
      try contradiction; split; try reflexivity; constructor; assumption.
  - intros [H ->]. destruct H as [i j|i j|i j|i j]; exists (i, j); (split; [apply in_cells; lia|]);
      unfold edges_of_split; destruct (Nat.ltb_spec (S i) p); try lia; cbn; auto 6.
Qed.

Lemma split_once : NoDup (tasks _ split_pipeline).
Proof.
  cbn [tasks split_pipeline list_prod]. rewrite app_nil_r.
  assert (M : forall k : part, NoDup (map (fun c => (k, c)) (cells p m))).
  { intros k. apply Injective_map_NoDup; [intros x y E; congruence | apply cells_once]. }
  repeat apply NoDup_app_disjoint; try apply M.
  - intros x H1 H2. apply in_map_iff in H1 as (? & <- & _). apply in_map_iff in H2 as (? & E & _).
    discriminate E.
  - intros x H1 H2. rewrite in_app_iff, !in_map_iff in H2. apply in_map_iff in H1 as (? & <- & _).
    destruct H2 as [(? & E & _)|(? & E & _)]; discriminate E.
Qed.

Lemma split_is_well_formed : well_formed split split_pipeline.
Proof.
  split; [exact split_once|]. intros x _. cbn. split; [|discriminate].
  constructor; [intros []|constructor].
Qed.

(* ---- The closed form. ---- *)

Definition unit_start (x : split) : Z :=
  let '(k, (i, j)) := x in
  let i := Z.of_nat i in let j := Z.of_nat j in let p := Z.of_nat p in let m := Z.of_nat m in
  match k with
  | Fwd => if j <? p - i then i + j else if j <? p then i + 2 * j else i + 1 - p + 3 * j
  | Inp => if j <? i then 2 * p - 1 - i + 2 * j
           else if j <=? m - p + i then 2 * p - 1 - 2 * i + 3 * j else m + p - 1 - i + 2 * j
  | Wgt => if j <=? m - p then 2 * p + i + 3 * j
           else if j <? m - i then m + p + i + 2 * j else 2 * m + p - 1 + j
  end.

Definition start_zbh1 (x : split) : Z := t * unit_start x.
Definition schedule_zbh1 : schedule split := rows_of split split_pipeline start_zbh1.

Ltac opened := unfold unit_start; cbv zeta;
  repeat match goal with
  | |- context [?a <? ?b] => destruct (Z.ltb_spec a b)
  | |- context [?a <=? ?b] => destruct (Z.leb_spec a b)
  end; try lia.

Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis enough : (p <= m)%nat.

Lemma unit_window : forall k i j, (i < p)%nat -> (j < m)%nat ->
  0 <= unit_start (k, (i, j)) /\
  unit_start (k, (i, j)) + 1 <= 3 * Z.of_nat m + Z.of_nat p - 1.
Proof. intros [| |] i j Hi Hj; opened. Qed.

Lemma unit_follows : forall a b, split_follows a b -> unit_start a + 1 <= unit_start b.
Proof. intros a b H. destruct H; opened. Qed.

Lemma unit_same : forall k i a b, (i < p)%nat -> (a < b)%nat -> (b < m)%nat ->
  unit_start (k, (i, a)) + 1 <= unit_start (k, (i, b)).
Proof. intros [| |] i a b Hi L Hb; opened. Qed.

Lemma unit_apart : forall k l i a b, (i < p)%nat -> (a < m)%nat -> (b < m)%nat -> k <> l ->
  unit_start (k, (i, a)) + 1 <= unit_start (l, (i, b)) \/
  unit_start (l, (i, b)) + 1 <= unit_start (k, (i, a)).
Proof. intros k l i a b Hi Ha Hb D. destruct k, l; try congruence; opened. Qed.

Hypothesis takes_time : 0 <= t.

Lemma scaled : forall a b, a + 1 <= b -> t * a + t <= t * b.
Proof. intros a b L. replace (t * a + t) with (t * (a + 1)) by lia. apply Z.mul_le_mono_nonneg_l; lia. Qed.

Lemma valid_zbh1_ : valid split split_pipeline schedule_zbh1 /\
  within split split_pipeline schedule_zbh1 0 ((3 * Z.of_nat m + Z.of_nat p - 1) * t).
Proof.
  apply timed_is_valid; [exact split_is_well_formed | lia|]. constructor.
  - intros [k [i j]] I. apply is_split in I as [Hi Hj]. destruct (unit_window k i j Hi Hj) as [L U].
    unfold start_zbh1. cbn [duration split_pipeline]. split; [apply Z.mul_nonneg_nonneg; assumption|].
    apply scaled in U. lia.
  - intros a b lag I _ _. apply in_split_edges in I as [H ->]. unfold start_zbh1.
    cbn [duration split_pipeline]. apply unit_follows, scaled in H. lia.
  - intros [k [i a]] [l [i' b]] r It Iu D Rt Ru. apply is_split in It as [Hi Ha].
    apply is_split in Iu as [Hi' Hb]. cbn in Rt, Ru. destruct Rt as [Rt|[]], Ru as [Ru|[]].
    assert (i' = i) by lia. subst i'. unfold apart, start_zbh1. cbn [duration split_pipeline].
    assert (E : {k = l} + {k <> l}) by decide equality. destruct E as [->|N].
    + assert (a < b \/ b < a)%nat as [L|L] by (assert (a <> b) by congruence; lia);
        [left|right]; apply scaled, unit_same; assumption.
    + destruct (unit_apart k l i a b Hi Ha Hb N); [left|right]; apply scaled; assumption.
Qed.

(* ---- The lower bound. ---- *)

Variables (s : split -> Z) (first last : Z).
Hypothesis V : timed split split_pipeline s first last.

Lemma split_step : forall a b, split_follows a b -> s a + t <= s b.
Proof.
  intros a b H. assert (K := kept _ _ _ _ _ V a b 0 (proj2 (in_split_edges a b 0) (conj H eq_refl))).
  cbn [duration split_pipeline] in K. rewrite Z.add_0_r in K. apply K; destruct H; apply is_split; lia.
Qed.

Lemma split_head : forall i j, (i < p)%nat -> (j < m)%nat -> first + Z.of_nat i * t <= s (Fwd, (i, j)).
Proof.
  induction i as [|i IH]; intros j Hi Hj.
  - destruct (inside _ _ _ _ _ V (Fwd, (0%nat, j))); [apply is_split; lia | lia].
  - specialize (IH j). assert (E := split_step _ _ (goes_on i j Hi Hj)). lia.
Qed.

Definition split_work (i : nat) : list split :=
  list_prod [Fwd; Inp; Wgt] (map (fun j => (i, j)) (seq 0 m)).

Lemma busy_split : forall l, busy split (duration _ split_pipeline) l = Z.of_nat (length l) * t.
Proof. induction l as [|x l IH]; cbn [busy length duration split_pipeline] in *; lia. Qed.

Lemma split_bound : (3 * Z.of_nat m + Z.of_nat p - 1) * t <= last - first.
Proof.
  assert (exists i, p = S i) as (i & Ei) by (exists (p - 1)%nat; lia).
  enough (busy split (duration _ split_pipeline) (split_work i) <= last - (first + Z.of_nat i * t)) as P.
  { assert (length (split_work i) = 3 * m)%nat as L.
    { transitivity (3 * length (map (fun j => (i, j)) (seq 0 m)))%nat;
        [apply (prod_length [Fwd; Inp; Wgt]) | rewrite map_length, seq_length; reflexivity]. }
    rewrite busy_split, L, Nat2Z.inj_mul in P.
    replace (Z.of_nat p) with (Z.of_nat i + 1) by lia. lia. }
  assert (W : forall x, In x (split_work i) <-> exists k j, (j < m)%nat /\ x = (k, (i, j))).
  { intros [k c]. unfold split_work. rewrite in_prod_iff, in_map_iff. split.
    - intros (_ & j & <- & I). apply in_seq in I. exists k, j. split; [lia | reflexivity].
    - intros (k' & j & L & [= -> ->]). split; [destruct k'; cbn; auto|]. exists j.
      split; [reflexivity | apply in_seq; lia]. }
  apply (packing split s).
  - unfold split_work. destruct m as [|m']; [lia | discriminate].
  - assert (H : NoDup (map (fun j => (i, j)) (seq 0 m)))
      by (apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup]).
    unfold split_work. cbn [list_prod]. rewrite app_nil_r.
    assert (M : forall k : part, NoDup (map (fun c => (k, c)) (map (fun j => (i, j)) (seq 0 m)))).
    { intros k. apply Injective_map_NoDup; [intros x y E; congruence | exact H]. }
    repeat apply NoDup_app_disjoint; try apply M.
    + intros x H1 H2. apply in_map_iff in H1 as (? & <- & _). apply in_map_iff in H2 as (? & E & _).
      discriminate E.
    + intros x H1 H2. rewrite in_app_iff in H2. apply in_map_iff in H1 as (? & <- & _).
      destruct H2 as [H2|H2]; apply in_map_iff in H2 as (? & E & _); discriminate E.
  - intros x I. apply W in I as (k & j & Hj & ->). unfold between. cbn [duration split_pipeline].
    assert (Hi : (i < p)%nat) by lia. assert (A := split_head i j Hi Hj).
    assert (T1 := split_step _ _ (turns_back i j Hi Hj)).
    assert (T2 := split_step _ _ (weights i j Hi Hj)).
    destruct (inside _ _ _ _ _ V (k, (i, j))) as [_ E]; [apply is_split; lia|].
    cbn [duration split_pipeline] in E. destruct k; lia.
  - intros x y Ix Iy D. apply W in Ix as (k & a & Ha & ->). apply W in Iy as (l & b & Hb & ->).
    apply (turns _ _ _ _ _ V _ _ (Z.of_nat i)); [| |exact D| |];
      try (apply is_split; lia); left; reflexivity.
Qed.

End Split.

Theorem valid_zbh1 : forall p m t, (1 <= p)%nat -> (p <= m)%nat -> 0 <= t ->
  valid split (split_pipeline p m t) (schedule_zbh1 p m t) /\
  within split (split_pipeline p m t) (schedule_zbh1 p m t) 0
    ((3 * Z.of_nat m + Z.of_nat p - 1) * t).
Proof. intros p m t Hp Hm Ht. apply valid_zbh1_; assumption. Qed.

Theorem optimal_zbh1 : forall p m t, (1 <= p)%nat -> (p <= m)%nat -> 0 <= t ->
  forall rows first last, valid split (split_pipeline p m t) rows ->
  within split (split_pipeline p m t) rows first last ->
  (3 * Z.of_nat m + Z.of_nat p - 1) * t <= last - first.
Proof.
  intros p m t Hp Hm Ht rows first last V W.
  apply (split_bound p m t Hp Hm Ht (first_start split same_split rows)).
  apply valid_is_timed; [|exact V|exact W]. intros x I. apply (split_is_well_formed p m t), I.
Qed.
