(* The exchange lemma: identical microbatches may be taken to run in the order of their numbers.

   A group has n microbatches. Of each of them it has one task of each class; `Member c j` is that
   of class c and microbatch j, `Other o` is what does not belong to the group. The tasks of a class
   are interchangeable (`interchangeable`, hypothesis 1 of verify/certificates/index_order.py): they
   have one duration and the same resources, and each edge of such a task joins two tasks of one
   microbatch and stands in all of the group, or joins it to one outside and stands for the whole
   class.

   Sort the starts of each class and give the j-th smallest to microbatch j. What obeys the rules
   before does so after (`exchange`), within the same window, and each class is then in order. The
   starts of a class are the same ones (`starts_alike`), so at every moment the same resources are
   busy and each store has the same load, where the events of a class are alike (`load_alike`). *)

Require Import ZArith Lia List Permutation.
From Bubbleproof Require Import Definitions Starts SortedStarts.
Import ListNotations.
Open Scope Z_scope.

Section Exchange.

Variables C O : Type.
Variable same_class : forall c c' : C, {c = c'} + {c <> c'}.
Inductive one := Member (c : C) (j : nat) | Other (o : O).
Variable p : problem one.
Variable n : nat.

Record interchangeable : Prop := Interchangeable {
  whole : forall c j, In (Member c j) (tasks _ p) -> (j < n)%nat /\
    forall i, (i < n)%nat -> In (Member c i) (tasks _ p);
  as_long : forall c i j, duration _ p (Member c i) = duration _ p (Member c j);
  at_home : forall c i j, homes _ p (Member c i) = homes _ p (Member c j);
  inner : forall c j c' k lag, In (Member c j, Member c' k, lag) (edges _ p) ->
    j = k /\ forall i, (i < n)%nat -> In (Member c i, Member c' i, lag) (edges _ p);
  outward : forall c j o lag, In (Member c j, Other o, lag) (edges _ p) ->
    forall i, (i < n)%nat -> In (Member c i, Other o, lag) (edges _ p);
  inward : forall c j o lag, In (Other o, Member c j, lag) (edges _ p) ->
    forall i, (i < n)%nat -> In (Other o, Member c i, lag) (edges _ p) }.

Variable s : one -> Z.
Definition starts_of (f : one -> Z) (c : C) := map (fun j => f (Member c j)) (seq 0 n).

Definition exchanged (t : one) : Z :=
  match t with Member c j => nth j (ZSort.sort (starts_of s c)) 0 | Other _ => s t end.

Lemma sorted_length : forall c, length (ZSort.sort (starts_of s c)) = n.
Proof.
  intros c. rewrite <- (Permutation_length (ZSort.Permuted_sort _)). unfold starts_of.
  rewrite map_length, seq_length. reflexivity.
Qed.

Theorem starts_alike : forall c, Permutation (starts_of s c) (starts_of exchanged c).
Proof.
  intros c. replace (starts_of exchanged c) with (ZSort.sort (starts_of s c)).
  - apply ZSort.Permuted_sort.
  - rewrite <- (all_nth (ZSort.sort (starts_of s c))), sorted_length. reflexivity.
Qed.

(* Each new start is an old one of its class. *)
Lemma comes_from : forall c j, (j < n)%nat ->
  exists i, (i < n)%nat /\ exchanged (Member c j) = s (Member c i).
Proof.
  intros c j L. assert (I : In (exchanged (Member c j)) (ZSort.sort (starts_of s c)))
    by (apply nth_In; rewrite sorted_length; exact L).
  apply (Permutation_in _ (Permutation_sym (ZSort.Permuted_sort _))) in I.
  apply in_map_iff in I as (i & E & I). apply in_seq in I. exists i. split; [lia | congruence].
Qed.

Theorem in_index_order : forall c j k, (j <= k)%nat -> (k < n)%nat ->
  exchanged (Member c j) <= exchanged (Member c k).
Proof.
  intros c j k J K. apply ascending_nth; [apply sort_ascending | exact J |].
  rewrite sorted_length. exact K.
Qed.

Theorem exchange : interchangeable -> forall first last,
  timed one p s first last -> timed one p exchanged first last.
Proof.
  intros H first last V. constructor.
  - intros [c j|o] I; [|apply (inside _ _ _ _ _ V), I]. destruct (whole H c j I) as [L W].
    destruct (comes_from c j L) as (i & Li & ->). rewrite (as_long H c j i).
    apply (inside _ _ _ _ _ V), W, Li.
  - intros [c j|o] [c' k|o'] lag Ie Ia Ib; [| | |exact (kept _ _ _ _ _ V _ _ lag Ie Ia Ib)].
    + destruct (inner H c j c' k lag Ie) as [<- E]. destruct (whole H c j Ia) as [L W].
      destruct (whole H c' j Ib) as [_ W'].
      pose proof (sorted_apart (fun i => s (Member c i)) (fun i => s (Member c' i))
        (duration _ p (Member c j) + lag) n j) as S.
      cbn. unfold starts_of. rewrite <- Z.add_assoc. apply S; [|exact L].
      intros i Li. rewrite (as_long H c j i).
      pose proof (kept _ _ _ _ _ V _ _ lag (E i Li) (W i Li) (W' i Li)). lia.
    + destruct (whole H c j Ia) as [L W]. destruct (comes_from c j L) as (i & Li & ->).
      rewrite (as_long H c j i).
      exact (kept _ _ _ _ _ V _ _ lag (outward H c j o' lag Ie i Li) (W i Li) Ib).
    + destruct (whole H c' k Ib) as [L W]. destruct (comes_from c' k L) as (i & Li & ->).
      exact (kept _ _ _ _ _ V _ _ lag (inward H c' k o lag Ie i Li) Ia (W i Li)).
  - assert (Across : forall c j u r, In (Member c j) (tasks _ p) -> In u (tasks _ p) ->
      match u with Member c' _ => c <> c' | Other _ => True end ->
      In r (homes _ p (Member c j)) -> In r (homes _ p u) ->
      apart (exchanged (Member c j)) (duration _ p (Member c j)) (exchanged u) (duration _ p u)).
    { intros c j u r It Iu D Rt Ru. destruct (whole H c j It) as [L W].
      destruct (comes_from c j L) as (i & Li & ->). rewrite (as_long H c j i).
      rewrite (at_home H c j i) in Rt. destruct u as [c' k|o].
      - destruct (whole H c' k Iu) as [L' W']. destruct (comes_from c' k L') as (i' & Li' & ->).
        rewrite (as_long H c' k i'). rewrite (at_home H c' k i') in Ru.
        apply (turns _ _ _ _ _ V _ _ r); auto; congruence.
      - apply (turns _ _ _ _ _ V _ _ r); auto; congruence. }
    intros [c j|o] [c' k|o'] r It Iu D Rt Ru.
    + destruct (same_class c c') as [<-|N]; [|apply (Across c j (Member c' k) r); assumption].
      destruct (whole H c j It) as [Lj W]. destruct (whole H c k Iu) as [Lk _].
      set (d := duration _ p (Member c j)). rewrite (as_long H c k j). fold d.
      set (R := fun x y => apart x d y d).
      assert (RR : forall x y, R x y -> R y x) by (unfold R, apart; tauto).
      assert (P : ForallOrdPairs R (ZSort.sort (starts_of s c))).
      { apply (pairs_permuted R RR _ _ (ZSort.Permuted_sort _)). apply pairs_seq.
        intros a b _ Hab Hb. unfold R, d.
        replace (duration _ p (Member c j)) with (duration _ p (Member c a)) at 1
          by apply (as_long H).
        replace (duration _ p (Member c j)) with (duration _ p (Member c b)) by apply (as_long H).
        apply (turns _ _ _ _ _ V _ _ r); [apply W; lia | apply W; lia | intros [= E]; lia | |];
          [rewrite (at_home H c a j) | rewrite (at_home H c b j)]; exact Rt. }
      assert (j < k \/ k < j)%nat as [L|L] by (assert (j <> k) by congruence; lia).
      * apply (pairs_nth R); [exact P | exact L | rewrite sorted_length; exact Lk].
      * apply RR, (pairs_nth R); [exact P | exact L | rewrite sorted_length; exact Lj].
    + apply (Across c j (Other o') r); auto.
    + assert (A := Across c' k (Other o) r Iu It I Ru Rt). unfold apart in *. tauto.
    + exact (turns _ _ _ _ _ V _ _ r It Iu D Rt Ru).
Qed.

(* Task k of a class then starts when task j < k has ended, for they share a resource. *)
Theorem one_after_another : interchangeable -> forall first last,
  timed one p s first last -> forall c j k r, In (Member c k) (tasks _ p) ->
  In r (homes _ p (Member c k)) -> 0 <= duration _ p (Member c k) -> (j < k)%nat ->
  exchanged (Member c j) + duration _ p (Member c j) <= exchanged (Member c k).
Proof.
  intros H first last V c j k r I R D L. destruct (whole H c k I) as [Lk W].
  pose proof (in_index_order c j k) as Before.
  assert (A : apart (exchanged (Member c j)) (duration _ p (Member c j))
                    (exchanged (Member c k)) (duration _ p (Member c k))).
  { apply (turns _ _ _ _ _ (exchange H first last V) _ _ r);
      [apply W; lia | exact I | intros [= E]; lia | rewrite (at_home H c j k); exact R | exact R]. }
  unfold apart in A. rewrite (as_long H c j k) in *. lia.
Qed.

(* What certificates rest on: edges that ask each class to run in order may be added, and a bound on
   the schedules that keep them too is a bound on all. *)
Definition asks_for_order (e : edge one) := exists c j k r, e = (Member c j, Member c k, 0) /\
  (j < k)%nat /\ In r (homes _ p (Member c k)) /\ 0 <= duration _ p (Member c k).

Definition with_order (es : list (edge one)) : problem one :=
  Problem one (tasks _ p) (duration _ p) (homes _ p) (edges _ p ++ es).

Theorem order_is_free : interchangeable -> forall es, (forall e, In e es -> asks_for_order e) ->
  forall first last, timed one p s first last -> timed one (with_order es) exchanged first last.
Proof.
  intros H es A first last V. assert (W := exchange H first last V). constructor.
  - exact (inside _ _ _ _ _ W).
  - cbn. intros a b lag I Ia Ib. apply in_app_or in I as [I|I].
    + exact (kept _ _ _ _ _ W a b lag I Ia Ib).
    + destruct (A _ I) as (c & j & k & r & E & L & R & D). injection E as -> -> ->.
      rewrite Z.add_0_r. exact (one_after_another H first last V c j k r Ib R D L).
  - exact (turns _ _ _ _ _ W).
Qed.

(* What events of a class add, each `delta` from so many ticks after the start on. *)
Fixpoint sum (l : list Z) := match l with [] => 0 | x :: rest => x + sum rest end.
Definition change (later delta now : Z) (b : Z) := if b + later <=? now then delta else 0.

Lemma sum_permuted : forall l k, Permutation l k -> sum l = sum k.
Proof. intros l k H. induction H; cbn; lia. Qed.

Theorem load_alike : forall c later delta now,
  sum (map (change later delta now) (starts_of s c)) =
  sum (map (change later delta now) (starts_of exchanged c)).
Proof. intros c later delta now. apply sum_permuted, Permutation_map, starts_alike. Qed.

End Exchange.

Theorem bound_on_ordered_is_one_on_all : forall C O
  (same_class : forall c c' : C, {c = c'} + {c <> c'}) (p : problem (one C O)) n es bound,
  interchangeable C O p n -> (forall e, In e es -> asks_for_order C O p e) ->
  (forall s first last, timed _ (with_order C O p es) s first last -> bound <= last - first) ->
  forall s first last, timed _ p s first last -> bound <= last - first.
Proof.
  intros C O same_class p n es bound H A B s first last V.
  exact (B _ first last (order_is_free C O same_class p n s H es A first last V)).
Qed.
