(* A pipeline as people write it down, and the problem that it is: what theory/pipelines/pipeline.py
   derives from a problem file, in Coq. A theorem about one's own file names the pipeline
   (`pipeline_given`) and says that its table of tasks, edges and stores are those of that pipeline.

   Tasks are numbered: the forwards by stage, microbatch and slice; the backwards (B, or I where they
   are split) likewise; then W of those that are split; then the messages that take ticks of a link, of
   outputs and of gradients. Edges are listed so that each stands after those that lead to it: forwards
   from the first stage on, backwards from the last, each with its message. *)

Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances.
Import ListNotations.
Open Scope Z_scope.

Inductive placing :=
  | Loop  (* stage g on rank g mod p *)
  | Wave  (* even chunks on g mod p, odd ones on p - 1 - (g mod p) *)
  | Listed (ranks : list nat).  (* stage by stage *)

(* Between two ranks: ticks after a message, how many units a tick carries (a fraction, or any number of
   them), and whether both directions are resources of their own. *)
Record link := Link { latency : Z; bandwidth : option (Z * Z); is_full : bool }.

Record pipeline_given := Given {
  ranks : nat;
  chunks : nat;  (* stages of each rank *)
  microbatches : nat;
  slices : nat;  (* of each microbatch *)
  placement : placing;
  split : list (list bool);  (* by stage and microbatch: whether the backward runs as I and W *)
  forward : list (list Z);  (* ticks, by stage and slice *)
  backward : list (list Z);
  input_backward : list (list Z);
  weight_backward : list (list Z);
  message : list Z;  (* units that each stage sends on, and gets a gradient of *)
  every_link : link;
  named_links : list (nat * nat * link);  (* of two ranks that have another; the last one counts *)
  activation : list Z;  (* by stage: what F acquires *)
  released : list Z;  (* what I gives back of it, where the backward is split *)
  static : list Z;  (* what a stage weighs *)
  capacity : list (option Z) }.  (* of each rank *)

Section Problem.
Variable p : pipeline_given.

Definition num_stages := (ranks p * chunks p)%nat.
Definition rank_of (g : nat) : nat :=
  let r := (g mod ranks p)%nat in
  match placement p with
  | Loop => r
  | Wave => if Nat.even (g / ranks p) then r else (ranks p - 1 - r)%nat
  | Listed l => nth g l 0%nat
  end.
Definition is_split (g j : nat) := nth j (nth g (split p) []) false.
Definition ticks_in (rows : list (list Z)) (g k : nat) := nth k (nth g rows []) 0.

(* From stage g to the next, and back: ticks on the link, then its latency. *)
Definition link_of (g : nat) : link :=
  let a := rank_of g in let b := rank_of (S g) in
  fold_left (fun found x => let '(c, d, l) := x in
    if Nat.eqb a c && Nat.eqb b d || Nat.eqb a d && Nat.eqb b c then l else found)
    (named_links p) (every_link p).
Definition stays (g : nat) := Nat.eqb (rank_of g) (rank_of (S g)).
Definition on_link (g : nat) : Z :=
  if stays g then 0
  else match bandwidth (link_of g) with
  | Some (n, d) => - (- (nth g (message p) 0 * d) / n)
  | None => 0
  end.
Definition latency_of (g : nat) : Z := if stays g then 0 else latency (link_of g).
Definition lag_of (g : nat) : Z := on_link g + latency_of g.

(* ---- Tasks and their numbers. ---- *)

Definition samples : list (nat * nat * nat) :=
  flat_map (fun g => flat_map (fun j => map (fun k => (g, j, k)) (seq 0 (slices p)))
    (seq 0 (microbatches p))) (seq 0 num_stages).
