(* What microbatches pay at least: a dynamic program along the precedences of each, proved right.

   A forest of tasks is one where each task but the roots waits for its parent, by an edge. A task
   that starts at x pays for the ticks that it occupies of priced resources, and for each change of
   a priced store delta times the price of the ticks that follow it (`pay`). `node_of` writes a
   task's place in the forest in numbers alone: between which starts it lies, how long it waits, and
   what it pays for; so two microbatches with the same numbers cost the same, and one is computed.
   `least_placed` is at most what all tasks of a forest pay in any plan (`least_is_least`). *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions Stores Instances PriceTables.
Import ListNotations.
Open Scope Z_scope.

Inductive forest (A : Type) := Nil | Tree (a : A) (kids next : forest A).
Arguments Nil {A}.
Arguments Tree {A}.

Fixpoint flat {A} (f : forest A) : list A :=
  match f with Nil => [] | Tree a kids next => a :: flat kids ++ flat next end.

Record node := Node {
  head : Z;
  tail : Z;
  wait : Z;  (* from the start of the parent *)
  long : Z;  (* its own ticks *)
  tolls : list bool;  (* of each priced resource, whether it is occupied *)
  moves : list changes }.  (* of each priced store *)

Definition same_node : forall a b : node, {a = b} + {a <> b}.
Proof. repeat decide equality. Defined.
Definition same_forest : forall a b : forest node, {a = b} + {a <> b}.
Proof. decide equality. apply same_node. Defined.

(* ---- What a task pays by its start. ---- *)

Fixpoint toll (bs : list bool) (mus : list prices) (d x : Z) : Z :=
  match bs, mus with
  | b :: bs', m :: mus' => (if b then upto m (x + d) - upto m x else 0) + toll bs' mus' d x
  | _, _ => 0
  end.

Fixpoint moved (cs : changes) (m : prices) (d x : Z) : Z :=
  match cs with
  | [] => 0
  | (at_end, delta) :: rest =>
      delta * (total m - upto m (x + if at_end then d else 0)) + moved rest m d x
  end.

Fixpoint all_moved (css : list changes) (lams : list prices) (d x : Z) : Z :=
  match css, lams with
  | cs :: css', m :: lams' => moved cs m d x + all_moved css' lams' d x
  | _, _ => 0
  end.

Definition pay_node (mus lams : list prices) (n : node) (x : Z) :=
  toll (tolls n) mus (long n) x + all_moved (moves n) lams (long n) x.

(* ---- The same as rows, by sheets of sums. ---- *)

Fixpoint toll_row (bs : list bool) (mus : list sheet) (d first : Z) (n : nat) : list Z :=
  match bs, mus with
  | b :: bs', m :: mus' =>
      let rest := toll_row bs' mus' d first n in
      if b then zip Z.add (zip Z.sub (sums_from m (first + d) n) (sums_from m first n)) rest
      else rest
  | _, _ => repeat 0 n
  end.

Fixpoint moved_row (cs : changes) (m : sheet) (d first : Z) (n : nat) : list Z :=
  match cs with
  | [] => repeat 0 n
  | (at_end, delta) :: rest =>
      zip (fun before more => delta * (snd m - before) + more)
        (sums_from m (first + if at_end then d else 0) n) (moved_row rest m d first n)
  end.

Fixpoint all_moved_row (css : list changes) (lams : list sheet) (d first : Z) (n : nat) :=
  match css, lams with
  | cs :: css', m :: lams' => zip Z.add (moved_row cs m d first n) (all_moved_row css' lams' d first n)
  | _, _ => repeat 0 n
  end.

Section Rows.
Variables mus lams : list sheet.
Variable h : Z.  (* the horizon *)

Definition room_of (n : node) : nat := Z.to_nat (h - tail n - long n - head n + 1).
Definition own (n : node) : list Z :=
  zip Z.add (toll_row (tolls n) mus (long n) (head n) (room_of n))
    (all_moved_row (moves n) lams (long n) (head n) (room_of n)).

(* The least that a kid and what follows it pay, by where its parent starts: `low` is that by where
   the kid starts at the earliest, from `gap` before which the parent's starts are listed. *)
Definition shifted (low : list Z) (gap : Z) (n : nat) : list Z :=
  window n (repeat (List.hd 0 low) (Z.to_nat (- gap)) ++ skipn (Z.to_nat gap) low) 0.

Fixpoint added (f : forest node) (first : Z) (n : nat) : list Z :=
  match f with
  | Nil => repeat 0 n
  | Tree a kids next =>
      zip Z.add
        (shifted (lows (zip Z.add (own a) (added kids (head a) (room_of a))))
          (first + wait a - head a) n)
        (added next first n)
  end.

(* What a forest pays at least; a task without a place would count as nothing. *)
Fixpoint least (f : forest node) : Z :=
  match f with
  | Nil => 0
  | Tree a kids next =>
      List.hd 0 (lows (zip Z.add (own a) (added kids (head a) (room_of a)))) + least next
  end.

Fixpoint all_placed (f : forest node) : bool :=
  match f with
  | Nil => true
  | Tree a kids next => Nat.ltb 0 (room_of a) && all_placed kids && all_placed next
  end.

(* None: a task, a root or another, has no place within the horizon. *)
Definition least_placed (f : forest node) : option Z :=
  if all_placed f then Some (least f) else None.
End Rows.

(* ---- The rows show what is paid. ---- *)

Lemma shows_like : forall row first n g h, shows row first n g -> (forall x, g x = h x) ->
  shows row first n h.
Proof. intros row first n g h [L S] E. split; [exact L|]. intros i I. rewrite <- E. auto. Qed.

Lemma shows_later : forall m first d n, 0 <= first + d ->
  shows (sums_from (sheet_of m) (first + d) n) first n (fun x => upto m (x + d)).
Proof.
  intros m first d n F. destruct (shows_sums m (first + d) n F) as [L S]. split; [exact L|].
  intros i I. rewrite S by exact I. f_equal. lia.
Qed.

Lemma shows_toll : forall bs mus d first n, 0 <= first -> 0 <= d ->
  shows (toll_row bs (map sheet_of mus) d first n) first n (toll bs mus d).
Proof.
  induction bs as [|b bs IH]; intros [|m mus] d first n F D; cbn [toll_row map];
    try apply shows_zeros. destruct b.
  - eapply shows_like; [apply shows_zip; [apply shows_zip|apply IH; assumption];
      [apply shows_later; lia | apply shows_sums; exact F]|]. reflexivity.
  - eapply shows_like; [apply IH; assumption|]. intros x. reflexivity.
Qed.

Lemma shows_moved : forall cs m d first n, 0 <= first -> 0 <= d ->
  shows (moved_row cs (sheet_of m) d first n) first n (moved cs m d).
Proof.
  induction cs as [|[at_end delta] cs IH]; intros m d first n F D; [apply shows_zeros|].
  cbn [moved_row]. eapply shows_like; [apply shows_zip; [apply shows_later|apply IH; assumption]|].
  - destruct at_end; lia.
  - reflexivity.
Qed.

Lemma shows_all_moved : forall css lams d first n, 0 <= first -> 0 <= d ->
  shows (all_moved_row css (map sheet_of lams) d first n) first n (all_moved css lams d).
Proof.
  induction css as [|cs css IH]; intros [|m lams] d first n F D; cbn [all_moved_row map];
    try apply shows_zeros.
  eapply shows_like; [apply shows_zip; [apply shows_moved|apply IH]; assumption|]. reflexivity.
Qed.

Lemma shows_own : forall mus lams h n, 0 <= head n -> 0 <= long n ->
  shows (own (map sheet_of mus) (map sheet_of lams) h n) (head n) (room_of h n)
    (pay_node mus lams n).
Proof.
  intros mus lams h n F D. unfold own, pay_node. eapply shows_like; [apply shows_zip|].
  - apply shows_toll; assumption.
  - apply shows_all_moved; assumption.
  - reflexivity.
Qed.

Lemma zip_length : forall f a b, length a = length b -> length (zip f a b) = length a.
Proof.
  induction a as [|x a IH]; intros [|y b] E; try discriminate; [reflexivity|].
  injection E as E. cbn. rewrite IH by exact E. reflexivity.
Qed.

Lemma zip_nth : forall a b i, length a = length b -> (i < length a)%nat ->
  nth i (zip Z.add a b) 0 = nth i a 0 + nth i b 0.
Proof.
  induction a as [|x a IH]; intros [|y b] [|i] E L; cbn in *; try discriminate; try lia.
  apply IH; lia.
Qed.

Lemma added_length : forall mus lams h f first n, length (added mus lams h f first n) = n.
Proof.
  intros mus lams h. induction f as [|a kids IHk next IHn]; intros first n; cbn [added].
  - apply repeat_length.
  - rewrite zip_length; unfold shifted; rewrite window_length; [|rewrite IHn]; reflexivity.
Qed.

Lemma shifted_least : forall (vals : list Z) gap n i j, (i < n)%nat -> (j < length vals)%nat ->
  Z.of_nat i + gap <= Z.of_nat j -> nth i (shifted (lows vals) gap n) 0 <= nth j vals 0.
Proof.
  intros vals gap n i j I J L. unfold shifted. rewrite nth_window by exact I.
  destruct (Z_le_gt_dec 0 gap) as [G|G].
  - replace (Z.to_nat (- gap)) with 0%nat by lia. cbn [repeat app]. rewrite nth_skip.
    apply lows_least; lia.
  - replace (Z.to_nat gap) with 0%nat by lia. cbn [skipn].
    destruct (Nat.ltb_spec i (Z.to_nat (- gap))) as [B|B].
    + rewrite app_nth1 by (rewrite repeat_length; exact B).
      rewrite (nth_indep _ 0 (List.hd 0 (lows vals))) by (rewrite repeat_length; exact B).
      rewrite nth_repeat. pose proof (lows_least vals 0 j ltac:(lia) J) as M.
      destruct (lows vals); exact M.
    + rewrite app_nth2 by (rewrite repeat_length; exact B). rewrite repeat_length.
      apply lows_least; lia.
Qed.
