(* A schedule as one start a task: a valid list of rows gives one, and one that keeps the rules
   gives a valid list of rows. Proofs are easier about starts; theorems are about rows. *)

Require Import ZArith Lia List FinFun.
From Bubbleproof Require Import Definitions.
Import ListNotations.
Open Scope Z_scope.

Section Starts.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable p : problem T.

(* The problem names each thing once, and each task has a resource. *)
Definition well_formed :=
  NoDup (tasks _ p) /\ forall t, In t (tasks _ p) -> NoDup (homes _ p t) /\ homes _ p t <> [].

Definition apart (s d s' d' : Z) := s + d <= s' \/ s' + d' <= s.

(* Rules 3 and 4, and the window that all tasks lie in, of a function from tasks to starts. *)
Record timed (s : T -> Z) (first last : Z) : Prop := Timed {
  inside : forall t, In t (tasks _ p) -> first <= s t /\ s t + duration _ p t <= last;
  kept : forall a b lag, In (a, b, lag) (edges _ p) -> In a (tasks _ p) -> In b (tasks _ p) ->
    s a + duration _ p a + lag <= s b;
  turns : forall t u r, In t (tasks _ p) -> In u (tasks _ p) -> t <> u ->
    In r (homes _ p t) -> In r (homes _ p u) ->
    apart (s t) (duration _ p t) (s u) (duration _ p u) }.

(* ---- From starts to rows. ---- *)

Definition rows_of (s : T -> Z) : schedule T :=
  flat_map (fun t => map (fun r => Row _ r t (s t)) (homes _ p t)) (tasks _ p).

Lemma in_rows_of : forall s x, In x (rows_of s) <->
  In (task _ x) (tasks _ p) /\ In (place _ x) (homes _ p (task _ x)) /\ start _ x = s (task _ x).
Proof.
  intros s x. unfold rows_of. rewrite in_flat_map. split.
  - intros (t & It & Ix). apply in_map_iff in Ix as (r & <- & Ir). cbn. tauto.
  - intros (It & Ir & E). exists (task _ x). split; [exact It|]. apply in_map_iff.
    exists (place _ x). split; [|exact Ir]. destruct x as [r t b]; cbn in *. congruence.
Qed.

Lemma NoDup_app_disjoint : forall {A} (l m : list A), NoDup l -> NoDup m ->
  (forall x, In x l -> In x m -> False) -> NoDup (l ++ m).
Proof.
  induction l as [|x l IH]; intros m Hl Hm H; [exact Hm|]. inversion Hl; subst. cbn. constructor.
  - rewrite in_app_iff. intros [I|I]; [contradiction|]. apply (H x); [left; reflexivity | exact I].
  - apply IH; [assumption|assumption|]. intros y Iy. apply H. right. exact Iy.
Qed.

Lemma sites_of_once : forall (s : T -> Z) l, NoDup l -> (forall t, In t l -> NoDup (homes _ p t)) ->
  NoDup (map (site _) (flat_map (fun t => map (fun r => Row _ r t (s t)) (homes _ p t)) l)).
Proof.
  intros s. induction l as [|t l IH]; intros N H; cbn; [constructor|].
  inversion N; subst. rewrite map_app. apply NoDup_app_disjoint.
  - rewrite map_map. cbn. apply Injective_map_NoDup; [|apply H; left; reflexivity].
    intros a b E. unfold site in E. cbn in E. congruence.
  - apply IH; [assumption|]. intros u Iu. apply H. right. exact Iu.
  - intros [r u] I1 I2. rewrite map_map in I1. apply in_map_iff in I1 as (q & E1 & _).
    apply in_map_iff in I2 as (y & E2 & I2). apply in_flat_map in I2 as (w & Iw & I2).
    apply in_map_iff in I2 as (z & E3 & _). subst y. unfold site in *; cbn in *.
    congruence.
Qed.

Theorem timed_is_valid : well_formed -> forall s first last, 0 <= first -> timed s first last ->
  valid T p (rows_of s) /\ within T p (rows_of s) first last.
