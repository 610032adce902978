(* Windows: what successive microbatches take alone, they take within any schedule.
   Lemma 16 of docs/guide/formal.md, of verify/certificates/microbatch_windows.py.

   A short problem has a clock: a resource that all tasks occupy that count. A window places it within
   a problem: `image` of each task of the short one is one of the problem, so that its starts are
   those of a plan of the short problem (`placed_plan`), whose makespan is the time from the start of
   `front` to the end of `rear`. `check_window` looks at

   - tasks: of one duration, on resources that the problem's have, no two the same; those on the
     clock share a resource, so that it excludes nothing more;
   - edges: each is a path of the problem, with the edges that index order and memory allow;
   - stores: all uses of the problem's store are lives (FreeEdges.v), which never hold less than
     nothing, and the changes in the short problem are those of some of them, whole;
   - what counts: it begins after `front` has, and ends before `rear` has, by paths.

   WindowRows.v has windows one after another. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances Bounds PriceTables Loads Groups
  InOrder Lifecycles OneMachine FreeEdges Uses Shown Staged.
Import ListNotations.
Open Scope Z_scope.

Record short := Short {
  short_table : table;
  short_edges : list (edge positive);
  short_stores : list (store positive);
  clock : Z;
  shift : Z;  (* its resource r is the problem's r - shift *)
  short_ticks : Z }.  (* what it takes, in ticks *)

(* The uses of a store that a short problem has: of which store of the problem, and by life (its
   place among those of the store) and number. *)
Record part_of := PartOf { of_place : nat; uses_of : list (nat * nat) }.

Record placing := Placing {
  images : list (positive * positive);
  front : positive;
  rear : positive;
  shared_by : Z;  (* what all that counts occupy *)
  vias : list (list positive);  (* of each edge, the tasks between *)
  between_ends : list (positive * (list positive * list positive));
  parts_of : list part_of;  (* of each store *)
  on_to : list positive }.  (* between the rear and the front of the next *)

Definition image_in (w : placing) : Map.t positive :=
  fold_right (fun x m => Map.add (fst x) (snd x) m) (Map.empty _) (images w).
Definition ends_in (w : placing) : Map.t (list positive * list positive) :=
  fold_right (fun x m => Map.add (fst x) (snd x) m) (Map.empty _) (between_ends w).
Definition image (im : Map.t positive) (t : positive) :=
  match Map.find t im with Some u => u | None => t end.

(* ---- The checker. ---- *)

Section Check.
Variables (l : table) (stores : list (store positive)) (lives : list life) (m : arcs).
Variables (sh : short) (w : placing).
Let k := index_of l.
Let short_index := index_of (short_table sh).
Let im := image_in w.

Definition on_clock (t : positive) := existsb (Z.eqb (clock sh)) (sites short_index t).

Definition check_task (t : positive) : bool :=
  let u := image im t in
  known k u && (ticks short_index t =? ticks k u) &&
  forallb (fun r => (r =? clock sh) || existsb (Z.eqb (r - shift sh)) (sites k u))
    (sites short_index t) &&
  (negb (on_clock t) || existsb (Z.eqb (shared_by w)) (sites k u)).

Definition check_wait (e : edge positive) (via : list positive) : bool :=
  let '(a, b, lag) := e in
  path_takes k m (image im a) (via ++ [image im b]) (ticks k (image im a) + lag).
Fixpoint check_waits (es : list (edge positive)) (paths : list (list positive)) : bool :=
  match es, paths with
  | [], _ => true
  | e :: es', p :: paths' => check_wait e p && check_waits es' paths'
  | _, _ => false
  end.

Definition check_ends (t : positive) : bool :=
  match Map.find t (ends_in w) with
  | Some (from, onto) =>
      let u := image im t in
      path_takes k m (front w) (from ++ [u]) 0 &&
      path_takes k m u (onto ++ [rear w]) (ticks k u - ticks k (rear w))
  | None => false
  end.

Definition check_part (st : store positive) (p : part_of) : bool :=
  match capacity _ st, events _ st with
  | None, _ => true
  | Some c, [] => base _ st <=? c
  | Some c, _ =>
      match nth_error stores (of_place p) with
      | None => false
      | Some given =>
          let some := store_lives lives (of_place p) in
          match capacity _ given with
          | None => false
          | Some given_c =>
              (given_c - base _ given <=? c - base _ st) && negb (Nat.eqb (length some) 0) &&
              pairs_once (uses_of p) && forallb (is_use some) (uses_of p) &&
              forallb (fun e => known short_index (owner _ e)) (events _ st) &&
              same_changes_told k l
                (map (fun e => Event positive (image im (owner _ e)) (at_end _ e) (delta _ e)) (events _ st))
                (flat_map (used some) (uses_of p))
          end
      end
  end.
Fixpoint check_parts (sts : list (store positive)) (ps : list part_of) : bool :=
  match sts, ps with
  | [], _ => true
  | st :: sts', p :: ps' => check_part st p && check_parts sts' ps'
  | _, _ => false
  end.

Definition check_window : bool :=
  let ts := map fst (short_table sh) in
  distinct (map (image im) ts) (Map.empty unit) && forallb check_task ts &&
  check_waits (short_edges sh) (vias w) && check_parts (short_stores sh) (parts_of w) &&
  forallb (fun t => negb (on_clock t) || check_ends t) ts.
End Check.

(* ---- Its starts are a plan of the short problem. ---- *)

Lemma once_apart : forall {A} (f : A -> positive) l x y, NoDup (map f l) -> In x l -> In y l ->
  f x = f y -> x = y.
Proof.
  intros A f. induction l as [|z l IH]; intros x y N Ix Iy E; [destruct Ix|].
  cbn in N. inversion N as [|? ? O N']; subst. destruct Ix as [->|Ix], Iy as [->|Iy].
  - reflexivity.
  - destruct O. rewrite E. apply in_map, Iy.
  - destruct O. rewrite <- E. apply in_map, Ix.
  - exact (IH x y N' Ix Iy E).
Qed.

Section Placed.
Variables (l : table) (es all : list (edge positive)) (stores : list (store positive)).
Variables (gs : list group) (lives : list life).
Local Notation k := (index_of l).
Variable s : positive -> Z.
Hypothesis G : check_groups l es stores gs = true.
Hypothesis Ls : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.
Hypothesis Va : plan k all stores s.

Section Window.
Variables (sh : short) (w : placing).
Local Notation k' := (index_of (short_table sh)).
Local Notation im := (image_in w).
Hypothesis Checked : check_window l stores lives (arcs_of all) sh w = true.
Definition placed (t : positive) := s (image (image_in w) t).

Lemma task_is : forall t, known k' t = true ->
  known k (image im t) = true /\ ticks k' t = ticks k (image im t) /\
  (forall r, In r (sites k' t) -> r = clock sh \/ In (r - shift sh) (sites k (image im t))) /\
  (on_clock sh t = true -> In (shared_by w) (sites k (image im t))).
Proof.
  intros t K. apply known_is_task in K. assert (H := Checked). unfold check_window in H.
  rewrite !andb_true_iff in H. destruct H as [[[[_ H] _] _] _]. rewrite forallb_forall in H.
  specialize (H t K). unfold check_task in H. cbv zeta in H. rewrite !andb_true_iff, Z.eqb_eq in H.
  destruct H as [[[Kt D] Si] Cl]. rewrite forallb_forall in Si.
  repeat split; try assumption.
  - intros r I. specialize (Si r I). apply orb_true_iff in Si as [E|E]; [left; apply Z.eqb_eq, E | right].
    apply is_site, E.
  - intros C. rewrite C in Cl. apply is_site, Cl.
Qed.

Lemma wait_kept : forall es' paths, check_waits l (arcs_of all) w es' paths = true ->
  forall a b lag, In (a, b, lag) es' ->
  placed a + ticks k (image im a) + lag <= placed b.
Proof.
  induction es' as [|e es' IH]; intros paths H a b lag I; [destruct I|].
  destruct paths as [|p paths]; [discriminate|]. cbn [check_waits] in H.
  apply andb_true_iff in H as [W H]. destruct I as [->|I].
  - unfold check_wait in W. apply (taken l all stores s Va) in W. unfold placed. lia.
  - exact (IH paths H a b lag I).
Qed.

Lemma moved_held : forall now evs, forallb (fun e => known k' (owner _ e)) evs = true ->
  held k' placed now evs =
  held k s now (map (fun e => Event positive (image im (owner _ e)) (at_end _ e) (delta _ e)) evs).
Proof.
  intros now. induction evs as [|e evs IH]; intros H; [reflexivity|]. cbn in H.
  apply andb_true_iff in H as [K H]. cbn [held map]. rewrite (IH H).
  destruct (task_is _ K) as (_ & D & _). unfold moment_of. cbn [owner at_end delta].
  rewrite D. reflexivity.
Qed.

Lemma part_fits : forall sts ps, check_parts l stores lives sh w sts ps = true ->
  forall st now, In st sts -> match capacity _ st with
    | Some c => base _ st + held k' placed now (events _ st) <= c | None => True end.
Proof.
  induction sts as [|st0 sts IH]; intros ps H st now I; [destruct I|].
  destruct ps as [|p ps]; [discriminate|]. cbn [check_parts] in H.
  apply andb_true_iff in H as [P H]. destruct I as [->|I].
  - unfold check_part in P. destruct (capacity _ st) as [c|]; [|exact Logic.I].
    destruct (events _ st) as [|e evs] eqn:Evs; [apply Z.leb_le in P; cbn [held]; lia|].
    rewrite <- Evs in *. clear e evs Evs. destruct (nth_error stores (of_place p)) as [given|] eqn:St; [|discriminate].
    destruct (capacity _ given) as [given_c|] eqn:Cap; [|discriminate]. cbv zeta in P.
    set (some := store_lives lives (of_place p)) in *.
    rewrite !andb_true_iff, Z.leb_le, negb_true_iff, Nat.eqb_neq, forallb_forall in P.
    destruct P as [[[[[Le N] Once] Uses] Known] Same].
    rewrite (moved_held now _ Known).
    assert (R := room _ _ _ _ V given now (nth_error_In _ _ St)). rewrite Cap in R.
    pose proof (uses_held l es stores gs lives s G Ls V (of_place p) given some (uses_of p) now St eq_refl N (pairs_are_once _ Once) Uses)
      as Part. assert (D := G). unfold check_groups in D. rewrite !andb_true_iff in D.
    destruct D as [[[D _] _] _]. apply distinct_is_once in D as [D _].
    rewrite (told_held l s now _ (flat_map (used some) (uses_of p)) D); [lia| |exact Same].
    intros e Ie. apply in_map_iff in Ie as (x & <- & Ix). cbn [owner].
    rewrite forallb_forall in Known. apply task_is, Known, Ix.
  - exact (IH ps H st now I).
Qed.

Theorem placed_plan : plan k' (short_edges sh) (short_stores sh) placed.
Proof.
  assert (H := Checked). unfold check_window in H. rewrite !andb_true_iff in H.
  destruct H as [[[[Once _] Waits] Parts] _]. apply distinct_is_once in Once as [Once _].
  constructor.
  - intros a b lag I Ka Kb. destruct (task_is a Ka) as (_ & D & _). rewrite D.
    exact (wait_kept _ _ Waits a b lag I).
  - intros t u r Kt Ku N Rt Ru. destruct (task_is t Kt) as (K1 & D1 & S1 & C1).
    destruct (task_is u Ku) as (K2 & D2 & S2 & C2). rewrite D1, D2.
    assert (Apart : image im t <> image im u).
    { intros E. apply N. apply known_is_task in Kt, Ku.
      exact (once_apart (image im) _ t u Once Kt Ku E). }
    assert (Share : exists q, In q (sites k (image im t)) /\ In q (sites k (image im u))).
    { destruct (Z.eq_dec r (clock sh)) as [->|Nr].
      - exists (shared_by w). split; [apply C1 | apply C2]; apply existsb_exists; exists (clock sh);
          (split; [assumption | apply Z.eqb_refl]).
      - exists (r - shift sh). split; [destruct (S1 r Rt) | destruct (S2 r Ru)]; (assumption || contradiction). }
    destruct Share as (q & Q1 & Q2). exact (turns _ _ _ _ V _ _ q K1 K2 Apart Q1 Q2).
  - intros st now I. exact (part_fits _ _ Parts st now I).
Qed.

Lemma placed_lies : lies k' (Z.eqb (clock sh)) placed (s (front w)) (s (rear w) + ticks k (rear w)).
Proof.
  intros t K C. assert (H := Checked). unfold check_window in H. rewrite !andb_true_iff in H.
  destruct H as [_ H]. rewrite forallb_forall in H. apply known_is_task in K as I. specialize (H t I).
  unfold on_clock in H. unfold counted in C. rewrite C in H. cbn [negb orb] in H. unfold check_ends in H.
  destruct (Map.find t (ends_in w)) as [[from onto]|]; [|discriminate]. cbv zeta in H.
  apply andb_true_iff in H as [A B]. apply (taken l all stores s Va) in A, B.
  destruct (task_is t K) as (_ & D & _). rewrite D. unfold placed. lia.
Qed.

Lemma window_takes : bounds (Z.eqb (clock sh)) (short_table sh) (short_edges sh) (short_stores sh)
  (short_ticks sh) -> s (front w) + short_ticks sh <= s (rear w) + ticks k (rear w).
Proof. intros B. specialize (B placed _ _ placed_plan placed_lies). lia. Qed.
End Window.
End Placed.
