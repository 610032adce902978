(* "Optimal over these choices" of a plan. A plan's space lists what is tried of a pipeline that is
   stated for one chunk and one slice (theory/pipelines/shapes/plan_space.py): chunks, placements,
   backwards, slices. `candidates` are all of them, and `shaped` is what one makes of the pipeline, as
   theory/pipelines/shapes/shaping.py says: each number divided into its shares, or none where a share
   is not whole. A bundle has a bound of each candidate that is a pipeline, whatever is chosen in it of
   what is open, and what shows it; `check_bundle` sees that none is missing. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions Stores Instances Bounds Staged Samples RankClaims NoRoom
  Shown Relaxation Cases Given.
Import ListNotations.
Open Scope Z_scope.

Inductive backs :=
  | Whole
  | Split
  | Split_on (ranks : list bool)
  | Mixed.  (* every set of ranks but none and all *)

Record plan_space := Space {
  given : pipeline_given;
  tried_chunks : list nat;
  tried_placements : list placing;
  tried_backwards : list backs;
  tried_slices : list nat;
  shared : list Z }.  (* what is divided too: ticks and units of the choices that are open *)

Record candidate := Candidate {
  in_chunks : nat;
  placed_so : placing;
  backward_so : backs;
  in_slices : nat }.

Fixpoint all_flags (n : nat) : list (list bool) :=
  match n with
  | O => [[]]
  | S k => map (cons false) (all_flags k) ++ map (cons true) (all_flags k)
  end.
Definition is_mixed (flags : list bool) := existsb (fun b => b) flags && negb (forallb (fun b => b) flags).
Definition each_backward (n : nat) (b : backs) : list backs :=
  match b with Mixed => map Split_on (filter is_mixed (all_flags n)) | _ => [b] end.

Section Space.
Variable s : plan_space.

Definition candidates : list candidate :=
  flat_map (fun c => flat_map (fun w => flat_map (fun b => map (Candidate c w b) (tried_slices s))
    (flat_map (each_backward (ranks (given s))) (tried_backwards s))) (tried_placements s))
    (tried_chunks s).

(* ---- What a candidate makes of the pipeline. ---- *)

Definition with_shape (c : candidate) (split : list (list bool)) (f b i w : list (list Z))
    (messages held back weights : list Z) : pipeline_given :=
  let p := given s in
  Given.Given (ranks p) (in_chunks c) (microbatches p) (in_slices c) (placed_so c) split f b i w
    messages (every_link p) (named_links p) held back weights (capacity p).

(* The shape alone, which says where stages lie. *)
Definition outline (c : candidate) := with_shape c [] [] [] [] [] [] [] [] [].
Definition stage_list (c : candidate) := seq 0 (num_stages (outline c)).
Definition home_of (c : candidate) (g : nat) := rank_of (outline c) g.

Definition fits_ranks (c : candidate) : bool :=
  let n := ranks (given s) in let homes := map (home_of c) (stage_list c) in
  match placed_so c with Listed l => Nat.eqb (length l) (num_stages (outline c)) | _ => true end &&
  forallb (fun r => Nat.ltb r n) homes && forallb (fun r => existsb (Nat.eqb r) homes) (seq 0 n).

Definition pieces (c : candidate) := Z.of_nat (in_chunks c) * Z.of_nat (in_slices c).
Definition is_whole (n : Z) (values : list Z) := forallb (fun v => v mod n =? 0) values.
Definition of_ranks (rows : list (list Z)) := map (fun row => nth 0 row 0) rows.
Definition per_stage (c : candidate) (values : list Z) :=
  map (fun g => nth (home_of c g) values 0 / pieces c) (stage_list c).
Definition in_rows (c : candidate) (rows : list (list Z)) :=
  map (fun v => repeat v (in_slices c)) (per_stage c (of_ranks rows)).
Definition flag_of (c : candidate) (g : nat) : bool :=
  match backward_so c with
  | Whole | Mixed => false
  | Split => true
  | Split_on flags => nth (home_of c g) flags false
  end.
(* A stage sends what its rank does, slice by slice. *)
Definition messages_of (c : candidate) :=
  map (fun g => nth (home_of c g) (message (given s)) 0 / Z.of_nat (in_slices c)) (stage_list c).
(* The weights of a rank lie with its first stage. *)
Definition weights_of (c : candidate) :=
  map (fun g => if existsb (fun h => Nat.eqb (home_of c h) (home_of c g)) (seq 0 g) then 0
    else nth (home_of c g) (static (given s)) 0) (stage_list c).

Definition shares_are_whole (c : candidate) : bool :=
  let p := given s in let n := pieces c in
  negb (n =? 0) && is_whole n (of_ranks (forward p)) && is_whole n (activation p) &&
  is_whole n (released p) && is_whole n (shared s) && is_whole (Z.of_nat (in_slices c)) (message p) &&
  match backward_so c with Split => true | _ => is_whole n (of_ranks (backward p)) end &&
  match backward_so c with
  | Whole => true
  | _ => is_whole n (of_ranks (input_backward p)) && is_whole n (of_ranks (weight_backward p))
  end.

Definition shaped (c : candidate) : option pipeline_given :=
  if fits_ranks c && shares_are_whole c then
    let p := given s in
    Some (with_shape c (map (fun g => repeat (flag_of c g) (microbatches p)) (stage_list c))
      (in_rows c (forward p)) (in_rows c (backward p)) (in_rows c (input_backward p))
      (in_rows c (weight_backward p)) (messages_of c) (per_stage c (activation p))
      (per_stage c (released p)) (weights_of c))
  else None.

End Space.

(* ---- A pipeline by the numbers of its stages (Staged.v). ---- *)

Definition is_split_stage (p : pipeline_given) (g : nat) := is_split p g 0.
Definition numbers_of (p : pipeline_given) : stage_numbers :=
  let handed g := if is_split_stage p g then input_backward p else backward p in
  Numbers (num_stages p) (microbatches p) (slices p) (fun g => Z.of_nat (rank_of p g))
    (ticks_in (forward p)) (fun g => ticks_in (handed g) g)
    (fun g k => ticks_in (forward p) g k + ticks_in (handed g) g k +
      (if is_split_stage p g then ticks_in (weight_backward p) g k else 0))
    (lag_of p) (negb (existsb (existsb (fun b => b)) (split p))) (held p).
Definition names_of (p : pipeline_given) : stage_names :=
  Names (F p) (B p)
    (fun g j k => F p g j k :: B p g j k :: if is_split p g j then [W p g j k] else [])
    (fun _ _ _ => []) (fun _ _ _ => []).
Definition given_back (p : pipeline_given) : givers := fun g j k => by_B p (g, j, k) ++ by_W p (g, j, k).

(* ---- Bundles. ---- *)

Inductive why :=
  | By_cases (proofs : list case_proof)
  | By_work (r : Z)  (* what a rank computes *)
  | By_holding (r : Z)  (* what it holds, where nothing is open *)
  | By_no_room (r : Z).

Record bounded := Bounded {
  which : candidate;
  asks : list question;  (* what is open *)
  more_stores : nat;  (* those that choices bring *)
  shows : why }.

Definition all_stores (p : pipeline_given) (b : bounded) := stores_of p ++ repeat unlimited (more_stores b).

(* Every schedule of every choice of the candidate takes so long. *)
Definition takes (s : plan_space) (b : bounded) (p : pipeline_given) (least : Z) :=
  forall ws, answered (asks b) ws -> let added := map adds ws in
  let problem := instance (with_tasks (tasks_of p) added) (with_edges (edges_of p) added) in
  forall rows first last,
    valid positive problem rows ->
    in_memory positive Pos.eq_dec problem (with_stores (all_stores p b) added) rows ->
    spans (fun r => r <? Z.of_nat (ranks (given s))) problem rows first last -> least <= last - first.

Definition every_candidate_takes (s : plan_space) (bundle : list bounded) (least : Z) :=
  forall c p, In c (candidates s) -> shaped s c = Some p ->
  exists b, In b bundle /\ which b = c /\ takes s b p least.

Definition nothing_open (b : bounded) := match asks b with [] => true | _ => false end.

Definition check_bounded (s : plan_space) (least : Z) (b : bounded) (p : pipeline_given) : bool :=
  let counts r := r <? Z.of_nat (ranks (given s)) in
  let l := tasks_of p in let es := edges_of p in let stores := all_stores p b in
  let n := numbers_of p in let nm := names_of p in
  match shows b with
  | By_cases proofs => check_cases counts l es stores least (asks b) proofs
  | By_work r =>
      let open := open_ways (asks b) in
      check_choices l stores open && check_relaxed l stores [] open [] &&
      check_rank counts l es [] n nm (ByWork r least)
  | By_holding r =>
      nothing_open b && (well_written l stores &&
        check_rank counts l es stores n nm (ByHolding r (Z.to_nat r) (given_back p) least))
  | By_no_room r =>
      nothing_open b &&
      (well_written l stores && check_no_room l es stores n nm r (Z.to_nat r) (given_back p))
  end.

Definition placing_eq (a b : placing) : {a = b} + {a <> b}.
Proof. decide equality. apply (list_eq_dec PeanoNat.Nat.eq_dec). Defined.
Definition backs_eq (a b : backs) : {a = b} + {a <> b}.
Proof. decide equality. apply (list_eq_dec bool_dec). Defined.
Definition candidate_eq (a b : candidate) : {a = b} + {a <> b}.
Proof.
  decide equality; (apply PeanoNat.Nat.eq_dec || apply backs_eq || apply placing_eq).
Defined.

Definition tried (s : plan_space) (c : candidate) :=
  if in_dec candidate_eq c (candidates s) then true else false.
Theorem is_tried : forall s c, tried s c = true -> In c (candidates s).
Proof. intros s c. unfold tried. destruct (in_dec candidate_eq c (candidates s)); [auto|discriminate]. Qed.

Definition is_of (c : candidate) (b : bounded) := if candidate_eq (which b) c then true else false.

Definition check_bundle (s : plan_space) (bundle : list bounded) (least : Z) : bool :=
  forallb (fun c =>
    match shaped s c with
    | None => true
    | Some p => match find (is_of c) bundle with Some b => check_bounded s least b p | None => false end
    end) (candidates s).

(* ---- It is sound. ---- *)

Lemma nothing_chosen : forall l es stores,
  with_tasks l [] = l /\ with_edges es [] = es /\ with_stores stores [] = stores.
Proof.
  intros l es stores. unfold with_tasks, with_edges. cbn [flat_map]. rewrite !app_nil_r, nothing_added.
  auto.
Qed.

Lemma bounded_takes : forall s least b p, check_bounded s least b p = true -> takes s b p least.
Proof.
  intros s least b p H ws A added problem. unfold check_bounded in H. cbv zeta in H.
  destruct (shows b) as [proofs|r|r|r].
  - exact (cases_on_every_choice _ _ _ _ _ _ proofs H ws A).
  - rewrite !andb_true_iff in H. destruct H as [[W R] C].
    assert (I := answered_by_ways _ _ A).
    apply bounded_schedules; [exact (choices_written _ _ _ W _ I)|].
    apply (relaxation_bounds _ _ _ [] (open_ways (asks b)) [] R _ least); [|exact I].
    destruct (nothing_chosen (tasks_of p) (edges_of p) []) as (-> & -> & _).
    exact (rank_bounds_plans _ _ _ _ _ _ _ C).
  - unfold nothing_open in H. destruct (asks b) eqn:E; [|discriminate]. inversion A. subst ws.
    subst problem. unfold added. cbn [map]. destruct (nothing_chosen (tasks_of p) (edges_of p)
      (all_stores p b)) as (-> & -> & ->). exact (rank_on_the_problem _ _ _ _ _ _ _ H).
  - unfold nothing_open in H. destruct (asks b) eqn:E; [|discriminate]. inversion A. subst ws.
    subst problem. unfold added. cbn [map]. destruct (nothing_chosen (tasks_of p) (edges_of p)
      (all_stores p b)) as (-> & -> & ->). intros rows first last V M _.
    destruct (no_schedule_has_room _ _ _ _ _ _ _ _ H rows V M).
Qed.

(* No schedule of any choice of any candidate takes less than what a bundle claims that is accepted. *)
Theorem bundle_bounds : forall s bundle least, check_bundle s bundle least = true ->
  every_candidate_takes s bundle least.
Proof.
  intros s bundle least H c p I S. unfold check_bundle in H. rewrite forallb_forall in H.
  specialize (H c I). rewrite S in H. destruct (find (is_of c) bundle) as [b|] eqn:Fi; [|discriminate].
  apply find_some in Fi as [Ib E]. exists b. split; [exact Ib|].
  unfold is_of in E. destruct (candidate_eq (which b) c) as [Eq|]; [|discriminate].
  split; [exact Eq | exact (bounded_takes s least b p H)].
Qed.
