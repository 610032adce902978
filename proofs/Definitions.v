(* Problems, schedules and the rules 1 to 4 of verify/spec.py: what a schedule is, and when it is
   right. All other files of this folder are about these definitions.

   A problem is a list of tasks. Each has a duration and its resources (`homes`), which it occupies
   from its start to its end. An edge (before, after, lag) asks start(after) >= end(before) + lag.
   A schedule is a list of rows (resource, task, start). Times are whole numbers of ticks.

       1 complete      every (task, resource) of the problem is listed once, and nothing foreign is
       2 placed        a task is listed on its own resources alone, on all of them at one start
       3 dependencies  every edge is kept, and nothing starts before time 0
       4 exclusive     two tasks on one resource do not overlap

   Rule 4 of verify/spec.py reads the rows in the order listed: each starts when the one before has
   ended. `order_is_exclusive` shows that this implies rule 4 as it stands here. *)

Require Import ZArith Lia List Bool.
Import ListNotations.
Open Scope Z_scope.

Section Rules.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.

Definition edge := (T * T * Z)%type.

Record problem := Problem {
  tasks : list T;
  duration : T -> Z;
  homes : T -> list Z;
  edges : list edge }.

Record row := Row { place : Z; task : T; start : Z }.
Definition schedule := list row.

Variable p : problem.

Definition finish (x : row) := start x + duration p (task x).
Definition site (x : row) := (place x, task x).

(* Two rows on one resource take turns. A row of duration 0 may stand at either end of another. *)
Definition take_turns (x y : row) := finish x <= start y \/ finish y <= start x.

Definition complete (rows : schedule) :=
  (forall t r, In t (tasks p) -> In r (homes p t) -> In (r, t) (map site rows)) /\
  (forall x, In x rows -> In (task x) (tasks p)) /\
  NoDup (map site rows).

Definition placed (rows : schedule) :=
  (forall x, In x rows -> In (place x) (homes p (task x))) /\
  (forall x y, In x rows -> In y rows -> task x = task y -> start x = start y).

Definition dependencies (rows : schedule) :=
  (forall a b lag x y, In (a, b, lag) (edges p) -> In x rows -> In y rows ->
     task x = a -> task y = b -> finish x + lag <= start y) /\
  (forall x, In x rows -> 0 <= start x).

Definition exclusive (rows : schedule) :=
  forall x y, In x rows -> In y rows -> task x <> task y -> place x = place y -> take_turns x y.

Definition valid (rows : schedule) :=
  complete rows /\ placed rows /\ dependencies rows /\ exclusive rows.

(* The makespan of a schedule is the least `last - first` with this property. *)
Definition within (rows : schedule) (first last : Z) :=
  forall x, In x rows -> first <= start x /\ finish x <= last.

(* ---- The checker: the same rules, decided. ---- *)

Definition same_task (x y : T) : bool := if same x y then true else false.
Definition is_task (t : T) := existsb (same_task t) (tasks p).
Definition same_site (x y : Z * T) := (fst x =? fst y) && same_task (snd x) (snd y).

Fixpoint listed_once (sites : list (Z * T)) : bool :=
  match sites with
  | [] => true
  | x :: rest => negb (existsb (same_site x) rest) && listed_once rest
  end.

Definition check_complete (rows : schedule) :=
  forallb (fun t => forallb (fun r => existsb (same_site (r, t)) (map site rows)) (homes p t))
    (tasks p) &&
  forallb (fun x => is_task (task x)) rows &&
  listed_once (map site rows).

Definition check_placed (rows : schedule) :=
  forallb (fun x => existsb (Z.eqb (place x)) (homes p (task x))) rows &&
  forallb (fun x => forallb (fun y =>
    negb (same_task (task x) (task y)) || (start x =? start y)) rows) rows.

Definition keeps (rows : schedule) (e : edge) :=
  let '(a, b, lag) := e in
  forallb (fun x => if same_task (task x) a then
    forallb (fun y => negb (same_task (task y) b) || (finish x + lag <=? start y)) rows
    else true) rows.

Definition check_dependencies (rows : schedule) :=
  forallb (keeps rows) (edges p) && forallb (fun x => 0 <=? start x) rows.

Definition check_exclusive (rows : schedule) :=
  forallb (fun x => forallb (fun y =>
    same_task (task x) (task y) || negb (place x =? place y) ||
    (finish x <=? start y) || (finish y <=? start x)) rows) rows.

Definition check (rows : schedule) :=
  check_complete rows && check_placed rows && check_dependencies rows && check_exclusive rows.

(* ---- The checker is sound and complete, rule by rule. ---- *)

