(* Edges that index order and memory allow to ask for, justified by a checker: what bounds the plans
   that keep them bounds every schedule of the problem that keeps its stores' capacities. Lemmas 1
   and 2 of verify/certificates/index_order.py, for all groups and stores at once. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances Bounds PriceTables Loads
  Groups InOrder Lifecycles OneMachine.
Import ListNotations.
Open Scope Z_scope.

Definition same_row (a b : list positive) : bool :=
  if list_eq_dec Pos.eq_dec a b then true else false.
Definition is_class (gs : list group) (row : list positive) := existsb (same_row row) (concat gs).

Fixpoint waits (row : list positive) : list (edge positive) :=
  match row with a :: (b :: _) as rest => (a, b, 0) :: waits rest | _ => [] end.
Definition order_edges (k : index) (gs : list group) : list (edge positive) :=
  flat_map (fun row => if 0 <=? ticks k (named row) then waits row else []) (concat gs).

Definition store_lives (lives : list life) (i : nat) :=
  filter (fun f => Nat.eqb (in_store f) i) lives.

Definition check_lives (k : index) (m : arcs) (l : table) (stores : list (store positive))
    (gs : list group) (lives : list life) : bool :=
  forallb (fun f => is_class gs (begins f) && is_class gs (finishes f) &&
    Nat.eqb (length (begins f)) (length (finishes f)) &&
    match nth_error stores (in_store f) with Some _ => true | None => false end) lives &&
  forallb (fun ist => match store_lives lives (fst ist) with
    | [] => true
    | some => check_store k m l (snd ist) some end) (combine (seq 0 (length stores)) stores).

Definition all_memory_edges (stores : list (store positive)) (lives : list life) :=
  flat_map (fun f => match nth_error stores (in_store f) with
    | Some st => memory_edges st f | None => [] end) lives.

(* Everything that is sure, from which `all` may be taken. *)
Definition check_free (l : table) (es : list (edge positive)) (stores : list (store positive))
    (gs : list group) (lives : list life) (all : list (edge positive)) : bool :=
  let k := index_of l in
  let sure := arcs_of (es ++ order_edges k gs ++ all_memory_edges stores lives) in
  well_written l stores && check_groups l es stores gs &&
  check_lives k (arcs_of es) l stores gs lives &&
  forallb (fun e => let '(a, b, lag) := e in has_edge sure a b lag) all.

Lemma waits_are : forall row a b lag, In (a, b, lag) (waits row) ->
  lag = 0 /\ exists j, (S j < length row)%nat /\ forall d, a = nth j row d /\ b = nth (S j) row d.
Proof.
  induction row as [|x [|y row] IH]; intros a b lag I; try destruct I.
  - injection H as <- <- <-. split; [reflexivity|]. exists 0%nat. cbn. split; [lia|]. intros d.
    split; reflexivity.
  - destruct (IH a b lag H) as (E & j & L & N). split; [exact E|]. exists (S j). cbn in *.
    split; [lia|]. intros d. apply N.
Qed.

Lemma total_least : forall {A} (f : A -> Z) l b, (forall x, In x l -> b <= f x) ->
  b * Z.of_nat (length l) <= total (map f l).
Proof.
  intros A f. induction l as [|x l IH]; intros b H; cbn [map total length]; [lia|].
  specialize (IH b (fun y I => H y (or_intror I))). pose proof (H x (or_introl eq_refl)). lia.
Qed.

Lemma total_has : forall {A} (f : A -> Z) l x, (forall y, In y l -> 0 <= f y) -> In x l ->
  f x <= total (map f l).
Proof.
  intros A f. induction l as [|y l IH]; intros x H I; [destruct I|]. cbn [map total].
  pose proof (H y (or_introl eq_refl)). pose proof (total_least f l 0 (fun z J => H z (or_intror J))).
  destruct I as [->|I]; [lia|]. specialize (IH x (fun z J => H z (or_intror J)) I). lia.
Qed.

Section Free.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (gs : list group) (lives : list life).
Let k := index_of l.
Variable s : positive -> Z.
Hypothesis Written : well_written l stores = true.
Hypothesis Groups_ : check_groups l es stores gs = true.
Hypothesis Lives : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.
Hypothesis Sorted : forall g, In g gs -> sorted s g.

Lemma class_given : forall row, is_class gs row = true -> exists g, In g gs /\ In row g.
Proof.
  intros row C. apply existsb_exists in C as (row' & I & E). unfold same_row in E.
  destruct (list_eq_dec Pos.eq_dec row row') as [<-|]; [|discriminate].
  apply in_concat in I as (g & Ig & Ir). exists g. split; assumption.
Qed.

Lemma class_alike : forall row, is_class gs row = true ->
  forall t, In t row -> known k t = true /\ ticks k t = ticks k (named row) /\
    sites k t = sites k (named row).
Proof.
  intros row C t It. destruct (class_given row C) as (g & Ig & Ir).
  assert (H := Groups_). unfold check_groups in H. rewrite !andb_true_iff, forallb_forall in H.
  destruct H as [_ H].
  destruct (class_is l es stores _ g (H g Ig) row Ir) as (_ & _ & _ & A & _).
  destruct (A t It) as (K & D & S & _). tauto.
Qed.

Lemma class_sorted : forall row, is_class gs row = true ->
  forall i j, (i <= j)%nat -> (j < length row)%nat -> s (pick i row) <= s (pick j row).
Proof.
  intros row C. destruct (class_given row C) as (g & Ig & Ir). exact (Sorted g Ig row Ir).
Qed.

Lemma order_edge_kept : forall a b lag, In (a, b, lag) (order_edges k gs) ->
  s a + ticks k a + lag <= s b.
Proof.
  intros a b lag I. apply in_flat_map in I as (row & Ir & I).
  destruct (Z.leb_spec 0 (ticks k (named row))) as [D|]; [|destruct I].
  apply waits_are in I as (-> & j & L & N). destruct (N (named row)) as [Ea Eb].
  assert (C : is_class gs row = true).
  { apply existsb_exists. exists row. split; [exact Ir|]. unfold same_row.
    destruct (list_eq_dec Pos.eq_dec row row); congruence. }
  pose proof (class_alike row C) as Same. pose proof (class_sorted row C j (S j) ltac:(lia) L) as Up.
  unfold pick in Up. rewrite <- Ea, <- Eb in Up.
  assert (Ia : In a row) by (rewrite Ea; apply nth_In; lia).
  assert (Ib : In b row) by (rewrite Eb; apply nth_In; lia).
  destruct (Same a Ia) as (Ka & Da & Sa), (Same b Ib) as (Kb & Db & Sb).
  assert (NE : a <> b).
  { intros E. assert (H := Groups_). unfold check_groups in H. rewrite !andb_true_iff in H.
    destruct H as [[[_ Apart] _] _]. apply distinct_is_once in Apart as [Apart _].
    apply in_concat in Ir as (g & Ig & Ir).
    assert (Once : NoDup row).
    { revert Apart. apply in_split in Ig as (g1 & g2 & ->). apply in_split in Ir as (r1 & r2 & ->).
      rewrite map_app, concat_app. cbn [map concat]. rewrite concat_app. cbn [concat]. intros H.
      apply later_once in H. rewrite <- !app_assoc in H. apply later_once in H.
      clear - H. induction row as [|x row IH]; constructor.
      - inversion H as [|? ? O N]; subst. intros J. apply O, in_or_app. left. exact J.
      - inversion H. apply IH. assumption. }
    rewrite Ea, Eb in E. apply (proj1 (NoDup_nth row (named row)) Once) in E; lia. }
  assert (HH : sites k a <> []) by (apply (all_housed l stores Written), known_is_task, Ka).
  destruct (sites k a) as [|r rs] eqn:Ra; [congruence|].
  pose proof (turns _ _ _ _ V a b r Ka Kb NE) as A. rewrite Ra, Sb, <- Sa in A.
  specialize (A (or_introl eq_refl) (or_introl eq_refl)). unfold apart in A. lia.
Qed.

Lemma same_held : forall st some now, check_store k (arcs_of es) l st some = true ->
  In st stores -> held k s now (events _ st) = held k s now (flat_map all_events some).
Proof.
  intros st some now C I. unfold check_store in C. apply andb_true_iff in C as [_ C].
  assert (H := Groups_). unfold check_groups in H.
  rewrite !andb_true_iff in H. destruct H as [[[Once _] Owned] _].
  apply distinct_is_once in Once as [Once _]. apply told_held; [exact Once | | exact C].
  unfold well_stored in Owned. rewrite forallb_forall in Owned.
  specialize (Owned st I). rewrite forallb_forall in Owned. exact Owned.
Qed.

Lemma store_checked : forall i st f, nth_error stores i = Some st -> In f (store_lives lives i) ->
  check_store k (arcs_of es) l st (store_lives lives i) = true.
Proof.
  intros i st f St I. assert (L := Lives). unfold check_lives in L.
  rewrite andb_true_iff, !forallb_forall in L. destruct L as [_ L].
  specialize (L (i, st)). cbn [fst snd] in L.
  destruct (store_lives lives i) as [|f' rest]; [destruct I|]. apply L.
  assert (Ln : (i < length stores)%nat) by (apply nth_error_Some; congruence).
  replace (i, st) with (nth i (combine (seq 0 (length stores)) stores) (0%nat, st)).
  - apply nth_In. rewrite combine_length, seq_length. lia.
  - rewrite combine_nth by apply seq_length. rewrite seq_nth by exact Ln.
    rewrite (nth_error_nth _ _ _ St). reflexivity.
Qed.

Lemma held_by_lives : forall st some now, check_store k (arcs_of es) l st some = true ->
  In st stores -> held k s now (events _ st) =
  total (map (fun f => total (map (fun j => level l s f j now) (numbers f))) some).
Proof.
  intros st some now C I. rewrite (same_held st some now C I). rewrite held_flat. f_equal.
  apply map_ext. intros f. unfold all_events. apply held_flat.
Qed.

Lemma life_classes : forall f t, In f lives -> In t (begins f) \/ In t (finishes f) ->
  known k t = true.
Proof.
  intros f t If It. assert (L := Lives). unfold check_lives in L.
  rewrite andb_true_iff, !forallb_forall in L. destruct L as [L _]. specialize (L f If).
  rewrite !andb_true_iff in L. destruct L as [[[B F] _] _].
  destruct It as [It|It]; [apply (class_alike _ B t It) | apply (class_alike _ F t It)].
Qed.

(* One life holds no more than its store does. *)
Lemma held_by_one : forall f st now, In f lives -> nth_error stores (in_store f) = Some st ->
  check_life k (arcs_of es) f = true /\
  (forall j, In j (numbers f) -> 0 <= level l s f j now) /\
  total (map (fun j => level l s f j now) (numbers f)) <= held k s now (events _ st).
Proof.
  intros f st now If St. set (some := store_lives lives (in_store f)).
  assert (Isome : In f some) by (apply filter_In; split; [exact If | apply Nat.eqb_refl]).
  pose proof (store_checked (in_store f) st f St Isome) as Cs. fold some in Cs.
  assert (Fines : forall f', In f' some -> check_life k (arcs_of es) f' = true).
  { unfold check_store in Cs. rewrite !andb_true_iff, !forallb_forall in Cs. apply Cs. }
  assert (Never : forall f' x, In f' some -> In x (numbers f') -> 0 <= level l s f' x now).
  { intros f' x I' Ix. apply in_seq in Ix.
    apply (never_below l es stores s V f' (Fines f' I')). lia. }
  split; [exact (Fines f Isome)|]. split; [intros j; exact (Never f j Isome)|].
  rewrite (held_by_lives st some now Cs (nth_error_In _ _ St)).
  apply (total_has (fun f' => total (map (fun x => level l s f' x now) (numbers f'))) some f);
    [|exact Isome]. intros f' I'.
  apply (total_least (fun x => level l s f' x now) (numbers f') 0). intros x Ix. auto.
Qed.

(* Where a life acquires more than its store has room for, there is no plan. *)
Theorem acquired_fits : forall f st c, In f lives -> nth_error stores (in_store f) = Some st ->
  capacity _ st = Some c -> begins f <> [] -> base _ st + acquired f <= c.
Proof.
  intros f st c If St Cap Some_. assert (L : (0 < length (begins f))%nat).
  { destruct (begins f); [congruence | cbn; lia]. }
  destruct (held_by_one f st (begin_of s f 0) If St) as (Fine & Never & All).
  pose proof (room _ _ _ _ V st (begin_of s f 0) (nth_error_In _ _ St)) as Most.
  rewrite Cap in Most. pose proof (level_at_begin l es stores s V f Fine 0 L) as A.
  pose proof (total_has (fun j => level l s f j (begin_of s f 0)) (numbers f) 0%nat Never
    ltac:(apply in_seq; lia)) as B. cbn beta in B. lia.
Qed.

Theorem memory_edge_kept : forall a b lag, In (a, b, lag) (all_memory_edges stores lives) ->
  s a + ticks k a + lag <= s b.
Proof.
  intros a b lag I. apply in_flat_map in I as (f & If & I).
  destruct (nth_error stores (in_store f)) as [st|] eqn:St; [|destruct I].
  unfold memory_edges in I. destruct (room_for f st) as [n|] eqn:Room; [|destruct I].
  apply in_map_iff in I as (i & E & I). injection E as <- <- <-. apply in_seq in I.
  unfold room_for in Room. destruct (capacity _ st) as [c|] eqn:Cap; [|discriminate].
  destruct ((0 <=? c - base _ st - acquired f) && (0 <? kept_at_least f)) eqn:Pos_; [|discriminate].
  apply andb_true_iff in Pos_ as [P1 P2]. apply Z.leb_le in P1. apply Z.ltb_lt in P2.
  injection Room as Room. assert (L := Lives). unfold check_lives in L.
  rewrite andb_true_iff, !forallb_forall in L. destruct L as [Each Stores_].
  specialize (Each f If). rewrite !andb_true_iff in Each. destruct Each as [[[Cb Cf] Len] _].
  apply Nat.eqb_eq in Len.
  pose proof (class_sorted _ Cb) as UpB. pose proof (class_sorted _ Cf) as UpF.
  pose proof (class_alike _ Cf) as SameF.
  assert (Ist : In st stores) by (apply (nth_error_In _ _ St)).
  set (h := kept_at_least f) in *. set (j := (i + n)%nat) in *.
  assert (Lj : (j < length (begins f))%nat) by lia.
  set (now := begin_of s f j). change (s (pick j (begins f))) with now.
  change (s (pick i (finishes f)) + ticks k (pick i (finishes f))) with (end_of l s f i).
  rewrite Z.add_0_r. destruct (Z_le_gt_dec (end_of l s f i) now) as [Done|Late]; [exact Done|].
  exfalso. destruct (held_by_one f st now If St) as (Fine & Never & All).
  pose proof (room _ _ _ _ V st now Ist) as Most. rewrite Cap in Most.
  assert (N : numbers f = seq 0 i ++ seq i n ++ seq j 1 ++ seq (S j) (length (begins f) - S j)).
  { unfold numbers. replace (length (begins f)) with (i + (n + (1 + (length (begins f) - S j))))%nat
      at 1 by lia. rewrite !seq_app. cbn [Nat.add]. fold j.
    replace (j + 1)%nat with (S j) by lia. reflexivity. }
  rewrite N, !map_app, !total_app in All.
  assert (Low : forall from len, (from + len <= length (begins f))%nat ->
    0 <= total (map (fun x => level l s f x now) (seq from len))).
  { intros from len L'. apply (total_least _ _ 0). intros x Ix. apply Never.
    apply in_seq in Ix. apply in_seq. lia. }
  pose proof (Low 0%nat i ltac:(lia)) as L1.
  pose proof (Low (S j) (length (begins f) - S j)%nat ltac:(lia)) as L3.
  assert (L2 : h * Z.of_nat n <= total (map (fun x => level l s f x now) (seq i n))).
  { rewrite <- (seq_length n i) at 1. apply total_least. intros x Ix. apply in_seq in Ix.
    apply (level_within l es stores s V f Fine); [lia| |].
    - apply UpB; lia.
    - enough (end_of l s f i <= end_of l s f x) by lia. unfold end_of. fold k.
      destruct (SameF (pick i (finishes f))) as (_ & Di & _); [apply nth_In; lia|].
      destruct (SameF (pick x (finishes f))) as (_ & Dx & _); [apply nth_In; lia|].
      rewrite Di, Dx. specialize (UpF i x ltac:(lia) ltac:(lia)). lia. }
  assert (La : level l s f j now = acquired f)
    by exact (level_at_begin l es stores s V f Fine j Lj).
  cbn [seq map total] in All. rewrite La in All.
  assert (Big : c - base _ st - acquired f < h * Z.of_nat n).
  { rewrite <- Room. pose proof (Z.mul_succ_div_gt (c - base _ st - acquired f) h P2).
    pose proof (Z.div_pos (c - base _ st - acquired f) h P1 P2).
    rewrite Z2Nat.id by lia. lia. }
  lia.
Qed.
End Free.

(* From a plan of the problem to one within the same moments that keeps the free edges too. *)
Theorem plan_with_free_edges : forall l es stores gs lives all,
  check_free l es stores gs lives all = true -> forall s, plan (index_of l) es stores s ->
  exists s', plan (index_of l) es stores s' /\ plan (index_of l) all stores s' /\
    forall counts first last, lies (index_of l) counts s first last ->
      lies (index_of l) counts s' first last.
Proof.
  intros l es stores gs lives all H s0 V0. unfold check_free in H.
  rewrite !andb_true_iff, forallb_forall in H. destruct H as [[[W G] Ls] All].
  destruct (in_order_of_groups l es stores gs G s0 V0) as (s & V & L & _ & Sorted).
  exists s. split; [exact V|]. split; [|exact L].
  constructor; [|exact (turns _ _ _ _ V) | exact (room _ _ _ _ V)].
  intros a b lag I Ka Kb. specialize (All _ I). cbn in All. apply has_edge_is in All.
  apply in_app_or in All as [All|All]; [exact (kept _ _ _ _ V a b lag All Ka Kb)|].
  apply in_app_or in All as [All|All].
  - eapply (order_edge_kept l es stores gs lives s); eassumption.
  - eapply (memory_edge_kept l es stores gs lives s); eassumption.
Qed.

(* So a bound on the plans that keep free edges too is one on all. *)
Theorem free_edges : forall l es stores gs lives all,
  check_free l es stores gs lives all = true ->
  forall counts least, bounds counts l all stores least -> bounds counts l es stores least.
Proof.
  intros l es stores gs lives all H counts least B s0 first last V0 L0.
  destruct (plan_with_free_edges l es stores gs lives all H s0 V0) as (s & _ & V & L).
  exact (B s first last V (L counts first last L0)).
Qed.

Lemma free_written : forall l es stores gs lives all,
  check_free l es stores gs lives all = true -> well_written l stores = true.
Proof.
  intros l es stores gs lives all H. unfold check_free in H. rewrite !andb_true_iff in H. apply H.
Qed.

Theorem one_machine_on_the_problem : forall counts l es stores gs lives all c,
  check_free l es stores gs lives all && check_one_machine counts l all c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> claim c <= last - first.
Proof.
  intros counts l es stores gs lives all c H. apply andb_true_iff in H as [F C].
  apply bounded_schedules; [exact (free_written _ _ _ _ _ _ F)|].
  exact (free_edges l es stores gs lives all F counts _
    (one_machine_bound counts l all c C stores)).
Qed.
