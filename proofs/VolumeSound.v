(* The checker of `Volume.v` is sound: what it accepts bounds the makespan of every schedule that
   keeps the rules and the capacities of the stores. Volume.v says how the proof goes. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables Loads Steps
  Groups InOrder Lifecycles FreeEdges Volume.
Import ListNotations.
Open Scope Z_scope.

(* ---- Tasks that one resource runs, d ticks or more each: how many there can be in a time. ---- *)

Lemma shortest_alone_is : forall k ts, shortest_alone k ts = 0 \/
  (0 < shortest_alone k ts /\ NoDup ts /\ exists r, forall t, In t ts ->
    In r (sites k t) /\ shortest_alone k ts <= ticks k t).
Proof.
  intros k [|t0 ts]; [left; reflexivity|]. cbn [shortest_alone].
  destruct (distinct (t0 :: ts) (Map.empty unit)) eqn:Once; [|left; reflexivity].
  destruct (existsb _ (sites k t0)) eqn:Shared; [|left; reflexivity]. cbn [andb].
  set (n := fold_right _ _ _). destruct (Z_le_gt_dec n 0); [left; lia|right].
  split; [lia|]. split; [apply (distinct_is_once _ _ Once)|].
  apply existsb_exists in Shared as (r & _ & Shared). rewrite forallb_forall in Shared.
  exists r. intros t I. split.
  - specialize (Shared t I). apply existsb_exists in Shared as (q & Iq & E).
    apply Z.eqb_eq in E. subst q. exact Iq.
  - enough (n <= ticks k t) by lia. unfold n. clear - I. revert I.
    generalize (t0 :: ts) as us. generalize (ticks k t0) as x.
    intros x us. induction us as [|u us IH]; intros I; [destruct I|]. cbn [fold_right].
    destruct I as [->|I]; [lia | specialize (IH I); lia].
Qed.

Definition count (f : positive -> bool) ts := total (map (fun t => if f t then 1 else 0) ts).

Lemma count_is : forall f ts d, busy positive (fun _ => d) (filter f ts) = d * count f ts.
Proof.
  intros f ts d. unfold count. induction ts as [|t ts IH]; cbn [filter map total]; [cbn; lia|].
  destruct (f t); cbn [busy]; rewrite IH; lia.
Qed.

Section Few.
Variables (k : index) (es : list (edge positive)) (stores : list (store positive)).
Variables (s : positive -> Z) (ts : list positive) (r d : Z).
Hypothesis V : plan k es stores s.
Hypothesis Known : forall t, In t ts -> known k t = true.
Hypothesis Once : NoDup ts.
Hypothesis Here : forall t, In t ts -> In r (sites k t) /\ d <= ticks k t.
Hypothesis Long : 0 < d.

(* Intervals of d ticks, each within the turn of its task. *)
Lemma few : forall (at_ : positive -> Z) f a b,
  (forall t, In t ts -> s t <= at_ t /\ at_ t + d <= s t + ticks k t) ->
  (forall t, In t ts -> f t = true -> a <= at_ t /\ at_ t + d <= b) ->
  0 <= b - a -> d * count f ts <= b - a.
Proof.
  intros at_ f a b Within In_ P. rewrite <- count_is.
  destruct (filter f ts) as [|t0 rest] eqn:E; [exact P|]. rewrite <- E.
  apply (packing positive at_ (fun _ => d)).
  - rewrite E. discriminate.
  - apply NoDup_filter, Once.
  - intros t I. apply filter_In in I as [I F]. specialize (In_ t I F). unfold between. lia.
  - intros t u It Iu D. apply filter_In in It as [It _]. apply filter_In in Iu as [Iu _].
    destruct (Here t It) as [Rt _], (Here u Iu) as [Ru _].
    pose proof (turns _ _ _ _ V t u r (Known t It) (Known u Iu) D Rt Ru) as A.
    unfold apart in A. pose proof (Within t It). pose proof (Within u Iu). unfold disjoint. lia.
Qed.

Lemma few_begun : forall a now n, (forall t, In t ts -> a <= s t) -> 0 <= n -> now < a + n * d ->
  count (fun t => s t <=? now) ts <= n.
Proof.
  intros a now n A N L. destruct (Z_le_gt_dec a (now + d)) as [P|P].
  - pose proof (few s (fun t => s t <=? now) a (now + d)) as F.
    enough (d * count (fun t => s t <=? now) ts <= now + d - a) by nia.
    apply F; [| |lia].
    + intros t I. destruct (Here t I). lia.
    + intros t I Le. apply Z.leb_le in Le. specialize (A t I). lia.
  - enough (count (fun t => s t <=? now) ts <= 0) by lia. unfold count. clear L.
    rewrite <- (Z.mul_0_l (Z.of_nat (length ts))). apply total_most. intros t I.
    specialize (A t I). destruct (Z.leb_spec (s t) now); lia.
Qed.

Lemma few_open : forall b now n, (forall t, In t ts -> s t + ticks k t <= b) -> 0 <= n ->
  b <= now + n * d -> count (fun t => now <? s t + ticks k t) ts <= n.
Proof.
  intros b now n B N L. destruct (Z_le_gt_dec (now + 1) (b + d)) as [P|P].
  - pose proof (few (fun t => s t + ticks k t - d) (fun t => now <? s t + ticks k t)
      (now + 1 - d) b) as F.
    enough (d * count (fun t => now <? s t + ticks k t) ts <= b - (now + 1 - d)) by nia.
    apply F; [| |lia].
    + intros t I. destruct (Here t I). lia.
    + intros t I Le. apply Z.ltb_lt in Le. specialize (B t I). lia.
  - enough (count (fun t => now <? s t + ticks k t) ts <= 0) by lia. unfold count. clear L.
    rewrite <- (Z.mul_0_l (Z.of_nat (length ts))). apply total_most. intros t I.
    specialize (B t I). destruct (Z.ltb_spec now (s t + ticks k t)); lia.
Qed.
End Few.

(* ---- What a store holds, by uses and by ticks. ---- *)

Section Store.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (some : list life) (s : positive -> Z) (load : Z -> Z) (a : Z) (n : nat) (most : Z).
Local Notation k := (index_of l).
Hypothesis V : plan k es stores s.
Hypothesis Lives : forall f, In f some -> check_life k (arcs_of es) f = true /\ settled f = true /\
  length (begins f) = length (finishes f) /\ most_held f <= most /\
  (forall t, In t (begins f) \/ In t (finishes f) -> known k t = true) /\
  forall j, (j < length (begins f))%nat -> a <= begin_of s f j /\ end_of l s f j <= a + Z.of_nat n.
Hypothesis Most : 0 < most.
Hypothesis Load : forall now,
  load now = total (map (fun f => total (map (fun j => level l s f j now) (numbers f))) some).

Lemma below_length : forall f j, In j (numbers f) -> (j < length (begins f))%nat.
Proof. intros f j I. apply in_seq in I. lia. Qed.

Lemma volume_is_held : forall ws v, volume_of k (arcs_of es) some ws = Some v ->
  v <= ticked load a n.
Proof.
  intros ws v H.
  assert (E : ticked load a n = total (map (fun f =>
    total (map (fun j => ticked (level l s f j) a n) (numbers f))) some)).
  { unfold ticked. transitivity (total (map (fun i => total (map (fun f =>
      total (map (fun j => level l s f j (a + Z.of_nat i)) (numbers f))) some)) (seq 0 n))).
    - f_equal. apply map_ext. intros i. apply Load.
    - rewrite total_swap. f_equal. apply map_ext. intros f. apply total_swap. }
  rewrite E. clear E Load Most. revert ws v H Lives.
  induction some as [|f fs IH]; intros [|w ws] v H Lives; try discriminate;
    [injection H as <-; cbn; lia|]. cbn [volume_of] in H.
  destruct (life_volume k (arcs_of es) f w) as [x|] eqn:Lf; [|discriminate].
  destruct (volume_of k (arcs_of es) fs ws) as [more|] eqn:More; [|discriminate].
  injection H as <-. destruct (Lives f (or_introl eq_refl)) as (C & S & Len & _ & _ & In_).
  pose proof (life_is_held l es stores s V f C w x a n Lf In_).
  specialize (IH ws more More (fun g I => Lives g (or_intror I))). cbn [map total]. lia.
Qed.

(* Where uses hold `most` at most, and nothing but where `f` says of what begins or finishes them. *)
Lemma load_is_few : forall now (rows : life -> list positive) f,
  (forall g, In g some -> length (rows g) = length (begins g)) ->
  (forall g j, In g some -> (j < length (begins g))%nat -> f (pick j (rows g)) = false ->
    level l s g j now = 0) ->
  load now <= most * count f (flat_map rows some).
Proof.
  intros now rows f Same Empty. rewrite Load. unfold count. rewrite total_flat, <- total_times.
  apply total_below. intros g I. destruct (Lives g I) as (C & S & Len & Mg & _).
  rewrite <- by_number, (Same g I). fold (numbers g). rewrite <- total_times. apply total_below.
  intros j J. apply below_length in J. specialize (Empty g j I J).
  destruct (f (pick j (rows g))).
  - pose proof (never_above l es stores s V g C j now J).
    destruct (Z_le_gt_dec 0 (most_held g)) as [P|P]; [specialize (H P); lia|].
    exfalso. unfold check_life in C. apply andb_true_iff in C as [Low _]. apply Z.leb_le in Low.
    cbn [lowest] in Low. unfold most_held in P.
    pose proof (lowest_first (map change (stops g)) (0 + acquired g)).
    assert (acquired g <= highest (acquired g) (map change (stops g)))
      by (destruct (map change (stops g)); cbn; lia). lia.
  - rewrite Empty by reflexivity. lia.
Qed.

Lemma load_has_begun : forall now, load now <= most * count (fun t => s t <=? now) (flat_map begins some).
Proof.
  intros now. apply load_is_few; [reflexivity|]. intros g j I J F. apply Z.leb_gt in F.
  destruct (Lives g I) as (C & _). exact (nothing_before l es stores s V g C j now J F).
Qed.

Lemma load_is_open : forall now,
  load now <= most * count (fun t => now <? s t + ticks k t) (flat_map finishes some).
Proof.
  intros now. apply load_is_few.
  - intros g I. destruct (Lives g I) as (_ & _ & Len & _). symmetry. exact Len.
  - intros g j I J F. apply Z.ltb_ge in F. destruct (Lives g I) as (C & S & _).
    exact (nothing_after l es stores s V g C S j now J F).
Qed.

Lemma begins_inside : forall t, In t (flat_map begins some) -> known k t = true /\ a <= s t.
Proof.
  intros t I. apply in_flat_map in I as (f & I & J). destruct (Lives f I) as (_ & _ & _ & _ & K & In_).
  split; [apply K; left; exact J|]. apply (In_nth _ _ (named (begins f))) in J as (j & L & <-).
  apply (In_ j L).
Qed.

Lemma finishes_inside : forall t, In t (flat_map finishes some) ->
  known k t = true /\ s t + ticks k t <= a + Z.of_nat n.
Proof.
  intros t I. apply in_flat_map in I as (f & I & J).
  destruct (Lives f I) as (_ & _ & Len & _ & K & In_). split; [apply K; right; exact J|].
  apply (In_nth _ _ (named (finishes f))) in J as (j & L & <-). rewrite <- Len in L.
  apply (In_ j L).
Qed.

Theorem volume_fits : forall ws v room, volume_of k (arcs_of es) some ws = Some v ->
  0 < room -> (forall now, load now <= room) ->
  let slow := shortest_alone k (flat_map begins some) + shortest_alone k (flat_map finishes some) in
  let m := (room - 1) / most in
  v <= room * Z.of_nat n /\
  (room * m * slow <= v -> v + slow * (m * room - most * steps_to m) <= room * Z.of_nat n).
Proof.
  intros ws v room Vol Room Fits slow m.
  pose proof (volume_is_held ws v Vol) as Held.
  assert (All : ticked load a n <= room * Z.of_nat n).
  { unfold ticked. rewrite <- (seq_length n 0) at 2. apply total_most. intros i _. apply Fits. }
  split; [lia|]. intros Enough. unfold slow in *. clear slow.
  set (d := shortest_alone k (flat_map begins some)) in *.
  set (e := shortest_alone k (flat_map finishes some)) in *.
  assert (M : 0 <= m) by (apply Z.div_pos; lia).
  assert (D : 0 <= d) by (unfold d; destruct (shortest_alone_is k (flat_map begins some)); lia).
  assert (E : 0 <= e) by (unfold e; destruct (shortest_alone_is k (flat_map finishes some)); lia).
  assert (Apart : m * (d + e) <= Z.of_nat n) by nia.
  set (rest := Z.to_nat (Z.of_nat n - m * (d + e))).
  assert (N : n = (Z.to_nat m * Z.to_nat d + (rest + Z.to_nat m * Z.to_nat e))%nat).
  { apply Nat2Z.inj. rewrite !Nat2Z.inj_add, !Nat2Z.inj_mul. unfold rest. rewrite !Z2Nat.id by lia.
    lia. }
  pose proof (steps_fit load a (Z.to_nat d) (Z.to_nat e) (Z.to_nat m) rest most room Fits) as S.
  rewrite <- N in S. rewrite !Z2Nat.id in S by lia.
  enough (ticked load a n + (d + e) * (m * room - most * steps_to m) <= room * Z.of_nat n) by lia.
  apply S.
  - intros j x J X. rewrite Nat2Z.inj_mul, Z2Nat.id in X by lia.
    pose proof (shortest_alone_is k (flat_map begins some)) as Alone. fold d in Alone.
    destruct Alone as [Z0|(P & Once & r & Here)].
    + pose proof (load_has_begun x) as B. rewrite Z0, Z.mul_0_r in X.
      enough (count (fun t => s t <=? x) (flat_map begins some) <= 0) by nia.
      unfold count. rewrite <- (Z.mul_0_l (Z.of_nat (length (flat_map begins some)))).
      apply total_most. intros t I. apply begins_inside in I as [_ I].
      destruct (Z.leb_spec (s t) x); lia.
    + pose proof (load_has_begun x) as B.
      pose proof (few_begun k es stores s (flat_map begins some) r d V
        (fun t I => proj1 (begins_inside t I)) Once Here P a x (Z.of_nat j)
        (fun t I => proj2 (begins_inside t I)) ltac:(lia) X). nia.
  - intros j x J X. rewrite Nat2Z.inj_mul, Z2Nat.id in X by lia.
    pose proof (shortest_alone_is k (flat_map finishes some)) as Alone. fold e in Alone.
    destruct Alone as [Z0|(P & Once & r & Here)].
    + pose proof (load_is_open x) as B. rewrite Z0, Z.mul_0_r in X.
      enough (count (fun t => x <? s t + ticks k t) (flat_map finishes some) <= 0) by nia.
      unfold count. rewrite <- (Z.mul_0_l (Z.of_nat (length (flat_map finishes some)))).
      apply total_most. intros t I. apply finishes_inside in I as [_ I].
      destruct (Z.ltb_spec x (s t + ticks k t)); lia.
    + pose proof (load_is_open x) as B.
      pose proof (few_open k es stores s (flat_map finishes some) r e V
        (fun t I => proj1 (finishes_inside t I)) Once Here P (a + Z.of_nat n) x (Z.of_nat j)
        (fun t I => proj2 (finishes_inside t I)) ltac:(lia) X). nia.
Qed.
End Store.

(* The checker is sound: what it accepts bounds the makespan of every plan, and so of every right
   schedule. *)
Theorem volume_bounds_plans : forall counts l es stores gs lives all c,
  check_free l es stores gs lives all && check_volume counts l es all stores lives c = true ->
  bounds counts l es stores (volume_bound c).
Proof.
  intros counts l es stores gs lives all c H s0 first last V0 L0.
  apply andb_true_iff in H as [F C].
  destruct (plan_with_free_edges l es stores gs lives all F s0 V0) as (s & V & Va & L).
  specialize (L counts first last L0). clear s0 V0 L0.
  unfold check_free in F. rewrite !andb_true_iff in F. destruct F as [[[W G] Ls] _].
  unfold check_volume in C. set (k := index_of l) in *. set (i := Z.to_nat (of_store c)) in *.
  set (some := store_lives lives i) in *.
  destruct (nth_error stores i) as [st|] eqn:St; [|discriminate].
  destruct (volume_of k (arcs_of es) some (ways c)) as [v|] eqn:Vol; [|discriminate].
  destruct (least_path (heads l counts all) _) as [head|] eqn:Hd; [|discriminate].
  destruct (least_path (tails l counts all) _) as [tail|] eqn:Tl; [|discriminate].
  destruct (capacity _ st) as [cap|] eqn:Cap; [|discriminate].
  rewrite !andb_true_iff, forallb_forall, !Z.ltb_lt in C.
  destruct C as [[[[[[_ Room] Most] _] _] Settled] Claim]. apply Z.leb_le in Claim.
  set (most := fold_right _ 0 some) in *. set (rm := cap - base _ st) in *.
  set (a := first + head). set (b := last - tail).
  assert (Some_ : forall f, In f some -> In f lives /\ length (begins f) = length (finishes f)).
  { intros f I. apply filter_In in I as [I _]. split; [exact I|]. assert (E := Ls).
    unfold check_lives in E. rewrite andb_true_iff, forallb_forall in E. destruct E as [E _].
    specialize (E f I). rewrite !andb_true_iff in E. apply Nat.eqb_eq, E. }
  destruct (flat_map begins some) as [|t0 ts0] eqn:Firsts; [discriminate|].
  assert (I0 : In t0 (flat_map begins some)) by (rewrite Firsts; left; reflexivity).
  rewrite <- Firsts in *. apply in_flat_map in I0 as (f0 & I0 & J0).
  pose proof (store_checked l es stores gs lives Ls i st f0 St I0) as Cs. fold some k in Cs.
  assert (Fine : forall f, In f some -> check_life k (arcs_of es) f = true).
  { unfold check_store in Cs. rewrite !andb_true_iff, !forallb_forall in Cs. apply Cs. }
  assert (Known : forall f t, In f some -> In t (begins f) \/ In t (finishes f) -> known k t = true).
  { intros f t I. destruct (Some_ f I) as [I' _].
    exact (life_classes l es stores gs lives G Ls f t I'). }
  assert (Inside : forall f j, In f some -> (j < length (begins f))%nat ->
    a <= begin_of s f j /\ end_of l s f j <= b).
  { intros f j I J. destruct (Some_ f I) as [_ Len]. split.
    - assert (It : In (pick j (begins f)) (begins f)) by (apply nth_In; exact J).
      destruct (least_path_is _ _ _ Hd (pick j (begins f))) as (x & Fx & Lx);
        [apply in_flat_map; exists f; split; assumption|].
      pose proof (heads_hold l all stores counts s first last Va L all (incl_refl all) _ _ Fx
        (Known f _ I (or_introl It))). unfold a, begin_of. lia.
    - rewrite Len in J. assert (It : In (pick j (finishes f)) (finishes f)) by (apply nth_In; exact J).
      destruct (least_path_is _ _ _ Tl (pick j (finishes f))) as (x & Fx & Lx);
        [apply in_flat_map; exists f; split; assumption|].
      pose proof (tails_hold l all stores counts s first last Va L all (incl_refl all) _ _ Fx
        (Known f _ I (or_intror It))). unfold b, end_of. lia. }
  assert (Ab : a <= b).
  { apply (In_nth _ _ t0) in J0 as (j & J & _). destruct (Inside f0 j I0 J).
    destruct (ends_later l es stores s V f0 (Fine f0 I0) j J). lia. }
  set (n := Z.to_nat (b - a)). assert (N : a + Z.of_nat n = b) by (unfold n; rewrite Z2Nat.id; lia).
  assert (Ist : In st stores) by (apply (nth_error_In _ _ St)).
  destruct (volume_fits l es stores some s (fun now => held k s now (events _ st)) a n most V)
    with (ws := ways c) (v := v) (room := rm) as [Fits More]; try assumption.
  - intros f I. destruct (Some_ f I) as [_ Len]. rewrite N.
    repeat split; auto; try (apply (Inside f j I); assumption).
    + unfold most. clear - I. induction some as [|g fs IH]; [destruct I|]. cbn [fold_right].
      destruct I as [->|I]; [lia | specialize (IH I); lia].
    + intros t It. exact (Known f t I It).
  - intros now. exact (held_by_lives l es stores gs s G st some now Cs Ist).
  - intros now. pose proof (room _ _ _ _ V st now Ist) as Full. rewrite Cap in Full.
    unfold rm. lia.
  - set (needed := if _ <=? v then _ else v) in Claim.
    assert (Need : needed <= rm * Z.of_nat n).
    { unfold needed. destruct (Z.leb_spec (rm * ((rm - 1) / most) *
        (shortest_alone k (flat_map begins some) + shortest_alone k (flat_map finishes some))) v);
        [apply More; assumption | exact Fits]. }
    assert (D : - Z.of_nat n <= - needed / rm) by (apply Z.div_le_lower_bound; lia).
    unfold a, b in N. clear - Claim D N. lia.
Qed.

Theorem volume_on_the_problem : forall counts l es stores gs lives all c,
  check_free l es stores gs lives all && check_volume counts l es all stores lives c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> volume_bound c <= last - first.
Proof.
  intros counts l es stores gs lives all c H.
  apply bounded_schedules; [|exact (volume_bounds_plans counts l es stores gs lives all c H)].
  apply andb_true_iff in H as [F _]. exact (free_written _ _ _ _ _ _ F).
Qed.