Proof.
  intros [N H] s first last F V. unfold within, valid, complete, placed, dependencies, exclusive.
  assert (I := in_rows_of s). split.
  - split; [|split; [|split]].
    + split; [|split].
      * intros t r It Ir. apply in_map_iff. exists (Row _ r t (s t)).
        split; [reflexivity | apply I; cbn; tauto].
      * intros x Ix. apply I in Ix. tauto.
      * apply sites_of_once; [exact N|]. intros t It. apply H, It.
    + split; [intros x Ix; apply I in Ix; tauto|].
      intros x y Ix Iy E. apply I in Ix as (_ & _ & ->). apply I in Iy as (_ & _ & ->). congruence.
    + split.
      * intros a b lag x y Ie Ix Iy <- <-. unfold finish.
        apply I in Ix as (? & _ & ->). apply I in Iy as (? & _ & ->). eapply kept; eassumption.
      * intros x Ix. apply I in Ix as (It & _ & ->). apply (inside _ _ _ V) in It. lia.
    + intros x y Ix Iy D E. apply I in Ix as (? & Hx & Sx). apply I in Iy as (? & Hy & Sy).
      unfold take_turns, finish. rewrite Sx, Sy. rewrite <- E in Hy.
      eapply (turns _ _ _ V); eassumption.
  - intros x Ix. apply I in Ix as (It & _ & E). unfold finish. rewrite E.
    apply (inside _ _ _ V), It.
Qed.

(* ---- From rows to starts: the start of a task is that of its first row. ---- *)

Definition first_start (rows : schedule T) (t : T) : Z :=
  match find (fun x => same_task T same (task _ x) t) rows with
  | Some x => start _ x
  | None => 0
  end.

(* A row of a task at any of its resources starts when its first row does. *)
Lemma listed_at : forall rows, complete T p rows -> placed T p rows ->
  forall t r, In t (tasks _ p) -> In r (homes _ p t) ->
  exists x, In x rows /\ task _ x = t /\ place _ x = r /\ first_start rows t = start _ x.
Proof.
  intros rows (C & _ & _) (_ & P) t r It Ir.
  specialize (C t r It Ir). apply in_map_iff in C as (x & E & Ix).
  unfold site in E. injection E as Er Et. exists x. repeat split; try assumption.
  unfold first_start. destruct (find _ rows) as [y|] eqn:F.
  - apply find_some in F as [Iy Ey]. apply same_task_iff in Ey.
    apply P; [exact Iy | exact Ix | congruence].
  - apply (find_none _ _ F) in Ix. cbn in Ix.
    rewrite (proj2 (same_task_iff _ _ _ _) Et) in Ix. discriminate.
Qed.

Theorem valid_is_timed : (forall t, In t (tasks _ p) -> homes _ p t <> []) ->
  forall rows first last,
  valid T p rows -> within T p rows first last -> timed (first_start rows) first last.
Proof.
  intros H rows first last (C & P & (D1 & D2) & X) W. assert (L := listed_at rows C P).
  assert (S : forall t, In t (tasks _ p) ->
    exists x, In x rows /\ task _ x = t /\ first_start rows t = start _ x).
  { intros t It. destruct (homes _ p t) as [|r rest] eqn:E; [destruct (H t It E)|].
    destruct (L t r It) as (x & ? & ? & ? & ?); [rewrite E; left; reflexivity|]. eauto. }
  constructor.
  - intros t It. destruct (S t It) as (x & Ix & <- & ->). apply (W x Ix).
  - intros a b lag Ie Ia Ib. destruct (S a Ia) as (x & Ix & Ea & ->).
    destruct (S b Ib) as (y & Iy & Eb & ->).
    specialize (D1 a b lag x y Ie Ix Iy Ea Eb). unfold finish in D1. subst a. exact D1.
  - intros t u r It Iu D Ht Hu. destruct (L t r It Ht) as (x & Ix & Et & Px & ->).
    destruct (L u r Iu Hu) as (y & Iy & Eu & Py & ->). subst t u.
    apply (X x y Ix Iy D). congruence.
Qed.

End Starts.
