(* What a store holds, by its events and task by task: the same sum, ordered in two ways.

   `held` (Instances.v) adds up the events of a store that are over by now. Here it is split over
   lists of events (`held_app`, `held_flat`), and over tasks, each with what all its changes at its
   start and all at its end add up to (`summed`). `load_at` is that sum for any starts and any changes
   of tasks at their two moments; it can be turned round in time (`load_turned`), which gives bounds
   at the end of a schedule from those at its beginning. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances PriceTables.
Import ListNotations.
Open Scope Z_scope.

(* ---- Event by event. ---- *)

Lemma held_app : forall k s now a b, held k s now (a ++ b) = held k s now a + held k s now b.
Proof. intros k s now. induction a as [|e a IH]; intros b; cbn; [lia|]. rewrite IH. lia. Qed.

Lemma held_flat : forall k s now {A} (f : A -> list (event positive)) l,
  held k s now (flat_map f l) = total (map (fun x => held k s now (f x)) l).
Proof.
  intros k s now A f. induction l as [|x l IH]; [reflexivity|]. cbn [flat_map map total].
  rewrite held_app, IH. reflexivity.
Qed.

(* ---- Task by task. ---- *)

Definition change_by (cs : changes) (d now x : Z) : Z :=
  total (map (fun c : bool * Z => if x + (if fst c then d else 0) <=? now then snd c else 0) cs).

Lemma held_by_task : forall k s now ts, NoDup ts -> forall evs : list (event positive),
  (forall e, In e evs -> In (owner _ e) ts) ->
  held k s now evs =
  total (map (fun t => change_by (changes_at t (changes_of evs)) (ticks k t) now (s t)) ts).
Proof.
  intros k s now ts N. induction evs as [|e evs IH]; intros O.
  - rewrite total_zeros; [reflexivity|]. intros t. unfold changes_at. cbn. rewrite Map.gempty.
    reflexivity.
  - cbn [held]. rewrite IH by (intros f I; apply O; right; exact I).
    set (x := if moment_of k s e <=? now then delta _ e else 0).
    set (f t := change_by (changes_at t (changes_of evs)) (ticks k t) now (s t)).
    transitivity (total (map (fun t => if Pos.eq_dec t (owner _ e) then x + f t else f t) ts)).
    + rewrite add_once by exact N. destruct (in_dec Pos.eq_dec (owner _ e) ts) as [_|J]; [lia|].
      destruct J. apply O. left. reflexivity.
    + f_equal. apply map_ext. intros t. rewrite changes_first.
      destruct (Pos.eq_dec t (owner _ e)) as [->|D]; reflexivity.
Qed.

(* What all changes of a task at one of its moments add up to. *)
Definition summed (late : bool) (cs : changes) :=
  total (map (fun c : bool * Z => if Bool.eqb (fst c) late then snd c else 0) cs).

Lemma change_by_sums : forall cs d now x, change_by cs d now x =
  (if x <=? now then summed false cs else 0) + (if x + d <=? now then summed true cs else 0).
Proof.
  intros cs d now x. unfold change_by, summed.
  induction cs as [|[late n] cs IH]; cbn [map total fst snd].
  - destruct (x <=? now), (x + d <=? now); reflexivity.
  - rewrite IH. destruct late; cbn [Bool.eqb]; rewrite ?Z.add_0_r;
      destruct (x <=? now), (x + d <=? now); lia.
Qed.

(* ---- The load of tasks that start at s, take d, and change it by a at their start, b at their end,
   ---- and the same with time turned round. ---- *)

Definition load_at (ts : list positive) (d a b s : positive -> Z) (now : Z) : Z :=
  total (map (fun t => (if s t <=? now then a t else 0) + (if s t + d t <=? now then b t else 0)) ts).

Lemma held_is_load : forall k s now ts, NoDup ts -> forall evs : list (event positive),
  (forall e, In e evs -> In (owner _ e) ts) ->
  held k s now evs = load_at ts (ticks k) (fun t => summed false (changes_at t (changes_of evs)))
    (fun t => summed true (changes_at t (changes_of evs))) s now.
Proof.
  intros k s now ts N evs O. rewrite (held_by_task k s now ts N evs O). unfold load_at. f_equal.
  apply map_ext. intros t. apply change_by_sums.
Qed.

Lemma load_turned : forall ts d a b s now,
  load_at ts d (fun t => - b t) (fun t => - a t) (fun t => - (s t + d t)) now =
  load_at ts d a b s (- now - 1) - total (map (fun t => a t + b t) ts).
Proof.
  intros ts d a b s now. unfold load_at.
  induction ts as [|t ts IH]; cbn [map total]; [reflexivity|]. rewrite IH.
  destruct (Z.leb_spec (- (s t + d t)) now), (Z.leb_spec (- (s t + d t) + d t) now),
    (Z.leb_spec (s t) (- now - 1)), (Z.leb_spec (s t + d t) (- now - 1)); lia.
Qed.
