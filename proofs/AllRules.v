(* Rules 1 to 5 together, rule 4 in the order listed, as verify/spec.py states them; and a checker
   of them, proved right. It is the checker that `Extraction.v` makes a program of. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions Stores.
Import ListNotations.
Open Scope Z_scope.

Section AllRules.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable p : problem T.

Definition ordered (rows : schedule T) := forall r, in_order T p (here T r rows).

Definition right (stores : list (store T)) (rows : schedule T) :=
  complete T p rows /\ placed T p rows /\ dependencies T p rows /\ ordered rows /\
  in_memory T same p stores rows.

(* ---- The checker. ---- *)

Fixpoint check_in_order (rows : schedule T) : bool :=
  match rows with
  | x :: (y :: _) as rest => (finish T p x <=? start _ y) && check_in_order rest
  | _ => true
  end.

Definition check_ordered (rows : schedule T) :=
  forallb (fun r => check_in_order (here T r rows)) (nodup Z.eq_dec (map (place _) rows)).

Definition check_all (stores : list (store T)) (rows : schedule T) :=
  check_complete T same p rows && check_placed T same p rows &&
  check_dependencies T same p rows && check_ordered rows && check_memory T same p stores rows.

(* ---- It is sound and complete. ---- *)

Lemma check_in_order_iff : forall rows, check_in_order rows = true <-> in_order T p rows.
Proof.
  induction rows as [|x [|y rest] IH]; [cbn; tauto|cbn; tauto|].
  change (check_in_order (x :: y :: rest)) with
    ((finish T p x <=? start _ y) && check_in_order (y :: rest)).
  change (in_order T p (x :: y :: rest)) with
    (finish T p x <= start _ y /\ in_order T p (y :: rest)).
  rewrite andb_true_iff, Z.leb_le, IH. tauto.
Qed.

Lemma nothing_here : forall r rows, ~ In r (map (place T) rows) -> here T r rows = [].
Proof.
  intros r. induction rows as [|x rows IH]; intros N; [reflexivity|]. unfold here. cbn.
  destruct (Z.eqb_spec (place _ x) r) as [E|E].
  - destruct N. left. exact E.
  - apply IH. intros I. apply N. right. exact I.
Qed.

Theorem check_ordered_iff : forall rows, check_ordered rows = true <-> ordered rows.
Proof.
  intros rows. unfold check_ordered, ordered. rewrite forallb_forall. split; intros H r.
  - destruct (in_dec Z.eq_dec r (map (place T) rows)) as [I|N].
    + apply check_in_order_iff, H, nodup_In, I.
    + rewrite (nothing_here r rows N). exact I.
  - intros _. apply check_in_order_iff, H.
Qed.

Theorem check_all_iff : forall stores rows, check_all stores rows = true <-> right stores rows.
Proof.
  intros stores rows. unfold check_all, right. rewrite !andb_true_iff, check_complete_iff,
    check_placed_iff, check_dependencies_iff, check_ordered_iff, check_memory_iff. tauto.
Qed.

Theorem right_is_valid : (forall t, 0 <= duration T p t) ->
  forall stores rows, right stores rows -> valid T p rows.
Proof.
  intros D stores rows (C & P & E & O & _). unfold valid.
  pose proof (order_is_exclusive T p rows D O). tauto.
Qed.

End AllRules.
