(* Programs made from one order of all that happens end under every semantics.

   theory/pipelines/programs/lowering.py goes through a schedule in time, and writes each
   computation into the program of its rank and each message, when its producer ends, into those of
   both its ranks. All ranks then agree with one order. `one_order_ends`: such a program cannot get
   stuck; `every_valid_schedule_ends`: every valid schedule, of whatever family and size, has such
   an order, if no task takes less than a tick. *)

Require Import ZArith List Lia Bool Permutation Sorted.
From Bubbleproof Require Import Definitions Starts Pipeline WaitGraph Semantics.
Import ListNotations.

Section OneOrder.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable home : T -> Z.
Variable inputs : T -> list T.
Variable messages : list (message T).
Variable ranks : list Z.
Variable order : list (occurrence T).

Notation occ := (occurrence_of T).
Notation rows_on := (rows_on T home).
Notation program := (lowered T home ranks order).

(* The place of an occurrence in a list of them. *)
Fixpoint at_ (o : occurrence T) (l : list (occurrence T)) : nat :=
  match l with
  | [] => 0
  | x :: rest => if same_occurrence T same x o then 0 else S (at_ o rest)
  end.

Definition precedes (a b : occurrence T) := In a order /\ (at_ a order < at_ b order)%nat.

Hypothesis once : NoDup order.
Hypothesis known : forall o, In o order -> match o with
  | Compute _ t => In (home t) ranks
  | Exchange _ k => In (source T home k) ranks /\ In (target T home k) ranks /\
                    source T home k <> target T home k
  end.
Hypothesis inputs_first : forall t u, In (Compute T t) order -> In u (inputs t) ->
  precedes (Compute T u) (Compute T t).
Hypothesis messages_first : forall t k, In (Compute T t) order -> In k (received T same messages t) ->
  precedes (Exchange T k) (Compute T t).

Lemma row_in : forall r x l, In x (flat_map (rows_on r) l) -> In (occ x) l.
Proof.
  intros r x l I. apply in_flat_map in I as (o & Io & Ix). destruct o as [t|k]; cbn in Ix.
  - destruct (home t =? r)%Z; cbn in Ix; intuition (subst; cbn; assumption).
  - rewrite in_app_iff in Ix. destruct Ix as [Ix|Ix];
      destruct (Z.eqb_spec (source T home k) r), (Z.eqb_spec (target T home k) r);
      cbn in Ix; intuition (subst; cbn; assumption).
Qed.

(* At most one row of an occurrence stands on a rank. *)
Lemma one_row : forall r o, In o order ->
  rows_on r o = [] \/ exists x, rows_on r o = [x] /\ occ x = o.
Proof.
  intros r [t|k] I; cbn.
  - destruct (home t =? r)%Z; [right; exists (Run T t); split; reflexivity | left; reflexivity].
  - apply known in I as (_ & _ & D).
    destruct (Z.eqb_spec (source T home k) r), (Z.eqb_spec (target T home k) r); cbn.
    + congruence.
    + right. exists (Send T k). split; reflexivity.
    + right. exists (Recv T k). split; reflexivity.
    + left. reflexivity.
Qed.

Lemma at_rest : forall x o l, x <> o -> at_ o (x :: l) = S (at_ o l).
Proof. intros x o l D. cbn. destruct (same_occurrence T same x o); [congruence | reflexivity]. Qed.

Lemma at_first : forall o l, at_ o (o :: l) = 0%nat.
Proof. intros o l. cbn. destruct (same_occurrence T same o o); congruence. Qed.

Lemma earlier_in : forall x y rows, In y (earlier T same x rows) -> In y rows.
Proof.
  intros x y. induction rows as [|z rest IH]; cbn; [tauto|].
  destruct (same_row T same z x); [intros []|]. intros [->|I]; [left | right]; auto.
Qed.

Lemma earlier_place : forall r x y l, NoDup l -> incl l order ->
  In x (flat_map (rows_on r) l) -> In y (earlier T same x (flat_map (rows_on r) l)) ->
  (at_ (occ y) l < at_ (occ x) l)%nat.
