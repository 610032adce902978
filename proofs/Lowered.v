(* Programs lowered from a schedule end under every semantics.

   theory/pipelines/programs/lowering.py goes through a schedule in time, and writes each
   computation into the program of its rank and each message, when its producer ends, into those of
   both its ranks. All ranks then agree with one order (OneOrder.v). `every_valid_schedule_ends`:
   every valid schedule, of whatever family and size, has such an order, if no task takes less than
   a tick. *)

Require Import ZArith List Lia Bool Permutation Sorted.
From Bubbleproof Require Import Definitions Starts Pipeline WaitGraph Semantics OneOrder.
Import ListNotations.

Section OfSchedule.

Open Scope Z_scope.
Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable p : problem T.
Variable home : T -> Z.
Variable s : T -> Z.

(* A task waits for those of its rank (`inputs_of`) and for messages from others. *)
Definition is_local (e : edge T) := let '(a, b, _) := e in home a =? home b.
Definition inputs_of (t : T) : list T :=
  map (fun e => fst (fst e))
    (filter (fun e => is_local e && if same (snd (fst e)) t then true else false) (edges _ p)).
Definition messages_of : list (message T) :=
  nodup (same_message T same) (map fst (filter (fun e => negb (is_local e)) (edges _ p))).
Definition ranks_of : list Z := map home (tasks _ p).

(* A computation stands where it starts, a message where its producer ends; at one moment messages
   come first. *)
Definition key (o : occurrence T) : Z :=
  match o with
  | Compute _ t => 2 * s t + 1
  | Exchange _ k => 2 * (s (fst k) + duration _ p (fst k))
  end.

Fixpoint insert (o : occurrence T) (l : list (occurrence T)) : list (occurrence T) :=
  match l with
  | [] => [o]
  | x :: rest => if key o <=? key x then o :: l else x :: insert o rest
  end.

Definition order_of : list (occurrence T) :=
  fold_right insert [] (map (Compute T) (tasks _ p) ++ map (Exchange T) messages_of).

Lemma insert_permutes : forall o l, Permutation (o :: l) (insert o l).
Proof.
  intros o. induction l as [|x rest IH]; [reflexivity|]. cbn.
  destruct (key o <=? key x); [reflexivity|]. rewrite <- IH. constructor.
Qed.

Lemma order_permutes :
  Permutation (map (Compute T) (tasks _ p) ++ map (Exchange T) messages_of) order_of.
Proof.
  unfold order_of. induction (map _ _ ++ _) as [|o l IH]; [constructor|]. cbn.
  rewrite <- insert_permutes. constructor. exact IH.
Qed.

Definition by_key (a b : occurrence T) := key a <= key b.

Lemma insert_sorted : forall o l, StronglySorted by_key l -> StronglySorted by_key (insert o l).
Proof.
  intros o l S. induction S as [|x rest S IH F]; cbn; [repeat constructor|].
  rewrite Forall_forall in F. destruct (Z.leb_spec (key o) (key x)) as [L|L].
  - constructor; [constructor; [exact S | apply Forall_forall, F]|].
    apply Forall_forall. intros y [<-|I]; [exact L|]. specialize (F y I). unfold by_key in *. lia.
  - constructor; [exact IH|]. apply Forall_forall. intros y I.
    apply (Permutation_in _ (Permutation_sym (insert_permutes o rest))) in I.
    destruct I as [<-|I]; [unfold by_key; lia | exact (F y I)].
Qed.

Lemma order_sorted : StronglySorted by_key order_of.
Proof.
  unfold order_of. induction (map _ _ ++ _) as [|o l IH]; cbn; [constructor|].
  apply insert_sorted, IH.
Qed.

Lemma sooner_first : forall l a b, StronglySorted by_key l -> In a l -> In b l -> key a < key b ->
  (at_ T same a l < at_ T same b l)%nat.
Proof.
  intros l a b S. induction S as [|x rest S IH F]; intros Ia Ib K; [destruct Ia|].
  rewrite Forall_forall in F. cbn.
  destruct (same_occurrence T same x a) as [Ea|Da], (same_occurrence T same x b) as [Eb|Db].
  - subst. lia.
  - lia.
  - subst x. destruct Ia as [->|Ia]; [congruence|]. specialize (F a Ia). unfold by_key in F. lia.
  - destruct Ia as [->|Ia]; [congruence|]. destruct Ib as [->|Ib]; [congruence|].
    specialize (IH Ia Ib K). lia.
Qed.

Lemma in_order_of : forall o, In o order_of <-> match o with
  | Compute _ t => In t (tasks _ p)
  | Exchange _ k => In k messages_of
  end.
Proof.
  intros o. transitivity (In o (map (Compute T) (tasks _ p) ++ map (Exchange T) messages_of)).
  - split; apply Permutation_in; [apply Permutation_sym|]; exact order_permutes.
  - rewrite in_app_iff, !in_map_iff. destruct o as [t|k]; split.
    + intros [(x & [= ->] & I)|(x & E & _)]; [exact I | discriminate].
    + intros I. left. eauto.
    + intros [(x & E & _)|(x & [= ->] & I)]; [discriminate | exact I].
    + intros I. right. eauto.
Qed.

Hypothesis named : well_formed T p.
Hypothesis one_home : forall t, In t (tasks _ p) -> homes _ p t = [home t].
Hypothesis takes_time : forall t, In t (tasks _ p) -> 1 <= duration _ p t.
Hypothesis edges_known : forall a b lag, In (a, b, lag) (edges _ p) ->
  0 <= lag /\ In a (tasks _ p) /\ In b (tasks _ p).
