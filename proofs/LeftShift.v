(* The left shift: where no cycle of waiting takes time, there is a least start for every task, and
   only there. Lemma 2 of docs/guide/formal.md.

   An arc (x, y, w) asks start(y) >= start(x) + w: x before y on a resource, or a precedence, and w the
   duration of x with its lag, of either sign. Starts are 0 or more (`keeps`). The least start of a
   task is the greatest weight of a walk that ends in it, which has no more arcs than there are nodes
   (`greatest`): a longer one comes to a node twice, and without the cycle weighs no less
   (`shortened`). That least starts are one, not two, is plain: each is below the other.

   `Program` below says which arcs a program has, and that starts keep them exactly where its rows keep
   rules 3 and 4 (`waiting_is_rules`); so the lemma is one of rows too (`program_has_starts`). *)

Require Import ZArith Lia List.
From Bubbleproof Require Import Definitions Stores AllRules.
Import ListNotations.
Open Scope Z_scope.

Section LeftShift.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable arcs : list (T * T * Z).

Definition keeps (s : T -> Z) :=
  (forall x, 0 <= s x) /\ forall x y w, In (x, y, w) arcs -> s x + w <= s y.

(* The nodes of a walk, the last one first, and its weight. *)
Inductive walk : list T -> Z -> Prop :=
  | stay : forall x, walk [x] 0
  | go : forall x y w l v, walk (x :: l) v -> In (x, y, w) arcs -> walk (y :: x :: l) (v + w).

Definition takes_time (x : T) := exists l w, walk (x :: l ++ [x]) w /\ 0 < w.

Fixpoint greatest (n : nat) (x : T) : Z :=
  match n with
  | O => 0
  | S n => fold_right (fun e m => let '(a, b, w) := e in
      if same b x then Z.max (greatest n a + w) m else m) (greatest n x) arcs
  end.

Definition nodes : list T := flat_map (fun e => [fst (fst e); snd (fst e)]) arcs.
Definition left_shift : T -> Z := greatest (length nodes).

Lemma walk_below : forall s l w, keeps s -> walk l w -> forall x r, l = x :: r -> w <= s x.
Proof.
  intros s l w [P K] W. induction W as [x|a b v l u W IH I]; intros y r E; injection E as -> _.
  - apply P.
  - specialize (IH a l eq_refl). specialize (K a y v I). lia.
Qed.