Lemma same_task_iff : forall x y, same_task x y = true <-> x = y.
Proof. intros x y. unfold same_task. destruct (same x y); split; congruence. Qed.

Lemma same_site_iff : forall x y, same_site x y = true <-> x = y.
Proof.
  intros [r t] [q u]. unfold same_site; cbn. rewrite andb_true_iff, Z.eqb_eq, same_task_iff.
  split; [intros [-> ->]; reflexivity | intros [= -> ->]; split; reflexivity].
Qed.

(* `existsb` with a test of equality is membership. *)
Lemma member_iff : forall {A} (test : A -> A -> bool), (forall x y, test x y = true <-> x = y) ->
  forall x l, existsb (test x) l = true <-> In x l.
Proof.
  intros A test H x l. rewrite existsb_exists. split.
  - intros (y & I & E). apply H in E. subst. exact I.
  - intros I. exists x. split; [exact I | apply H; reflexivity].
Qed.

(* `if a then b`, decided. *)
Lemma implies_iff : forall a b (P Q : Prop), (a = true <-> P) -> (b = true <-> Q) ->
  (negb a || b = true <-> (P -> Q)).
Proof. intros [|] [|] P Q; cbn; intuition congruence. Qed.

Lemma listed_once_iff : forall sites, listed_once sites = true <-> NoDup sites.
Proof.
  induction sites as [|x rest IH]; cbn; [split; [constructor | reflexivity]|].
  rewrite andb_true_iff, IH, negb_true_iff, <- not_true_iff_false.
  rewrite (member_iff same_site same_site_iff). split.
  - intros [N D]. constructor; assumption.
  - intros D. inversion D; subst. split; assumption.
Qed.

Theorem check_complete_iff : forall rows, check_complete rows = true <-> complete rows.
Proof.
  intros rows. unfold check_complete, complete, is_task.
  rewrite !andb_true_iff, listed_once_iff, !forallb_forall. split.
  - intros [[H1 H2] H3]. split; [|split; [|exact H3]].
    + intros t r It Ir. specialize (H1 t It). rewrite forallb_forall in H1.
      apply (member_iff same_site same_site_iff), H1, Ir.
    + intros x I. apply (member_iff same_task same_task_iff), H2, I.
  - intros (H1 & H2 & H3). split; [split|exact H3].
    + intros t It. rewrite forallb_forall. intros r Ir.
      apply (member_iff same_site same_site_iff), H1; assumption.
    + intros x I. apply (member_iff same_task same_task_iff), H2, I.
Qed.

Theorem check_placed_iff : forall rows, check_placed rows = true <-> placed rows.
Proof.
  intros rows. unfold check_placed, placed. rewrite andb_true_iff, !forallb_forall.
  assert (E : forall x y, negb (same_task (task x) (task y)) || (start x =? start y) = true <->
    (task x = task y -> start x = start y)).
  { intros x y. apply implies_iff; [apply same_task_iff | apply Z.eqb_eq]. }
  split; intros [H1 H2]; split.
  - intros x I. apply (member_iff Z.eqb Z.eqb_eq), H1, I.
  - intros x y Ix Iy. apply E. specialize (H2 x Ix). rewrite forallb_forall in H2. auto.
  - intros x I. apply (member_iff Z.eqb Z.eqb_eq), H1, I.
  - intros x Ix. rewrite forallb_forall. intros y Iy. apply E, H2; assumption.
Qed.

Lemma keeps_iff : forall rows a b lag, keeps rows (a, b, lag) = true <->
  (forall x y, In x rows -> In y rows -> task x = a -> task y = b -> finish x + lag <= start y).
Proof.
  intros rows a b lag. unfold keeps. rewrite forallb_forall. split.
  - intros H x y Ix Iy Ea Eb. specialize (H x Ix).
    rewrite (proj2 (same_task_iff _ _) Ea) in H; cbn in H. rewrite forallb_forall in H.
    specialize (H y Iy). rewrite (proj2 (same_task_iff _ _) Eb) in H; cbn in H.
    apply Z.leb_le, H.
  - intros H x Ix. destruct (same_task (task x) a) eqn:Ea; [cbn|reflexivity].
    apply same_task_iff in Ea. rewrite forallb_forall. intros y Iy.
    destruct (same_task (task y) b) eqn:Eb; [cbn|reflexivity].
    apply same_task_iff in Eb. apply Z.leb_le, H; assumption.
Qed.

Theorem check_dependencies_iff :
  forall rows, check_dependencies rows = true <-> dependencies rows.
