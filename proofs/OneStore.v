(* Certificates by one resource and one store: a checker of them, proved sound. Lemmas 1 and 2 of
   verify/certificates/one_store.py, lemma 13 of docs/guide/formal.md.

   What a store has no room for cannot be worked on. Of a resource R let `early` be the most that
   may be done before an instant, `begin` ticks after the first computation, and `late` the most in
   the last `end` ticks. If R has more work than early + late, then

       last - first >= begin + end + work - early - late.

   How `early` is found (`most_done`). A task starts `head` ticks after `first` or later, if there
   is a path to it at all. Tasks of R that acquire nothing do, before `begin`, what their heads let
   them do. Those that acquire at their start count n at most, the number that there is room for
   when all is released that may be by then (`most_begun`). The n of them that do the most do no
   more than

       n q + sum of (done - q), where that is positive,

   for every q >= 0, and exactly that much where q is the greatest but n of what they do (`price`,
   for which they are sorted). So the proof is about any q, and of the sorting nothing is to be proved.

   How the proof goes. `begun_are_few`: at the last start before `begin` of a task that acquires, the
   load is all that those acquired, less what was released, at least; so there are n at most.
   `most_done_is`: so R does no more than `early` before `begin`. The end is the same of the schedule
   with time turned round (Loads.v: heads are tails, starts are ends, what is left at the end is what
   the store begins with), which is no second proof. What R does in neither part it does between, one
   task at a time (`packing`). A store without a capacity is one that nothing changes. *)

Require Import ZArith Lia List Bool FMapPositive Orders Mergesort.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables Loads Groups
  Lifecycles OneMachine FreeEdges.
Import ListNotations.
Open Scope Z_scope.

Record store_claim := StoreClaim {
  at_resource : Z;
  at_store : Z;  (* by its place in the list of stores *)
  begin_ticks : Z;
  end_ticks : Z;
  store_bound : Z }.

(* ---- The checker. ---- *)

Module Falling <: TotalLeBool.
  Definition t := Z.
  Definition leb (x y : Z) := y <=? x.
  Lemma leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End Falling.
Module Fall := Sort Falling.

(* What a store has left in the beginning, and what each task changes in it at its two moments. *)
Record room_of := RoomOf { spare : Z; at_start : positive -> Z; at_finish : positive -> Z }.

Definition room_in_store (st : store positive) : room_of :=
  match capacity _ st with
  | Some c =>
      let css := changes_of (events _ st) in
      RoomOf (c - base _ st) (fun t => summed false (changes_at t css))
        (fun t => summed true (changes_at t css))
  | None => RoomOf 0 (fun _ => 0) (fun _ => 0)
  end.

Definition turned (ts : list positive) (r : room_of) : room_of :=
  RoomOf (spare r - total (map (fun t => at_start r t + at_finish r t) ts))
    (fun t => - at_finish r t) (fun t => - at_start r t).

Section Most.
Variables (ts : list positive) (d : positive -> Z) (uses : positive -> bool) (hs : paths).
Variables (r : room_of) (begin : Z).

Definition may_pass (t : positive) (more : Z) : bool :=
  match Map.find t hs with Some n => n + more <? begin | None => true end.
Definition done (t : positive) : Z :=
  match Map.find t hs with Some n => Z.max 0 (Z.min (d t) (begin - n)) | None => d t end.
Definition takes (t : positive) : bool := uses t && (0 <? at_start r t) && may_pass t 0.

Definition freed_by (t : positive) : Z :=
  (if may_pass t 0 then Z.max 0 (- at_start r t) else 0) +
  (if may_pass t (d t) then Z.max 0 (- at_finish r t) else 0).
Definition all_freed : Z := total (map freed_by ts).

Fixpoint least_taken (l : list positive) : option Z :=
  match l with
  | [] => None
  | t :: rest =>
      if takes t then
        match least_taken rest with
        | Some a => Some (Z.min (at_start r t) a)
        | None => Some (at_start r t)
        end
      else least_taken rest
  end.
