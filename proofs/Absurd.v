(* What is absurd in a replayed proof (Trail.v), and why no plan has it: a task whose greatest start is
   before its least (`Gone`), tasks of one resource that take longer than there is between the first
   least start and the last greatest end (`Crowd`), a store that holds more at the start of a task
   than it has room for (`Full`), and a lemma all of whose literals are known to be false (`Spent`).

   A store is judged by some of its uses. That of a life which begins at the start of the task holds
   what it acquires. Of one that has begun by then some stops are over, and one is yet to come; it
   holds the least of the levels in between. The others hold nothing or more. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances PriceTables Loads Groups
  InOrder Lifecycles FreeEdges Volume Uses Facts.
Import ListNotations.
Open Scope Z_scope.

Inductive absurd :=
  | Gone (t : positive)
  | Crowd (r : Z) (ts : list positive)
  | Full (t : positive) (store : nat) (uses : list (nat * nat * (nat * nat)))  (* with their spans *)
  | Spent (i : positive).

Section Check.
Variables (stores : list (store positive)) (lives : list life) (k : index).

(* Whether an event is over for sure when a task has started, and whether it is yet to come. *)
Definition passed (f : facts) (e : event positive) (t : positive) : bool :=
  let o := owner _ e in
  let later := if at_end _ e then ticks k o else 0 in
  negb (at_end _ e) && Pos.eqb o t ||
  is_ahead f o t && (0 <=? ticks k o) ||
  match Map.find o (high f), Map.find t (low f) with Some y, Some x => y + later <=? x | _, _ => false end.
Definition coming (f : facts) (e : event positive) (t : positive) : bool :=
  let o := owner _ e in
  let later := if at_end _ e then ticks k o else 0 in
  at_end _ e && Pos.eqb o t && (0 <? ticks k t) ||
  is_ahead f t o && (0 <=? ticks k t) && (0 <=? later) && (0 <? ticks k t + later) ||
  match Map.find t (high f), Map.find o (low f) with Some y, Some x => y <? x + later | _, _ => false end.

(* What a use is sure to hold when a task starts: the first `fst span` of its stops are over, and that
   after the first `snd span` is yet to come. *)
Definition sure_of (f : facts) (t : positive) (some : list life) (x span : nat * nat) : Z :=
  match nth_error some (fst x) with
  | None => 0
  | Some g =>
      let b := pick (snd x) (begins g) in
      let evs := map (event_of (snd x)) (stops g) in
      let ds := map change (stops g) in
      let (lo, hi) := span in
      if Pos.eqb b t then acquired g
      else if passed f (Event positive b false 0) t && Nat.leb lo hi &&
        match lo with
        | O => true
        | S i => match nth_error evs i with Some e => passed f e t | None => false end
        end &&
        match nth_error evs hi with Some e => coming f e t | None => true end
      then lowest (acquired g + total (firstn lo ds)) (firstn (hi - lo) (skipn lo ds)) else 0
  end.

Definition least_start (f : facts) (ts : list positive) := least_path (low f) ts.
Fixpoint greatest_end (f : facts) (ts : list positive) : option Z :=
  match ts with
  | [] => None
  | t :: rest =>
      match Map.find t (high f) with
      | None => None
      | Some y =>
          match rest with
          | [] => Some (y + ticks k t)
          | _ => match greatest_end f rest with Some z => Some (Z.max (y + ticks k t) z) | None => None end
          end
      end
  end.

Definition is_absurd (cs : clauses) (f : facts) (why : absurd) : bool :=
  match why with
  | Gone t =>
      match Map.find t (low f), Map.find t (high f) with Some x, Some y => y <? x | _, _ => false end
  | Crowd r ts =>
      distinct ts (Map.empty unit) &&
      forallb (fun t => known k t && (0 <=? ticks k t) && existsb (Z.eqb r) (sites k t)) ts &&
      match least_start f ts, greatest_end f ts with
      | Some x, Some y => y <? x + busy positive (ticks k) ts
      | _, _ => false
      end
  | Full t i uses =>
      match nth_error stores i with
      | None => false
      | Some st =>
          match capacity _ st with
          | None => false
          | Some cap =>
              let some := store_lives lives i in
              negb (Nat.eqb (length some) 0) && pairs_once (map fst uses) &&
              forallb (is_use some) (map fst uses) &&
              (cap <? base _ st + total (map (fun x => sure_of f t some (fst x) (snd x)) uses))
          end
      end
  | Spent i => match Map.find i cs with Some c => forallb (is_false k f) c | None => false end
  end.
End Check.

(* ---- No plan has it. ---- *)

Section Sound.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (gs : list group) (lives : list life).
Local Notation k := (index_of l).
Variables (s : positive -> Z) (first : Z).
Hypothesis G : check_groups l es stores gs = true.
Hypothesis Ls : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.

Local Notation so := (true_facts k s first).

Lemma crowd_between : forall f ts x y, so f -> least_start f ts = Some x -> greatest_end k f ts = Some y ->
  forall t, In t ts -> first + x <= s t /\ s t + ticks k t <= first + y.
Proof.
  intros f ts x y F Lo Hi t I. split.
  - destruct (least_path_is _ _ _ Lo t I) as (n & E & Le). pose proof (low_true _ _ _ f F t n E). lia.
  - clear Lo. revert y Hi. induction ts as [|u ts IH]; intros y Hi; [destruct I|].
    cbn [greatest_end] in Hi. destruct (Map.find u (high f)) as [z|] eqn:E; [|discriminate].
    pose proof (high_true _ _ _ f F u z E).
    destruct ts as [|v ts]; [injection Hi as <-; destruct I as [<-|[]]; lia|].
    destruct (greatest_end k f (v :: ts)) as [more|]; [|discriminate]. injection Hi as <-.
    destruct I as [<-|I]; [lia|]. specialize (IH I more eq_refl). lia.
Qed.

Lemma is_passed : forall f e t, so f -> passed k f e t = true -> moment_of k s e <= s t.
Proof.
  intros f e t F H. unfold passed in H. cbv zeta in H. unfold moment_of.
  rewrite !orb_true_iff, !andb_true_iff, negb_true_iff in H. destruct H as [[[N E]|[A D]]|H].
  - apply Pos.eqb_eq in E. rewrite N, E. lia.
  - apply Z.leb_le in D. pose proof (ahead_true _ _ _ f F _ _ A). destruct (at_end _ e); lia.
  - destruct (Map.find (owner _ e) (high f)) as [y|] eqn:Y; [|discriminate].
    destruct (Map.find t (low f)) as [x|] eqn:X; [|discriminate]. apply Z.leb_le in H.
    pose proof (high_true _ _ _ f F _ y Y). pose proof (low_true _ _ _ f F t x X). lia.
Qed.

Lemma is_coming : forall f e t, so f -> coming k f e t = true -> s t < moment_of k s e.
Proof.
  intros f e t F H. unfold coming in H. cbv zeta in H. unfold moment_of.
  rewrite !orb_true_iff, !andb_true_iff, !Z.leb_le, !Z.ltb_lt in H.
  destruct H as [[[[N E] D]|[[[A D1] D2] D3]]|H].
  - apply Pos.eqb_eq in E. rewrite N, E. lia.
  - pose proof (ahead_true _ _ _ f F _ _ A). lia.
  - destruct (Map.find t (high f)) as [y|] eqn:Y; [|discriminate].
    destruct (Map.find (owner _ e) (low f)) as [x|] eqn:X; [|discriminate]. apply Z.ltb_lt in H.
    pose proof (high_true _ _ _ f F t y Y). pose proof (low_true _ _ _ f F _ x X). lia.
Qed.

Lemma lowest_prefix : forall ds level n, lowest level ds <= level + total (firstn n ds).
Proof.
  induction ds as [|d ds IH]; intros level [|n]; cbn [lowest firstn total]; try lia.
  specialize (IH (level + d) n). lia.
Qed.

Lemma first_of : forall lo n ds, (lo <= n)%nat ->
  total (firstn n ds) = total (firstn lo ds) + total (firstn (n - lo) (skipn lo ds)).
Proof.
  induction lo as [|lo IH]; intros n ds Le; [rewrite Nat.sub_0_r; reflexivity|].
  destruct n as [|n]; [lia|]. destruct ds as [|d ds]; [cbn [skipn]; rewrite !firstn_nil; reflexivity|].
  cbn [firstn total skipn Nat.sub]. rewrite (IH n ds) by lia. lia.
Qed.

Lemma between_stops : forall level lo hi n ds, (lo <= n)%nat -> (n <= hi)%nat ->
  lowest (level + total (firstn lo ds)) (firstn (hi - lo) (skipn lo ds)) <= level + total (firstn n ds).
Proof.
  intros level lo hi n ds Lo Hi. rewrite (first_of lo n ds Lo).
  pose proof (lowest_prefix (firstn (hi - lo) (skipn lo ds)) (level + total (firstn lo ds)) (n - lo)) as P.
  rewrite firstn_firstn in P. replace (Nat.min (n - lo) (hi - lo)) with (n - lo)%nat in P by lia. lia.
Qed.

Lemma sure_is_held : forall f t some x span, so f ->
  (forall g, In g some -> check_life k (arcs_of es) g = true) -> is_use some x = true ->
  sure_of k f t some x span <= held k s (s t) (used some x).
Proof.
  intros f t some [a j] [lo hi] F Fine U. unfold is_use, sure_of, used in *. cbn [fst snd] in *.
  destruct (nth_error some a) as [g|] eqn:E; [|discriminate]. apply Nat.ltb_lt in U.
  specialize (Fine g (nth_error_In _ _ E)).
  change (held k s (s t) (life_events g j)) with (level l s g j (s t)).
  set (b := pick j (begins g)). destruct (Pos.eqb_spec b t) as [B|B].
  - pose proof (level_at_begin l es stores s V g Fine j U) as At. unfold begin_of in At. fold b in At.
    rewrite B in At. lia.
  - destruct (_ && _) eqn:D; [|exact (never_below l es stores s V g Fine j (s t) U)].
    rewrite !andb_true_iff, Nat.leb_le in D. destruct D as [[[Db Le] Dl] Dh].
    apply (is_passed f _ t F) in Db. unfold moment_of in Db. cbn [owner at_end] in Db.
    destruct (life_ordered l es stores s V g Fine j U) as [O _]. rewrite level_is.
    unfold begin_of. fold b. destruct (Z.leb_spec (s b) (s t)); [|lia].
    destruct (chain_is_prefix l s _ _ (s t) O) as (n & -> & P).
    rewrite <- firstn_map, changes_told. set (ds := map change (stops g)) in *.
    assert (Lo : (lo <= n)%nat).
    { destruct lo as [|i]; [lia|]. destruct (nth_error _ i) as [e|] eqn:Ni; [|discriminate].
      apply (P i e Ni), (is_passed f e t F Dl). }
    destruct (nth_error (map (event_of j) (stops g)) hi) as [e|] eqn:Nh.
    + apply between_stops; [exact Lo|]. apply (is_coming f e t F) in Dh.
      destruct (Nat.leb_spec n hi) as [Ok|Over]; [exact Ok|]. apply (P hi e Nh) in Over. lia.
    + apply nth_error_None in Nh. rewrite map_length in Nh.
      replace (firstn n ds) with (firstn (Nat.min n hi) ds).
      * apply between_stops; lia.
      * destruct (Nat.leb_spec n hi); [f_equal; lia|].
        rewrite !firstn_all2 by (unfold ds; rewrite map_length; lia). reflexivity.
Qed.

Lemma absurd_is_false : forall cs f why, so f -> true_clauses k s first cs ->
  is_absurd stores lives k cs f why = true -> False.
Proof.
  intros cs f [t|r ts|t i uses|i] F C H; cbn [is_absurd] in H.
  - destruct (Map.find t (low f)) as [x|] eqn:X; [|discriminate].
    destruct (Map.find t (high f)) as [y|] eqn:Y; [|discriminate]. apply Z.ltb_lt in H.
    pose proof (high_true _ _ _ f F t y Y). pose proof (low_true _ _ _ f F t x X). lia.
  - rewrite !andb_true_iff, forallb_forall in H. destruct H as [[Once Fine] H].
    apply distinct_is_once in Once as [Once _].
    destruct (least_start f ts) as [x|] eqn:X; [|discriminate].
    destruct (greatest_end k f ts) as [y|] eqn:Y; [|discriminate]. apply Z.ltb_lt in H.
    pose proof (crowd_between f ts x y F X Y) as In_.
    enough (busy positive (ticks k) ts <= first + y - (first + x)) by lia.
    assert (Each : forall t, In t ts -> known k t = true /\ 0 <= ticks k t /\ In r (sites k t)).
    { intros t I. specialize (Fine t I). rewrite !andb_true_iff, Z.leb_le in Fine.
      destruct Fine as [[K D] R]. apply existsb_exists in R as (q & Q & E). apply Z.eqb_eq in E.
      subst q. auto. }
    apply (packing positive s); [|exact Once| |].
    + intros E. rewrite E in X. discriminate.
    + intros t I. destruct (Each t I) as (_ & D & _). specialize (In_ t I). unfold between. lia.
    + intros t u It Iu D. destruct (Each t It) as (K & _ & R). destruct (Each u Iu) as (K' & _ & R').
      exact (turns _ _ _ _ V t u r K K' D R R').
  - destruct (nth_error stores i) as [st|] eqn:St; [|discriminate].
    destruct (capacity _ st) as [cap|] eqn:Cap; [|discriminate]. cbv zeta in H.
    set (some := store_lives lives i) in *.
    rewrite !andb_true_iff, negb_true_iff, Nat.eqb_neq, forallb_forall, Z.ltb_lt in H.
    destruct H as [[[N Once] Uses] H].
    destruct (uses_fine l es stores gs lives Ls i st some St eq_refl N) as [_ Fine].
    pose proof (uses_held l es stores gs lives s G Ls V i st some (map fst uses) (s t) St eq_refl N
      (pairs_are_once _ Once) Uses) as Held.
    pose proof (room _ _ _ _ V st (s t) (nth_error_In _ _ St)) as R. rewrite Cap in R.
    rewrite held_flat, map_map in Held.
    enough (total (map (fun x => sure_of k f t some (fst x) (snd x)) uses) <=
      total (map (fun x => held k s (s t) (used some (fst x))) uses)) by lia.
    apply total_below. intros x I. apply (sure_is_held f t some _ _ F Fine), Uses, in_map, I.
  - destruct (Map.find i cs) as [c|] eqn:I; [|discriminate]. destruct (C i c I) as (x & J & M).
    rewrite forallb_forall in H. exact (false_is_false k s first f x F (H x J) M).
Qed.
End Sound.
