(* Certificates by windows one after another: a checker of them, proved sound. Lemma 16 of
   docs/guide/formal.md, of verify/certificates/microbatch_windows.py.

   From the rear of each window (Windows.v) a path leads to the front of the next, with the edges that
   index order and memory allow. So what they take adds up, with what lies between, and with the head
   of the first and the tail of the last (`windows_bound_plans`). That each short problem takes so
   long is a hypothesis, or shown by a certificate of its own (`windows_on_the_problem`). *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Instances Bounds PriceTables Loads Groups
  InOrder Lifecycles OneMachine FreeEdges Shown Staged Windows.
Import ListNotations.
Open Scope Z_scope.

Definition row_of_windows := list (nat * placing).  (* which short problem, and where *)

(* Ticks from the front of the first to the end of the rear of the last. *)
Fixpoint taken_by (l : table) (stores : list (store positive)) (lives : list life) (m : arcs)
    (shorts : list short) (ws : row_of_windows) : option Z :=
  match ws with
  | [] => None
  | (i, w) :: rest =>
      match nth_error shorts i with
      | None => None
      | Some sh =>
          if check_window l stores lives m sh w then
            match rest with
            | [] => Some (short_ticks sh)
            | (_, v) :: _ =>
                match walk (index_of l) m (rear w) (on_to w ++ [front v]),
                  taken_by l stores lives m shorts rest with
                | Some gap, Some more => Some (short_ticks sh + (gap - ticks (index_of l) (rear w)) + more)
                | _, _ => None
                end
            end
          else None
      end
  end.

Definition last_rear (w : placing) (rest : row_of_windows) : positive :=
  rear (last (map snd rest) w).

Definition check_windows (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (f : free) (shorts : list short) (ws : row_of_windows)
    (claim : Z) : bool :=
  is_free l es stores f &&
  match ws with
  | [] => false
  | (_, w) :: rest =>
      match Map.find (front w) (heads l counts (all f)),
        Map.find (last_rear w rest) (tails l counts (all f)),
        taken_by l stores (lives f) (arcs_of (all f)) shorts ws
      with
      | Some head, Some tail, Some n =>
          known (index_of l) (front w) && known (index_of l) (last_rear w rest) &&
          (claim <=? head + n + tail)
      | _, _, _ => false
      end
  end.

(* ---- It is sound. ---- *)

Section Row.
Variables (l : table) (es all : list (edge positive)) (stores : list (store positive)).
Variables (gs : list group) (lives : list life).
Local Notation k := (index_of l).
Variable s : positive -> Z.
Hypothesis G : check_groups l es stores gs = true.
Hypothesis Ls : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.
Hypothesis Va : plan k all stores s.
Variable shorts : list short.
Hypothesis Take : forall sh, In sh shorts ->
  bounds (Z.eqb (clock sh)) (short_table sh) (short_edges sh) (short_stores sh) (short_ticks sh).

Lemma taken_by_two : forall m i w i' v rest, taken_by l stores lives m shorts ((i, w) :: (i', v) :: rest) =
  match nth_error shorts i with
  | None => None
  | Some sh =>
      if check_window l stores lives m sh w then
        match walk k m (rear w) (on_to w ++ [front v]), taken_by l stores lives m shorts ((i', v) :: rest)
        with
        | Some gap, Some more => Some (short_ticks sh + (gap - ticks k (rear w)) + more)
        | _, _ => None
        end
      else None
  end.
Proof. reflexivity. Qed.

Lemma row_takes : forall rest i w n,
  taken_by l stores lives (arcs_of all) shorts ((i, w) :: rest) = Some n ->
  s (front w) + n <= s (last_rear w rest) + ticks k (last_rear w rest).
Proof.
  induction rest as [|[i' v] rest IH]; intros i w n H.
  - cbn [taken_by] in H. destruct (nth_error shorts i) as [sh|] eqn:Sh; [|discriminate].
    destruct (check_window _ _ _ _ _ _) eqn:C; [|discriminate]. injection H as <-.
    exact (window_takes l es all stores gs lives s G Ls V Va sh w C (Take sh (nth_error_In _ _ Sh))).
  - rewrite taken_by_two in H. destruct (nth_error shorts i) as [sh|] eqn:Sh; [|discriminate].
    destruct (check_window l stores lives (arcs_of all) sh w) eqn:C; [|discriminate].
    destruct (walk k (arcs_of all) (rear w) (on_to w ++ [front v])) as [gap|] eqn:W; [|discriminate].
    destruct (taken_by l stores lives (arcs_of all) shorts ((i', v) :: rest)) as [more|] eqn:M;
      [|discriminate].
    injection H as <-. specialize (IH i' v more M).
    pose proof (window_takes l es all stores gs lives s G Ls V Va sh w C (Take sh (nth_error_In _ _ Sh))).
    apply (walk_true l all stores s Va) in W. rewrite last_last in W.
    replace (last_rear w ((i', v) :: rest)) with (last_rear v rest); [lia|].
    unfold last_rear. cbn [map snd]. f_equal. generalize (map snd rest). intros ws. clear.
    revert v w. induction ws as [|x ws IH]; intros v w; [reflexivity|].
    change (last (v :: x :: ws) w) with (last (x :: ws) w). rewrite <- (IH x v), <- (IH x w). reflexivity.
Qed.
End Row.

(* Windows add up, if each short problem takes what is said of it. *)
Theorem windows_bound_plans : forall counts l es stores f shorts ws claim,
  check_windows counts l es stores f shorts ws claim = true ->
  (forall sh, In sh shorts ->
    bounds (Z.eqb (clock sh)) (short_table sh) (short_edges sh) (short_stores sh) (short_ticks sh)) ->
  bounds counts l es stores claim.
Proof.
  intros counts l es stores f shorts ws claim H Take s0 first last_ V0 L0.
  unfold check_windows in H. apply andb_true_iff in H as [F H]. unfold is_free in F.
  destruct (plan_with_free_edges l es stores _ _ _ F s0 V0) as (s & V & Va & L).
  specialize (L counts first last_ L0). clear s0 V0 L0.
  unfold check_free in F. rewrite !andb_true_iff in F. destruct F as [[[_ G] Ls] _].
  destruct ws as [|[i w] rest]; [discriminate|].
  destruct (Map.find (front w) (heads l counts (all f))) as [head|] eqn:Hd; [|discriminate].
  destruct (Map.find (last_rear w rest) (tails l counts (all f))) as [tail|] eqn:Tl; [|discriminate].
  destruct (taken_by l stores (lives f) (arcs_of (all f)) shorts ((i, w) :: rest)) as [n|] eqn:N;
    [|discriminate].
  rewrite !andb_true_iff, Z.leb_le in H. destruct H as [[Kf Kr] Claim].
  pose proof (row_takes l es (all f) stores (groups f) (lives f) s G Ls V Va shorts Take rest i w n N).
  pose proof (heads_hold l (all f) stores counts s first last_ Va L (all f) (incl_refl _) _ _ Hd Kf).
  pose proof (tails_hold l (all f) stores counts s first last_ Va L (all f) (incl_refl _) _ _ Tl Kr).
  lia.
Qed.

(* With a certificate of each short problem: the checker is sound. *)
Theorem windows_on_the_problem : forall counts l es stores f shorts proofs ws claim,
  check_windows counts l es stores f shorts ws claim && Nat.eqb (length shorts) (length proofs) &&
    forallb (fun x => check_shown (Z.eqb (clock (fst x))) (short_table (fst x)) (short_edges (fst x))
      (short_stores (fst x)) (short_ticks (fst x)) (snd x)) (combine shorts proofs) = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> claim <= last - first.
Proof.
  intros counts l es stores f shorts proofs ws claim H. rewrite !andb_true_iff, Nat.eqb_eq in H.
  destruct H as [[H Len] Shown_]. apply bounded_schedules.
  - unfold check_windows, is_free in H. apply andb_true_iff in H as [F _]. exact (free_written _ _ _ _ _ _ F).
  - apply (windows_bound_plans counts l es stores f shorts ws claim H). clear H.
    revert proofs Len Shown_. induction shorts as [|sh shorts IH]; intros proofs Len S sh' I; [destruct I|].
    destruct proofs as [|p proofs]; [discriminate|]. cbn [combine forallb fst snd] in S.
    apply andb_true_iff in S as [S Rest]. destruct I as [<-|I].
    + exact (shown_bounds_plans _ _ _ _ _ _ S).
    + exact (IH proofs (eq_add_S _ _ Len) Rest sh' I).
Qed.
