(* Some of the uses of a store hold together no more than the store does: all happens to it in lives,
   none of which ever holds less than nothing (Lifecycles.v, FreeEdges.v). *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances PriceTables Loads Groups InOrder
  Lifecycles FreeEdges Volume.
Import ListNotations.
Open Scope Z_scope.

(* A use: its life, by the place among those of the store, and its number. *)
Definition used (some : list life) (x : nat * nat) : list (event positive) :=
  match nth_error some (fst x) with Some f => life_events f (snd x) | None => [] end.
Definition pair_dec : forall x y : nat * nat, {x = y} + {x <> y}.
Proof. repeat decide equality. Defined.
Fixpoint pairs_once (l : list (nat * nat)) : bool :=
  match l with
  | [] => true
  | x :: rest => negb (existsb (fun y => if pair_dec x y then true else false) rest) && pairs_once rest
  end.
Definition is_use (some : list life) (x : nat * nat) : bool :=
  match nth_error some (fst x) with Some f => Nat.ltb (snd x) (length (begins f)) | None => false end.

Lemma pairs_are_once : forall l, pairs_once l = true -> NoDup l.
Proof.
  induction l as [|x l IH]; intros H; [constructor|]. cbn in H. apply andb_true_iff in H as [N H].
  constructor; [|exact (IH H)]. intros I. apply negb_true_iff, not_true_iff_false in N. apply N.
  apply existsb_exists. exists x. split; [exact I|]. destruct (pair_dec x x); [reflexivity | congruence].
Qed.

(* A sum over some of a list without repetition. *)
Lemma total_of_some : forall {A} (f : A -> Z) a b, NoDup a -> incl a b -> (forall x, In x b -> 0 <= f x) ->
  total (map f a) <= total (map f b).
Proof.
  intros A f. induction a as [|x a IH]; intros b N I P.
  - apply (total_least f b 0) in P. cbn. lia.
  - inversion N as [|? ? O N']; subst. destruct (in_split x b (I x (or_introl eq_refl))) as (u & v & ->).
    assert (J : incl a (u ++ v)).
    { intros y Iy. pose proof (I y (or_intror Iy)) as K. apply in_app_or in K as [K|[->|K]].
      - apply in_or_app. left. exact K.
      - contradiction.
      - apply in_or_app. right. exact K. }
    specialize (IH (u ++ v) N' J). rewrite !map_app, !total_app in *. cbn [map total].
    enough (total (map f a) <= total (map f u) + total (map f v)) by lia. apply IH.
    intros y Iy. apply P. apply in_app_or in Iy as [Iy|Iy]; apply in_or_app; [left | right; right]; exact Iy.
Qed.

Section Held.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (gs : list group) (lives : list life).
Local Notation k := (index_of l).
Variable s : positive -> Z.
Hypothesis G : check_groups l es stores gs = true.
Hypothesis Ls : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.

Lemma uses_fine : forall i st some, nth_error stores i = Some st -> some = store_lives lives i ->
  length some <> 0%nat -> check_store k (arcs_of es) l st some = true /\
  forall f, In f some -> check_life k (arcs_of es) f = true.
Proof.
  intros i st some St E N. assert (Cs : check_store k (arcs_of es) l st some = true).
  { destruct some as [|f rest] eqn:So; [destruct N; reflexivity|]. rewrite E.
    apply (store_checked l es stores gs lives Ls i st f St). rewrite <- E. left. reflexivity. }
  split; [exact Cs|]. unfold check_store in Cs. rewrite !andb_true_iff, !forallb_forall in Cs.
  apply Cs.
Qed.

Theorem uses_held : forall i st some uses now, nth_error stores i = Some st ->
  some = store_lives lives i -> length some <> 0%nat ->
  NoDup uses -> (forall x, In x uses -> is_use some x = true) ->
  held k s now (flat_map (used some) uses) <= held k s now (events _ st).
Proof.
  intros i st some uses now St E N Once Uses.
  destruct (uses_fine i st some St E N) as [Cs Fine].
  rewrite (held_by_lives l es stores gs s G st some now Cs (nth_error_In _ _ St)), held_flat.
  set (all_uses := flat_map (fun i => map (pair i)
    match nth_error some i with Some f => numbers f | None => [] end) (seq 0 (length some))).
  transitivity (total (map (fun x => held k s now (used some x)) all_uses)).
  - apply total_of_some; [exact Once| |].
    + intros [a j] I. specialize (Uses _ I). unfold is_use in Uses. cbn [fst snd] in Uses.
      apply in_flat_map. exists a. destruct (nth_error some a) as [f|] eqn:F; [|discriminate].
      apply Nat.ltb_lt in Uses. split.
      * apply in_seq. assert (a < length some)%nat by (apply nth_error_Some; congruence). lia.
      * apply in_map, in_seq. lia.
    + intros [a j] I. apply in_flat_map in I as (b & _ & I). apply in_map_iff in I as (j' & Eq & I).
      injection Eq as -> ->. unfold used. cbn [fst snd].
      destruct (nth_error some a) as [f|] eqn:F; [|destruct I].
      apply in_seq in I. apply (never_below l es stores s V f (Fine f (nth_error_In _ _ F)) j now). lia.
  - unfold all_uses. rewrite total_flat. clear.
    assert (Gen : forall pre post, some = pre ++ post ->
      total (map (fun i => total (map (fun x => held k s now (used some x)) (map (pair i)
        match nth_error some i with Some f => numbers f | None => [] end))) (seq (length pre) (length post))) =
      total (map (fun f => total (map (fun j => level l s f j now) (numbers f))) post)).
    { intros pre post. revert pre. induction post as [|f post IH]; intros pre E; [reflexivity|].
      cbn [length seq map total]. f_equal.
      - assert (F : nth_error some (length pre) = Some f)
          by (rewrite E, nth_error_app2, Nat.sub_diag by lia; reflexivity).
        rewrite F, map_map. f_equal. apply map_ext. intros j. unfold used. cbn [fst snd].
        rewrite F. reflexivity.
      - specialize (IH (pre ++ [f])). rewrite app_length in IH. cbn [length] in IH.
        replace (length pre + 1)%nat with (S (length pre)) in IH by lia. apply IH.
        rewrite E, <- app_assoc. reflexivity. }
    rewrite <- (Gen [] some eq_refl). apply Z.le_refl.
Qed.
End Held.
