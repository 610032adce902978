(* Several groups of identical microbatches may be taken to run in the order listed, all at once:
   from any plan of a problem written out to one with the same loads, within the same moments. *)

Require Import ZArith Lia List Bool FMapPositive Permutation.
From Bubbleproof Require Import Definitions Stores Starts SortedStarts Exchange Instances PriceTables
  Loads Groups.
Import ListNotations.
Open Scope Z_scope.

Definition sorted (s : positive -> Z) (g : group) := forall row, In row g ->
  forall i j, (i <= j)%nat -> (j < length row)%nat ->
  s (nth i row (named row)) <= s (nth j row (named row)).

Definition check_groups (l : table) (es : list (edge positive)) (stores : list (store positive))
    (gs : list group) : bool :=
  let m := arcs_of es in
  let css := map (fun st => changes_of (events _ st)) stores in
  distinct (map fst l) (Map.empty unit) && distinct (concat (map (@concat positive) gs)) (Map.empty unit) &&
  well_stored (index_of l) stores && forallb (check_group l es stores m css) gs.

Lemma all_of : forall (row : list positive) d, map (fun j => nth j row d) (seq 0 (length row)) = row.
Proof.
  induction row as [|t row IH]; intros d; [reflexivity|]. cbn. f_equal.
  rewrite <- seq_shift, map_map. apply IH.
Qed.

Lemma some_moments : forall (s d : positive -> Z) ts, exists a b,
  forall t, In t ts -> a <= s t /\ s t + d t <= b.
Proof.
  intros s d. induction ts as [|t ts (a & b & H)]; [exists 0, 0; intros t []|].
  exists (Z.min a (s t)), (Z.max b (s t + d t)). intros u [<-|I]; [lia|]. specialize (H u I). lia.
Qed.

Section OneGroup.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variable g : group.
Let k := index_of l.
Let css := map (fun st => changes_of (events _ st)) stores.
Let n := length (List.hd [] g).
Let pl := places g.
Let cl := rows_by_name g.
Hypothesis Checked : check_group l es stores (arcs_of es) css g = true.
Hypothesis Once : NoDup (map fst l).
Hypothesis Owned : well_stored k stores = true.
Variable s : positive -> Z.
Hypothesis V : plan k es stores s.

Let s0 (x : cell) := s (decode cl x).
Definition resorted (t : positive) := exchanged positive positive n s0 (encode pl t).
Let fine := class_is l es stores css g Checked.
Let undone := decoded l es stores css g Checked.

Lemma resorted_outside : forall t, ~ In t (concat g) -> resorted t = s t.
Proof.
  intros t O. unfold resorted, encode. destruct (Map.find t pl) as [[c j]|] eqn:F; [|reflexivity].
  destruct O. destruct (place_is l es stores css g Checked t c j F) as (row & I & -> & L & E & _).
  apply in_concat. exists row. split; [exact I|]. rewrite <- E. apply nth_In.
  destruct (fine row I) as (Len & _). rewrite Len. exact L.
Qed.

Lemma resorted_at : forall row j, In row g -> (j < n)%nat ->
  resorted (nth j row (named row)) = exchanged positive positive n s0 (Member _ _ (named row) j).
Proof.
  intros row j I L. unfold resorted. f_equal. exact (encoded l es stores css g Checked row j I L).
Qed.

Lemma start_at : forall row j, In row g -> (j < n)%nat ->
  s0 (Member _ _ (named row) j) = s (nth j row (named row)).
Proof.
  intros row j I L. unfold s0. cbn. destruct (fine row I) as (_ & _ & R & _). fold cl in R.
  rewrite R. reflexivity.
Qed.

Lemma resorted_timed : exists a b, timed cell (coded l es g) (exchanged positive positive n s0) a b.
Proof.
  destruct (some_moments s (ticks k) (map fst l)) as (a & b & W). exists a, b.
  apply exchange; [exact Pos.eq_dec | exact (coded_interchangeable l es stores css g Checked)|].
  constructor.
  - intros x I. apply in_map_iff in I as (t & <- & I). unfold s0. cbn. fold k cl.
    rewrite undone. apply W, I.
  - intros x y lag I Ix Iy. apply coded_edge in I as (p & q & I & -> & ->).
    apply in_map_iff in Ix as (p' & Ep & Ip). apply in_map_iff in Iy as (q' & Eq & Iq).
    apply (f_equal (decode cl)) in Ep, Eq. rewrite !undone in Ep, Eq. subst p' q'.
    unfold s0. cbn. fold k cl. rewrite !undone.
    apply (kept _ _ _ _ V p q lag I); apply known_is_task; assumption.
  - intros x y r Ix Iy D Rx Ry. apply in_map_iff in Ix as (t & <- & It).
    apply in_map_iff in Iy as (u & <- & Iu). unfold s0. cbn in Rx, Ry |- *.
    fold k cl in Rx, Ry |- *. rewrite undone in Rx, Ry. rewrite !undone. apply (turns _ _ _ _ V t u r); try apply known_is_task; auto.
    congruence.
Qed.

