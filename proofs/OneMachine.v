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
From Bubbleproof Require Import Definitions Starts Packing.
Import ListNotations.
Open Scope Z_scope.
Module Map := PositiveMap.

(* A problem written out: for each task its duration and resources; and the edges. *)
Definition table := list (positive * (Z * list Z)).
Definition index := Map.t (Z * list Z).
Definition index_of (l : table) : index :=
  fold_right (fun x found => Map.add (fst x) (snd x) found) (Map.empty _) l.
Definition known (k : index) t := match Map.find t k with Some _ => true | None => false end.
Definition ticks (k : index) t := match Map.find t k with Some (d, _) => d | None => 0 end.
Definition sites (k : index) t := match Map.find t k with Some (_, rs) => rs | None => [] end.

Definition instance (l : table) (es : list (edge positive)) : problem positive :=
  let k := index_of l in Problem positive (map fst l) (ticks k) (sites k) es.

Record certificate := Certificate {
  resource : Z;
  crowd : list positive;
  least_head : Z;
  least_tail : Z;
  claim : Z }.

(* ---- The checker. ---- *)

Definition paths := Map.t Z.
Definition path (m : paths) t := match Map.find t m with Some n => n | None => 0 end.

Definition onward (k : index) (m : paths) (e : edge positive) : paths :=
  let '(a, b, lag) := e in
  if known k a && known k b
  then Map.add b (Z.max (path m b) (path m a + ticks k a + lag)) m else m.

Definition back (k : index) (m : paths) (e : edge positive) : paths :=
  let '(a, b, lag) := e in
  if known k a && known k b
  then Map.add a (Z.max (path m a) (lag + ticks k b + path m b)) m else m.

Definition heads (k : index) es := fold_left (onward k) es (Map.empty Z).
Definition tails (k : index) es := fold_left (back k) (rev es) (Map.empty Z).

Definition fits (k : index) (hs ts : paths) (c : certificate) t :=
  known k t && existsb (Z.eqb (resource c)) (sites k t) && (0 <=? ticks k t) &&
  (least_head c <=? path hs t) && (least_tail c <=? path ts t).

Fixpoint distinct (l : list positive) (seen : Map.t unit) : bool :=
  match l with
  | [] => true
  | t :: rest =>
      match Map.find t seen with Some _ => false | None => distinct rest (Map.add t tt seen) end
  end.

Definition has_home (k : index) t := match sites k t with [] => false | _ => true end.
Definition is_empty (l : list positive) := match l with [] => true | _ => false end.

Definition check_one_machine (l : table) (es : list (edge positive)) (c : certificate) : bool :=
  let k := index_of l in
  let hs := heads k es in
  let ts := tails k es in
  forallb (fun x => has_home k (fst x)) l && negb (is_empty (crowd c)) &&
  distinct (crowd c) (Map.empty unit) && forallb (fits k hs ts c) (crowd c) &&
  (claim c <=? least_head c + busy positive (ticks k) (crowd c) + least_tail c).

(* ---- It is sound. ---- *)

Lemma known_is_task : forall l t, known (index_of l) t = true -> In t (map fst l).
Proof.
  unfold known. induction l as [|[u v] l IH]; intros t H; cbn in *.
  - rewrite Map.gempty in H. discriminate.
  - destruct (Pos.eq_dec t u) as [->|N]; [left; reflexivity|right].
    rewrite Map.gso in H by exact N. apply IH, H.
Qed.

Lemma housed : forall k t, has_home k t = true -> sites k t <> [].
Proof. intros k t H E. unfold has_home in H. rewrite E in H. discriminate. Qed.

Lemma path_add : forall m t u n, path (Map.add u n m) t = if Pos.eq_dec t u then n else path m t.
Proof.
  intros m t u n. unfold path. destruct (Pos.eq_dec t u) as [->|N].
  - rewrite Map.gss. reflexivity.
  - rewrite Map.gso by exact N. reflexivity.
Qed.

Lemma distinct_is_once : forall l seen, distinct l seen = true ->
  NoDup l /\ forall t, In t l -> Map.find t seen = None.
Proof.
  induction l as [|t l IH]; intros seen H; cbn in H; [split; [constructor|intros u []]|].
  destruct (Map.find t seen) eqn:E; [discriminate|]. apply IH in H as [N O]. split.
  - constructor; [|exact N]. intros I. apply O in I. rewrite Map.gss in I. discriminate.
  - intros u [->|I]; [exact E|]. apply O in I.
    destruct (Pos.eq_dec u t) as [->|D]; [exact E|]. rewrite Map.gso in I by exact D. exact I.
Qed.

Section Sound.

Variables (l : table) (es : list (edge positive)).
Variables (s : positive -> Z) (first last : Z).
Hypothesis V : timed positive (instance l es) s first last.
Let k := index_of l.