Definition most_begun : Z :=
  match least_taken ts with Some a => Z.max 0 ((spare r + all_freed) / a) | None => 0 end.

Definition price : Z :=
  let sorted := Fall.sort (map done (filter takes ts)) in
  if most_begun <? Z.of_nat (length sorted)
  then Z.max 0 (nth (Z.to_nat most_begun) sorted 0) else 0.

Definition counted_done (q : Z) (t : positive) : Z :=
  if uses t then if takes t then Z.max 0 (done t - q) else done t else 0.
Definition most_done : Z :=
  let q := price in total (map (counted_done q) ts) + most_begun * q.
End Most.

Definition check_one_store (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (c : store_claim) : bool :=
  let k := index_of l in
  let ts := map fst l in
  let uses t := existsb (Z.eqb (at_resource c)) (sites k t) in
  let users := filter uses ts in
  match nth_error stores (Z.to_nat (at_store c)) with
  | None => false
  | Some st =>
      let r := room_in_store st in
      let early := most_done ts (ticks k) uses (heads l counts es) r (begin_ticks c) in
      let late := most_done ts (ticks k) uses (tails l counts es) (turned ts r) (end_ticks c) in
      let work := busy positive (ticks k) users in
      (0 <=? at_store c) && well_stored k stores && distinct ts (Map.empty unit) &&
      negb (is_empty users) && forallb (fun t => 0 <=? ticks k t) users &&
      (early + late <? work) &&
      (store_bound c <=? begin_ticks c + end_ticks c + work - early - late)
  end.

(* ---- What is done before an instant. ---- *)

Section Early.
Variables (ts : list positive) (d : positive -> Z) (uses : positive -> bool) (hs : paths).
Variables (r : room_of) (begin first : Z) (s : positive -> Z).
Hypothesis Long : forall t, In t ts -> uses t = true -> 0 <= d t.
Hypothesis Heads : forall t n, In t ts -> Map.find t hs = Some n -> first + n <= s t.
Hypothesis Room : forall now, load_at ts d (at_start r) (at_finish r) s now <= spare r.

Let takes_ := takes uses hs r begin.
Let n := most_begun ts d uses hs r begin.
Definition before_begin (t : positive) : Z :=
  if uses t then Z.max 0 (Z.min (d t) (first + begin - s t)) else 0.
Definition begun (t : positive) : bool :=
  uses t && (0 <? at_start r t) && (s t <? first + begin).
Definition how_many : Z := total (map (fun t => if begun t then 1 else 0) ts).

Lemma passes : forall t more, In t ts -> s t + more < first + begin ->
  may_pass hs begin t more = true.
Proof.
  intros t more I L. unfold may_pass. destruct (Map.find t hs) as [m|] eqn:F; [|reflexivity].
  specialize (Heads t m I F). apply Z.ltb_lt. lia.
Qed.

Lemma begun_takes : forall t, In t ts -> begun t = true ->
  takes_ t = true /\ 0 < at_start r t /\ s t < first + begin.
Proof.
  intros t I B. unfold begun in B. rewrite !andb_true_iff, !Z.ltb_lt in B. destruct B as [[U A] L].
  split; [|split; assumption]. unfold takes_, takes. rewrite U, (passes t 0 I ltac:(lia)).
  apply Z.ltb_lt in A. rewrite A. reflexivity.
Qed.

Lemma least_is : forall l t, In t l -> takes_ t = true ->
  exists a, least_taken uses hs r begin l = Some a /\ 0 < a /\
    forall u, In u l -> takes_ u = true -> a <= at_start r u.
Proof.
  assert (Pos_ : forall t, takes_ t = true -> 0 < at_start r t).
  { intros t T. unfold takes_, takes in T. rewrite !andb_true_iff, Z.ltb_lt in T. apply T. }
  assert (G : forall l, match least_taken uses hs r begin l with
    | Some a => 0 < a /\ forall u, In u l -> takes_ u = true -> a <= at_start r u
    | None => forall u, In u l -> takes_ u = false end).
  { induction l as [|u l IH]; [intros u []|]. cbn [least_taken]. fold takes_.
    destruct (takes_ u) eqn:U.
    - specialize (Pos_ u U). destruct (least_taken uses hs r begin l) as [a|].
      + destruct IH as [P M]. split; [lia|]. intros w [<-|I] W; [lia|]. specialize (M w I W). lia.
      + split; [exact Pos_|]. intros w [<-|I] W; [lia|]. rewrite (IH w I) in W. discriminate.
    - destruct (least_taken uses hs r begin l) as [a|].
      + destruct IH as [P M]. split; [exact P|]. intros w [<-|I] W; [congruence | auto].
      + intros w [<-|I]; [exact U | auto]. }
  intros l t I T. specialize (G l). destruct (least_taken uses hs r begin l) as [a|].
  - exists a. split; [reflexivity | exact G].
  - rewrite (G t I) in T. discriminate.
Qed.

Lemma begun_are_few : how_many <= n.
Proof.
  destruct (last_of_some begun s ts) as [None_|(x & I & B & Last)].
  - assert (E : how_many <= total (map (fun _ => 0) ts)).
    { apply total_below. intros t J. rewrite (None_ t J). lia. }
    rewrite total_zeros in E by reflexivity. unfold n, most_begun.
    destruct (least_taken _ _ _ _ _); lia.
  - destruct (begun_takes x I B) as (T & _ & Early).
    destruct (least_is ts x I T) as (a & F & P & Least). unfold n, most_begun. rewrite F.
    enough (a * how_many <= spare r + all_freed ts d hs r begin).
    { pose proof (Z.div_le_lower_bound _ _ _ P H). lia. }
    specialize (Room (s x)).
    enough (a * how_many <= load_at ts d (at_start r) (at_finish r) s (s x) +
      all_freed ts d hs r begin) by lia.
    unfold how_many, load_at, all_freed. rewrite <- total_times, <- total_plus.
    apply total_below. intros t J.
    assert (Start : (if begun t then a else 0) <= (if s t <=? s x then at_start r t else 0) +
      (if may_pass hs begin t 0 then Z.max 0 (- at_start r t) else 0)).
    { destruct (begun t) eqn:Bt.
      - destruct (begun_takes t J Bt) as (Tt & _). specialize (Last t J Bt).
        specialize (Least t J Tt). destruct (Z.leb_spec (s t) (s x)); [|lia].
        destruct (may_pass hs begin t 0); lia.
      - destruct (Z.leb_spec (s t) (s x)); [rewrite (passes t 0 J ltac:(lia)); lia|].
        destruct (may_pass hs begin t 0); lia. }
    assert (End : 0 <= (if s t + d t <=? s x then at_finish r t else 0) +
      (if may_pass hs begin t (d t) then Z.max 0 (- at_finish r t) else 0)).
    { destruct (Z.leb_spec (s t + d t) (s x)); [rewrite (passes t (d t) J ltac:(lia)); lia|].
      destruct (may_pass hs begin t (d t)); lia. }
    unfold freed_by. destruct (begun t); lia.
Qed.

Lemma done_is : forall t, In t ts -> uses t = true ->
  before_begin t <= done d hs begin t /\ 0 <= done d hs begin t.
Proof.
  intros t I U. specialize (Long t I U). unfold before_begin, done. rewrite U.
  destruct (Map.find t hs) as [m|] eqn:F; [|lia]. specialize (Heads t m I F). lia.
Qed.

Theorem most_done_is : total (map before_begin ts) <= most_done ts d uses hs r begin.
Proof.
  unfold most_done. fold n. set (q := price ts d uses hs r begin).
  assert (Q : 0 <= q) by (unfold q, price; destruct (_ <? _); lia).
  pose proof begun_are_few as Few.
  enough (total (map before_begin ts) <=
    total (map (counted_done d uses hs r begin q) ts) + q * how_many) by nia.
  unfold how_many. rewrite <- total_times, <- total_plus. apply total_below. intros t I.
  unfold counted_done. fold takes_. destruct (uses t) eqn:U.
  - destruct (done_is t I U) as [D1 D2]. destruct (begun t) eqn:B.
    + destruct (begun_takes t I B) as (-> & _). lia.
    + destruct (takes_ t) eqn:T; [|lia]. enough (before_begin t = 0) by lia.
      unfold takes_, takes in T. unfold begun in B. rewrite !andb_true_iff in T.
      destruct T as [[_ A] _]. rewrite U, A in B. cbn in B. apply Z.ltb_ge in B.
      unfold before_begin. rewrite U. lia.
  - unfold before_begin, begun. rewrite U. cbn. lia.
Qed.
End Early.

(* ---- Both ends, and what is between. ---- *)

Definition clip (a b x : Z) := Z.max a (Z.min b x).

Lemma parts_of_work : forall a b s d, 0 <= d ->
  (a <= b -> d <= Z.max 0 (Z.min d (a - s)) + (clip a b (s + d) - clip a b s) +
    Z.max 0 (Z.min d (s + d - b))) /\
  (b < a -> d <= Z.max 0 (Z.min d (a - s)) + Z.max 0 (Z.min d (s + d - b))).
Proof. intros a b s d D. unfold clip. lia. Qed.

Lemma busy_is_total : forall (d : positive -> Z) f l,
  busy positive d (filter f l) = total (map (fun t => if f t then d t else 0) l).
Proof.
  intros d f. induction l as [|t l IH]; [reflexivity|]. cbn. destruct (f t); cbn; lia.
Qed.

Theorem one_store_bound : forall counts l es stores c,
  check_one_store counts l es stores c = true ->
  forall s first last, plan (index_of l) es stores s -> lies (index_of l) counts s first last ->
  store_bound c <= last - first.
Proof.
  intros counts l es stores c H s first last V L. unfold check_one_store in H.
  set (k := index_of l) in *. set (ts := map fst l) in *.
  set (uses := fun t => existsb _ (sites k t)) in *.
  destruct (nth_error stores (Z.to_nat (at_store c))) as [st|] eqn:St; [|discriminate].
  rewrite !andb_true_iff in H. destruct H as [[[[[[_ Owned] Once] Some_] Long] More] Claim].
  apply distinct_is_once in Once as [Once _]. apply Z.ltb_lt in More. apply Z.leb_le in Claim.
  rewrite forallb_forall in Long. apply nth_error_In in St.
  set (r := room_in_store st) in *. set (begin := begin_ticks c) in *. set (end_ := end_ticks c) in *.
  set (early := most_done ts (ticks k) uses (heads l counts es) r begin) in *.
  set (late := most_done ts (ticks k) uses (tails l counts es) (turned ts r) end_) in *.
  assert (Long' : forall t, In t ts -> uses t = true -> 0 <= ticks k t).
  { intros t I U. apply Z.leb_le, Long, filter_In. split; assumption. }
  assert (Known : forall t, In t ts -> known k t = true) by (intros t; apply known_is_task).
  assert (Room : forall now, load_at ts (ticks k) (at_start r) (at_finish r) s now <= spare r).
  { intros now. unfold r, room_in_store. pose proof (room _ _ _ _ V st now St) as Most.
    destruct (capacity _ st) as [cap|]; cbn [at_start at_finish spare].
    - rewrite (held_is_load k s now ts Once) in Most; [lia|]. intros e J.
      unfold well_stored in Owned. rewrite forallb_forall in Owned. specialize (Owned st St).
      rewrite forallb_forall in Owned. apply known_is_task, Owned, J.
    - unfold load_at. rewrite total_zeros; [lia|]. intros t.
      destruct (s t <=? now), (s t + ticks k t <=? now); reflexivity. }
  assert (E : total (map (before_begin (ticks k) uses begin first s) ts) <= early).
  { apply most_done_is; [exact Long'| |exact Room]. intros t m I F.
    exact (heads_hold l es stores counts s first last V L es (incl_refl es) t m F (Known t I)). }
  set (s' t := - (s t + ticks k t)).
  assert (T : total (map (before_begin (ticks k) uses end_ (- last) s') ts) <= late).
  { apply most_done_is; [exact Long'| |].
    - intros t m I F. unfold s'.
      pose proof (tails_hold l es stores counts s first last V L es (incl_refl es) t m F (Known t I)).
      fold k in H. lia.
    - intros now. cbn [turned at_start at_finish spare]. unfold s'. rewrite load_turned.
      specialize (Room (- now - 1)). lia. }
  clearbody early late. rewrite busy_is_total in More, Claim.
  set (a := first + begin) in *. set (b := last - end_) in *.
  destruct (Z_le_gt_dec a b) as [Ab|Ab].
  - set (f t := clip a b (s t)). set (g t := clip a b (s t + ticks k t) - clip a b (s t)).
    assert (Mid : busy positive g (filter uses ts) <= b - a).
    { apply (packing positive f).
      - intros Nil_. rewrite Nil_ in Some_. discriminate.
      - apply NoDup_filter, Once.
      - intros t I. apply filter_In in I as [I U]. specialize (Long' t I U).
        unfold between, f, g, clip. lia.
      - intros t u It Iu D. apply filter_In in It as [It Ut]. apply filter_In in Iu as [Iu Uu].
        pose proof (Long' t It Ut). pose proof (Long' u Iu Uu). unfold uses in Ut, Uu.
        apply existsb_exists in Ut as (r1 & Rt & E1). apply existsb_exists in Uu as (r2 & Ru & E2).
        apply Z.eqb_eq in E1, E2. subst r1 r2.
        pose proof (turns _ _ _ _ V t u _ (Known t It) (Known u Iu) D Rt Ru) as A.
        unfold apart in A. unfold disjoint, f, g, clip. lia. }
    rewrite busy_is_total in Mid.
    enough (total (map (fun t => if uses t then ticks k t else 0) ts) <=
      total (map (before_begin (ticks k) uses begin first s) ts) +
      total (map (fun t => if uses t then g t else 0) ts) +
      total (map (before_begin (ticks k) uses end_ (- last) s') ts)) by lia.
    rewrite <- !total_plus. apply total_below. intros t I. unfold before_begin.
    destruct (uses t) eqn:U; [|lia]. specialize (Long' t I U).
    destruct (parts_of_work a b (s t) (ticks k t) Long') as [P _]. specialize (P Ab).
    unfold g, s'. unfold a, b in *. lia.
  - enough (total (map (fun t => if uses t then ticks k t else 0) ts) <=
      total (map (before_begin (ticks k) uses begin first s) ts) +
      total (map (before_begin (ticks k) uses end_ (- last) s') ts)) by lia.
    rewrite <- !total_plus. apply total_below. intros t I. unfold before_begin.
    destruct (uses t) eqn:U; [|lia]. specialize (Long' t I U).
    destruct (parts_of_work a b (s t) (ticks k t) Long') as [_ P]. specialize (P ltac:(lia)).
    unfold s'. unfold a, b in *. lia.
Qed.

Theorem one_store_on_the_problem : forall counts l es stores gs lives all c,
  check_free l es stores gs lives all && check_one_store counts l all stores c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> store_bound c <= last - first.
Proof.
  intros counts l es stores gs lives all c H. apply andb_true_iff in H as [F C].
  apply bounded_schedules; [exact (free_written _ _ _ _ _ _ F)|].
  exact (free_edges l es stores gs lives all F counts _ (one_store_bound counts l all stores c C)).
Qed.
