(* What is known of starts in a replayed proof (Trail.v): least and greatest ones, which task ends by
   the start of which; what a literal means, what its negation is, and when it is known to be false.

   Times count from `first`. `AtLeast t n` says that t starts n ticks after it or later, `AtMost t n`
   or sooner, `Ahead a b` that a ends by the start of b. Of two tasks that share a resource one is
   ahead, so of these the negation is the other order. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances.
Import ListNotations.
Open Scope Z_scope.

Inductive literal :=
  | AtLeast (t : positive) (n : Z)
  | AtMost (t : positive) (n : Z)
  | Ahead (a b : positive).
Definition clause := list literal.
Definition clauses := Map.t clause.  (* by number *)

(* What is known: least and greatest starts, and what ends by the start of what. *)
Record facts := Facts { low : Map.t Z; high : Map.t Z; ahead : Map.t (Map.t unit) }.
Definition none_known := Facts (Map.empty _) (Map.empty _) (Map.empty _).
Definition is_ahead (f : facts) (a b : positive) : bool :=
  match Map.find a (ahead f) with
  | Some m => match Map.find b m with Some _ => true | None => false end
  | None => false
  end.

Definition assume (f : facts) (x : literal) : facts :=
  match x with
  | AtLeast t n =>
      let m := match Map.find t (low f) with Some old => Z.max old n | None => n end in
      Facts (Map.add t m (low f)) (high f) (ahead f)
  | AtMost t n =>
      let m := match Map.find t (high f) with Some old => Z.min old n | None => n end in
      Facts (low f) (Map.add t m (high f)) (ahead f)
  | Ahead a b =>
      let m := match Map.find a (ahead f) with Some m => m | None => Map.empty _ end in
      Facts (low f) (high f) (Map.add a (Map.add b tt m) (ahead f))
  end.

Section Negation.
Variable k : index.

Definition rivals (a b : positive) : bool :=
  known k a && known k b && negb (Pos.eqb a b) &&
  existsb (fun r => existsb (Z.eqb r) (sites k b)) (sites k a).

Definition negation (x : literal) : option literal :=
  match x with
  | AtLeast t n => Some (AtMost t (n - 1))
  | AtMost t n => Some (AtLeast t (n + 1))
  | Ahead a b => if rivals a b then Some (Ahead b a) else None
  end.

(* a, at its least start, ends after the greatest start of b. *)
Definition too_late (f : facts) (a b : positive) : bool :=
  match Map.find a (low f), Map.find b (high f) with
  | Some x, Some y => y <? x + ticks k a
  | _, _ => false
  end.

Definition is_false (f : facts) (x : literal) : bool :=
  match x with
  | AtLeast t n => match Map.find t (high f) with Some y => y <? n | None => false end
  | AtMost t n => match Map.find t (low f) with Some y => n <? y | None => false end
  | Ahead a b => too_late f a b || is_ahead f b a && (0 <? ticks k a + ticks k b)
  end.
End Negation.

(* ---- What is so of a plan. ---- *)

Section Meaning.
Variables (k : index) (es : list (edge positive)) (stores : list (store positive)).
Variables (s : positive -> Z) (first : Z).
Hypothesis V : plan k es stores s.

Definition means (x : literal) : Prop :=
  match x with
  | AtLeast t n => first + n <= s t
  | AtMost t n => s t <= first + n
  | Ahead a b => s a + ticks k a <= s b
  end.

Record true_facts (f : facts) : Prop := TrueFacts {
  low_true : forall t n, Map.find t (low f) = Some n -> first + n <= s t;
  high_true : forall t n, Map.find t (high f) = Some n -> s t <= first + n;
  ahead_true : forall a b, is_ahead f a b = true -> s a + ticks k a <= s b }.

Definition true_clauses (cs : clauses) :=
  forall i c, Map.find i cs = Some c -> exists x, In x c /\ means x.

Lemma nothing_is_true : true_facts none_known.
Proof.
  constructor; unfold is_ahead; cbn; intros t n; rewrite Map.gempty; discriminate.
Qed.

Lemma assumed : forall f x, true_facts f -> means x -> true_facts (assume f x).
Proof.
  intros f [t n|t n|a b] F M; cbn [means] in M; constructor; cbn [assume low high ahead];
    try (exact (low_true f F)); try (exact (high_true f F)); try (exact (ahead_true f F)).
  - intros u x H. destruct (Pos.eq_dec u t) as [->|D].
    + rewrite Map.gss in H. injection H as <-. destruct (Map.find t (low f)) as [old|] eqn:E; [|exact M].
      pose proof (low_true f F t old E). lia.
    + rewrite Map.gso in H by exact D. exact (low_true f F u x H).
  - intros u x H. destruct (Pos.eq_dec u t) as [->|D].
    + rewrite Map.gss in H. injection H as <-. destruct (Map.find t (high f)) as [old|] eqn:E; [|exact M].
      pose proof (high_true f F t old E). lia.
    + rewrite Map.gso in H by exact D. exact (high_true f F u x H).
  - intros u w H. unfold is_ahead in H. cbn [ahead] in H. destruct (Pos.eq_dec u a) as [->|D].
    + rewrite Map.gss in H. destruct (Pos.eq_dec w b) as [->|E]; [exact M|].
      apply (ahead_true f F). unfold is_ahead. destruct (Map.find a (ahead f)) as [m|];
        rewrite Map.gso in H by exact E; [exact H | rewrite Map.gempty in H; discriminate].
    + rewrite Map.gso in H by exact D. exact (ahead_true f F u w H).
Qed.

Lemma one_is_ahead : forall a b, rivals k a b = true ->
  s a + ticks k a <= s b \/ s b + ticks k b <= s a.
Proof.
  intros a b R. unfold rivals in R. rewrite !andb_true_iff, negb_true_iff in R.
  destruct R as [[[Ka Kb] N] Share]. apply Pos.eqb_neq in N. apply existsb_exists in Share as (r & Ra & Rb).
  apply existsb_exists in Rb as (q & Rb & E). apply Z.eqb_eq in E. subst q.
  exact (turns _ _ _ _ V a b r Ka Kb N Ra Rb).
Qed.

Lemma negated : forall x y, negation k x = Some y -> ~ means x -> means y.
Proof.
  intros [t n|t n|a b] y H N; cbn [negation] in H.
  - injection H as <-. cbn in *. lia.
  - injection H as <-. cbn in *. lia.
  - destruct (rivals k a b) eqn:R; [|discriminate]. injection H as <-. cbn in *.
    destruct (one_is_ahead a b R); [contradiction | assumption].
Qed.

Lemma late_is_not_ahead : forall f a b, true_facts f -> too_late k f a b = true ->
  ~ s a + ticks k a <= s b.
Proof.
  intros f a b F H. unfold too_late in H. destruct (Map.find a (low f)) as [x|] eqn:A; [|discriminate].
  destruct (Map.find b (high f)) as [y|] eqn:B; [|discriminate]. apply Z.ltb_lt in H.
  pose proof (low_true f F a x A). pose proof (high_true f F b y B). lia.
Qed.

Lemma false_is_false : forall f x, true_facts f -> is_false k f x = true -> ~ means x.
Proof.
  intros f [t n|t n|a b] F H; cbn [is_false means] in *.
  - destruct (Map.find t (high f)) as [y|] eqn:E; [|discriminate]. apply Z.ltb_lt in H.
    pose proof (high_true f F t y E). lia.
  - destruct (Map.find t (low f)) as [y|] eqn:E; [|discriminate]. apply Z.ltb_lt in H.
    pose proof (low_true f F t y E). lia.
  - apply orb_true_iff in H as [H|H]; [exact (late_is_not_ahead f a b F H)|].
    apply andb_true_iff in H as [H D]. apply Z.ltb_lt in D. pose proof (ahead_true f F b a H). lia.
Qed.
End Meaning.