Definition others : list positive :=
  filter (fun t => match Map.find t pl with Some _ => false | None => true end) (map fst l).

Lemma tasks_parted : Permutation (map fst l) (concat g ++ others).
Proof.
  assert (Mem : forall t, In t (concat g) <-> exists c j, Map.find t pl = Some (c, j)).
  { intros t. split.
    - intros I. apply in_concat in I as (row & I & J). destruct (fine row I) as (Len & _ & _ & _ & P).
      apply (In_nth _ _ (named row)) in J as (j & L & <-). exists (named row), j. apply P. lia.
    - intros (c & j & F).
      destruct (place_is l es stores css g Checked t c j F) as (row & I & -> & L & E & _).
      apply in_concat. exists row. split; [exact I|]. rewrite <- E. apply nth_In.
      destruct (fine row I) as (Len & _). rewrite Len. exact L. }
  assert (Task : forall t, In t (concat g) -> In t (map fst l)).
  { intros t I. apply in_concat in I as (row & I & J). apply known_is_task, (fine row I), J. }
  apply NoDup_Permutation; [exact Once| |].
  - apply NoDup_app_disjoint.
    + assert (D := Checked). unfold check_group in D. rewrite !andb_true_iff in D.
      destruct D as [[D _] _]. apply (distinct_is_once _ _ D).
    + apply NoDup_filter, Once.
    + intros t I J. apply Mem in I as (c & j & F). apply filter_In in J as [_ J].
      rewrite F in J. discriminate.
  - intros t. rewrite in_app_iff. split.
    + intros I. destruct (Map.find t pl) as [[c j]|] eqn:F.
      * left. apply Mem. eauto.
      * right. apply filter_In. rewrite F. split; [exact I | reflexivity].
    + intros [I|I]; [apply Task, I|]. apply filter_In in I. apply I.
Qed.

Lemma class_held : forall row now cs, In row g -> In cs css ->
  total (map (fun t => change_by (changes_at t cs) (ticks k t) now (resorted t)) row) =
  total (map (fun t => change_by (changes_at t cs) (ticks k t) now (s t)) row).
Proof.
  intros row now cs I Ic. destruct (fine row I) as (Len & _ & _ & A & _). set (c := named row) in *.
  set (f := change_by (changes_at c cs) (ticks k c) now).
  assert (Same : forall h : positive -> Z,
    map (fun t => change_by (changes_at t cs) (ticks k t) now (h t)) row = map f (map h row)).
  { intros h. rewrite map_map. apply map_ext_in. intros t J. destruct (A t J) as (_ & D & _ & Ch).
    unfold f. rewrite <- (Ch cs Ic). unfold k. rewrite D. reflexivity. }
  rewrite !Same. apply total_permuted, Permutation_map, Permutation_sym.
  replace (map s row) with (starts_of positive positive n s0 c).
  - replace (map resorted row) with (starts_of positive positive n (exchanged positive positive n s0) c);
      [apply starts_alike|].
    rewrite <- (all_of row c) at 1. rewrite map_map, Len. apply map_ext_in. intros j J.
    apply in_seq in J. symmetry. apply resorted_at; [exact I | lia].
  - rewrite <- (all_of row c) at 1. rewrite map_map, Len. apply map_ext_in. intros j J.
    apply in_seq in J. apply start_at; [exact I | lia].
Qed.

Lemma resorted_held : forall st now, In st stores ->
  held k resorted now (events _ st) = held k s now (events _ st).
Proof.
  intros st now I. assert (O : forall e, In e (events _ st) -> In (owner _ e) (map fst l)).
  { intros e J. unfold well_stored in Owned. rewrite forallb_forall in Owned.
    specialize (Owned st I). rewrite forallb_forall in Owned. apply known_is_task, Owned, J. }
  rewrite !(held_by_task k _ now (map fst l) Once _ O).
  rewrite !(total_permuted _ _ (Permutation_map _ tasks_parted)), !map_app, !total_app. f_equal.
  - assert (In_ : incl g g) by apply incl_refl. revert In_. generalize g at 1 3 4 as rows.
    induction rows as [|row rows IH]; intros In_; [reflexivity|]. cbn [concat].
    rewrite !map_app, !total_app. f_equal.
    + apply class_held; [apply In_; left; reflexivity|].
      apply (in_map (fun st => changes_of (events _ st))), I.
    + apply IH. intros r J. apply In_. right. exact J.
  - f_equal. apply map_ext_in. intros t J. apply filter_In in J as [_ J].
    unfold resorted, encode. destruct (Map.find t pl); [discriminate | reflexivity].
Qed.