Variables first last : Z.
Hypothesis V : timed T p s first last.

Lemma in_messages : forall k, In k messages_of -> source T home k <> target T home k /\
  In (fst k) (tasks _ p) /\ In (snd k) (tasks _ p) /\
  s (fst k) + duration _ p (fst k) <= s (snd k).
Proof.
  intros [a b] I. apply nodup_In, in_map_iff in I as ([[u v] lag] & E & I).
  cbn in E. injection E as -> ->. apply filter_In in I as [I L]. cbn in L.
  apply negb_true_iff, Z.eqb_neq in L. destruct (edges_known a b lag I) as (N & Ia & Ib).
  assert (K := kept _ _ _ _ _ V a b lag I Ia Ib). cbn. repeat split; [exact L|assumption..|lia].
Qed.

Lemma precedes_by_key : forall a b, In a order_of -> In b order_of -> key a < key b ->
  precedes T same order_of a b.
Proof. intros a b Ia Ib K. split; [exact Ia|]. apply sooner_first; auto using order_sorted. Qed.

(* On each rank the program has the computations in the order in which they start. *)
Lemma starts_in_order : forall t u, In t (tasks _ p) -> In u (tasks _ p) -> s t < s u ->
  precedes T same order_of (Compute T t) (Compute T u).
Proof.
  intros t u It Iu L. apply precedes_by_key; [apply in_order_of; assumption..|]. cbn [key]. lia.
Qed.

Lemma timed_order_ends : forall sem, deadlock_free T same home inputs_of messages_of
  (lowered T home ranks_of order_of) sem.
Proof.
  apply one_order_ends.
  - apply (Permutation_NoDup order_permutes). apply NoDup_app_disjoint.
    + apply FinFun.Injective_map_NoDup; [intros a b E; congruence | apply named].
    + apply FinFun.Injective_map_NoDup; [intros a b E; congruence | apply NoDup_nodup].
    + intros x H1 H2. apply in_map_iff in H1 as (? & <- & _). apply in_map_iff in H2 as (? & E & _).
      discriminate E.
  - intros [t|k] I; apply in_order_of in I.
    + apply in_map. exact I.
    + apply in_messages in I as (D & Ia & Ib & _). unfold ranks_of, source, target. repeat split; [apply in_map, Ia | apply in_map, Ib | exact D].
  - intros t u It Iu. assert (Jt := It). apply in_order_of in It.
    apply in_map_iff in Iu as ([[a b] lag] & <- & I).
    apply filter_In in I as [I L]. apply andb_true_iff in L as [_ L]. cbn in L |- *.
    destruct (same b t) as [->|]; [|discriminate].
    destruct (edges_known a t lag I) as (N & Ia & _). specialize (takes_time a Ia).
    assert (K := kept _ _ _ _ _ V a t lag I Ia It).
    apply starts_in_order; [assumption..|lia].
  - intros t k It Ik. apply filter_In in Ik as [Ik L].
    destruct (same (snd k) t) as [<-|]; [|discriminate].
    assert (M := in_messages k Ik). apply precedes_by_key; [apply in_order_of; exact Ik | exact It|].
    cbn [key]. lia.
Qed.

End OfSchedule.

Theorem every_valid_schedule_ends : forall T same (p : problem T) (home : T -> Z),
  well_formed T p ->
  (forall t, In t (tasks _ p) -> homes _ p t = [home t]) ->
  (forall t, In t (tasks _ p) -> 1 <= duration _ p t)%Z ->
  (forall a b lag, In (a, b, lag) (edges _ p) ->
     (0 <= lag)%Z /\ In a (tasks _ p) /\ In b (tasks _ p)) ->
  forall rows first last, valid T p rows -> within T p rows first last ->
  forall s, deadlock_free T same home (inputs_of T same p home) (messages_of T same p home)
    (lowered T home (ranks_of T p home) (order_of T same p home (first_start T same rows))) s.
Proof.
  intros T same p home N H D E rows first last V W s.
  apply timed_order_ends with (first := first) (last := last); try assumption.
  apply valid_is_timed; [|exact V|exact W]. intros t I. apply N, I.
Qed.


(* Of the pipeline of Pipeline.v: all that 1F1B and GPipe, and whoever else, may do. *)
Theorem pipeline_never_stuck : forall p m tF tB, (1 <= tF)%Z -> (1 <= tB)%Z ->
  let home t := match t with F i _ | B i _ => Z.of_nat i end in
  let given := pipeline p m tF tB in
  forall rows first last, valid action given rows -> within action given rows first last ->
  forall s, deadlock_free action same_action home
    (inputs_of _ same_action given home) (messages_of _ same_action given home)
    (lowered _ home (ranks_of _ given home)
       (order_of _ same_action given home (first_start _ same_action rows))) s.
Proof.
  intros p m tF tB HF HB home given rows first last V W.
  apply (every_valid_schedule_ends action same_action given home) with (first := first) (last := last);
    try assumption.
  - apply pipeline_is_well_formed.
  - intros [i j|i j] _; reflexivity.
  - intros [i j|i j] _; cbn; lia.
  - intros a b lag I. apply in_edges in I as [Fo ->]. split; [lia|].
    destruct Fo; split; first [apply is_F | apply is_B]; lia.
Qed.
