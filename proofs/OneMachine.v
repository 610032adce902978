(* Certificates by one resource: a checker of them, proved sound.

   Heads and tails are longest paths: the head of a task is a number of ticks from the beginning of
   the schedule before which it cannot start, its tail what must follow after its end. The tasks of
   a crowd, which share one resource, run one after another, so for each schedule

       last - first >= least head + sum of their durations + least tail    (Carlier 1982).

   A certificate names the resource, the crowd, and the three numbers; the checker computes heads
   and tails itself, in one pass over the edges each way. They are longest paths where edges are
   listed in an order in which each comes after those that lead to it; in another order they come
   out too low, which makes the checker refuse more and accept nothing wrong. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances.
Import ListNotations.
Open Scope Z_scope.

Record certificate := Certificate {
  resource : Z;
  crowd : list positive;
  least_head : Z;
  least_tail : Z;
  claim : Z }.

(* ---- The checker. ---- *)

Definition reaches (m : paths) (t : positive) (least : Z) : bool :=
  match Map.find t m with Some n => least <=? n | None => false end.

Definition fits_between (k : index) (hs ts : paths) (c : certificate) t :=
  known k t && existsb (Z.eqb (resource c)) (sites k t) && (0 <=? ticks k t) &&
  reaches hs t (least_head c) && reaches ts t (least_tail c).

Definition is_empty (l : list positive) := match l with [] => true | _ => false end.

Definition check_one_machine (counts : Z -> bool) (l : table) (es : list (edge positive))
    (c : certificate) : bool :=
  let k := index_of l in
  let hs := heads l counts es in
  let ts := tails l counts es in
  negb (is_empty (crowd c)) && distinct (crowd c) (Map.empty unit) &&
  forallb (fits_between k hs ts c) (crowd c) &&
  (claim c <=? least_head c + busy positive (ticks k) (crowd c) + least_tail c).

(* ---- It is sound. ---- *)

Lemma reaches_is : forall m t least, reaches m t least = true ->
  exists n, Map.find t m = Some n /\ least <= n.
Proof.
  intros m t least H. unfold reaches in H. destruct (Map.find t m) as [n|]; [|discriminate].
  exists n. split; [reflexivity | apply Z.leb_le, H].
Qed.

Theorem one_machine_bound : forall counts l es c, check_one_machine counts l es c = true ->
  forall stores s first last, plan (index_of l) es stores s ->
    lies (index_of l) counts s first last -> claim c <= last - first.
Proof.
  intros counts l es c H stores s first last V L. unfold check_one_machine in H.
  rewrite !andb_true_iff, forallb_forall, Z.leb_le in H.
  destruct H as [[[Some_ Once] Fits] Claim]. apply distinct_is_once in Once as [Once _].
  set (k := index_of l) in *.
  assert (A : forall t, In t (crowd c) -> known k t = true /\ In (resource c) (sites k t) /\
    between positive s (ticks k) (first + least_head c) (last - least_tail c) t).
  { intros t I. specialize (Fits t I). unfold fits_between in Fits.
    rewrite !andb_true_iff, !Z.leb_le in Fits. destruct Fits as [[[[K Here] D] Head] Tail].
    split; [exact K|]. split.
    - apply existsb_exists in Here as (r & Ir & E). apply Z.eqb_eq in E. subst r. exact Ir.
    - apply reaches_is in Head as (n & Head & N). apply reaches_is in Tail as (m & Tail & M).
      pose proof (heads_hold l es stores counts s first last V L es (incl_refl es) t n Head K).
      pose proof (tails_hold l es stores counts s first last V L es (incl_refl es) t m Tail K).
      unfold between. fold k in H0. lia. }
  enough (busy positive (ticks k) (crowd c) <= last - least_tail c - (first + least_head c)) by lia.
  apply (packing positive s); [| exact Once | intros t I; apply A, I |].
  - intros E. rewrite E in Some_. discriminate.
  - intros t u It Iu D. destruct (A t It) as (Kt & Rt & _), (A u Iu) as (Ku & Ru & _).
    exact (turns _ _ _ _ V t u (resource c) Kt Ku D Rt Ru).
Qed.

Theorem one_machine_sound : forall counts l es stores c,
  well_written l stores && check_one_machine counts l es c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> claim c <= last - first.
Proof.
  intros counts l es stores c H rows first last R M S. apply andb_true_iff in H as [W H].
  exact (one_machine_bound counts l es c H stores _ first last
    (rows_are_a_plan l es stores W rows R M) (rows_lie l es rows R counts first last S)).
Qed.