Proof.
  intros r x y. induction l as [|o l IH]; intros N L Ix Iy; [destruct Ix|].
  inversion N as [|? ? No Nl]; subst. cbn [flat_map] in Ix, Iy.
  assert (Lo : In o order) by (apply L; left; reflexivity).
  assert (Ll : incl l order) by (intros z Iz; apply L; right; exact Iz).
  destruct (one_row r o Lo) as [E|(z & E & Ez)]; rewrite E in Ix, Iy; cbn [app] in Ix, Iy.
  - assert (Jx := row_in r x l Ix). assert (Jy := row_in r y l (earlier_in _ _ _ Iy)).
    rewrite !at_rest by congruence. specialize (IH Nl Ll Ix Iy). lia.
  - cbn [earlier] in Iy. destruct (same_row T same z x) as [->|D]; [destruct Iy|].
    destruct Ix as [->|Ix]; [congruence|]. assert (Jx := row_in r x l Ix).
    rewrite (at_rest o (occ x)) by congruence.
    destruct Iy as [<-|Iy]; [rewrite Ez, at_first; lia|].
    assert (Jy := row_in r y l (earlier_in _ _ _ Iy)).
    rewrite (at_rest o (occ y)) by congruence. specialize (IH Nl Ll Ix Iy). lia.
Qed.

Notation ahead := (ahead T same program).

Lemma ahead_place : forall x y, In y (ahead x) ->
  In y (concat program) /\ (at_ (occ y) order < at_ (occ x) order)%nat.
Proof.
  intros x y I. apply in_flat_map in I as (rows & Ir & Iy).
  destruct (in_dec (same_row T same) x rows) as [Ix|]; [|destruct Iy]. split.
  - apply in_concat. exists rows. split; [exact Ir | exact (earlier_in _ _ _ Iy)].
  - apply in_map_iff in Ir as (r & <- & _). apply (earlier_place r); try assumption.
    apply incl_refl.
Qed.

Lemma in_program : forall x, In x (concat program) -> In (occ x) order.
Proof.
  intros x I. apply in_concat in I as (rows & Ir & Ix). apply in_map_iff in Ir as (r & <- & _).
  exact (row_in r x order Ix).
Qed.

Lemma on_rank : forall r x o, In r ranks -> In o order -> In x (rows_on r o) -> In x (concat program).
Proof.
  intros r x o Ir Io Ix. apply in_concat. exists (flat_map (rows_on r) order). split.
  - apply in_map_iff. exists r. tauto.
  - apply in_flat_map. eauto.
Qed.

Lemma computed : forall t, In (Compute T t) order -> In (Run T t) (concat program).
Proof.
  intros t I. assert (K := known _ I). cbn in K. apply (on_rank (home t) _ _ K I). cbn.
  rewrite Z.eqb_refl. left. reflexivity.
Qed.

Lemma exchanged : forall k, In (Exchange T k) order ->
  In (Send T k) (concat program) /\ In (Recv T k) (concat program).
Proof.
  intros k I. assert (K := known _ I). cbn in K. destruct K as (K1 & K2 & _). split.
  - apply (on_rank _ _ _ K1 I). cbn. rewrite Z.eqb_refl. left. reflexivity.
  - apply (on_rank _ _ _ K2 I). cbn. rewrite Z.eqb_refl, in_app_iff. right. left. reflexivity.
Qed.

Notation events := (events T program).

Lemma event_in : forall x e, In x (concat program) -> In e (events_of T x) -> In e events.
Proof. intros x e Ix Ie. apply in_flat_map. eauto. Qed.

Lemma event_from : forall e, In e events -> exists x, In x (concat program) /\ In e (events_of T x).
Proof. intros e I. apply in_flat_map in I. exact I. Qed.

Lemma passed_in : forall s y, In y (concat program) -> In (passed T s y) events.
Proof. intros s y I. apply (event_in y _ I). destruct y, s; cbn; tauto. Qed.

Lemma ended_in : forall x, is_end T x = true -> In x (concat program) -> In (Ended T x) events.
Proof. intros x D I. apply (event_in x _ I). destruct x; [discriminate| |]; cbn; tauto. Qed.

(* Phases of an occurrence: run or posted, started, a SEND ended, a RECV ended. *)
Definition height (e : event T) : nat :=
  match e with
  | Ran _ t => 4 * at_ (Compute T t) order
  | Posted _ x => 4 * at_ (occ x) order
  | Started _ x => 4 * at_ (occ x) order + 1
  | Ended _ (Recv _ k) => 4 * at_ (Exchange T k) order + 3
  | Ended _ x => 4 * at_ (occ x) order + 2
  end.