Lemma walk_cut : forall l x r w, walk (l ++ x :: r) w -> exists v u, w = v + u /\
  walk (x :: r) v /\ forall r' v', walk (x :: r') v' -> walk (l ++ x :: r') (v' + u).
Proof.
  induction l as [|y l IH]; intros x r w W.
  - exists w, 0. split; [lia|]. split; [exact W|]. intros r' v' W'. rewrite Z.add_0_r. exact W'.
  - cbn in W. destruct l as [|z l].
    + inversion W as [|a b v q u W' I]; subst. exists u, v. split; [reflexivity|].
      split; [exact W'|]. intros r' v' W2. exact (go _ _ _ _ _ W2 I).
    + inversion W as [|a b v q u W' I]; subst. destruct (IH x r u W') as (v1 & u1 & -> & W1 & G).
      exists v1, (u1 + v). split; [lia|]. split; [exact W1|]. intros r' v' W2.
      rewrite Z.add_assoc. cbn. exact (go _ _ _ _ _ (G r' v' W2) I).
Qed.

Lemma repeated : forall l : list T, NoDup l \/
  exists x a b c, l = a ++ x :: b ++ x :: c.
Proof.
  induction l as [|y l [N|(x & a & b & c & ->)]]; [left; constructor| |].
  - destruct (in_dec same y l) as [I|O]; [right|left; constructor; assumption].
    apply in_split in I as (b & c & ->). exists y, [], b, c. reflexivity.
  - right. exists x, (y :: a), b, c. reflexivity.
Qed.

Lemma walk_nodes : forall l w, walk l w -> length l = 1%nat \/ incl l nodes.
Proof.
  intros l w W. induction W as [x|a b v l u W IH I]; [left; reflexivity|right].
  assert (E : In a nodes /\ In b nodes).
  { split; apply in_flat_map; exists (a, b, v); (split; [exact I | cbn; tauto]). }
  intros z [<-|[<-|J]]; [apply E | apply E|]. destruct IH as [L|Inc].
  - destruct l; [destruct J | discriminate].
  - apply Inc. right. exact J.
Qed.

Lemma shortened : (forall x, ~ takes_time x) -> forall n x l w, (length l <= n)%nat ->
  walk (x :: l) w -> exists l' w', walk (x :: l') w' /\ w <= w' /\ (length l' <= length nodes)%nat.
Proof.
  intros C. induction n as [|n IH]; intros x l w L W.
  - exists l, w. split; [exact W|]. split; lia.
  - destruct (repeated (x :: l)) as [N|(z & a & b & c & E)].
    + exists l, w. split; [exact W|]. split; [lia|].
      destruct (walk_nodes _ _ W) as [One|Inc]; [cbn in One; lia|].
      pose proof (NoDup_incl_length N Inc). cbn in *. lia.
    + assert (Len : (length (x :: l) = length a + S (length b + S (length c)))%nat)
        by (rewrite E, app_length; cbn; rewrite app_length; reflexivity).
      rewrite E in W. apply walk_cut in W as (v & u & -> & W & G).
      destruct (walk_cut (z :: b) z c v W) as (v2 & u2 & -> & W2 & G2).
      assert (Z2 : u2 <= 0).
      { destruct (Z_le_gt_dec u2 0) as [|P]; [assumption|]. exfalso. apply (C z).
        exists b, u2. split; [exact (G2 [] 0 (stay z)) | lia]. }
      specialize (G c v2 W2). destruct a as [|y a]; cbn in E, G, Len; injection E as <- _.
      * destruct (IH x c (v2 + u) ltac:(lia) G) as (l' & w' & W' & Le & S').
        exists l', w'. split; [exact W'|]. split; [lia | exact S'].
      * destruct (IH x (a ++ z :: c) (v2 + u)) as (l' & w' & W' & Le & S');
          [rewrite app_length; cbn; lia | exact G|].
        exists l', w'. split; [exact W'|]. split; [lia | exact S'].
Qed.

Lemma greatest_grows : forall n x, greatest n x <= greatest (S n) x.
Proof.
  intros n x. cbn [greatest]. induction arcs as [|[[a b] w] es IH]; cbn [fold_right]; [lia|].
  destruct (same b x); lia.
Qed.

Lemma greatest_arc : forall n a b w, In (a, b, w) arcs -> greatest n a + w <= greatest (S n) b.
Proof.
  intros n a b w I. cbn [greatest]. revert I. generalize (greatest n b) as m.
  induction arcs as [|[[c d] v] es IH]; intros m I; [destruct I|]. cbn [fold_right].
  destruct I as [[= -> -> ->]|I].
  - destruct (same b b); [lia | congruence].
  - specialize (IH m I). destruct (same d b); lia.
Qed.

Lemma greatest_walk : forall n l w, walk l w -> forall x r, l = x :: r -> (length r <= n)%nat ->
  w <= greatest n x.
Proof.
  induction n as [|n IH]; intros l w W x r -> L.
  - destruct r; [|cbn in L; lia]. inversion W; subst. cbn. lia.
  - inversion W as [|a b v q u W' I]; subst.
    + clear. induction (S n) as [|m M]; [cbn; lia|]. pose proof (greatest_grows m x). lia.
    + cbn in L. pose proof (IH _ _ W' a q eq_refl ltac:(lia)).
      pose proof (greatest_arc n a x v I). lia.
Qed.

Lemma greatest_is : forall n x, exists l, walk (x :: l) (greatest n x).
Proof.
  induction n as [|n IH]; intros x; [exists []; apply stay|]. cbn [greatest].
  assert (A : incl arcs arcs) by apply incl_refl. revert A. generalize arcs at 1 3 as es.
  induction es as [|[[a b] w] es IHe]; intros A; cbn [fold_right]; [apply IH|].
  specialize (IHe (fun e I => A e (or_intror I))). destruct (same b x) as [->|]; [|exact IHe].
  destruct (Z.max_spec (greatest n a + w) (fold_right (fun e m => let '(a, b, w) := e in
    if same b x then Z.max (greatest n a + w) m else m) (greatest n x) es)) as [[_ ->]|[_ ->]];
    [exact IHe|]. destruct (IH a) as (l & W). exists (a :: l).
  exact (go a x w l _ W (A _ (or_introl eq_refl))).
Qed.

Theorem left_shift_keeps : (forall x, ~ takes_time x) -> keeps left_shift.
Proof.
  intros C. split.
  - intros x. unfold left_shift. induction (length nodes) as [|n IH]; [cbn; lia|].
    pose proof (greatest_grows n x). lia.
  - intros x y w I. destruct (greatest_is (length nodes) x) as (l & W).
    pose proof (go _ _ _ _ _ W I) as W'.
    destruct (shortened C (length (x :: l)) y (x :: l) _ ltac:(lia) W') as (l' & w' & W2 & L & S).
    pose proof (greatest_walk (length nodes) _ _ W2 y l' eq_refl S). unfold left_shift. lia.
Qed.

Theorem left_shift_is_least : forall s, keeps s -> forall x, left_shift x <= s x.
Proof.
  intros s K x. destruct (greatest_is (length nodes) x) as (l & W).
  exact (walk_below s _ _ K W x l eq_refl).
Qed.

Theorem no_cycle_takes_time : forall s, keeps s -> forall x, ~ takes_time x.
Proof.
  intros s K x (l & w & W & P).
  destruct (walk_cut (x :: l) x [] w W) as (v & u & -> & W0 & G). inversion W0; subst.
  destruct K as [_ K].
  assert (F : forall l w, walk l w -> forall y r, l = y :: r -> s (last r y) + w <= s y).
  { clear - K. intros l w W. induction W as [z|a b v l u W IH I]; intros y r E; injection E as -> <-.
    - cbn. lia.
    - specialize (IH a l eq_refl). specialize (K a y v I).
      replace (last (a :: l) y) with (last l a); [lia|]. destruct l as [|b l]; [reflexivity|].
      clear. revert a y b. induction l as [|c l IH]; intros a y b; [reflexivity|]. exact (IH a y c). }
  specialize (F _ _ W x (l ++ [x]) eq_refl). rewrite last_last in F. lia.
Qed.

(* Nothing starts before x: then the left shift has x at 0, and takes no longer from x on. *)
Theorem left_shift_takes_no_longer : forall s x, keeps s -> (forall y, s x <= s y) ->
  left_shift x = 0 /\ forall y, left_shift y <= s y - s x.
Proof.
  intros s x [P K] F. assert (L : forall y, left_shift y <= s y - s x).
  { apply (left_shift_is_least (fun y => s y - s x)). split.
    - intros y. specialize (F y). lia.
    - intros a b w I. specialize (K a b w I). lia. }
  split; [|exact L]. specialize (L x). destruct (greatest_is (length nodes) x) as (l & W).
  pose proof (greatest_walk (length nodes) [x] 0 (stay x) x [] eq_refl ltac:(cbn; lia)) as Z.
  unfold left_shift in *. lia.
Qed.
End LeftShift.

(* ---- The arcs of a program are what rules 3 and 4 ask. ---- *)

(* A program lists the places (resource, task) in the order of each resource, without starts. Which
   rows it has (rules 1 and 2) does not depend on them. *)
Section Program.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable p : problem T.
Variable program : list (Z * T).

Definition rows_at (s : T -> Z) : schedule T := map (fun x => Row T (fst x) (snd x) (s (snd x))) program.
Definition order_on (r : Z) : list T := map snd (filter (fun x => fst x =? r) program).

Fixpoint turn_arcs (l : list T) : list (T * T * Z) :=
  match l with
  | x :: (y :: _) as rest => (x, y, duration _ p x) :: turn_arcs rest
  | _ => []
  end.

Definition waiting : list (T * T * Z) :=
  map (fun e => (fst e, duration _ p (fst (fst e)) + snd e)) (edges _ p) ++
  flat_map (fun r => turn_arcs (order_on r)) (map fst program).

Lemma here_is : forall s r, here T r (rows_at s) = map (fun t => Row T r t (s t)) (order_on r).
Proof.
  intros s r. unfold here, rows_at, order_on. induction program as [|[q t] rest IH]; [reflexivity|].
  cbn. destruct (Z.eqb_spec q r) as [->|]; cbn; [f_equal|]; exact IH.
Qed.

Lemma turns_kept : forall s r l, in_order T p (map (fun t => Row T r t (s t)) l) <->
  forall x y w, In (x, y, w) (turn_arcs l) -> s x + w <= s y.
Proof.
  intros s r. induction l as [|x [|y l] IH]; [cbn; tauto|cbn; tauto|].
  change (s x + duration _ p x <= s y /\ in_order T p (map (fun t => Row T r t (s t)) (y :: l)) <->
    forall a b w, In (a, b, w) ((x, y, duration _ p x) :: turn_arcs (y :: l)) -> s a + w <= s b).
  rewrite IH. split.
  - intros [A B] a b w [[= <- <- <-]|I]; [exact A | exact (B a b w I)].
  - intros H. split; [apply H; left; reflexivity|]. intros a b w I. apply H. right. exact I.
Qed.

(* The problem is written out: edges are between tasks, and the program lists every task. *)
Hypothesis Between : forall a b lag, In (a, b, lag) (edges _ p) ->
  In a (map snd program) /\ In b (map snd program).

Theorem waiting_is_rules : forall s, (forall x, 0 <= s x) ->
  (keeps T waiting s <-> dependencies T p (rows_at s) /\ ordered T p (rows_at s)).
Proof.
  intros s P. unfold keeps, dependencies, ordered, waiting, rows_at.
  assert (R : forall t, In t (map snd program) -> exists x, In x (rows_at s) /\ task _ x = t /\ start _ x = s t).
  { intros t I. apply in_map_iff in I as (x & <- & I). exists (Row T (fst x) (snd x) (s (snd x))).
    split; [apply (in_map (fun x => Row T (fst x) (snd x) (s (snd x)))), I | split; reflexivity]. }
  split.
  - intros [_ K]. split; [split|].
    + intros a b lag x y I Ix Iy <- <-. apply in_map_iff in Ix as (u & <- & _), Iy as (v & <- & _).
      unfold finish. cbn in *. rewrite <- Z.add_assoc. apply K, in_or_app. left.
      apply (in_map (fun e => (fst e, duration _ p (fst (fst e)) + snd e))) in I. exact I.
    + intros x Ix. apply in_map_iff in Ix as (u & <- & _). apply P.
    + intros r. fold (rows_at s). rewrite here_is. apply turns_kept. intros x y w I. apply K, in_or_app. right.
      apply in_flat_map. exists r. split; [|exact I]. unfold order_on in I.
      destruct (filter (fun x => fst x =? r) program) as [|z rest] eqn:F; [destruct I|].
      assert (J : In z (filter (fun x => fst x =? r) program)) by (rewrite F; left; reflexivity).
      apply filter_In in J as [J E]. apply Z.eqb_eq in E. subst r. apply in_map, J.
  - intros [[D _] O]. split; [exact P|]. intros x y w I. apply in_app_or in I as [I|I].
    + apply in_map_iff in I as ([[a b] lag] & [= <- <- <-] & I). cbn.
      destruct (Between a b lag I) as [Ia Ib]. destruct (R a Ia) as (u & Iu & Ea & <-).
      destruct (R b Ib) as (v & Iv & Eb & <-). specialize (D a b lag u v I Iu Iv Ea Eb).
      unfold finish in D. rewrite Ea in D. lia.
    + apply in_flat_map in I as (r & _ & I). specialize (O r). fold (rows_at s) in O.
      rewrite here_is in O. exact (proj1 (turns_kept s r _) O x y w I).
Qed.

(* Lemma 2 of rows: a program that lists each place once has starts with which rules 1 to 4 are kept
   exactly where no cycle of waiting takes time, and the left shift is then the least. *)
Hypothesis Listed : complete T p (rows_at (fun _ => 0)).
Hypothesis AtHome : forall x, In x program -> In (fst x) (homes _ p (snd x)).

Definition kept_by (s : T -> Z) := complete T p (rows_at s) /\ placed T p (rows_at s) /\
  dependencies T p (rows_at s) /\ ordered T p (rows_at s).

Lemma always_listed : forall s, complete T p (rows_at s) /\ placed T p (rows_at s).
Proof.
  intros s. assert (S : forall s, map (site T) (rows_at s) = program).
  { intros s'. unfold rows_at. rewrite map_map. rewrite <- (map_id program) at 2.
    apply map_ext. intros [r t]. reflexivity. }
  destruct Listed as (A & B & C). rewrite S in A, C. split; [split; [|split]|split].
  - rewrite S. exact A.
  - intros x I. apply in_map_iff in I as (u & <- & I). cbn.
    exact (B _ (in_map (fun x => Row T (fst x) (snd x) 0) program u I)).
  - rewrite S. exact C.
  - intros x I. apply in_map_iff in I as (u & <- & I). exact (AtHome u I).
  - intros x y I J E. apply in_map_iff in I as (u & <- & _), J as (v & <- & _). cbn in *. congruence.
Qed.

Theorem program_has_starts :
  ((exists s, kept_by s) <-> forall x, ~ takes_time T waiting x) /\
  ((forall x, ~ takes_time T waiting x) -> kept_by (left_shift T same waiting)) /\
  forall s, kept_by s -> forall x, In x (map snd program) -> left_shift T same waiting x <= s x.
Proof.
  assert (K : forall s, kept_by s -> keeps T waiting (fun x => Z.max 0 (s x)) /\
    forall x, In x (map snd program) -> Z.max 0 (s x) = s x).
  { intros s (_ & _ & D & O).
    assert (E : forall x, In x (map snd program) -> Z.max 0 (s x) = s x).
    { intros x I. apply in_map_iff in I as (u & <- & I). apply Z.max_r.
      exact (proj2 D _ (in_map (fun x => Row T (fst x) (snd x) (s (snd x))) program u I)). }
    split; [|exact E]. apply waiting_is_rules; [intros; lia|].
    replace (rows_at (fun x => Z.max 0 (s x))) with (rows_at s); [split; assumption|].
    apply map_ext_in. intros u I. cbn. rewrite E; [reflexivity | apply in_map, I]. }
  assert (L : (forall x, ~ takes_time T waiting x) -> kept_by (left_shift T same waiting)).
  { intros C. destruct (left_shift_keeps T same waiting C) as [P Q].
    destruct (always_listed (left_shift T same waiting)) as [A B].
    split; [exact A|]. split; [exact B|]. apply waiting_is_rules; [exact P|]. split; assumption. }
  split; [split|split].
  - intros (s & H). exact (no_cycle_takes_time T waiting _ (proj1 (K s H))).
  - intros C. exists (left_shift T same waiting). exact (L C).
  - exact L.
  - intros s H x I. destruct (K s H) as [A B]. rewrite <- (B x I).
    exact (left_shift_is_least T same waiting _ A x).
Qed.
End Program.
