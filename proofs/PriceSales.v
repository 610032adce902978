(* No more is paid for priced ticks and units of stores than there is for sale.

   A resource is busy one task at a time, and its prices are not negative (`tolls_sold`). A store's
   load above its base load is never more than its room, so tick by tick what changes of it pay is
   no more than the price of its room (`stores_sold`). *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances PriceTables
  PricePayments Prices.
Import ListNotations.
Open Scope Z_scope.

Section Sales.

Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (s : positive -> Z) (first : Z).
Let k := index_of l.
Hypothesis V : plan k es stores s.
Let u t := s t - first.

Variable nodes : list positive.
Hypothesis Once : NoDup nodes.
Hypothesis Fine : forall t, In t nodes -> known k t = true /\ 0 <= ticks k t.

Lemma one_resource : forall r m, (forall q, In q m -> 0 <= q) ->
  total (map (fun t => if existsb (Z.eqb r) (sites k t)
    then upto m (u t + ticks k t) - upto m (u t) else 0) nodes) <= total m.
Proof.
  intros r m P. set (has t := existsb (Z.eqb r) (sites k t)).
  set (here := filter has nodes).
  set (s' t := upto m (u t)). set (d' t := upto m (u t + ticks k t) - upto m (u t)).
  replace (total _) with (busy positive d' here).
  2: { unfold here. clear. induction nodes as [|t ns IH]; [reflexivity|]. cbn. unfold has, d' in *.
       destruct (existsb _ _); cbn; rewrite IH; lia. }
  destruct (upto_within m 0 P) as [_ T]. assert (T0 : 0 <= total m) by (apply total_is, P).
  destruct here as [|x rest] eqn:Here; [exact T0|]. rewrite <- Here in *.
  rewrite <- (Z.sub_0_r (total m)).
  apply (packing positive s' d'); [rewrite Here; discriminate | apply NoDup_filter, Once | |].
  - intros t I. apply filter_In in I as [I _]. destruct (Fine t I) as [_ D].
    unfold between, s', d'. pose proof (upto_within m (u t) P).
    pose proof (upto_within m (u t + ticks k t) P).
    pose proof (upto_grows m (u t) (u t + ticks k t) P ltac:(lia)). lia.
  - intros t w It Iw D. apply filter_In in It as [It Rt]. apply filter_In in Iw as [Iw Rw].
    apply existsb_exists in Rt as (r1 & Rt & E1). apply existsb_exists in Rw as (r2 & Rw & E2).
    apply Z.eqb_eq in E1, E2. subst r1 r2. destruct (Fine t It) as [Kt _], (Fine w Iw) as [Kw _].
    assert (A := turns k es stores s V t w r Kt Kw D Rt Rw). unfold apart in A.
    unfold disjoint, s', d', u. destruct A as [A|A]; [left|right].
    + pose proof (upto_grows m (s t - first + ticks k t) (s w - first) P ltac:(lia)). lia.
    + pose proof (upto_grows m (s w - first + ticks k w) (s t - first) P ltac:(lia)). lia.
Qed.

Lemma tolls_sold : forall ms rs, (forall m q, In m ms -> In q m -> 0 <= q) ->
  total (map (fun t => toll (map (fun r => existsb (Z.eqb r) (sites k t)) rs) ms
    (ticks k t) (u t)) nodes) <= resource_sales ms.
Proof.
  unfold resource_sales. induction ms as [|m ms IH]; intros qs P; cbn [map total].
  - rewrite total_zeros; [apply Z.le_refl|]. intros t. destruct qs; reflexivity.
  - assert (Pm : forall q, In q m -> 0 <= q) by (intros q I; apply (P m); [left|]; auto).
    assert (Ps : forall m' q, In m' ms -> In q m' -> 0 <= q)
      by (intros m' q I; apply P; right; exact I).
    destruct qs as [|r qs].
    + specialize (IH [] Ps). rewrite total_zeros in * by reflexivity.
      pose proof (total_is m Pm). lia.
    + cbn [map toll]. rewrite total_plus. specialize (IH qs Ps). pose proof (one_resource r m Pm).
      lia.
Qed.

(* A store's load, tick by tick. *)
Section OneStore.
Variable evs : list (event positive).
Variable m : prices.
Hypothesis P : forall q, In q m -> 0 <= q.

Definition worth (e : event positive) := delta _ e * later m 0 (moment_of k s e - first).

Fixpoint weighed (m : prices) (i : Z) :=
  match m with [] => 0 | q :: rest => q * held k s (first + i) evs + weighed rest (i + 1) end.

Lemma by_tick : forall n i,
  total (map (fun e => delta _ e * later n i (moment_of k s e - first)) evs) = weighed n i.
Proof.
  induction n as [|q n IH]; intros i; cbn [later weighed].
  - clear. induction evs as [|e rest IH]; [reflexivity|]. cbn [map total]. rewrite IH. lia.
  - rewrite <- IH. clear. induction evs as [|e rest IH]; cbn [map total held]; [lia|].
    rewrite IH. destruct (Z.leb_spec (moment_of k s e - first) i),
      (Z.leb_spec (moment_of k s e) (first + i)); lia.
Qed.

Lemma weighed_most : forall most, (forall now, held k s now evs <= most) ->
  total (map worth evs) <= most * total m.
Proof.
  intros most B. unfold worth. rewrite by_tick. generalize 0. revert P. clear - B.
  induction m as [|q n IH]; intros P i; cbn [weighed total]; [lia|].
  specialize (IH (fun x I => P x (or_intror I)) (i + 1)). specialize (B (first + i)).
  pose proof (P q (or_introl eq_refl)). nia.
Qed.

End OneStore.

Variable of : Map.t nat.
Hypothesis Of : forall t, (exists n, Map.find t of = Some n) <-> In t nodes.

Lemma changes_sold : forall m, (forall q, In q m -> 0 <= q) -> forall evs,
  total (map (fun t => moved (changes_at t (changes_of evs)) m (ticks k t) (u t)) nodes) +
  unavoidable of evs m <= total (map (worth m) evs).
Proof.
  intros m P. induction evs as [|e evs IH].
  - rewrite total_zeros; [cbn; lia|]. intros t. unfold changes_at. cbn. rewrite Map.gempty.
    reflexivity.
  - set (x := worth m e). set (g t := moved (changes_at t (changes_of evs)) m (ticks k t) (u t)).
    assert (X : x = delta _ e * (total m - upto m (moment_of k s e - first))).
    { unfold x, worth. rewrite later_is, Z.sub_0_r. reflexivity. }
    replace (total (map (fun t => moved (changes_at t (changes_of (e :: evs))) m (ticks k t) (u t))
      nodes)) with (total (map (fun t => if Pos.eq_dec t (owner _ e) then x + g t else g t) nodes)).
    + rewrite add_once by exact Once. fold g in IH. cbn [map total unavoidable]. fold x.
      destruct (in_dec Pos.eq_dec (owner _ e) nodes) as [J|J].
      * apply Of in J as [n ->]. lia.
      * destruct (Map.find (owner _ e) of) as [n|] eqn:F; [destruct J; apply Of; eauto|].
        enough (Z.min 0 (delta _ e) * total m <= x) by lia. rewrite X.
        pose proof (upto_within m (moment_of k s e - first) P). nia.
    + f_equal. apply map_ext. intros t. rewrite changes_first.
      destruct (Pos.eq_dec t (owner _ e)) as [->|D]; [|reflexivity].
      cbn [moved]. unfold g. rewrite X. unfold moment_of, u.
      replace (s (owner _ e) - first + (if at_end _ e then ticks k (owner _ e) else 0)) with
        (s (owner _ e) + (if at_end _ e then ticks k (owner _ e) else 0) - first) by lia.
      reflexivity.
Qed.

Lemma stores_sold : forall sts lams, (forall st, In st sts -> In st stores) ->
  (forall st, In st sts -> exists c, capacity _ st = Some c /\ base _ st <= c) ->
  (forall m q, In m lams -> In q m -> 0 <= q) ->
  total (map (fun t => all_moved (map (changes_at t)
    (map (fun st => changes_of (events _ st)) sts)) lams (ticks k t) (u t)) nodes) +
  all_unavoidable of sts lams <= store_sales sts lams.
Proof.
  induction sts as [|st sts IH]; intros ms In_ Cap P; cbn [map all_moved all_unavoidable store_sales].
  - rewrite total_zeros by reflexivity. cbn. lia.
  - destruct ms as [|m ms]; [rewrite total_zeros by reflexivity; cbn; lia|].
    rewrite total_plus. specialize (IH ms (fun x I => In_ x (or_intror I))
      (fun x I => Cap x (or_intror I)) (fun x q I => P x q (or_intror I))).
    assert (Pm := fun q => P m q (or_introl eq_refl)).
    pose proof (changes_sold m Pm (events _ st)) as Sold.
    destruct (Cap st (or_introl eq_refl)) as (c & C & B).
    pose proof (weighed_most (events _ st) m Pm (c - base _ st)) as Most.
    unfold room_in. rewrite C. enough (forall now, held k s now (events _ st) <= c - base _ st).
    { specialize (Most H). fold (worth m) in Most. lia. }
    intros now. pose proof (room k es stores s V st now (In_ st (or_introl eq_refl))) as R.
    rewrite C in R. lia.
Qed.
End Sales.

Lemma stores_are : forall stores tariffs sts, stores_of stores tariffs = Some sts ->
  (forall st, In st sts -> In st stores) /\
  (forall st, In st sts -> exists c, capacity _ st = Some c /\ base _ st <= c).
Proof.
  intros stores. induction tariffs as [|x l IH]; intros sts H; cbn in H.
  - injection H as <-. split; intros st [].
  - destruct (nth_error stores (Z.to_nat (priced x))) as [st|] eqn:N; [|discriminate].
    destruct (stores_of stores l) as [more|]; [|discriminate].
    destruct (capacity _ st) as [c|] eqn:C; [|discriminate].
    destruct ((0 <=? priced x) && (base _ st <=? c)) eqn:B; [|discriminate].
    injection H as <-. apply andb_true_iff in B as [_ B]. apply Z.leb_le in B.
    destruct (IH more eq_refl) as [I J]. split; intros w [<-|K]; eauto.
    apply nth_error_In in N. exact N.
Qed.

Lemma prices_are : forall h tariffs ms, prices_of h tariffs = Some ms ->
  forall m q, In m ms -> In q m -> 0 <= q.
Proof.
  intros h. induction tariffs as [|x l IH]; intros ms H m q Im Iq; cbn in H.
  - injection H as <-. destruct Im.
  - destruct (expand 0 0 0 h (steps x)) as [n|]; [|discriminate].
    destruct (prices_of h l) as [more|]; [|discriminate].
    destruct (not_negative n) eqn:N; [|discriminate]. injection H as <-.
    destruct Im as [<-|Im]; [|exact (IH more eq_refl m q Im Iq)].
    unfold not_negative in N. rewrite forallb_forall in N. apply Z.leb_le, N, Iq.
Qed.