Lemma passed_height : forall s y, (height (passed T s y) <= 4 * at_ (occ y) order + 3)%nat.
Proof. intros s [t|k|k]; destruct s; cbn; lia. Qed.

Theorem one_order_ends : forall s, deadlock_free T same home inputs messages program s.
Proof.
  intros s. unfold deadlock_free. 
  assert (Ahead : forall x y, In y (ahead x) ->
    In (passed T s y) events /\ (height (passed T s y) < 4 * at_ (occ x) order)%nat).
  { intros x y I. apply ahead_place in I as [I L]. split; [apply passed_in, I|].
    assert (P := passed_height s y). lia. }
  assert (All : forall e f, In e events -> In f (needs T same home inputs messages program s e) ->
    In f events /\ (height f < height e)%nat).
  { intros e f Ie If. apply event_from in Ie as (x & Ix & Ie).
    assert (Io := in_program x Ix).
    assert (Pair : forall k, In (Exchange T k) order -> forall y, y = Send T k \/ y = Recv T k ->
      In (Posted T y) events /\ In (Started T y) events /\ In (Ended T y) events).
    { intros k Ik y Y. destruct (exchanged k Ik) as [S R].
      assert (In y (concat program)) as Iy by (destruct Y as [->| ->]; assumption).
      repeat split; apply (event_in y _ Iy); destruct Y as [->| ->]; cbn; tauto. }
    destruct e as [t|y|y|y].
    - assert (x = Run T t) as -> by (destruct x; cbn in Ie; intuition congruence).
      cbn [needs] in If. rewrite !in_app_iff, !in_map_iff in If.
      destruct If as [(z & <- & Iz)|[(u & <- & Iu)|(k & <- & Ik)]].
      + exact (Ahead _ _ Iz).
      + destruct (inputs_first t u Io Iu) as [Ju L]. split; [|cbn; lia].
        apply (event_in _ _ (computed u Ju)). left. reflexivity.
      + destruct (messages_first t k Io Ik) as [Jk L]. split; [|cbn; lia].
        apply (Pair k Jk). right. reflexivity.
    - assert (y = x) as -> by (destruct x; cbn in Ie; intuition congruence).
      cbn [needs] in If. apply in_map_iff in If as (z & <- & Iz). exact (Ahead _ _ Iz).
    - assert (y = x) as -> by (destruct x; cbn in Ie; intuition congruence).
      assert (D : is_end T x = true) by (destruct x; cbn in Ie |- *; intuition congruence).
      cbn [needs] in If. destruct If as [<-|If].
      + split; [apply (event_in x _ Ix); destruct x; [discriminate| |]; cbn; tauto | cbn; lia].
      + apply in_app_iff in If as [If|If].
        * apply in_map_iff in If as (z & <- & Iz). apply filter_In in Iz as [Iz Fz].
          apply ahead_place in Iz as [Iz L]. split; [apply ended_in; [|exact Iz] | destruct z; cbn in *; lia].
          unfold streams_with in Fz. destruct z; cbn in Fz |- *; [|reflexivity..].
          destruct (message_of T x); discriminate.
        * destruct s; try destruct If. apply in_map_iff in If as (z & <- & Iz).
          apply filter_In in Iz as [Iz Fz]. apply ahead_place in Iz as [Iz L].
          split; [|cbn; lia]. apply (event_in z _ Iz). destruct z; [discriminate| |]; cbn; tauto.
    - assert (y = x) as -> by (destruct x; cbn in Ie; intuition congruence).
      destruct x as [t|k|k]; [cbn in If; destruct If| |];
        cbn in Io; destruct (Pair k Io _ (or_introl eq_refl)) as (? & ? & ?);
        destruct (Pair k Io _ (or_intror eq_refl)) as (? & ? & ?); destruct s; cbn in If;
        repeat (destruct If as [<-|If]; [split; [assumption | cbn; lia]|]); destruct If. }
  apply (falling_ends (event T) (same_event T same)) with (h := height).
  - intros e f Ie If. apply (All e f Ie If).
  - intros e f Ie If. apply (All e f Ie If).
Qed.

End OneOrder.

(* ---- The order of a schedule. ---- *)

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
