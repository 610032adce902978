(* Proofs by cases of a problem with choices: a checker of them, proved sound. Lemma 19 of
   docs/guide/formal.md, of verify/candidates/cases.py.

   A problem asks questions one after another, each of which is answered in one of its ways. A way
   makes an addition to the problem (Relaxation.v), and may settle later questions, which are then
   not asked. A choice answers all that are asked (`answered`). A case has answers to the first
   questions; its parts answer the next one, each in another way. A proof is a list in which a case
   comes before its parts, beginning with the case without answers: of each either a certificate of
   the problem without what is open, with pools of its stores, or `None`, and then its parts are
   proved behind it. `check_cases` walks through that list as `problems_of` does.

   What bounds each part bounds the case (`parts_bound_the_case`), and what is shown without what is
   open bounds the case too (Relaxation.v), so a proof bounds every choice (`cases_on_every_choice`). *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions Stores Starts Instances Bounds Shown Relaxation.
Import ListNotations.
Open Scope Z_scope.

Record way := Way { adds : addition; settles : list Z }.
Record question := Question { asked : Z; ways : list way }.

Definition remaining (w : way) (qs : list question) :=
  filter (fun q => negb (existsb (Z.eqb (asked q)) (settles w))) qs.

Inductive answered : list question -> list way -> Prop :=
  | Nothing_asked : answered [] []
  | One_answered : forall q qs w ws, In w (ways q) -> answered (remaining w qs) ws ->
      answered (q :: qs) (w :: ws).

(* The choice of those ways that stand at these places. *)
Fixpoint picked (places : list nat) (qs : list question) : option (list way) :=
  match places, qs with
  | [], [] => Some []
  | i :: more, q :: rest =>
      match nth_error (ways q) i with
      | None => None
      | Some w =>
          match picked more (remaining w rest) with Some ws => Some (w :: ws) | None => None end
      end
  | _, _ => None
  end.

Theorem picked_is_answered : forall places qs ws, picked places qs = Some ws -> answered qs ws.
Proof.
  induction places as [|i more IH]; intros [|q rest] ws H; try discriminate; cbn [picked] in H.
  - injection H as <-. constructor.
  - destruct (nth_error (ways q) i) as [w|] eqn:W; [|discriminate].
    destruct (picked more (remaining w rest)) as [ws'|] eqn:P; [|discriminate]. injection H as <-.
    constructor; [exact (nth_error_In _ _ W) | exact (IH _ _ P)].
Qed.

Record case := Case { answers : list way; still : list question }.
Definition parts (c : case) : list case :=
  match still c with
  | [] => []
  | q :: qs => map (fun w => Case (answers c ++ [w]) (remaining w qs)) (ways q)
  end.

(* ---- The checker. ---- *)

Section Check.
Variables (counts : Z -> bool) (l : table) (es : list (edge positive)).
Variables (stores : list (store positive)) (least : Z).

Definition open_ways (qs : list question) := map adds (flat_map ways qs).

Definition check_case (c : case) (pools : list (list nat)) (p : shown) : bool :=
  let done := map adds (answers c) in
  check_relaxed l stores done (open_ways (still c)) pools &&
  check_shown counts (with_tasks l done) (with_edges es done)
    (map (joined (with_stores stores done)) pools) least p.

Definition case_proof := option (list (list nat) * shown).

Fixpoint walk_cases (waiting : list case) (proofs : list case_proof) : bool :=
  match waiting, proofs with
  | [], [] => true
  | c :: rest, Some (pools, p) :: more => check_case c pools p && walk_cases rest more
  | c :: rest, None :: more =>
      match still c with [] => false | _ => walk_cases (parts c ++ rest) more end
  | _, _ => false
  end.
End Check.

Definition check_cases (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (least : Z) (qs : list question)
    (proofs : list case_proof) : bool :=
  check_choices l stores (open_ways qs) && walk_cases counts l es stores least [Case [] qs] proofs.

(* ---- It is sound. ---- *)

Lemma answered_by_ways : forall qs ws, answered qs ws -> incl (map adds ws) (open_ways qs).
Proof.
  intros qs ws A. induction A as [|q later w others I A IH]; intros a J; [destruct J|].
  unfold open_ways in *. cbn [flat_map]. rewrite map_app. apply in_or_app.
  destruct J as [<-|J]; [left; apply in_map, I | right]. apply IH in J.
  apply in_map_iff in J as (x & <- & J). apply in_map. apply in_flat_map in J as (y & Iy & J).
  apply in_flat_map. exists y. split; [|exact J]. apply filter_In in Iy. apply Iy.
Qed.

Section Sound.
Variables (counts : Z -> bool) (l : table) (es : list (edge positive)).
Variables (stores : list (store positive)) (least : Z).

(* Every choice takes so long. *)
Definition bounded_choice (ws : list way) := let chosen := map adds ws in
  bounds counts (with_tasks l chosen) (with_edges es chosen) (with_stores stores chosen) least.
Definition bounded_case (c : case) :=
  forall ws, answered (still c) ws -> bounded_choice (answers c ++ ws).

Theorem parts_bound_the_case : forall c, still c <> [] ->
  (forall part, In part (parts c) -> bounded_case part) -> bounded_case c.
Proof.
  intros [done qs] N H ws A. cbn [still answers] in *.
  destruct A as [|q later w others I A]; [destruct N; reflexivity|].
  specialize (H (Case (done ++ [w]) (remaining w later))).
  unfold bounded_case in H. cbn [parts still answers] in H |- *.
  specialize (H (in_map (fun w => Case (done ++ [w]) (remaining w later)) _ _ I) others A).
  rewrite <- app_assoc in H. exact H.
Qed.

Lemma case_is_bounded : forall c pools p, check_case counts l es stores least c pools p = true ->
  bounded_case c.
Proof.
  intros c pools p H ws A. unfold check_case in H. apply andb_true_iff in H as [R S].
  unfold bounded_choice. rewrite map_app. cbv zeta.
  apply (relaxation_bounds l es stores _ _ pools R counts least).
  - exact (shown_bounds_plans _ _ _ _ _ _ S).
  - apply answered_by_ways, A.
Qed.

Lemma walked : forall proofs waiting, walk_cases counts l es stores least waiting proofs = true ->
  forall c, In c waiting -> bounded_case c.
Proof.
  induction proofs as [|[[pools p]|] proofs IH]; intros [|c0 rest] H c I; try discriminate;
    try destruct I as [<-|I].
  - destruct I.
  - cbn in H. apply andb_true_iff in H as [H _]. exact (case_is_bounded _ pools p H).
  - cbn in H. apply andb_true_iff in H as [_ H]. exact (IH rest H c I).
  - cbn in H. destruct (still c0) as [|q qs] eqn:E; [discriminate|].
    apply parts_bound_the_case; [congruence|]. intros part J. apply (IH _ H), in_or_app.
    left. exact J.
  - cbn in H. destruct (still c0) as [|q qs]; [discriminate|].
    apply (IH _ H), in_or_app. right. exact I.
Qed.
End Sound.

(* The checker is sound: what it accepts bounds the makespan of every right schedule of every choice. *)
Theorem cases_on_every_choice : forall counts l es stores least qs proofs,
  check_cases counts l es stores least qs proofs = true ->
  forall ws, answered qs ws -> let chosen := map adds ws in
  let p := instance (with_tasks l chosen) (with_edges es chosen) in
  forall rows first last,
    valid positive p rows ->
    in_memory positive Pos.eq_dec p (with_stores stores chosen) rows ->
    spans counts p rows first last -> least <= last - first.
Proof.
  intros counts l es stores least qs proofs H ws A chosen p. unfold check_cases in H.
  apply andb_true_iff in H as [W H]. apply bounded_schedules.
  - exact (choices_written l stores _ W chosen (answered_by_ways qs ws A)).
  - exact (walked counts l es stores least proofs _ H _ (or_introl eq_refl) ws A).
Qed.
