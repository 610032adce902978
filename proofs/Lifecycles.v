(* Stores that microbatches use in lifecycles, and the edges that their capacities allow: lemma 2 of
   verify/certificates/index_order.py, as a theorem.

   A life is what the microbatches of a group do to one store: it begins when the tasks of a class
   start, which acquire, goes through stops, each forced by a path of the problem's edges to come no
   sooner than the one before (the first later than the beginning), and finishes at the end of the
   tasks of a class. `check_store` sees that the lives of a store are all that happens to it, and
   that none ever holds less than nothing. Where a life holds `kept_at_least` > 0 until it finishes,
   and microbatches run in order, that of microbatch j begins when that of microbatch j - K has
   finished, K being how many there is room for (`memory_edge_kept`). *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances PriceTables Loads Groups.
Import ListNotations.
Open Scope Z_scope.

Record stop := Stop {
  via : list (list positive);  (* classes on the path from the stop before *)
  by_class : list positive;
  ends : bool;
  change : Z }.

Record life := Life {
  in_store : nat;
  begins : list positive;
  acquired : Z;
  middle : list stop;
  finishes : list positive;
  last_via : list (list positive);
  freed : Z }.

Definition pick (j : nat) (row : list positive) := nth j row (named row).
Definition last_stop (f : life) := Stop (last_via f) (finishes f) true (freed f).
Definition stops (f : life) := middle f ++ [last_stop f].
Definition event_of (j : nat) (x : stop) := Event positive (pick j (by_class x)) (ends x) (change x).
Definition life_events (f : life) (j : nat) : list (event positive) :=
  Event positive (pick j (begins f)) false (acquired f) :: map (event_of j) (stops f).
Definition numbers (f : life) := seq 0 (length (begins f)).
Definition all_events (f : life) := flat_map (life_events f) (numbers f).

(* The least level reached from one on. *)
Fixpoint lowest (level : Z) (l : list Z) : Z :=
  match l with [] => level | d :: rest => Z.min level (lowest (level + d) rest) end.
Definition kept_at_least (f : life) := lowest (acquired f) (map change (middle f)).

Definition same_sums (a b : changes) : bool :=
  (summed false a =? summed false b) && (summed true a =? summed true b).

(* Two lists of events, of the tasks of a table, that add up to the same at both ends of each. *)
Definition same_changes_told (k : index) (l : table) (a b : list (event positive)) : bool :=
  let given := changes_of a in
  let found := changes_of b in
  forallb (fun e => known k (owner _ e)) b &&
  forallb (fun x => same_sums (changes_at (fst x) given) (changes_at (fst x) found)) l.

Section Check.
Variables (k : index) (m : arcs).

(* The least time from the start of a task to that of the last of a path from it. *)
Fixpoint walk (a : positive) (path : list positive) : option Z :=
  match path with
  | [] => Some 0
  | b :: rest =>
      if Pos.eqb a b then walk b rest
      else match lag_of m a b, walk b rest with
        | Some lag, Some more =>
            if known k a && known k b then Some (ticks k a + lag + more) else None
        | _, _ => None
        end
  end.

Definition gap (j : nat) (before : positive) (ended : bool) (x : stop) : option Z :=
  match walk before (map (pick j) (via x) ++ [pick j (by_class x)]) with
  | Some w => Some (w + (if ends x then ticks k (pick j (by_class x)) else 0) -
                    (if ended then ticks k before else 0))
  | None => None
  end.

Fixpoint forced (j : nat) (before : positive) (ended : bool) (l : list stop) : bool :=
  match l with
  | [] => true
  | x :: rest =>
      match gap j before ended x with
      | Some w => (0 <=? w) && forced j (pick j (by_class x)) (ends x) rest
      | None => false
      end
  end.

Definition forced_life (f : life) (j : nat) : bool :=
  forced j (pick j (begins f)) false (stops f) &&
  match stops f with
  | x :: _ => match gap j (pick j (begins f)) false x with Some w => 0 <? w | None => false end
  | [] => false
  end.

Definition check_life (f : life) : bool :=
  (0 <=? lowest 0 (acquired f :: map change (stops f))) &&
  forallb (forced_life f) (numbers f).

Definition check_store (l : table) (st : store positive) (lives : list life) : bool :=
  forallb check_life lives && same_changes_told k l (events _ st) (flat_map all_events lives).
End Check.

Definition room_for (f : life) (st : store positive) : option nat :=
  match capacity _ st with
  | Some c =>
      let left := c - base _ st - acquired f in
      if (0 <=? left) && (0 <? kept_at_least f)
      then Some (Z.to_nat (left / kept_at_least f + 1)) else None
  | None => None
  end.

Definition memory_edges (st : store positive) (f : life) : list (edge positive) :=
  match room_for f st with
  | Some n => map (fun i => (pick i (finishes f), pick (i + n) (begins f), 0))
      (seq 0 (length (begins f) - n))
  | None => []
  end.

(* ---- What is held. ---- *)

Lemma told_held : forall l s now a b, NoDup (map fst l) ->
  (forall e, In e a -> known (index_of l) (owner _ e) = true) ->
  same_changes_told (index_of l) l a b = true ->
  held (index_of l) s now a = held (index_of l) s now b.
Proof.
  intros l s now a b Once Owned C. unfold same_changes_told in C.
  rewrite !andb_true_iff, !forallb_forall in C. destruct C as [Known Same].
  rewrite (held_by_task _ s now (map fst l) Once a) by (intros e J; apply known_is_task, Owned, J).
  rewrite (held_by_task _ s now (map fst l) Once b) by (intros e J; apply known_is_task, Known, J).
  f_equal. apply map_ext_in. intros t J. apply in_map_iff in J as (x & <- & J).
  specialize (Same x J). unfold same_sums in Same. rewrite andb_true_iff, !Z.eqb_eq in Same.
  destruct Same as [S1 S2]. rewrite !change_by_sums, S1, S2. reflexivity.
Qed.

Section Held.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variable s : positive -> Z.
Let k := index_of l.
Hypothesis V : plan k es stores s.

Fixpoint ordered (before : Z) (evs : list (event positive)) : Prop :=
  match evs with
  | [] => True
  | e :: rest => before <= moment_of k s e /\ ordered (moment_of k s e) rest
  end.

Lemma nothing_yet : forall evs before now, ordered before evs -> now < before ->
  held k s now evs = 0.
Proof.
  induction evs as [|e evs IH]; intros before now O L; [reflexivity|]. destruct O as [B O]. cbn.
  rewrite (IH (moment_of k s e) now O) by lia. destruct (Z.leb_spec (moment_of k s e) now); lia.
Qed.

Lemma ordered_from : forall evs before, ordered before evs ->
  forall e, In e evs -> before <= moment_of k s e.
Proof.
  induction evs as [|e evs IH]; intros before O x I; [destruct I|]. destruct O as [B O].
  destruct I as [<-|I]; [exact B|]. specialize (IH _ O x I). lia.
Qed.

(* What moments in a row hold is the level after some of the first: those that are over. *)
Theorem chain_is_prefix : forall evs before now, ordered before evs -> exists n,
  held k s now evs = total (map (delta _) (firstn n evs)) /\
  forall j e, nth_error evs j = Some e -> ((j < n)%nat <-> moment_of k s e <= now).
Proof.
  induction evs as [|e evs IH]; intros before now O.
  - exists 0%nat. split; [reflexivity|]. intros [|j] e E; discriminate.
  - destruct O as [B O]. destruct (Z_le_gt_dec (moment_of k s e) now) as [L|L].
    + destruct (IH _ now O) as (n & H & P). exists (S n). split.
      * cbn [held firstn map total]. rewrite H. destruct (Z.leb_spec (moment_of k s e) now); lia.
      * intros [|j] x E; cbn in E; [injection E as <-; split; [intros; exact L | lia]|].
        specialize (P j x E). lia.
    + exists 0%nat. split.
      * cbn [held firstn map total]. rewrite (nothing_yet evs (moment_of k s e) now O) by lia.
        destruct (Z.leb_spec (moment_of k s e) now); lia.
      * intros j x E. split; [lia|]. intros M. apply nth_error_In in E as [<-|I]; [lia|].
        pose proof (ordered_from evs _ O x I). lia.
Qed.

Lemma lowest_first : forall ds level, lowest level ds <= level.
Proof. intros [|d ds] level; cbn; lia. Qed.

Lemma held_low : forall evs before now level, ordered before evs ->
  lowest level (map (delta _) evs) <= level + held k s now evs.
Proof.
  induction evs as [|e evs IH]; intros before now level O; [cbn; lia|]. destruct O as [B O].
  cbn [map lowest held]. destruct (Z.leb_spec (moment_of k s e) now) as [L|L].
  - specialize (IH (moment_of k s e) now (level + delta _ e) O). lia.
  - rewrite (nothing_yet evs (moment_of k s e) now O L). lia.
Qed.

Lemma walk_true : forall path a w, walk k (arcs_of es) a path = Some w -> s a + w <= s (last path a).
Proof.
  induction path as [|b path IH]; intros a w H; cbn [walk] in H; [injection H as <-; cbn; lia|].
  replace (last (b :: path) a) with (last path b)
    by (destruct path as [|c path]; [reflexivity|]; clear; revert b a c;
        induction path as [|d path IH]; intros b a c; [reflexivity|]; exact (IH b a d)).
  destruct (Pos.eqb_spec a b) as [->|D]; [exact (IH b w H)|].
  destruct (lag_of (arcs_of es) a b) as [lag|] eqn:G; [|discriminate].
  destruct (walk k (arcs_of es) b path) as [more|] eqn:W; [|discriminate].
  destruct (known k a) eqn:Ka; [|discriminate]. destruct (known k b) eqn:Kb; [|discriminate].
  injection H as <-. apply lag_is_edge in G. pose proof (kept _ _ _ _ V a b lag G Ka Kb).
  specialize (IH b more W). lia.
Qed.

Lemma gap_true : forall j a ended x w, gap k (arcs_of es) j a ended x = Some w ->
  s a + (if ended then ticks k a else 0) + w <= moment_of k s (event_of j x).
Proof.
  intros j a ended x w H. unfold gap in H.
  destruct (walk k (arcs_of es) a _) as [v|] eqn:W; [|discriminate]. injection H as <-.
  apply walk_true in W. rewrite last_last in W. unfold moment_of, event_of. cbn. lia.
Qed.

Theorem forced_ordered : forall j sts a ended, forced k (arcs_of es) j a ended sts = true ->
  ordered (s a + if ended then ticks k a else 0) (map (event_of j) sts).
Proof.
  intros j. induction sts as [|x sts IH]; intros a ended H; [exact I|]. cbn [forced] in H.
  destruct (gap k (arcs_of es) j a ended x) as [w|] eqn:G; [|discriminate].
  apply andb_true_iff in H as [W H]. apply Z.leb_le in W. apply gap_true in G. split; [lia|].
  exact (IH _ _ H).
Qed.

Variable f : life.
Hypothesis Fine : check_life k (arcs_of es) f = true.
Definition begin_of (j : nat) := s (pick j (begins f)).
Definition end_of (j : nat) := s (pick j (finishes f)) + ticks k (pick j (finishes f)).
Definition level (j : nat) (now : Z) := held k s now (life_events f j).

Lemma life_ordered : forall j, (j < length (begins f))%nat ->
  ordered (begin_of j) (map (event_of j) (stops f)) /\
  forall x rest, stops f = x :: rest -> begin_of j < moment_of k s (event_of j x).
Proof.
  intros j L. unfold check_life in Fine. rewrite andb_true_iff, forallb_forall in Fine.
  destruct Fine as [_ F]. specialize (F j (proj2 (in_seq _ _ _) (conj (Nat.le_0_l j) L))).
  unfold forced_life in F. apply andb_true_iff in F as [F Later]. split.
  - apply forced_ordered in F. rewrite Z.add_0_r in F. exact F.
  - intros x rest E. rewrite E in Later.
    destruct (gap k (arcs_of es) j (pick j (begins f)) false x) as [w|] eqn:G; [|discriminate].
    apply Z.ltb_lt in Later. apply gap_true in G. unfold begin_of. cbv beta iota in G. lia.
Qed.

Lemma level_is : forall j now, level j now =
  (if begin_of j <=? now then acquired f else 0) + held k s now (map (event_of j) (stops f)).
Proof.
  intros j now. unfold level, life_events, begin_of. cbn. unfold moment_of. cbn.
  rewrite Z.add_0_r. reflexivity.
Qed.

Lemma never_below : forall j now, (j < length (begins f))%nat -> 0 <= level j now.
Proof.
  intros j now L. destruct (life_ordered j L) as [O _].
  unfold check_life in Fine. apply andb_true_iff in Fine as [Low _]. apply Z.leb_le in Low.
  assert (H := held_low (life_events f j) (begin_of j) now 0). unfold level.
  enough (E : map (delta _) (life_events f j) = acquired f :: map change (stops f)).
  - rewrite E in H. enough (ordered (begin_of j) (life_events f j)) as X by (specialize (H X); lia).
    split; unfold moment_of; cbn; [unfold begin_of; lia|]. rewrite Z.add_0_r. exact O.
  - unfold life_events. cbn. f_equal. rewrite map_map. reflexivity.
Qed.

Lemma level_within : forall j now, (j < length (begins f))%nat -> begin_of j <= now ->
  now < end_of j -> kept_at_least f <= level j now.
Proof.
  intros j now L B E. destruct (life_ordered j L) as [O _]. rewrite level_is.
  destruct (Z.leb_spec (begin_of j) now); [|lia]. unfold stops in *. rewrite map_app in *.
  rewrite held_app. cbn [map held].
  assert (M : moment_of k s (event_of j (last_stop f)) = end_of j) by reflexivity.
  rewrite M. destruct (Z.leb_spec (end_of j) now); [lia|].
  assert (Before : forall a b x, ordered x (a ++ b) -> ordered x a).
  { induction a as [|e a IH]; intros b x H1; [exact I|]. destruct H1. split; [assumption|].
    eapply IH. eassumption. }
  pose proof (held_low _ _ now (acquired f) (Before _ _ _ O)) as Low.
  replace (map (delta _) (map (event_of j) (middle f))) with (map change (middle f)) in Low
    by (rewrite map_map; reflexivity). unfold kept_at_least. lia.
Qed.

Lemma level_at_begin : forall j, (j < length (begins f))%nat -> level j (begin_of j) = acquired f.
Proof.
  intros j L. destruct (life_ordered j L) as [O Strict]. rewrite level_is, Z.leb_refl.
  destruct (stops f) as [|x rest] eqn:E; [unfold stops in E; destruct (middle f); discriminate|].
  specialize (Strict x rest eq_refl). cbn [map] in *. destruct O as [_ O].
  rewrite (nothing_yet (event_of j x :: map (event_of j) rest)
    (moment_of k s (event_of j x)) (begin_of j)); [lia | split; [lia | exact O] | exact Strict].
Qed.
End Held.
