(* What the numbers of one rank show of a pipeline: lemma 20 of docs/guide/formal.md, the claims of
   verify/candidates/rank_claims.py, proved of every problem that has the pipeline in it (Staged.v).

   `ByWork`: rank r computes all its stages for each microbatch (of a frozen one F and B, no W: the
   numbers are those of the tasks), not before the least head of them, and after it is left the least tail. `ByHolding`: between the two it has room for so much, and
   each slice of each of its stages takes `units` for at least `life_of`; where it has one stage, no
   more than as many whole activations as fit. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables Loads
  Steps Lifecycles OneMachine FreeEdges Volume Staged Samples.
Import ListNotations.
Open Scope Z_scope.

Definition own_tasks (n : stage_numbers) (nm : stage_names) (r : Z) : list positive :=
  flat_map (fun x => let '(g, j, i) := x in own nm g j i) (samples n r).

(* ---- The checkers. ---- *)

Definition is_counted (counts : Z -> bool) (n : stage_numbers) (r : Z) : bool :=
  counts r && counts (rank_of n 0) && negb (is_empty (map (fun _ => 1%positive) (samples n r))).

Definition check_rank_work (counts : Z -> bool) (n : stage_numbers) (nm : stage_names) (r claim : Z) : bool :=
  is_counted counts n r && negb (is_empty (own_tasks n nm r)) &&
  distinct (own_tasks n nm r) (Map.empty unit) &&
  (claim <=? both_ends n r + Z.of_nat (microbatches n) * by_stage n r (work n)).

(* What gives back of an activation, after B has ended. *)
Definition givers := nat -> nat -> nat -> list (event positive).

Section Check.
Variables (n : stage_numbers) (nm : stage_names) (k : index) (m : arcs) (r : Z) (give : givers).

Definition is_given (b : positive) (e : event positive) : bool :=
  (delta _ e <=? 0) && known k (owner _ e) &&
  (Pos.eqb (owner _ e) b && at_end _ e || ends_before k m b (owner _ e) && (0 <=? ticks k (owner _ e))).
Definition use (x : sample) : list (event positive) :=
  let '(g, j, i) := x in Event positive (to nm g j i) false (units n g) :: give g j i.
Definition check_use (x : sample) : bool :=
  let '(g, j, i) := x in
  forallb (is_given (fro nm g j i)) (give g j i) &&
  (0 <=? units n g + total (map (delta _) (give g j i))).

(* All that happens to the store are the uses of the rank's stages. *)
Definition check_uses (l : table) (st : store positive) : bool :=
  distinct (map fst l) (Map.empty unit) && well_stored k [st] && forallb check_use (samples n r) &&
  same_changes_told k l (events _ st) (flat_map use (samples n r)).
End Check.

Definition whole_room (n : stage_numbers) (r cap : Z) (st : store positive) : Z :=
  let room := cap - base _ st in
  match own_stages n r with [g] => room - room mod units n g | _ => room end.

Definition check_rank_memory (counts : Z -> bool) (n : stage_numbers) (r cap : Z) (st : store positive)
    (claim : Z) : bool :=
  let held := Z.of_nat (microbatches n) * by_stage n r (fun g i => units n g * life_of n g i) in
  let room := whole_room n r cap st in
  is_counted counts n r && (0 <? room) && (claim <=? both_ends n r - (- held / room)).

Inductive rank_claim :=
  | ByWork (r claim : Z)
  | ByHolding (r : Z) (at_ : nat) (give : givers) (claim : Z).  (* of a store by its place *)
Definition claimed (c : rank_claim) := match c with ByWork _ x => x | ByHolding _ _ _ x => x end.

Definition check_rank (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (n : stage_numbers) (nm : stage_names) (c : rank_claim) : bool :=
  let k := index_of l in
  check_staged n nm k (arcs_of es) &&
  match c with
  | ByWork r claim => check_rank_work counts n nm r claim
  | ByHolding r at_ give claim =>
      match nth_error stores at_ with
      | None => false
      | Some st =>
          check_uses n nm k (arcs_of es) r give l st &&
          match capacity _ st with
          | Some cap => check_rank_memory counts n r cap st claim
          | None => false
          end
      end
  end.

(* ---- They are sound. ---- *)

Section Rank.
Variables (counts : Z -> bool) (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (n : stage_numbers) (nm : stage_names) (s : positive -> Z) (r first last : Z).
Local Notation k := (index_of l).
Hypothesis Staged : check_staged n nm k (arcs_of es) = true.
Hypothesis V : plan k es stores s.
Hypothesis L : lies k counts s first last.
Hypothesis Counted : is_counted counts n r = true.

Let begins := first + least_of (head n) (own_stages n r).
Let finishes := last - least_of (tail n) (own_stages n r).

Lemma counted_here : forall t q, In q (sites k t) -> counts q = true -> counted k counts t = true.
Proof. intros t q I C. apply existsb_exists. exists q. split; assumption. Qed.

Lemma inside : forall g j i, In (g, j, i) (samples n r) ->
  begins <= s (to nm g j i) /\ ending l s (fro nm g j i) <= finishes /\
  forall t, In t (own nm g j i) -> begins <= s t /\ ending l s t <= finishes.
Proof.
  intros g j i I. assert (C := Counted). unfold is_counted in C. rewrite !andb_true_iff in C.
  destruct C as [[Cr C0] _]. assert (G := own_stage _ _ _ _ _ I).
  apply sample_is in I as [I R]. assert (I0 : is_sample n 0 j 0)
    by (destruct I as (? & ? & ?); repeat split; lia).
  destruct (there_is n nm l es Staged 0 j 0 I0) as (Kf & Kb & _ & _ & _ & _ & _ & _ & Rf & Rb).
  destruct (L _ Kf (counted_here _ _ Rf C0)) as [A _].
  destruct (L _ Kb (counted_here _ _ Rb C0)) as [_ B].
  pose proof (head_is n nm l es stores s Staged V j g i first I A) as H.
  pose proof (way_back_is n nm l es stores s Staged V j g i last I B) as W.
  pose proof (least_of_is (head n) _ g G). pose proof (least_of_is (tail n) _ g G) as T.
  destruct (there_is n nm l es Staged g j i I) as (_ & Kg & _ & _ & _ & _ & _ & _ & _ & Rg).
  rewrite R in Rg. destruct (L _ Kg (counted_here _ _ Rg Cr)) as [_ Bg].
  assert (E : ending l s (fro nm g j i) <= finishes).
  { unfold finishes, tail in *. destruct (whole n); unfold ending in *; lia. }
  split; [unfold begins; lia|]. split; [exact E|]. intros t It.
  destruct (own_is n nm l es stores s Staged V g j i t I It) as (K & D & Rt & S & Wh).
  split; [unfold begins; lia|]. rewrite R in Rt. destruct (L _ K (counted_here _ _ Rt Cr)) as [_ Bt].
  unfold finishes, tail in *. destruct (whole n); [specialize (Wh eq_refl)|]; unfold ending in *; lia.
Qed.

Lemma rank_works : forall claim, check_rank_work counts n nm r claim = true -> claim <= last - first.
Proof.
  intros claim H. unfold check_rank_work in H. rewrite !andb_true_iff in H.
  destruct H as [[[_ Some_] Once] Claim]. apply Z.leb_le in Claim.
  apply distinct_is_once in Once as [Once _].
  enough (Z.of_nat (microbatches n) * by_stage n r (work n) <= finishes - begins)
    by (unfold finishes, begins, both_ends in *; lia).
  transitivity (busy positive (ticks k) (own_tasks n nm r)).
  - unfold own_tasks. rewrite busy_flat, <- sum_by_stage. apply total_below.
    intros [[g j] i] I. apply sample_is in I as [I _].
    exact (work_is n nm l es Staged g j i I).
  - assert (Own : forall t, In t (own_tasks n nm r) -> exists g j i,
      In (g, j, i) (samples n r) /\ In t (own nm g j i)).
    { intros t It. apply in_flat_map in It as ([[g j] i] & I & It). eauto 6. }
    apply (packing positive s); [|exact Once| |].
    + intros E. rewrite E in Some_. discriminate.
    + intros t It. destruct (Own t It) as (g & j & i & I & J).
      destruct (inside g j i I) as (_ & _ & In_). destruct (In_ t J). apply sample_is in I as [I _].
      destruct (own_is n nm l es stores s Staged V g j i t I J) as (_ & D & _).
      unfold between, ending in *. lia.
    + intros t u It Iu D. destruct (Own t It) as (g & j & i & I & J).
      destruct (Own u Iu) as (g' & j' & i' & I' & J').
      apply sample_is in I as [I R]. apply sample_is in I' as [I' R'].
      destruct (own_is n nm l es stores s Staged V g j i t I J) as (K & _ & S & _).
      destruct (own_is n nm l es stores s Staged V g' j' i' u I' J') as (K' & _ & S' & _).
      rewrite R in S. rewrite R' in S'. exact (turns _ _ _ _ V t u r K K' D S S').
Qed.
End Rank.

(* ---- What a rank holds. ---- *)

Section Held.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (n : stage_numbers) (nm : stage_names) (s : positive -> Z) (r : Z).
Variables (st : store positive) (give : givers).
Local Notation k := (index_of l).
Hypothesis Staged : check_staged n nm k (arcs_of es) = true.
Hypothesis V : plan k es stores s.
Hypothesis Uses : check_uses n nm k (arcs_of es) r give l st = true.

Definition in_use (now : Z) (x : sample) : Z :=
  let '(g, j, i) := x in
  if (s (to nm g j i) <=? now) && (now <? ending l s (fro nm g j i)) then units n g else 0.

Lemma use_is_held : forall now x, In x (samples n r) ->
  in_use now x <= held k s now (use n nm give x).
Proof.
  intros now [[g j] i] I. assert (H := Uses). unfold check_uses in H.
  rewrite !andb_true_iff, forallb_forall in H. destruct H as [[_ H] _]. specialize (H _ I).
  cbn [check_use] in H. rewrite andb_true_iff, forallb_forall, Z.leb_le in H. destruct H as [Given Sum].
  apply sample_is in I as [I _].
  destruct (there_is n nm l es Staged g j i I) as (_ & _ & F0 & F & B0 & B & _ & U & _).
  destruct (order_is n nm l es stores s Staged V g j i I) as (T & _).
  assert (Later : forall e, In e (give g j i) -> delta _ e <= 0 /\
    ending l s (fro nm g j i) <= moment_of k s e).
  { intros e Ie. specialize (Given e Ie). unfold is_given in Given.
    rewrite !andb_true_iff, orb_true_iff, !andb_true_iff, Pos.eqb_eq, !Z.leb_le in Given.
    destruct Given as [[D _] [[E A]|[E A]]]; (split; [exact D|]); unfold moment_of.
    - rewrite A, E. unfold ending. lia.
    - apply (followed l es stores s V) in E. destruct (at_end _ e); lia. }
  assert (Low : forall evs, incl evs (give g j i) ->
    total (map (delta _) evs) <= held k s now evs /\
    (now < ending l s (fro nm g j i) -> held k s now evs = 0)).
  { induction evs as [|e evs IH]; intros In_; cbn [held map total]; [lia|].
    destruct (Later e (In_ e (or_introl eq_refl))) as [D M].
    destruct (IH (fun x J => In_ x (or_intror J))) as [IH1 IH2].
    destruct (Z.leb_spec (moment_of k s e) now); (split; [lia | intros N; specialize (IH2 N); lia]). }
  destruct (Low _ (incl_refl _)) as [L1 L2]. cbn [use in_use held].
  change (moment_of k s (Event positive (to nm g j i) false (units n g))) with (s (to nm g j i) + 0).
  cbn [delta]. rewrite Z.add_0_r. unfold ending in *.
  destruct (Z.leb_spec (s (to nm g j i)) now); cbn [andb].
  - destruct (Z.ltb_spec now (s (fro nm g j i) + ticks k (fro nm g j i))); [rewrite L2 by lia; lia | lia].
  - rewrite L2 by lia. lia.
Qed.

Lemma uses_are_held : forall now,
  total (map (in_use now) (samples n r)) <= held k s now (events _ st).
Proof.
  intros now. assert (H := Uses). unfold check_uses in H. rewrite !andb_true_iff in H.
  destruct H as [[[Once Owned] _] Same]. apply distinct_is_once in Once as [Once _].
  rewrite (told_held l s now _ (flat_map (use n nm give) (samples n r)) Once); [| |exact Same].
  - rewrite held_flat. apply total_below. intros x I. exact (use_is_held now x I).
  - unfold well_stored in Owned. cbn [forallb] in Owned. rewrite andb_true_r, forallb_forall in Owned.
    exact Owned.
Qed.

Lemma in_use_least : forall now x, In x (samples n r) -> 0 <= in_use now x.
Proof.
  intros now [[g j] i] I. apply sample_is in I as [I _].
  destruct (there_is n nm l es Staged g j i I) as (_ & _ & _ & _ & _ & _ & _ & U & _).
  cbn [in_use]. destruct (_ && _); lia.
Qed.

Hypothesis Here : In st stores.
Variable cap : Z.
Hypothesis Cap : capacity _ st = Some cap.

Lemma uses_fit : forall now, total (map (in_use now) (samples n r)) <= cap - base _ st.
Proof.
  intros now. pose proof (room _ _ _ _ V st now Here) as R. rewrite Cap in R.
  pose proof (uses_are_held now). lia.
Qed.

(* Of one stage, as many whole activations as fit. *)
Lemma whole_uses_fit : 0 < whole_room n r cap st -> forall now,
  total (map (in_use now) (samples n r)) <= whole_room n r cap st.
Proof.
  intros P now. pose proof (uses_fit now) as F. unfold whole_room in *.
  destruct (own_stages n r) as [|g [|h rest]] eqn:Own; try exact F.
  assert (M : exists c, total (map (in_use now) (samples n r)) = units n g * c).
  { assert (One : forall x, In x (samples n r) -> exists c, in_use now x = units n g * c).
    { intros [[g' j] i] I. apply own_stage in I. rewrite Own in I. destruct I as [<-|[]].
      cbn [in_use]. destruct (_ && _); [exists 1 | exists 0]; lia. }
    revert One. generalize (samples n r) as xs. induction xs as [|x xs IH]; intros One.
    - exists 0. cbn. lia.
    - destruct (One x (or_introl eq_refl)) as (c & C).
      destruct (IH (fun y I => One y (or_intror I))) as (d & D). exists (c + d).
      cbn [map total]. rewrite C, D. lia. }
  destruct M as (c & M). rewrite M in *.
  destruct (Z_le_gt_dec (units n g) 0) as [Zero|U].
  - assert (Ig : In g (own_stages n r)) by (rewrite Own; left; reflexivity).
    destruct (samples n r) as [|[[g' j] i] xs] eqn:Xs; [cbn in M; lia|].
    assert (I : In (g', j, i) (samples n r)) by (rewrite Xs; left; reflexivity).
    assert (G := own_stage _ _ _ _ _ I). rewrite Own in G. destruct G as [<-|[]].
    apply sample_is in I as [I _].
    destruct (there_is n nm l es Staged g j i I) as (_ & _ & _ & _ & _ & _ & _ & U & _).
    replace (units n g) with 0 in * by lia. lia.
  - pose proof (Z.div_mod (cap - base _ st) (units n g) ltac:(lia)) as Dm.
    pose proof (Z.div_le_lower_bound (cap - base _ st) (units n g) c ltac:(lia) F). nia.
Qed.

Lemma rank_holds : forall counts first last claim, lies k counts s first last ->
  check_rank_memory counts n r cap st claim = true -> claim <= last - first.
Proof.
  intros counts first last claim L H. unfold check_rank_memory in H.
  rewrite !andb_true_iff, Z.ltb_lt, Z.leb_le in H. destruct H as [[C P] Claim].
  set (held_ := Z.of_nat (microbatches n) * _) in *. set (room_ := whole_room n r cap st) in *.
  set (a := first + least_of (head n) (own_stages n r)).
  set (b := last - least_of (tail n) (own_stages n r)).
  pose proof (inside counts l es stores n nm s r first last Staged V L C) as In_.
  assert (Ab : a <= b).
  { assert (C' := C). unfold is_counted in C'. rewrite !andb_true_iff in C'. destruct C' as [_ C'].
    destruct (samples n r) as [|[[g j] i] xs] eqn:Xs; [discriminate|].
    assert (I : In (g, j, i) (samples n r)) by (rewrite Xs; left; reflexivity).
    rewrite <- Xs in In_. destruct (In_ g j i I) as (A & B & _). apply sample_is in I as [I _].
    destruct (there_is n nm l es Staged g j i I) as (_ & _ & F0 & F & B0 & B' & _).
    destruct (order_is n nm l es stores s Staged V g j i I) as (T & _).
    unfold a, b, ending in *. lia. }
  set (ticks_ := Z.to_nat (b - a)). assert (N : a + Z.of_nat ticks_ = b) by (unfold ticks_; lia).
  assert (Fits : held_ <= room_ * Z.of_nat ticks_).
  { transitivity (ticked (fun now => total (map (in_use now) (samples n r))) a ticks_).
    - unfold ticked. rewrite total_swap. unfold held_. rewrite <- sum_by_stage. apply total_below.
      intros [[g j] i] I. destruct (In_ g j i I) as (A & B & _). apply sample_is in I as [I R].
      destruct (there_is n nm l es Staged g j i I) as (_ & _ & _ & _ & _ & _ & _ & U & _).
      pose proof (life_is n nm l es stores s Staged V g j i I) as Life.
      pose proof (ticked_at_least (fun now => in_use now (g, j, i)) (units n g) (s (to nm g j i))
        (ending l s (fro nm g j i)) a U) as T. unfold ticked in T.
      transitivity (units n g * (ending l s (fro nm g j i) - s (to nm g j i))); [nia|].
      apply T; [| |exact A|unfold b in *; lia].
      + intros now. apply in_use_least, sample_is. split; assumption.
      + intros now X Y. cbn [in_use]. destruct (Z.leb_spec (s (to nm g j i)) now); [|lia].
        destruct (Z.ltb_spec now (ending l s (fro nm g j i))); cbn [andb]; lia.
    - unfold ticked. rewrite <- (seq_length ticks_ 0) at 2. apply total_most.
      intros i _. apply whole_uses_fit, P. }
  assert (D : - Z.of_nat ticks_ <= - held_ / room_) by (apply Z.div_le_lower_bound; lia).
  unfold both_ends in Claim. unfold a, b in N. lia.
Qed.
End Held.

(* What the checker accepts bounds the makespan of every plan, and so of every right schedule. *)
Theorem rank_bounds_plans : forall counts l es stores n nm c,
  check_rank counts l es stores n nm c = true -> bounds counts l es stores (claimed c).
Proof.
  intros counts l es stores n nm c H s first last V L. unfold check_rank in H.
  apply andb_true_iff in H as [Staged H]. destruct c as [r claim|r at_ give claim]; cbn [claimed].
  - assert (C := H). unfold check_rank_work in C. rewrite !andb_true_iff in C. destruct C as [[[C _] _] _].
    exact (rank_works counts l es stores n nm s r first last Staged V L C claim H).
  - destruct (nth_error stores at_) as [st|] eqn:St; [|discriminate].
    apply andb_true_iff in H as [Uses H]. destruct (capacity _ st) as [cap|] eqn:Cap; [|discriminate].
    exact (rank_holds l es stores n nm s r st give Staged V Uses (nth_error_In _ _ St) cap Cap counts
      first last claim L H).
Qed.

Theorem rank_on_the_problem : forall counts l es stores n nm c,
  well_written l stores && check_rank counts l es stores n nm c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> claimed c <= last - first.
Proof.
  intros counts l es stores n nm c H. apply andb_true_iff in H as [W H].
  exact (bounded_schedules _ _ _ _ _ W (rank_bounds_plans counts l es stores n nm c H)).
Qed.