Definition split_samples := filter (fun x => let '(g, j, _) := x in is_split g j) samples.

(* Counted in Z: unary numbers would be slow. *)
Definition of_nat3 (g j k : nat) (js ks : Z) := (Z.of_nat g * js + Z.of_nat j) * ks + Z.of_nat k.
Definition place_of (g j k : nat) : Z :=
  of_nat3 g j k (Z.of_nat (microbatches p)) (Z.of_nat (slices p)).
Definition size := Z.of_nat num_stages * Z.of_nat (microbatches p) * Z.of_nat (slices p).
Definition how_many (flags : list bool) : Z := fold_left (fun n (b : bool) => if b then n + 1 else n) flags 0.
Definition splits_before (g j : nat) : Z :=
  fold_left (fun n row => n + how_many row) (firstn g (split p)) (how_many (firstn j (nth g (split p) []))).
Definition F (g j k : nat) := Z.to_pos (1 + place_of g j k).
Definition B (g j k : nat) := Z.to_pos (1 + size + place_of g j k).
Definition W (g j k : nat) :=
  Z.to_pos (1 + 2 * size + splits_before g j * Z.of_nat (slices p) + Z.of_nat k).

(* Messages that take ticks, and the links that they occupy, in the order that they are first taken. *)
Definition is_sent (x : nat * nat * nat) := let '(g, _, _) := x in
  Nat.ltb (S g) num_stages && (0 <? on_link g).
Definition sent := filter is_sent samples.
Definition sent_before (g j k : nat) : Z :=
  let each := Z.of_nat (microbatches p) * Z.of_nat (slices p) in
  each * Z.of_nat (length (filter (fun h => is_sent (h, 0%nat, 0%nat)) (seq 0 g))) +
  Z.of_nat j * Z.of_nat (slices p) + Z.of_nat k.
Definition all_splits : Z := fold_left (fun n row => n + how_many row) (split p) 0.
Definition all_sent : Z :=
  sent_before num_stages 0 0.
Definition computed : Z := 2 * size + all_splits * Z.of_nat (slices p).
(* What stage g sends on, and the gradient that it gets back for it. *)
Definition SEND_F (g j k : nat) := Z.to_pos (1 + computed + sent_before g j k).
Definition SEND_B (g j k : nat) := Z.to_pos (1 + computed + all_sent + sent_before g j k).

Definition way (down : bool) (g : nat) : nat * nat :=
  let a := rank_of g in let b := rank_of (S g) in
  if is_full (link_of g) then (if down then (a, b) else (b, a)) else (Nat.min a b, Nat.max a b).
Definition same_way (x y : nat * nat) := Nat.eqb (fst x) (fst y) && Nat.eqb (snd x) (snd y).
Fixpoint first_of (seen : list (nat * nat)) (l : list (nat * nat)) : list (nat * nat) :=
  match l with
  | [] => rev seen
  | x :: rest => first_of (if existsb (same_way x) seen then seen else x :: seen) rest
  end.
Definition ways : list (nat * nat) :=
  let g_sent := filter (fun g => is_sent (g, 0%nat, 0%nat)) (seq 0 num_stages) in
  first_of [] (map (way true) g_sent ++ map (way false) g_sent).
Fixpoint index_in (x : nat * nat) (l : list (nat * nat)) : nat :=
  match l with [] => 0 | y :: rest => if same_way x y then 0 else S (index_in x rest) end.
Definition on_way (down : bool) (g : nat) :=
  (on_link g, [Z.of_nat (ranks p + index_in (way down g) ways)]).

Definition at_home (g : nat) (ticks : Z) := (ticks, [Z.of_nat (rank_of g)]).
Definition tasks_of : table :=
  map (fun x => let '(g, j, k) := x in (F g j k, at_home g (ticks_in (forward p) g k))) samples ++
  map (fun x => let '(g, j, k) := x in (B g j k,
    at_home g (ticks_in (if is_split g j then input_backward p else backward p) g k))) samples ++
  map (fun x => let '(g, j, k) := x in (W g j k, at_home g (ticks_in (weight_backward p) g k)))
    split_samples ++
  map (fun x => let '(g, j, k) := x in (SEND_F g j k, on_way true g)) sent ++
  map (fun x => let '(g, j, k) := x in (SEND_B g j k, on_way false g)) sent.

(* ---- Edges. ---- *)

Definition when (b : bool) (e : edge positive) := if b then [e] else [].
Definition is_last (g : nat) := Nat.leb num_stages (S g).
Definition from_F (x : nat * nat * nat) : list (edge positive) :=
  let '(g, j, k) := x in
  when (Nat.ltb (S k) (slices p)) (F g j k, F g j (S k), 0) ++
  when (negb (is_last g)) (F g j k, F (S g) j k, lag_of g) ++ [(F g j k, B g j k, 0)] ++
  when (is_sent x) (F g j k, SEND_F g j k, 0) ++
  when (is_sent x) (SEND_F g j k, F (S g) j k, latency_of g).
Definition from_B (x : nat * nat * nat) : list (edge positive) :=
  let '(g, j, k) := x in
  when (negb (Nat.eqb g 0)) (B g j k, B (g - 1) j k, lag_of (g - 1)) ++
  when (negb (Nat.eqb k 0)) (B g j k, B g j (k - 1), 0) ++
  when (is_split g j) (B g j k, W g j k, 0) ++
  (if Nat.eqb g 0 then [] else
    let h := (g - 1)%nat in
    when (is_sent (h, j, k)) (B g j k, SEND_B h j k, 0) ++
    when (is_sent (h, j, k)) (SEND_B h j k, B h j k, latency_of h)).
Definition edges_of : list (edge positive) :=
  flat_map from_F samples ++ flat_map from_B (rev samples).

(* ---- Memory. ---- *)

Definition change (t : positive) (at_end : bool) (amount : Z) : list (event positive) :=
  if amount =? 0 then [] else [Event positive t at_end amount].
Definition held (g : nat) := nth g (activation p) 0.
Definition back (g : nat) := nth g (released p) 0.
Definition by_F (x : nat * nat * nat) := let '(g, j, k) := x in change (F g j k) false (held g).
Definition by_B (x : nat * nat * nat) := let '(g, j, k) := x in
  if is_split g j
  then change (B g j k) false (Z.max 0 (- back g)) ++ change (B g j k) true (- Z.max 0 (back g))
  else change (B g j k) true (- held g).
Definition by_W (x : nat * nat * nat) := let '(g, j, k) := x in
  if is_split g j then change (W g j k) true (back g - held g) else [].
Definition store_of (r : nat) : store positive :=
  let own := filter (fun x => let '(g, _, _) := x in Nat.eqb (rank_of g) r) samples in
  Store positive
    (fold_right (fun g sum => (if Nat.eqb (rank_of g) r then nth g (static p) 0 else 0) + sum) 0
      (seq 0 num_stages))
    (nth r (capacity p) None) (flat_map by_F own ++ flat_map by_B own ++ flat_map by_W own).
Definition stores_of : list (store positive) := map store_of (seq 0 (ranks p)).

Definition problem_of : problem positive := instance tasks_of edges_of.

End Problem.

(* What is written out is the pipeline's problem, with its stores. *)
Theorem written_is : forall p l es stores,
  tasks_of p = l -> edges_of p = es -> stores_of p = stores ->
  instance l es = problem_of p /\ stores = stores_of p.
Proof. intros p l es stores <- <- <-. split; reflexivity. Qed.
