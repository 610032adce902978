(* Problems with a choice: what a bound on what no choice takes away says of every choice. Lemma 18
   of docs/guide/formal.md, of verify/candidates/relaxation.py.

   A choice makes additions to a problem: tasks, edges, and events of its stores (`with_tasks`,
   `with_edges`, `with_stores`). Tasks, edges and resources stay; a store may hold less than without,
   where an addition releases what the problem's own tasks have acquired. So nothing is said of
   stores but by `pools`: the stores of a pool together have what they hold and what they have room
   for together, and no addition may ever take away from that (`only_adds`). A store of which nothing
   is said is in no pool, one that no addition touches a pool of its own; a rank that evicts and the
   rank that takes what it evicts are one pool.

   `check_relaxed` looks at each addition by itself, so at all choices of them at once. It looks at

   - durations: none may be negative, of tasks that any choice may have;
   - what each addition does to each pool, task by task: at a task's start it adds 0 or more, and at
     start and end together 0 or more;
   - the events of the pools: each has a task. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances Bounds Shown PriceTables
  Loads.
Import ListNotations.
Open Scope Z_scope.

Record addition := Addition {
  more_tasks : table;
  more_edges : list (edge positive);
  more_events : list (nat * event positive) }.  (* with the place of the store *)

Definition with_tasks (l : table) (adds : list addition) := l ++ flat_map more_tasks adds.
Definition with_edges (es : list (edge positive)) (adds : list addition) :=
  es ++ flat_map more_edges adds.
Definition events_for (i : nat) (a : addition) : list (event positive) :=
  map snd (filter (fun x => Nat.eqb (fst x) i) (more_events a)).
Fixpoint stores_from (i : nat) (stores : list (store positive)) (adds : list addition) :=
  match stores with
  | [] => []
  | st :: rest =>
      Store positive (base _ st) (capacity _ st) (events _ st ++ flat_map (events_for i) adds) ::
      stores_from (S i) rest adds
  end.
Definition with_stores := stores_from 0.

Definition unlimited := Store positive 0 None [].
Fixpoint all_room (stores : list (store positive)) : option Z :=
  match stores with
  | [] => Some 0
  | st :: rest =>
      match capacity _ st, all_room rest with Some c, Some more => Some (c + more) | _, _ => None end
  end.
Definition joined (stores : list (store positive)) (pool : list nat) : store positive :=
  let some := map (fun i => nth i stores unlimited) pool in
  Store positive (total (map (base _) some)) (all_room some) (flat_map (events _) some).

(* ---- The checker. ---- *)

Definition only_adds (evs : list (event positive)) : bool :=
  let m := changes_of evs in
  forallb (fun e => let cs := changes_at (owner _ e) m in
    (0 <=? summed false cs) && (0 <=? summed false cs + summed true cs)) evs.

Definition no_negative (l : table) := forallb (fun x => 0 <=? fst (snd x)) l.

(* `done` is what has been chosen, `open` what may be chosen as well. *)
Definition check_relaxed (l : table) (stores : list (store positive)) (done open : list addition)
    (pools : list (list nat)) : bool :=
  no_negative (with_tasks l (done ++ open)) &&
  forallb (fun pool => forallb (fun a => only_adds (flat_map (fun i => events_for i a) pool)) open)
    pools &&
  well_stored (index_of (with_tasks l done)) (map (joined (with_stores stores done)) pools).

(* ---- It is sound. ---- *)

Lemma found_first : forall a b t, Map.find t (index_of (a ++ b)) =
  match Map.find t (index_of a) with Some v => Some v | None => Map.find t (index_of b) end.
Proof.
  induction a as [|[u v] a IH]; intros b t; cbn [app index_of fold_right].
  - rewrite Map.gempty. reflexivity.
  - fold (index_of (a ++ b)) (index_of a). cbn [fst snd]. destruct (Pos.eq_dec t u) as [->|D].
    + rewrite !Map.gss. reflexivity.
    + rewrite !Map.gso by exact D. apply IH.
Qed.

Lemma never_negative : forall l, no_negative l = true -> forall t, 0 <= ticks (index_of l) t.
Proof.
  unfold ticks. induction l as [|[u [d rs]] l IH]; intros N t; cbn [index_of fold_right fst snd].
  - rewrite Map.gempty. lia.
  - cbn in N. apply andb_true_iff in N as [D N]. apply Z.leb_le in D.
    destruct (Pos.eq_dec t u) as [->|E]; [rewrite Map.gss; exact D|].
    rewrite Map.gso by exact E. exact (IH N t).
Qed.

Lemma fewer_negative : forall l a b, incl a b -> no_negative (with_tasks l b) = true ->
  no_negative (with_tasks l a) = true.
Proof.
  unfold no_negative, with_tasks. intros l a b I H. rewrite forallb_forall in *. intros x J.
  apply H, in_or_app. apply in_app_or in J as [J|J]; [left; exact J | right].
  apply in_flat_map in J as (y & Iy & J). apply in_flat_map. exists y. split; [apply I|]; assumption.
Qed.

Lemma added_is_held : forall k s now evs, (forall t, 0 <= ticks k t) -> only_adds evs = true ->
  0 <= held k s now evs.
Proof.
  intros k s now evs D H. unfold only_adds in H. cbv zeta in H. rewrite forallb_forall in H.
  set (ts := nodup Pos.eq_dec (map (owner _) evs)).
  rewrite (held_by_task k s now ts (NoDup_nodup _ _)).
  - assert (C : forall t, In t ts ->
      0 <= change_by (changes_at t (changes_of evs)) (ticks k t) now (s t)).
    { intros t I. apply nodup_In, in_map_iff in I as (e & <- & I). specialize (H e I).
      rewrite andb_true_iff, !Z.leb_le in H. rewrite change_by_sums. specialize (D (owner _ e)).
      destruct (Z.leb_spec (s (owner _ e)) now),
        (Z.leb_spec (s (owner _ e) + ticks k (owner _ e)) now); lia. }
    revert C. generalize ts as us. induction us as [|t us IH]; intros C; [cbn; lia|].
    cbn [map total]. pose proof (C t (or_introl eq_refl)).
    specialize (IH (fun u I => C u (or_intror I))). lia.
  - intros e I. apply nodup_In, in_map, I.
Qed.

Lemma pool_grows : forall k s now pool adds, (forall t, 0 <= ticks k t) ->
  forallb (fun a => only_adds (flat_map (fun i => events_for i a) pool)) adds = true ->
  0 <= total (map (fun i => held k s now (flat_map (events_for i) adds)) pool).
Proof.
  intros k s now pool adds D. induction adds as [|a adds IH]; intros H.
  - rewrite total_zeros; [lia|]. reflexivity.
  - cbn [forallb] in H. apply andb_true_iff in H as [A H]. specialize (IH H).
    apply (added_is_held k s now _ D) in A. rewrite held_flat in A.
    replace (total _) with (total (map (fun i => held k s now (events_for i a)) pool) +
      total (map (fun i => held k s now (flat_map (events_for i) adds)) pool)); [lia|].
    rewrite <- total_plus. f_equal. apply map_ext. intros i. cbn [flat_map].
    rewrite held_app. reflexivity.
Qed.

Lemma store_at : forall j stores i adds, (j < length stores)%nat ->
  nth j (stores_from i stores adds) unlimited =
    let st := nth j stores unlimited in
    Store positive (base _ st) (capacity _ st)
      (events _ st ++ flat_map (events_for (i + j)) adds).
Proof.
  induction j as [|j IH]; intros [|st stores] i adds L; cbn [length] in L; try lia; cbn [stores_from nth].
  - rewrite Nat.add_0_r. reflexivity.
  - rewrite IH by lia. replace (S i + j)%nat with (i + S j)%nat by lia. reflexivity.
Qed.

Lemma stores_count : forall stores i adds, length (stores_from i stores adds) = length stores.
Proof. induction stores as [|st stores IH]; intros i adds; cbn; [reflexivity|]. rewrite IH. reflexivity. Qed.

Section Relaxed.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (done rest : list addition) (pools : list (list nat)).
Let before := index_of (with_tasks l done).
Let after := index_of (with_tasks l (done ++ rest)).
Variable s : positive -> Z.
Hypothesis V : plan after (with_edges es (done ++ rest)) (with_stores stores (done ++ rest)) s.

Lemma stays : forall t, known before t = true ->
  known after t = true /\ ticks after t = ticks before t /\ sites after t = sites before t.
Proof.
  intros t K. unfold known, ticks, sites in *. unfold after, with_tasks.
  rewrite flat_map_app, app_assoc, found_first. fold (with_tasks l done). fold before.
  destruct (Map.find t before); [auto | discriminate].
Qed.

Lemma held_stays : forall now evs, forallb (fun e => known before (owner _ e)) evs = true ->
  held after s now evs = held before s now evs.
Proof.
  intros now. induction evs as [|e evs IH]; intros K; [reflexivity|]. cbn in K.
  apply andb_true_iff in K as [Ke K]. cbn [held]. rewrite (IH K). unfold moment_of.
  destruct (stays _ Ke) as (_ & -> & _). reflexivity.
Qed.

(* The stores of a pool hold together what they have room for, added events apart. *)
Lemma pool_fits : forall now pool c,
  all_room (map (fun i => nth i (with_stores stores done) unlimited) pool) = Some c ->
  base _ (joined (with_stores stores done) pool) +
    held after s now (events _ (joined (with_stores stores done) pool)) +
    total (map (fun i => held after s now (flat_map (events_for i) rest)) pool) <= c.
Proof.
  intros now. unfold joined. cbn [base events].
  induction pool as [|i pool IH]; intros c H; cbn [map all_room total flat_map] in *;
    [injection H as <-; cbn; lia|].
  destruct (capacity _ (nth i (with_stores stores done) unlimited)) as [room_|] eqn:Cap; [|discriminate].
  destruct (all_room _) as [more|] eqn:More; [|discriminate]. injection H as <-.
  specialize (IH more eq_refl). rewrite held_app.
  destruct (Nat.ltb_spec i (length stores)) as [Li|Li].
  - pose proof (room _ _ _ _ V (nth i (with_stores stores (done ++ rest)) unlimited) now) as R.
    unfold with_stores in *. rewrite !store_at in * by exact Li. cbv zeta in *.
    cbn [base capacity events Nat.add] in *.
    assert (I : In (Store positive (base _ (nth i stores unlimited)) (capacity _ (nth i stores unlimited))
      (events _ (nth i stores unlimited) ++ flat_map (events_for i) (done ++ rest)))
      (stores_from 0 stores (done ++ rest))).
    { pose proof (store_at i stores 0 (done ++ rest) Li) as E. cbv zeta in E.
      cbn [Nat.add] in E. rewrite <- E. apply nth_In. rewrite stores_count. exact Li. }
    specialize (R I). rewrite Cap in R. rewrite flat_map_app, app_assoc, held_app in R. lia.
  - rewrite nth_overflow in Cap by (unfold with_stores; rewrite stores_count; exact Li). discriminate.
Qed.

End Relaxed.

(* What keeps the rules with additions keeps them without, the capacities of pools included. *)
Theorem plan_without : forall l es stores done open pools,
  check_relaxed l stores done open pools = true -> forall rest, incl rest open ->
  forall s, plan (index_of (with_tasks l (done ++ rest))) (with_edges es (done ++ rest))
      (with_stores stores (done ++ rest)) s ->
    plan (index_of (with_tasks l done)) (with_edges es done)
      (map (joined (with_stores stores done)) pools) s.
Proof.
  intros l es stores done open pools H rest I s V. unfold check_relaxed in H.
  rewrite !andb_true_iff in H. destruct H as [[D Adds] Owned].
  assert (Stay := stays l done rest).
  constructor.
  - intros a b lag J Ka Kb. destruct (Stay a Ka) as (Ka' & Da & _), (Stay b Kb) as (Kb' & _).
    rewrite <- Da. apply (kept _ _ _ _ V a b lag); [|exact Ka'|exact Kb'].
    unfold with_edges in *. rewrite flat_map_app, app_assoc. apply in_or_app. left. exact J.
  - intros t u r Kt Ku N Rt Ru.
    destruct (Stay t Kt) as (Kt' & Dt & St), (Stay u Ku) as (Ku' & Du & Su).
    rewrite <- Dt, <- Du. apply (turns _ _ _ _ V t u r Kt' Ku' N); congruence.
  - intros st now J. pose proof J as Ist. apply in_map_iff in J as (pool & <- & J).
    destruct (capacity _ (joined (with_stores stores done) pool)) as [c|] eqn:Cap; [|exact Logic.I].
    pose proof (pool_fits l es stores done rest s V now pool c Cap) as Fits.
    rewrite forallb_forall in Adds. specialize (Adds pool J).
    unfold well_stored in Owned. rewrite forallb_forall in Owned. specialize (Owned _ Ist).
    rewrite (held_stays l done rest s now _ Owned) in Fits.
    enough (0 <= total (map (fun i => held (index_of (with_tasks l (done ++ rest))) s now
      (flat_map (events_for i) rest)) pool)) by lia.
    apply pool_grows.
    + apply never_negative, (fewer_negative l _ (done ++ open)); [|exact D].
      intros x Ix. apply in_or_app. apply in_app_or in Ix as [Ix|Ix]; auto.
    + rewrite forallb_forall in *. intros a Ia. apply Adds, I, Ia.
Qed.

(* So a bound without additions is one with any of them. *)
Theorem relaxation_bounds : forall l es stores done open pools,
  check_relaxed l stores done open pools = true ->
  forall counts least, bounds counts (with_tasks l done) (with_edges es done)
    (map (joined (with_stores stores done)) pools) least ->
  forall rest, incl rest open -> bounds counts (with_tasks l (done ++ rest))
    (with_edges es (done ++ rest)) (with_stores stores (done ++ rest)) least.
Proof.
  intros l es stores done open pools H counts least B rest I s first last V L.
  apply (B s first last).
  - exact (plan_without l es stores done open pools H rest I s V).
  - intros t K C. destruct (stays l done rest t K) as (K' & D & S). rewrite <- D. apply L; [exact K'|].
    unfold counted in *. rewrite S. exact C.
Qed.

(* ---- Choices are problems: each task has a resource, each event a task. ---- *)

Definition housed_in (l : table) :=
  forallb (fun x => match snd (snd x) with [] => false | _ => true end) l.

Definition check_choices (l : table) (stores : list (store positive)) (adds : list addition) : bool :=
  housed_in (with_tasks l adds) && well_stored (index_of l) stores &&
  forallb (fun a => forallb (fun x => known (index_of (l ++ more_tasks a)) (owner _ (snd x)))
    (more_events a)) adds.

Lemma housed_tasks : forall l x, housed_in l = true -> In x l ->
  has_home (index_of l) (fst x) = true.
Proof.
  intros l x H I. unfold has_home, sites. assert (J := in_map fst _ _ I). revert H J. clear I.
  generalize (fst x) as t. intros t. induction l as [|[u [d rs]] l IH]; intros H J; [destruct J|].
  cbn in H. apply andb_true_iff in H as [R H]. cbn [index_of fold_right fst snd].
  destruct (Pos.eq_dec t u) as [->|D]; [rewrite Map.gss; exact R|].
  rewrite Map.gso by exact D. apply IH; [exact H|]. destruct J as [E|J]; [cbn in E; congruence | exact J].
Qed.

Lemma choices_written : forall l stores adds, check_choices l stores adds = true ->
  forall some, incl some adds -> well_written (with_tasks l some) (with_stores stores some) = true.
Proof.
  intros l stores adds H some I. unfold check_choices in H.
  rewrite !andb_true_iff, forallb_forall in H. destruct H as [[Housed Owned] Adds].
  unfold well_written. cbv zeta. apply andb_true_iff. split.
  - rewrite forallb_forall. intros x J. apply housed_tasks; [|exact J]. unfold housed_in in *.
    rewrite forallb_forall in *. intros y Iy. apply Housed. unfold with_tasks in *.
    apply in_or_app. apply in_app_or in Iy as [Iy|Iy]; [left; exact Iy | right].
    apply in_flat_map in Iy as (a & Ia & Iy). apply in_flat_map. exists a. split; [apply I|]; assumption.
  - assert (Base : forall st e, In st stores -> In e (events _ st) ->
      known (index_of (with_tasks l some)) (owner _ e) = true).
    { intros st e Ist Ie. unfold well_stored in Owned. rewrite forallb_forall in Owned.
      specialize (Owned st Ist). rewrite forallb_forall in Owned. specialize (Owned e Ie).
      apply known_is_task. apply known_is_task in Owned. unfold with_tasks. rewrite map_app.
      apply in_or_app. left. exact Owned. }
    assert (Added : forall i e, In e (flat_map (events_for i) some) ->
      known (index_of (with_tasks l some)) (owner _ e) = true).
    { intros i e Ie. apply in_flat_map in Ie as (a & Ia & Ie). apply in_map_iff in Ie as (x & <- & Ix).
      apply filter_In in Ix as [Ix _]. specialize (Adds a (I a Ia)). rewrite forallb_forall in Adds.
      specialize (Adds x Ix). apply known_is_task. apply known_is_task in Adds. unfold with_tasks.
      rewrite map_app in *. apply in_or_app. apply in_app_or in Adds as [A|A]; [left; exact A | right].
      apply in_map_iff in A as (y & <- & Iy). apply in_map, in_flat_map. exists a. split; assumption. }
    unfold well_stored. rewrite forallb_forall. intros st Ist. rewrite forallb_forall. intros e Ie.
    unfold with_stores in Ist. revert Ist Base. generalize 0%nat as i. clear Owned.
    induction stores as [|st0 rest IH]; intros i Ist Base; [destruct Ist|].
    destruct Ist as [<-|Ist].
    + cbn [events] in Ie. apply in_app_or in Ie as [Ie|Ie]; [|exact (Added i e Ie)].
      exact (Base st0 e (or_introl eq_refl) Ie).
    + exact (IH (S i) Ist (fun st1 e1 I1 => Base st1 e1 (or_intror I1))).
Qed.

Lemma nothing_added : forall stores, with_stores stores [] = stores.
Proof.
  intros stores. unfold with_stores. generalize 0%nat.
  induction stores as [|st rest IH]; intros i; [reflexivity|]. cbn [stores_from flat_map].
  rewrite app_nil_r, IH. destruct st. reflexivity.
Qed.

(* One certificate of the problem without additions bounds the makespan of every right schedule with
   any of them. *)
Theorem relaxation_on_every_choice : forall counts l es stores least open pools proof,
  check_choices l stores open && check_relaxed l stores [] open pools &&
    check_shown counts l es (map (joined stores) pools) least proof = true ->
  forall chosen, incl chosen open ->
  let p := instance (with_tasks l chosen) (with_edges es chosen) in
  forall rows first last,
    valid positive p rows ->
    in_memory positive Pos.eq_dec p (with_stores stores chosen) rows ->
    spans counts p rows first last -> least <= last - first.
Proof.
  intros counts l es stores least open pools proof H chosen I p. rewrite !andb_true_iff in H.
  destruct H as [[W R] S]. apply bounded_schedules; [exact (choices_written l stores _ W chosen I)|].
  apply (relaxation_bounds l es stores [] open pools R counts least); [|exact I].
  unfold with_tasks, with_edges. cbn [flat_map]. rewrite !app_nil_r, nothing_added.
  exact (shown_bounds_plans _ _ _ _ _ _ S).
Qed.