Definition heads_true (m : paths) := forall t, known k t = true -> first + path m t <= s t.
Definition tails_true (m : paths) :=
  forall t, known k t = true -> s t + ticks k t + path m t <= last.

Lemma edge_kept : forall a b lag, In (a, b, lag) es -> known k a = true -> known k b = true ->
  s a + ticks k a + lag <= s b.
Proof.
  intros a b lag I Ka Kb.
  exact (kept _ _ _ _ _ V a b lag I (known_is_task l a Ka) (known_is_task l b Kb)).
Qed.

Lemma onward_true : forall m e, In e es -> heads_true m -> heads_true (onward k m e).
Proof.
  intros m [[a b] lag] I H. unfold onward.
  destruct (known k a) eqn:Ka; [|exact H]. destruct (known k b) eqn:Kb; [|exact H].
  intros t Kt. cbn. rewrite path_add. destruct (Pos.eq_dec t b) as [->|N]; [|apply H, Kt].
  pose proof (edge_kept a b lag I Ka Kb). pose proof (H a Ka). pose proof (H b Kb). lia.
Qed.

Lemma back_true : forall m e, In e es -> tails_true m -> tails_true (back k m e).
Proof.
  intros m [[a b] lag] I H. unfold back.
  destruct (known k a) eqn:Ka; [|exact H]. destruct (known k b) eqn:Kb; [|exact H].
  intros t Kt. cbn. rewrite path_add. destruct (Pos.eq_dec t a) as [->|N]; [|apply H, Kt].
  pose proof (edge_kept a b lag I Ka Kb). pose proof (H a Ka). pose proof (H b Kb). lia.
Qed.

Lemma folded : forall (P : paths -> Prop) f (list : list (edge positive)) m,
  (forall m e, In e list -> P m -> P (f m e)) -> P m -> P (fold_left f list m).
Proof.
  intros P f. induction list as [|e rest IH]; intros m H Pm; [exact Pm|]. cbn. apply IH.
  - intros n x I. apply H. right. exact I.
  - apply H; [left; reflexivity | exact Pm].
Qed.

Lemma heads_hold : heads_true (heads k es).
Proof.
  unfold heads. apply (folded heads_true); [exact onward_true|].
  intros t Kt. unfold path. rewrite Map.gempty.
  destruct (inside _ _ _ _ _ V t (known_is_task l t Kt)). lia.
Qed.

Lemma tails_hold : tails_true (tails k es).
Proof.
  unfold tails.
  apply (folded tails_true); [intros m e I; apply back_true, in_rev, I|].
  intros t Kt. unfold path. rewrite Map.gempty.
  destruct (inside _ _ _ _ _ V t (known_is_task l t Kt)) as [_ E]. cbn in E. fold k in E. lia.
Qed.

End Sound.

Theorem one_machine_sound : forall l es c, check_one_machine l es c = true ->
  forall rows first last,
    valid positive (instance l es) rows -> within positive (instance l es) rows first last ->
    claim c <= last - first.
Proof.
  intros l es c H rows first last R W. unfold check_one_machine in H.
  rewrite !andb_true_iff, !forallb_forall, Z.leb_le in H.
  destruct H as [[[[Homes Some_] Once] Fits] Claim].
  apply distinct_is_once in Once as [Once _].
  assert (Housed : forall t, In t (map fst l) -> sites (index_of l) t <> []).
  { intros t I. apply in_map_iff in I as (x & <- & I). apply housed, Homes, I. }
  assert (V := valid_is_timed positive Pos.eq_dec (instance l es) Housed rows first last R W).
  set (s := first_start positive Pos.eq_dec rows) in V. set (k := index_of l) in *.
  assert (A : forall t, In t (crowd c) -> In t (map fst l) /\ In (resource c) (sites k t) /\
    between positive s (ticks k) (first + least_head c) (last - least_tail c) t).
  { intros t I. specialize (Fits t I). unfold fits in Fits.
    rewrite !andb_true_iff, !Z.leb_le in Fits. destruct Fits as [[[[K Here] D] Head] Tail].
    split; [apply known_is_task, K|]. split.
    - apply existsb_exists in Here as (r & Ir & E). apply Z.eqb_eq in E. subst r. exact Ir.
    - pose proof (heads_hold l es s first last V t K).
      pose proof (tails_hold l es s first last V t K).
      unfold between. fold k in H, H0. lia. }
  enough (busy positive (ticks k) (crowd c) <= last - least_tail c - (first + least_head c)) by lia.
  apply (packing positive s); [| exact Once | intros t I; apply A, I |].
  - intros E. rewrite E in Some_. discriminate.
  - intros t u It Iu D. destruct (A t It) as (Tt & Rt & _), (A u Iu) as (Tu & Ru & _).
    exact (turns _ _ _ _ _ V t u (resource c) Tt Tu D Rt Ru).
Qed.
