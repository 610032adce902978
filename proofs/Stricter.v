(* What is safe under a stricter semantics is safe under a weaker one: lemma 8 of
   docs/guide/formal.md, for programs whose messages match.

       rank-stream -> launch-order -> pair-stream -> buffered <- rendezvous

   Where all that a system needs comes to its end, events can be numbered so that each has a greater
   number than what it needs (`ended_is_numbered`): by when they happened in one run. The proof gives
   numbers for the weaker semantics from those of the stricter, which excludes cycles there
   (`falling_ends`). From one to the next they are the same numbers, since what the weaker needs the
   stricter needs too, or needs through others. Under `buffered` a SEND ends alone, and its RECV
   after it, which the others do not ask: there both ends of a message are numbered by the later of
   their starts. *)

Require Import ZArith List Lia Bool.
From Bubbleproof Require Import WaitGraph Semantics.
Import ListNotations.

Section Numbered.

Variable E : Type.
Variable same : forall x y : E, {x = y} + {x <> y}.
Variable events : list E.
Variable needs : E -> list E.

(* How many have happened before e. *)
Fixpoint number_in (l : list E) (e : E) : nat :=
  match l with
  | [] => 0
  | x :: rest => if same x e then length rest else number_in rest e
  end.

Lemma number_small : forall l e, In e l -> number_in l e < length l.
Proof.
  induction l as [|x l IH]; intros e I; [destruct I|]. cbn.
  destruct (same x e) as [|N]; [lia|]. destruct I as [->|I]; [congruence|].
  specialize (IH e I). lia.
Qed.