Lemma resorted_plan : plan k es stores resorted.
Proof.
  destruct resorted_timed as (a & b & W). constructor.
  - intros x y lag I Kx Ky. apply known_is_task in Kx, Ky.
    pose proof (Starts.kept _ _ _ _ _ W (encode pl x) (encode pl y) lag
      (in_map (encoded_edge g) _ _ I) (in_map _ _ _ Kx) (in_map _ _ _ Ky)) as E.
    cbn in E. fold k cl in E. rewrite undone in E. exact E.
  - intros t u r Kt Ku D Rt Ru. apply known_is_task in Kt, Ku.
    pose proof (Starts.turns _ _ _ _ _ W (encode pl t) (encode pl u) r
      (in_map _ _ _ Kt) (in_map _ _ _ Ku)) as E.
    cbn in E. fold k cl in E. rewrite !undone in E. apply E; try assumption.
    intros Same. apply (f_equal (decode cl)) in Same. rewrite !undone in Same. contradiction.
  - intros st now I. rewrite resorted_held by exact I. exact (room _ _ _ _ V st now I).
Qed.

Lemma resorted_lies : forall counts first last, lies k counts s first last ->
  lies k counts resorted first last.
Proof.
  intros counts first last L t K C. unfold resorted, encode.
  destruct (Map.find t pl) as [[c j]|] eqn:F; [|exact (L t K C)].
  destruct (place_is l es stores css g Checked t c j F) as (row & I & -> & Lj & E & _).
  destruct (comes_from positive positive n s0 (named row) j Lj) as (i & Li & ->).
  rewrite start_at by assumption. destruct (fine row I) as (Len & _ & _ & A & _).
  destruct (A (nth i row (named row))) as (Ki & Di & Si & _); [apply nth_In; lia|].
  destruct (A t) as (_ & Dt & St & _); [rewrite <- E; apply nth_In; lia|].
  fold k in Di, Si, Dt, St. rewrite Dt, <- Di. apply (L _ Ki). unfold counted in *.
  rewrite Si, <- St. exact C.
Qed.

Lemma resorted_sorted : sorted resorted g.
Proof.
  intros row I i j Lij Lj. destruct (fine row I) as (Len & _).
  rewrite !resorted_at by (assumption || lia).
  apply (in_index_order positive positive n s0); [exact Lij | lia].
Qed.
End OneGroup.

(* ---- All groups. ---- *)

Lemma later_once : forall a b : list positive, NoDup (a ++ b) -> NoDup b.
Proof. induction a as [|x a IH]; intros b N; [exact N|]. inversion N. apply IH. assumption. Qed.

Lemma both_once : forall (a b : list positive) t, NoDup (a ++ b) -> In t a -> In t b -> False.
Proof.
  induction a as [|x a IH]; intros b t N I J; [destruct I|]. inversion N as [|? ? O N']; subst.
  destruct I as [->|I]; [apply O, in_or_app; right; exact J | exact (IH b t N' I J)].
Qed.

Theorem in_order_of_groups : forall l es stores gs, check_groups l es stores gs = true ->
  forall s, plan (index_of l) es stores s -> exists s', plan (index_of l) es stores s' /\
    (forall counts first last, lies (index_of l) counts s first last ->
      lies (index_of l) counts s' first last) /\
    (forall st now, In st stores ->
      held (index_of l) s' now (events _ st) = held (index_of l) s now (events _ st)) /\
    forall g, In g gs -> sorted s' g.
Proof.
  intros l es stores gs H s V. unfold check_groups in H. rewrite !andb_true_iff in H.
  destruct H as [[[Once Apart] Owned] Gs]. apply distinct_is_once in Once as [Once _].
  apply distinct_is_once in Apart as [Apart _]. rewrite forallb_forall in Gs.
  enough (exists s', plan (index_of l) es stores s' /\
    (forall counts first last, lies (index_of l) counts s first last ->
      lies (index_of l) counts s' first last) /\
    (forall st now, In st stores ->
      held (index_of l) s' now (events _ st) = held (index_of l) s now (events _ st)) /\
    forall g, In g gs -> sorted s' g) by assumption.
  induction gs as [|g gs IH].
  - exists s. split; [exact V|]. split; [auto|]. split; [auto | intros g []].
  - cbn in Apart. assert (Rest := later_once _ _ Apart).
    destruct (IH Rest (fun x I => Gs x (or_intror I))) as (s1 & V1 & L1 & H1 & S1).
    assert (C := Gs g (or_introl eq_refl)). exists (resorted g s1). split; [|split; [|split]].
    + exact (resorted_plan l es stores g C Once Owned s1 V1).
    + intros counts first last L. apply (resorted_lies l es stores g C), L1, L.
    + intros st now I. rewrite (resorted_held l es stores g C Once Owned s1 st now I). exact (H1 st now I).
    + intros g' [<-|I]; [exact (resorted_sorted l es stores g C s1)|].
      assert (elsewhere : forall row t, In row g' -> In t row -> ~ In t (concat g)).
      { intros row t Ir It J. apply (both_once (concat g) (concat (map (@concat positive) gs)) t Apart J).
        apply in_concat. exists (concat g'). split; [apply in_map, I|].
        apply in_concat. exists row. split; assumption. }
      intros row Ir i j Lij Lj. rewrite !(resorted_outside l es stores g C s1).
      * exact (S1 g' I row Ir i j Lij Lj).
      * apply (elsewhere row); [exact Ir | apply nth_In; lia].
      * apply (elsewhere row); [exact Ir | apply nth_In; lia].
Qed.