Proof.
  intros rows. unfold check_dependencies, dependencies.
  rewrite andb_true_iff, !forallb_forall. split; intros [H1 H2]; split.
  - intros a b lag x y Ie. apply keeps_iff, H1, Ie.
  - intros x I. apply Z.leb_le, H2, I.
  - intros [[a b] lag] Ie. apply keeps_iff. intros x y. apply H1, Ie.
  - intros x I. apply Z.leb_le, H2, I.
Qed.

Theorem check_exclusive_iff : forall rows, check_exclusive rows = true <-> exclusive rows.
Proof.
  intros rows. unfold check_exclusive, exclusive, take_turns. rewrite forallb_forall. split.
  - intros H x y Ix Iy N E. specialize (H x Ix). rewrite forallb_forall in H. specialize (H y Iy).
    rewrite !orb_true_iff, negb_true_iff, same_task_iff, !Z.leb_le, Z.eqb_neq in H. tauto.
  - intros H x Ix. rewrite forallb_forall. intros y Iy.
    rewrite !orb_true_iff, negb_true_iff, same_task_iff, !Z.leb_le, Z.eqb_neq.
    destruct (same (task x) (task y)); [tauto|]. destruct (Z.eq_dec (place x) (place y)); [|tauto].
    destruct (H x y Ix Iy); tauto.
Qed.

Theorem check_iff : forall rows, check rows = true <-> valid rows.
Proof.
  intros rows. unfold check, valid. rewrite !andb_true_iff, check_complete_iff, check_placed_iff,
    check_dependencies_iff, check_exclusive_iff. tauto.
Qed.

Theorem check_sound : forall rows, check rows = true -> valid rows.
Proof. intros rows. apply check_iff. Qed.

Theorem check_accepts : forall rows, valid rows -> check rows = true.
Proof. intros rows. apply check_iff. Qed.

(* ---- How long a schedule takes, decided. ---- *)

Definition check_within (rows : schedule) (first last : Z) :=
  forallb (fun x => (first <=? start x) && (finish x <=? last)) rows.

Theorem check_within_iff :
  forall rows first last, check_within rows first last = true <-> within rows first last.
Proof.
  intros rows first last. unfold check_within, within. rewrite forallb_forall. split.
  - intros H x I. specialize (H x I). rewrite andb_true_iff, !Z.leb_le in H. exact H.
  - intros H x I. rewrite andb_true_iff, !Z.leb_le. exact (H x I).
Qed.

Theorem check_within_sound :
  forall rows first last, check_within rows first last = true -> within rows first last.
Proof. intros rows first last. apply check_within_iff. Qed.

(* ---- Rule 4 by the order listed, as verify/spec.py states it. ---- *)

(* Each row starts when the one listed before it has ended; `rows` are those of one resource. *)
Fixpoint in_order (rows : schedule) : Prop :=
  match rows with
  | x :: (y :: _) as rest => finish x <= start y /\ in_order rest
  | _ => True
  end.

Definition here (r : Z) (rows : schedule) := filter (fun x => place x =? r) rows.

Lemma order_reaches : forall rest x, (forall t, 0 <= duration p t) -> in_order (x :: rest) ->
  forall y, In y rest -> finish x <= start y.
Proof.
  induction rest as [|z rest IH]; intros x D O y I; [destruct I|].
  destruct O as [O1 O2]. destruct I as [->|I]; [exact O1|].
  specialize (IH z D O2 y I). specialize (D (task z)). unfold finish in *. lia.
Qed.

Lemma order_apart : forall rows, (forall t, 0 <= duration p t) -> in_order rows ->
  forall x y, In x rows -> In y rows -> x <> y -> take_turns x y.
Proof.
  unfold take_turns. induction rows as [|z rest IH]; intros D O x y Ix Iy N; [destruct Ix|].
  assert (O' : in_order rest) by (destruct rest; [exact I | apply O]).
  destruct Ix as [->|Ix], Iy as [->|Iy].
  - congruence.
  - left. exact (order_reaches rest x D O y Iy).
  - right. exact (order_reaches rest y D O x Ix).
  - exact (IH D O' x y Ix Iy N).
Qed.

Theorem order_is_exclusive : forall rows, (forall t, 0 <= duration p t) ->
  (forall r, in_order (here r rows)) -> exclusive rows.
Proof.
  intros rows D O x y Ix Iy N E. apply (order_apart (here (place x) rows) D (O (place x))).
  - apply filter_In. split; [exact Ix | apply Z.eqb_refl].
  - apply filter_In. split; [exact Iy | apply Z.eqb_eq; symmetry; exact E].
  - congruence.
Qed.

End Rules.