Lemma number_app : forall a b e, In e b -> NoDup (a ++ b) -> number_in (a ++ b) e = number_in b e.
Proof.
  induction a as [|x a IH]; intros b e I N; [reflexivity|]. cbn. inversion N as [|? ? O N']; subst.
  destruct (same x e) as [->|]; [destruct O; apply in_or_app; right; exact I | apply IH; assumption].
Qed.

Lemma ended_is_numbered : closed E events needs -> ends E events needs ->
  exists h : E -> nat, forall e f, In e events -> In f (needs e) -> h f < h e.
Proof.
  intros C A. destruct (goes_on E same events needs (length events) []) as (l & R & S);
    [cbn; lia | constructor|].
  exists (number_in l). intros e f I N. pose proof (A l R S e I) as Il.
  assert (D := once E events needs l R). apply in_split in Il as (a & b & Eq).
  pose proof (needed_before E events needs l R a e b Eq f N) as F.
  rewrite Eq in *. rewrite !number_app; [|left; reflexivity|exact D|right; exact F|exact D].
  cbn. destruct (same e e) as [_|N']; [|congruence].
  destruct (same e f) as [->|_]; [|apply number_small, F].
  exfalso. apply NoDup_remove_2 in D. apply D, in_or_app. right. exact F.
Qed.
End Numbered.

Section Stricter.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable home : T -> Z.
Variable inputs : T -> list T.
Variable messages : list (message T).
Variable program : list (list (row T)).
Notation all_events := (events T program).
Notation asks := (needs T same home inputs messages program).
Notation before := (ahead T same program).
Definition matched (s : semantics) := closed (event T) all_events (asks s).
Definition safe (s : semantics) := deadlock_free T same home inputs messages program s.

Lemma row_of : forall x e, (e = Posted T x \/ e = Started T x \/ e = Ended T x) ->
  In e all_events -> is_end T x = true /\ In x (concat program).
Proof.
  intros x e D I. apply in_flat_map in I as (y & Iy & J).
  destruct y as [t|k|k]; cbn in J; destruct D as [-> | [-> | ->]];
    repeat destruct J as [J|J]; try discriminate; try contradiction; injection J as <-;
    split; (reflexivity || exact Iy).
Qed.

Lemma events_of_row : forall x, is_end T x = true -> In x (concat program) ->
  In (Posted T x) all_events /\ In (Started T x) all_events /\ In (Ended T x) all_events.
Proof.
  intros x E I. assert (A : forall e, In e (events_of T x) -> In e all_events)
    by (intros e J; apply in_flat_map; exists x; split; assumption).
  destruct x; [discriminate| |]; repeat split; apply A; cbn; tauto.
Qed.

Lemma before_in : forall x y, In y (before x) -> In y (concat program).
Proof.
  intros x y I. apply in_flat_map in I as (rows & Ir & I).
  destruct (in_dec _ x rows) as [_|]; [|destruct I]. apply in_concat. exists rows.
  split; [exact Ir|]. revert I. clear. induction rows as [|z rows IH]; intros I; [destruct I|].
  cbn in I. destruct (same_row T same z x); [destruct I|].
  destruct I as [<-|I]; [left; reflexivity | right; exact (IH I)].
Qed.

Lemma both_started : forall s y k, s <> buffered -> message_of T y = Some k ->
  In (Started T (Send T k)) (asks s (Ended T y)) /\ In (Started T (Recv T k)) (asks s (Ended T y)).
Proof.
  intros s y k B M. destruct y as [t|l|l]; [discriminate| |]; injection M as ->;
    destruct s; try congruence; cbn; tauto.
Qed.

Lemma started_before_ended : forall s y, s <> buffered -> is_end T y = true ->
  In (Started T y) (asks s (Ended T y)).
Proof.
  intros s y B E. destruct y as [t|k|k]; [discriminate| |].
  - apply (both_started s (Send T k) k B eq_refl).
  - apply (both_started s (Recv T k) k B eq_refl).
Qed.

(* Numbers for s are numbers for s', if all that s' asks for is there. *)
Lemma safe_by_numbers : forall s (h : event T -> nat), (forall e f, In e all_events ->
  In f (asks s e) -> In f all_events /\ h f < h e) -> safe s.
Proof.
  intros s h H. apply (falling_ends (event T) (same_event T same) all_events (asks s)) with (h := h).
  - intros e f I N. apply (H e f I N).
  - intros e f I N. apply (H e f I N).
Qed.

Theorem launch_order_is_weaker : matched rank_stream -> safe rank_stream -> safe launch_order.
Proof.
  intros C A. destruct (ended_is_numbered _ (same_event T same) _ _ C A) as (h & H).
  apply (safe_by_numbers launch_order h).
  assert (G : forall e f, In e all_events -> In f (asks rank_stream e) ->
    In f all_events /\ h f < h e) by (intros e f I N; split; [exact (C e f I N) | exact (H e f I N)]).
  intros [t|x|x|[t|k|k]] f I N; try exact (G _ f I N).
  destruct (row_of x _ (or_intror (or_introl eq_refl)) I) as [E Ix].
  cbn [needs] in N. destruct N as [<-|N]; [apply (G _ _ I); left; reflexivity|].
  assert (Ahead : forall y, In y (before x) -> is_end T y = true ->
    In (Ended T y) all_events /\ h (Ended T y) < h (Started T x)).
  { intros y Iy Ey. apply (G _ _ I). right. cbn. rewrite app_nil_r. apply in_map, filter_In.
    split; [exact Iy|]. destruct x, y; try discriminate; reflexivity. }
  apply in_app_or in N as [N|N]; apply in_map_iff in N as (y & <- & J); apply filter_In in J as [J K].
  - apply Ahead; [exact J|]. destruct x, y; try discriminate; reflexivity.
  - destruct (Ahead y J K) as [Iy Ly].
    destruct (G _ _ Iy (started_before_ended rank_stream y ltac:(discriminate) K)). split; [assumption | lia].
Qed.

Theorem pair_stream_is_weaker : matched launch_order -> safe launch_order -> safe pair_stream.
Proof.
  intros C A. destruct (ended_is_numbered _ (same_event T same) _ _ C A) as (h & H).
  apply (safe_by_numbers pair_stream h). intros e f I N.
  enough (J : In f (asks launch_order e)) by (split; [exact (C e f I J) | exact (H e f I J)]).
  destruct e as [t|x|x|[t|k|k]]; try exact N. cbn [needs] in *. rewrite app_nil_r in N.
  destruct N as [N|N]; [left; exact N | right; apply in_or_app; left; exact N].
Qed.

Theorem buffered_is_weaker : forall s, s = pair_stream \/ s = rendezvous ->
  matched s -> safe s -> safe buffered.
Proof.
  intros s S C A. assert (B : s <> buffered) by (destruct S as [-> | ->]; discriminate).
  destruct (ended_is_numbered _ (same_event T same) _ _ C A) as (h & H).
  set (late k := Nat.max (h (Started T (Send T k))) (h (Started T (Recv T k)))).
  set (h2 e := match e with
    | Ended _ (Send _ k) => 3 * late k + 1
    | Ended _ (Recv _ k) => 3 * late k + 2
    | _ => 3 * h e end).
  assert (Late : forall y k, In (Ended T y) all_events -> message_of T y = Some k ->
    late k < h (Ended T y)).
  { intros y k I M. destruct (both_started s y k B M) as [J K].
    apply (H _ _ I) in J, K. unfold late. lia. }
  assert (Most : forall f, In f all_events -> h2 f <= 3 * h f).
  { intros [t|x|x|[t|k|k]] I; cbn [h2]; try lia.
    - specialize (Late (Send T k) k I eq_refl). lia.
    - specialize (Late (Recv T k) k I eq_refl). lia. }
  assert (G : forall e f, In e all_events -> In f (asks s e) -> h2 e = 3 * h e ->
    In f all_events /\ h2 f < h2 e).
  { intros e f I N E. pose proof (C e f I N) as J. split; [exact J|].
    specialize (H e f I N). specialize (Most f J). lia. }
  assert (Chain : forall y, is_end T y = true -> In y (concat program) ->
    h (Posted T y) < h (Started T y) /\ h (Started T y) < h (Ended T y)).
  { intros y E I. destruct (events_of_row y E I) as (_ & Is & Ie).
    split; [apply (H _ _ Is); left; reflexivity|].
    apply (H _ _ Ie), started_before_ended; assumption. }
  (* what a rank has gone past *)
  assert (Past : forall e y, In e all_events -> In (passed T s y) (asks s e) -> h2 e = 3 * h e ->
    In y (concat program) -> In (passed T buffered y) all_events /\ h2 (passed T buffered y) < h2 e).
  { intros e y I N E Iy. destruct (is_end T y) eqn:Ey.
    - destruct (G e _ I N E) as [J L]. destruct (events_of_row y Ey Iy) as (Ip & _ & Ie).
      destruct (Chain y Ey Iy). pose proof (H e _ I N) as F.
      replace (passed T buffered y) with (Posted T y) by (destruct y; (discriminate || reflexivity)).
      split; [exact Ip|]. rewrite E. cbn [h2].
      destruct S as [-> | ->]; destruct y; try discriminate; cbn [passed] in F; lia.
    - destruct y as [t|k|k]; try discriminate. exact (G e _ I N E). }
  apply (safe_by_numbers buffered h2). intros [t|x|x|[t|k|k]] f I N; cbn [needs] in N.
  - apply in_app_or in N as [N|N].
    + apply in_map_iff in N as (y & <- & J). apply Past; [exact I | | reflexivity | exact (before_in _ _ J)].
      cbn [needs]. apply in_or_app. left. apply in_map, J.
    + apply (G (Ran T t) f I); [|reflexivity]. cbn [needs]. apply in_or_app. right. exact N.
  - apply in_map_iff in N as (y & <- & J). apply Past; [exact I | | reflexivity | exact (before_in _ _ J)].
    cbn [needs]. apply in_map, J.
  - rewrite app_nil_r in N. apply (G (Started T x) f I); [|reflexivity]. cbn [needs].
    destruct N as [N|N]; [left; exact N|right]. apply in_or_app. left.
    apply in_map_iff in N as (y & <- & J). apply filter_In in J as [J K]. apply in_map, filter_In.
    split; [exact J|]. destruct S as [-> | ->]; [|exact K]. revert K. unfold streams_with.
    destruct (message_of T x), (message_of T y); try discriminate. cbn [one_stream].
    intros ->. reflexivity.
  - destruct N.
  - destruct N as [<-|[]]. destruct (row_of (Send T k) _ (or_intror (or_intror eq_refl)) I) as [E Ix].
    destruct (Chain _ E Ix). destruct (events_of_row _ E Ix) as (Ip & _). split; [exact Ip|].
    cbn [h2]. unfold late. lia.
  - destruct (row_of (Recv T k) _ (or_intror (or_intror eq_refl)) I) as [E Ix].
    destruct (events_of_row _ E Ix) as (_ & Is & _).
    destruct N as [<-|[<-|[]]]; [split; [exact Is | cbn [h2]; unfold late; lia]|].
    destruct (both_started s (Recv T k) k B eq_refl) as [J _]. apply (C _ _ I) in J.
    destruct (row_of (Send T k) _ (or_intror (or_introl eq_refl)) J) as [Es Js].
    destruct (events_of_row _ Es Js) as (_ & _ & Je). split; [exact Je | cbn [h2]; lia].
Qed.
End Stricter.
