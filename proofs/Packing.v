(* Tasks that take turns on one resource between two moments are together no longer than the time
   between them: what every bound by one resource rests on. *)

Require Import ZArith Lia List.
Import ListNotations.
Open Scope Z_scope.

Section Packing.

Variable T : Type.
Variables s d : T -> Z.  (* start and duration *)

Definition disjoint (t u : T) := s t + d t <= s u \/ s u + d u <= s t.
Definition between (a b : Z) (t : T) := a <= s t /\ 0 <= d t /\ s t + d t <= b.
Fixpoint busy (l : list T) : Z := match l with [] => 0 | t :: rest => d t + busy rest end.

Definition before (t u : T) := s u + d u <=? s t.

Lemma busy_parts : forall f l,
  busy l = busy (filter f l) + busy (filter (fun t => negb (f t)) l).
Proof. induction l as [|t rest IH]; cbn; [reflexivity|]. destruct (f t); cbn; lia. Qed.

Lemma busy_app : forall l m, busy (l ++ m) = busy l + busy m.
Proof. induction l as [|t rest IH]; intros m; cbn; [lia|]. rewrite IH. lia. Qed.

Lemma part_is_short : forall f (l : list T), (length (filter f l) <= length l)%nat.
Proof. induction l as [|t rest IH]; cbn; [lia|]. destruct (f t); cbn; lia. Qed.

Lemma disjoint_parts : forall f l,
  ForallOrdPairs disjoint l -> ForallOrdPairs disjoint (filter f l).
Proof.
  intros f l H. induction H as [|t rest Ht Hr IH]; cbn; [constructor|].
  destruct (f t); [|exact IH]. constructor; [|exact IH].
  apply Forall_forall. intros u I. apply filter_In in I as [I _].
  rewrite Forall_forall in Ht. exact (Ht u I).
Qed.

(* The tasks that end before the first one of the list starts fit before it, the others after it:
   induction on the number of tasks. *)
Lemma packed : forall n l a b, (length l <= n)%nat -> a <= b -> ForallOrdPairs disjoint l ->
  Forall (between a b) l -> busy l <= b - a.
Proof.
  induction n as [|n IH]; intros l a b L A P B.
  - destruct l; cbn in *; lia.
  - destruct l as [|t rest]; [cbn; lia|].
    inversion P as [|? ? Pt Pr]; subst. inversion B as [|? ? Bt Br]; subst.
    rewrite Forall_forall in Pt, Br. destruct Bt as (B1 & B2 & B3). cbn in L.
    assert (Early : busy (filter (before t) rest) <= s t - a).
    { apply IH; [|exact B1|apply disjoint_parts, Pr|].
      - pose proof (part_is_short (before t) rest). lia.
      - apply Forall_forall. intros u I. apply filter_In in I as [I E].
        apply Z.leb_le in E. destruct (Br u I) as (? & ? & ?). repeat split; assumption. }
    assert (Late : busy (filter (fun u => negb (before t u)) rest) <= b - (s t + d t)).
    { apply IH; [|exact B3|apply disjoint_parts, Pr|].
      - pose proof (part_is_short (fun u => negb (before t u)) rest). lia.
      - apply Forall_forall. intros u I. apply filter_In in I as [I E].
        apply Bool.negb_true_iff, Z.leb_gt in E. destruct (Br u I) as (? & ? & ?).
        destruct (Pt u I); [|lia]. repeat split; assumption. }
    cbn. rewrite (busy_parts (before t) rest). lia.
Qed.

(* The same of tasks without repetition, any two of which take turns. *)
Theorem packing : forall l a b, l <> [] -> NoDup l ->
  (forall t, In t l -> between a b t) ->
  (forall t u, In t l -> In u l -> t <> u -> disjoint t u) -> busy l <= b - a.
Proof.
  intros l a b E N B D. apply (packed (length l)); [apply le_n| | |apply Forall_forall, B].
  - destruct l as [|t rest]; [congruence|].
    destruct (B t (or_introl eq_refl)) as (? & ? & ?). lia.
  - clear E B. induction N as [|t rest I N IH]; constructor.
    + apply Forall_forall. intros u Iu. apply D; [left; reflexivity|right; exact Iu|congruence].
    + apply IH. intros u w Iu Iw. apply D; right; assumption.
Qed.

End Packing.
