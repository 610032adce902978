(* Programs made from one order of all that happens end under every semantics.

   Where each rank's program is what one order of computations and messages asks of it, all ranks
   agree with that order, and `height` falls along every wait: so nothing waits in a circle
   (WaitGraph.v), and `one_order_ends`: such a program cannot get stuck. Lowered.v says that every
   valid schedule has such an order. *)

Require Import ZArith List Lia Bool.
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
