(* Groups of identical microbatches, recognised by a checker: `Exchange.v` for problems written out,
   and for several groups at once.

   A group is a list of classes, each a list of tasks, one a microbatch. `check_group` looks at what
   hypothesis 1 of verify/certificates/index_order.py asks: tasks of a class have one duration, the
   same resources, the same changes of every store; each edge of such a task joins two of one
   microbatch and stands in all of the group, or joins it to one outside and stands for the whole
   class. Then every plan can be turned into one within the same moments in which each class runs in
   the order listed (`in_order_of_groups`), all groups together, as sorting one leaves the others
   where they are. *)

Require Import ZArith Lia List Bool FMapPositive Permutation.
From Bubbleproof Require Import Definitions Stores Starts SortedStarts Exchange Instances PriceTables.
Import ListNotations.
Open Scope Z_scope.

Definition group := list (list positive).
Notation cell := (one positive positive).

Definition named (row : list positive) := List.hd 1%positive row.
Definition cells (g : group) : list (positive * (positive * nat)) :=
  flat_map (fun row => combine row (map (fun j => (named row, j)) (seq 0 (length row)))) g.
Definition places (g : group) : Map.t (positive * nat) :=
  fold_right (fun x m => Map.add (fst x) (snd x) m) (Map.empty _) (cells g).
Definition rows_by_name (g : group) : Map.t (list positive) :=
  fold_right (fun row m => Map.add (named row) row m) (Map.empty _) g.

Definition row_at (cl : Map.t (list positive)) c :=
  match Map.find c cl with Some row => row | None => [] end.
Definition encode (pl : Map.t (positive * nat)) (t : positive) : cell :=
  match Map.find t pl with Some (c, j) => Member _ _ c j | None => Other _ _ t end.
Definition decode (cl : Map.t (list positive)) (x : cell) : positive :=
  match x with Member _ _ c j => nth j (row_at cl c) c | Other _ _ t => t end.

Definition has_edge (m : arcs) (a b : positive) (lag : Z) : bool :=
  match Map.find a m with
  | Some l => existsb (fun x => Pos.eqb (fst x) b && (snd x =? lag)) l
  | None => false
  end.

Definition same_sites : forall a b : list Z, {a = b} + {a <> b}.
Proof. repeat decide equality. Defined.
Definition same_changes : forall a b : changes, {a = b} + {a <> b}.
Proof. repeat decide equality. Defined.

Section Check.
Variables (k : index) (m : arcs) (css : list (Map.t changes)) (n : nat).
Variables (pl : Map.t (positive * nat)) (cl : Map.t (list positive)).

Definition alike (c t : positive) : bool :=
  known k t && (ticks k t =? ticks k c) && (if same_sites (sites k t) (sites k c) then true else false) &&
  forallb (fun cs => if same_changes (changes_at t cs) (changes_at c cs) then true else false) css.

Definition check_class (row : list positive) : bool :=
  let c := named row in
  Nat.eqb (length row) n && Nat.ltb 0 n &&
  (if list_eq_dec Pos.eq_dec (row_at cl c) row then true else false) &&
  forallb (alike c) row &&
  forallb (fun x => match Map.find (fst x) pl with
    | Some (c', j) => Pos.eqb c' c && Nat.eqb j (snd x) | None => false end)
    (combine row (seq 0 n)).

(* The same edge one microbatch on, and one back. *)
Definition stands (f : nat -> positive * positive) (j : nat) (lag : Z) : bool :=
  (if Nat.ltb (S j) n then has_edge m (fst (f (S j))) (snd (f (S j))) lag else true) &&
  match j with O => true | S i => has_edge m (fst (f i)) (snd (f i)) lag end.
Definition member c j := nth j (row_at cl c) c.

Definition check_edge (e : edge positive) : bool :=
  let '(a, b, lag) := e in
  match Map.find a pl, Map.find b pl with
  | None, None => true
  | Some (c, j), Some (c', i) =>
      Nat.eqb j i && stands (fun x => (member c x, member c' x)) j lag
  | Some (c, j), None => stands (fun x => (member c x, b)) j lag
  | None, Some (c, j) => stands (fun x => (a, member c x)) j lag
  end.
End Check.

Definition check_group (l : table) (es : list (edge positive)) (stores : list (store positive))
    (m : arcs) (css : list (Map.t changes)) (g : group) : bool :=
  let n := length (List.hd [] g) in
  let pl := places g in
  let cl := rows_by_name g in
  distinct (concat g) (Map.empty unit) && forallb (check_class (index_of l) css n pl cl) g &&
  forallb (check_edge m n pl cl) es.

(* ---- One group. ---- *)

Lemma has_edge_is : forall es a b lag, has_edge (arcs_of es) a b lag = true -> In (a, b, lag) es.
Proof.
  intros es a b lag H. unfold has_edge in H. destruct (Map.find a (arcs_of es)) as [l|] eqn:F;
    [|discriminate]. apply existsb_exists in H as ([c x] & I & E). cbn in E.
  apply andb_true_iff in E as [E1 E2]. apply Pos.eqb_eq in E1. apply Z.eqb_eq in E2. subst.
  exact (arcs_are_edges es a b lag l F I).
Qed.

Lemma place_is_cell : forall g t c j, Map.find t (places g) = Some (c, j) ->
  In (t, (c, j)) (cells g).
Proof.
  intros g t c j. unfold places. induction (cells g) as [|[u [d i]] l IH]; cbn.
  - rewrite Map.gempty. discriminate.
  - destruct (Pos.eq_dec t u) as [->|D].
    + rewrite Map.gss. intros [= -> ->]. left. reflexivity.
    + rewrite Map.gso by exact D. right. apply IH. exact H.
Qed.

Lemma cell_is : forall g t c j, In (t, (c, j)) (cells g) ->
  exists row, In row g /\ c = named row /\ (j < length row)%nat /\ nth j row c = t.
Proof.
  intros g t c j I. apply in_flat_map in I as (row & Ir & I). exists row. split; [exact Ir|].
  apply (In_nth _ _ (1%positive, (1%positive, 0%nat))) in I as (i & L & E).
  rewrite combine_length, map_length, seq_length, Nat.min_id in L.
  rewrite combine_nth in E by (rewrite map_length, seq_length; reflexivity).
  injection E as E1 E2.
  rewrite (nth_indep _ _ ((fun j => (named row, j)) 0%nat)) in E2
    by (rewrite map_length, seq_length; exact L).
  rewrite (map_nth (fun j => (named row, j))), seq_nth in E2 by exact L.
  injection E2 as <- <-. cbn. repeat split; [exact L|].
  rewrite <- E1. apply nth_indep. exact L.
Qed.

Lemma spread : forall (P : nat -> Prop) n j, P j -> (forall i, P i -> (S i < n)%nat -> P (S i)) ->
  (forall i, P (S i) -> P i) -> forall i, (i < n)%nat -> P i.
Proof.
  intros P n j H Up Down. assert (Z0 : P 0%nat).
  { induction j as [|j IH]; [exact H|]. apply IH, Down, H. }
  induction i as [|i IH]; intros L; [exact Z0|]. apply Up; [apply IH; lia | exact L].
Qed.

Section OneGroup.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (css : list (Map.t changes)) (g : group).
Let k := index_of l.
Let n := length (List.hd [] g).
Let pl := places g.
Let cl := rows_by_name g.
Hypothesis Checked : check_group l es stores (arcs_of es) css g = true.

Lemma class_is : forall row, In row g -> let c := named row in
  length row = n /\ (0 < n)%nat /\ row_at cl c = row /\
  (forall t, In t row -> known k t = true /\ ticks k t = ticks k c /\ sites k t = sites k c /\
    forall cs, In cs css -> changes_at t cs = changes_at c cs) /\
  forall j, (j < n)%nat -> Map.find (nth j row c) pl = Some (c, j).
Proof.
  intros row I c. unfold check_group in Checked. rewrite !andb_true_iff, !forallb_forall in Checked.
  destruct Checked as [[_ C] _]. specialize (C row I). unfold check_class in C.
  fold n pl cl k c in C. rewrite !andb_true_iff, !forallb_forall in C.
  destruct C as [[[[Len Pos_] Row] Alike] Places].
  apply Nat.eqb_eq in Len. apply Nat.ltb_lt in Pos_.
  destruct (list_eq_dec Pos.eq_dec (row_at cl c) row) as [R|]; [|discriminate].
  repeat split; try assumption.
  1-4: specialize (Alike t H); unfold alike in Alike; rewrite !andb_true_iff in Alike;
    destruct Alike as [[[K D] S] Ch].
  - exact K.
  - apply Z.eqb_eq, D.
  - destruct (same_sites (sites k t) (sites k c)); [assumption | discriminate].
  - intros cs Ic. rewrite forallb_forall in Ch. specialize (Ch cs Ic).
    destruct (same_changes _ _); [assumption | discriminate].
  - intros j L. specialize (Places (nth j row c, j)).
    assert (In (nth j row c, j) (combine row (seq 0 n))) as J.
    { replace (nth j row c, j) with (nth j (combine row (seq 0 n)) (c, 0%nat)).
      - apply nth_In. rewrite combine_length, seq_length. lia.
      - rewrite combine_nth by (rewrite seq_length; exact Len). rewrite seq_nth by exact L.
        reflexivity. }
    specialize (Places J). cbn [fst snd] in Places.
    destruct (Map.find (nth j row c) pl) as [[c' i]|]; [|discriminate].
    apply andb_true_iff in Places as [E1 E2]. apply Pos.eqb_eq in E1. apply Nat.eqb_eq in E2.
    congruence.
Qed.

Lemma place_is : forall t c j, Map.find t pl = Some (c, j) ->
  exists row, In row g /\ c = named row /\ (j < n)%nat /\ nth j row c = t /\ row_at cl c = row.
Proof.
  intros t c j F. apply place_is_cell, cell_is in F as (row & I & -> & L & E).
  destruct (class_is row I) as (Len & _ & R & _). exists row. repeat split; auto. congruence.
Qed.

Lemma decoded : forall t, decode cl (encode pl t) = t.
Proof.
  intros t. unfold encode. destruct (Map.find t pl) as [[c j]|] eqn:F; [|reflexivity].
  apply place_is in F as (row & I & -> & L & E & R). cbn. rewrite R. exact E.
Qed.

Lemma encoded : forall row j, In row g -> (j < n)%nat ->
  encode pl (nth j row (named row)) = Member _ _ (named row) j.
Proof.
  intros row j I L. unfold encode. destruct (class_is row I) as (_ & _ & _ & _ & P).
  rewrite (P j L). reflexivity.
Qed.

(* What a class shares, whatever the number. *)
Lemma shared : forall {A} (f : positive -> A),
  (forall row t, In row g -> In t row -> f t = f (named row)) ->
  forall c i, f (decode cl (Member _ _ c i)) = f c.
Proof.
  intros A f H c i. cbn. unfold row_at. destruct (Map.find c cl) as [row|] eqn:F;
    [|destruct i; reflexivity].
  assert (I : In row g /\ named row = c).
  { revert F. unfold cl, rows_by_name. clear. induction g as [|r rest IH]; cbn.
    - rewrite Map.gempty. discriminate.
    - destruct (Pos.eq_dec c (named r)) as [->|D].
      + rewrite Map.gss. intros [= ->]. split; [left|]; reflexivity.
      + rewrite Map.gso by exact D. intros F. destruct (IH F). split; [right|]; assumption. }
  destruct I as [I <-]. destruct (Nat.ltb_spec i (length row)) as [L|L].
  - apply H; [exact I | apply nth_In, L].
  - rewrite nth_overflow by exact L. reflexivity.
Qed.

Definition encoded_edge (e : edge positive) : edge cell :=
  let '(a, b, lag) := e in (encode pl a, encode pl b, lag).
Definition coded : problem cell :=
  Problem cell (map (encode pl) (map fst l)) (fun x => ticks k (decode cl x))
    (fun x => sites k (decode cl x)) (map encoded_edge es).

Lemma edge_fine : forall a b lag, In (a, b, lag) es ->
  check_edge (arcs_of es) n pl cl (a, b, lag) = true.
Proof.
  intros a b lag I. unfold check_group in Checked.
  rewrite !andb_true_iff, !forallb_forall in Checked. apply Checked, I.
Qed.

Lemma stood : forall f j lag, stands (arcs_of es) n f j lag = true ->
  ((S j < n)%nat -> In (fst (f (S j)), snd (f (S j)), lag) es) /\
  forall i, j = S i -> In (fst (f i), snd (f i), lag) es.
Proof.
  intros f j lag H. unfold stands in H. apply andb_true_iff in H as [Up Down]. split.
  - intros L. destruct (Nat.ltb_spec (S j) n); [apply has_edge_is, Up | lia].
  - intros i ->. apply has_edge_is, Down.
Qed.

Lemma coded_edge : forall x y lag, In (x, y, lag) (edges _ coded) ->
  exists a b, In (a, b, lag) es /\ x = encode pl a /\ y = encode pl b.
Proof.
  intros x y lag I. apply in_map_iff in I as ([[a b] lag'] & E & I). injection E as <- <- <-. eauto.
Qed.

Lemma encode_member : forall a c j, encode pl a = Member _ _ c j ->
  Map.find a pl = Some (c, j) /\ (j < n)%nat /\
  forall i, (i < n)%nat -> Map.find (member cl c i) pl = Some (c, i).
Proof.
  intros a c j E. unfold encode in E. destruct (Map.find a pl) as [[c' j']|] eqn:F; [|discriminate].
  injection E as -> ->. split; [reflexivity|]. apply place_is in F as (row & I & -> & L & _ & R).
  split; [exact L|]. intros i Li. unfold member. rewrite R. apply (class_is row I), Li.
Qed.

Lemma encode_other : forall a o, encode pl a = Other _ _ o -> a = o /\ Map.find a pl = None.
Proof.
  intros a o E. unfold encode in E. destruct (Map.find a pl) as [[c j]|]; [discriminate|].
  injection E as ->. split; reflexivity.
Qed.

Lemma is_member : forall a c j, Map.find a pl = Some (c, j) -> member cl c j = a.
Proof.
  intros a c j F. apply place_is in F as (row & _ & _ & _ & E & R). unfold member. rewrite R.
  exact E.
Qed.

Lemma edges_spread : forall f lag j, (j < n)%nat -> In (fst (f j), snd (f j), lag) es ->
  (forall i, (i < n)%nat -> In (fst (f i), snd (f i), lag) es ->
    stands (arcs_of es) n f i lag = true) ->
  forall i, (i < n)%nat -> In (fst (f i), snd (f i), lag) es.
Proof.
  intros f lag j Lj I H i Li.
  enough ((i < n)%nat /\ In (fst (f i), snd (f i), lag) es) as [_ E] by exact E.
  apply (spread (fun i => (i < n)%nat /\ In (fst (f i), snd (f i), lag) es) n j);
    [split; assumption | | | exact Li].
  - intros x [Lx Ix] L. split; [exact L|]. exact (proj1 (stood f x lag (H x Lx Ix)) L).
  - intros x [Lx Ix]. split; [lia|]. apply (proj2 (stood f (S x) lag (H (S x) Lx Ix)) x eq_refl).
Qed.

Lemma coded_interchangeable : interchangeable positive positive coded n.
Proof.
  assert (Ticks : forall c i, ticks k (decode cl (Member _ _ c i)) = ticks k c).
  { apply shared. intros row t I J. apply (class_is row I), J. }
  assert (Sites : forall c i, sites k (decode cl (Member _ _ c i)) = sites k c).
  { apply shared. intros row t I J. apply (class_is row I), J. }
  constructor.
  - intros c j I. apply in_map_iff in I as (t & E & I).
    destruct (encode_member t c j E) as (F & L & _). split; [exact L|]. intros i Li.
    apply place_is in F as (row & Ir & -> & _ & _ & _). rewrite <- (encoded row i Ir Li).
    apply in_map, known_is_task. destruct (class_is row Ir) as (Len & _ & _ & A & _).
    apply A, nth_In. lia.
  - intros c i j. cbn [duration coded]. rewrite !Ticks. reflexivity.
  - intros c i j. cbn [homes coded]. rewrite !Sites. reflexivity.
  - intros c j c' i lag I. apply coded_edge in I as (a & b & I & Ea & Eb). symmetry in Ea, Eb.
    destruct (encode_member a c j Ea) as (Fa & La & Ga).
    destruct (encode_member b c' i Eb) as (Fb & Lb & Gb).
    pose proof (edge_fine a b lag I) as Fine. unfold check_edge in Fine. rewrite Fa, Fb in Fine.
    apply andb_true_iff in Fine as [E _]. apply Nat.eqb_eq in E. subst i. split; [reflexivity|].
    intros i Li.
    assert (In (member cl c i, member cl c' i, lag) es) as J.
    { apply (edges_spread (fun x => (member cl c x, member cl c' x)) lag j La); [| |exact Li].
      - cbn. rewrite (is_member a c j Fa), (is_member b c' j Fb). exact I.
      - intros x Lx Ix. pose proof (edge_fine _ _ _ Ix) as Fx. cbn [fst snd check_edge] in Fx.
        rewrite (Ga x Lx), (Gb x Lx) in Fx. apply andb_true_iff in Fx. apply Fx. }
    apply (in_map encoded_edge) in J. cbn in J. unfold encode in J.
    rewrite (Ga i Li), (Gb i Li) in J. exact J.
  - intros c j o lag I i Li. apply coded_edge in I as (a & b & I & Ea & Eb). symmetry in Ea, Eb.
    destruct (encode_member a c j Ea) as (Fa & La & Ga).
    apply encode_other in Eb as [-> Fb].
    assert (In (member cl c i, o, lag) es) as J.
    { apply (edges_spread (fun x => (member cl c x, o)) lag j La); [| |exact Li].
      - cbn. rewrite (is_member a c j Fa). exact I.
      - intros x Lx Ix. pose proof (edge_fine _ _ _ Ix) as Fx. cbn [fst snd check_edge] in Fx.
        rewrite (Ga x Lx), Fb in Fx. exact Fx. }
    apply (in_map encoded_edge) in J. cbn in J. unfold encode in J.
    rewrite (Ga i Li), Fb in J. exact J.
  - intros c j o lag I i Li. apply coded_edge in I as (a & b & I & Ea & Eb). symmetry in Ea, Eb.
    destruct (encode_member b c j Eb) as (Fb & Lb & Gb).
    apply encode_other in Ea as [-> Fa].
    assert (In (o, member cl c i, lag) es) as J.
    { apply (edges_spread (fun x => (o, member cl c x)) lag j Lb); [| |exact Li].
      - cbn. rewrite (is_member b c j Fb). exact I.
      - intros x Lx Ix. pose proof (edge_fine _ _ _ Ix) as Fx. cbn [fst snd check_edge] in Fx.
        rewrite (Gb x Lx), Fa in Fx. exact Fx. }
    apply (in_map encoded_edge) in J. cbn in J. unfold encode in J.
    rewrite (Gb i Li), Fa in J. exact J.
Qed.
End OneGroup.
