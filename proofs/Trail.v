(* Certificates by propagation: a checker of the trail of their lemmas, proved sound. Lemma 17 of
   docs/guide/formal.md; the certificates are those of verify/certificates/certificate.py.

   Suppose that whatever counts lay within `limit` ticks from `first` on. A lemma says that one of its
   literals is true (Facts.v). It is believed if what follows from the negations of all, and from the
   lemmas before, is absurd. What follows is told step by step, so nothing is searched for:

   - `Inside t`: t counts, and lies within the limit;
   - `Along a b`, `Against a b`: an edge moves the least start of b, the greatest of a;
   - `Turn a b`, `Unturn a b`: so does that a ends by the start of b;
   - `Decide a b`: a cannot end by the start of b, so b ends by the start of a;
   - `Sure a b`: an edge says that a ends by the start of b;
   - `Carry a b c`: a ends by the start of b, and b by that of c, so a does;
   - `Unit i j`: all literals of lemma i but the j-th are false, so that one is true.

   What is absurd says Absurd.v. A lemma of one literal is a fact from then on, and what follows at
   once may be told as well (`Follow`). In the end nothing needs to be supposed. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables Loads
  Groups InOrder Lifecycles OneMachine FreeEdges Facts Absurd.
Import ListNotations.
Open Scope Z_scope.

Inductive step :=
  | Inside (t : positive)
  | Along (a b : positive)
  | Against (a b : positive)
  | Turn (a b : positive)
  | Unturn (a b : positive)
  | Decide (a b : positive)
  | Sure (a b : positive)
  | Carry (a b c : positive)
  | Unit (i : positive) (j : nat).

Inductive item :=
  | Follow (x : step)
  | Learn (c : clause) (trail : list step) (why : absurd).

(* ---- The checker. ---- *)

Section Check.
Variables (counts : Z -> bool) (l : table) (stores : list (store positive)) (lives : list life).
Variables (k : index) (m : arcs) (limit : Z).

Definition later_than (f : facts) (a b : positive) (lag : Z) : facts :=
  match Map.find a (low f) with Some x => assume f (AtLeast b (x + ticks k a + lag)) | None => f end.
Definition sooner_than (f : facts) (a b : positive) (lag : Z) : facts :=
  match Map.find b (high f) with Some y => assume f (AtMost a (y - lag - ticks k a)) | None => f end.

Definition edge_of (a b : positive) : option Z :=
  if known k a && known k b then lag_of m a b else None.

Definition follow (cs : clauses) (f : facts) (x : step) : facts :=
  match x with
  | Inside t =>
      if known k t && counted k counts t
      then assume (assume f (AtLeast t 0)) (AtMost t (limit - ticks k t)) else f
  | Along a b => match edge_of a b with Some lag => later_than f a b lag | None => f end
  | Against a b => match edge_of a b with Some lag => sooner_than f a b lag | None => f end
  | Turn a b => if is_ahead f a b then later_than f a b 0 else f
  | Unturn a b => if is_ahead f a b then sooner_than f a b 0 else f
  | Decide a b => if rivals k a b && too_late k f a b then assume f (Ahead b a) else f
  | Carry a b c =>
      if is_ahead f a b && is_ahead f b c && (0 <=? ticks k b) then assume f (Ahead a c) else f
  | Sure a b =>
      match edge_of a b with Some lag => if 0 <=? lag then assume f (Ahead a b) else f | None => f end
  | Unit i j =>
      match Map.find i cs with
      | Some c =>
          if forallb (is_false k f) (firstn j c ++ skipn (S j) c)
          then match nth_error c j with Some x => assume f x | None => f end else f
      | None => f
      end
  end.

Fixpoint assume_false (f : facts) (c : clause) : option facts :=
  match c with
  | [] => Some f
  | x :: rest =>
      match negation k x with Some y => assume_false (assume f y) rest | None => None end
  end.

Definition is_lemma (cs : clauses) (f : facts) (c : clause) (trail : list step) (why : absurd) : bool :=
  match assume_false f c with
  | Some g => is_absurd stores lives k cs (fold_left (follow cs) trail g) why
  | None => false
  end.

(* Lemmas are numbered from 1 on; the end is a lemma without literals. *)
Fixpoint replay (next : positive) (cs : clauses) (f : facts) (items : list item) : bool :=
  match items with
  | [] => false
  | Follow x :: rest => replay next cs (follow cs f x) rest
  | Learn c trail why :: rest =>
      is_lemma cs f c trail why &&
      match c with
      | [] => true
      | [x] => replay (Pos.succ next) (Map.add next c cs) (assume f x) rest
      | _ => replay (Pos.succ next) (Map.add next c cs) f rest
      end
  end.
End Check.

(* ---- It is sound. ---- *)

Section Sound.
Variables (counts : Z -> bool) (l : table) (es all : list (edge positive)).
Variables (stores : list (store positive)) (gs : list group) (lives : list life).
Local Notation k := (index_of l).
Local Notation m := (arcs_of all).
Variables (s : positive -> Z) (first last limit : Z).
Hypothesis G : check_groups l es stores gs = true.
Hypothesis Ls : check_lives k (arcs_of es) l stores gs lives = true.
Hypothesis V : plan k es stores s.
Hypothesis Va : plan k all stores s.
Hypothesis L : lies k counts s first last.
Hypothesis Short : last - first <= limit.

Local Notation so := (true_facts k s first).
Local Notation mean := (means k s first).
Lemma edge_is_kept : forall a b lag, edge_of k m a b = Some lag -> s a + ticks k a + lag <= s b.
Proof.
  intros a b lag H. unfold edge_of in H. destruct (known k a && known k b) eqn:K; [|discriminate].
  apply andb_true_iff in K as [Ka Kb]. apply lag_is_edge in H. exact (kept _ _ _ _ Va a b lag H Ka Kb).
Qed.

Lemma later_true : forall f a b lag, so f -> s a + ticks k a + lag <= s b -> so (later_than k f a b lag).
Proof.
  intros f a b lag F E. unfold later_than. destruct (Map.find a (low f)) as [x|] eqn:A; [|exact F].
  apply assumed; [exact F|]. cbn. pose proof (low_true _ _ _ f F a x A). lia.
Qed.

Lemma sooner_true : forall f a b lag, so f -> s a + ticks k a + lag <= s b -> so (sooner_than k f a b lag).
Proof.
  intros f a b lag F E. unfold sooner_than. destruct (Map.find b (high f)) as [y|] eqn:B; [|exact F].
  apply assumed; [exact F|]. cbn. pose proof (high_true _ _ _ f F b y B). lia.
Qed.

Lemma all_but_one : forall f c j, so f -> (exists x, In x c /\ mean x) ->
  forallb (is_false k f) (firstn j c ++ skipn (S j) c) = true ->
  forall x, nth_error c j = Some x -> mean x.
Proof.
  intros f c j F (y & I & M) H x N. rewrite forallb_forall in H.
  apply nth_error_split in N as (u & v & -> & <-).
  rewrite firstn_app, firstn_all, Nat.sub_diag, app_nil_r in H.
  replace (S (length u)) with (length (u ++ [x])) in H by (rewrite app_length; cbn; lia).
  replace (u ++ x :: v) with ((u ++ [x]) ++ v) in H by (rewrite <- app_assoc; reflexivity).
  rewrite skipn_app, skipn_all, Nat.sub_diag in H. cbn [app skipn] in H.
  apply in_app_or in I as [I|[->|I]]; [|exact M|]; exfalso;
    apply (false_is_false k s first f y F); try exact M; apply H, in_or_app; auto.
Qed.

Lemma followed_true : forall cs f x, so f -> true_clauses k s first cs -> so (follow counts k m limit cs f x).
Proof.
  intros cs f x F C. destruct x as [t|a b|a b|a b|a b|a b|a b|a b c|i j]; cbn [follow].
  - destruct (known k t && counted k counts t) eqn:K; [|exact F]. apply andb_true_iff in K as [K Ct].
    specialize (L t K Ct). apply assumed; [apply assumed; [exact F|]|]; cbn; lia.
  - destruct (edge_of k m a b) as [lag|] eqn:E; [|exact F]. apply later_true, edge_is_kept, E. exact F.
  - destruct (edge_of k m a b) as [lag|] eqn:E; [|exact F]. apply sooner_true, edge_is_kept, E. exact F.
  - destruct (is_ahead f a b) eqn:A; [|exact F]. apply later_true; [exact F|].
    pose proof (ahead_true _ _ _ f F a b A). lia.
  - destruct (is_ahead f a b) eqn:A; [|exact F]. apply sooner_true; [exact F|].
    pose proof (ahead_true _ _ _ f F a b A). lia.
  - destruct (rivals k a b && too_late k f a b) eqn:R; [|exact F]. apply andb_true_iff in R as [R T].
    apply assumed; [exact F|]. cbn. destruct (one_is_ahead k es stores s V a b R) as [A|A]; [|exact A].
    destruct (late_is_not_ahead k s first f a b F T A).
  - destruct (edge_of k m a b) as [lag|] eqn:E; [|exact F]. destruct (Z.leb_spec 0 lag); [|exact F].
    apply assumed; [exact F|]. cbn. pose proof (edge_is_kept a b lag E). lia.
  - destruct (is_ahead f a b && is_ahead f b c && (0 <=? ticks k b)) eqn:H; [|exact F].
    rewrite !andb_true_iff, Z.leb_le in H. destruct H as [[A B] D]. apply assumed; [exact F|]. cbn.
    pose proof (ahead_true _ _ _ f F a b A). pose proof (ahead_true _ _ _ f F b c B). lia.
  - destruct (Map.find i cs) as [c|] eqn:I; [|exact F]. destruct (forallb _ _) eqn:H; [|exact F].
    destruct (nth_error c j) as [x|] eqn:N; [|exact F]. apply assumed; [exact F|].
    exact (all_but_one f c j F (C i c I) H x N).
Qed.

Lemma trail_true : forall cs trail f, so f -> true_clauses k s first cs ->
  so (fold_left (follow counts k m limit cs) trail f).
Proof.
  intros cs. induction trail as [|x trail IH]; intros f F C; [exact F|]. cbn [fold_left].
  apply IH; [apply followed_true|]; assumption.
Qed.

Lemma assumed_false : forall c f g, assume_false k f c = Some g -> so f ->
  (forall x, In x c -> ~ mean x) -> so g.
Proof.
  induction c as [|x c IH]; intros f g H F N; cbn [assume_false] in H; [injection H as <-; exact F|].
  destruct (negation k x) as [y|] eqn:Y; [|discriminate]. apply (IH _ _ H).
  - apply assumed; [exact F|]. exact (negated k es stores s first V x y Y (N x (or_introl eq_refl))).
  - intros z I. apply N. right. exact I.
Qed.

Lemma meaning_decided : forall x, mean x \/ ~ mean x.
Proof. intros [t n|t n|a b]; cbn; lia. Qed.

Lemma one_is_true : forall c, (exists x, In x c /\ mean x) \/ (forall x, In x c -> ~ mean x).
Proof.
  induction c as [|x c [(y & I & M)|N]]; [right; intros x []| |].
  - left. exists y. split; [right; exact I | exact M].
  - destruct (meaning_decided x) as [M|M]; [left; exists x; split; [left; reflexivity | exact M]|].
    right. intros y [<-|I]; [exact M | exact (N y I)].
Qed.

Lemma lemma_is_true : forall cs f c trail why, so f -> true_clauses k s first cs ->
  is_lemma counts stores lives k m limit cs f c trail why = true -> exists x, In x c /\ mean x.
Proof.
  intros cs f c trail why F C H. destruct (one_is_true c) as [T|N]; [exact T|exfalso].
  unfold is_lemma in H. destruct (assume_false k f c) as [g|] eqn:A; [|discriminate].
  apply (absurd_is_false l es stores gs lives s first G Ls V cs _ why (trail_true cs trail g (assumed_false c f g A F N) C) C H).
Qed.

Lemma replayed : forall items next cs f, so f -> true_clauses k s first cs ->
  replay counts stores lives k m limit next cs f items = true -> False.
Proof.
  induction items as [|[x|c trail why] items IH]; intros next cs f F C H; [discriminate| |];
    cbn [replay] in H.
  - exact (IH _ _ _ (followed_true cs f x F C) C H).
  - apply andb_true_iff in H as [Lem H]. pose proof (lemma_is_true cs f c trail why F C Lem) as (x & I & M).
    assert (C' : true_clauses k s first (Map.add next c cs)).
    { intros i d E. destruct (Pos.eq_dec i next) as [->|D].
      - rewrite Map.gss in E. injection E as <-. exists x. split; assumption.
      - rewrite Map.gso in E by exact D. exact (C i d E). }
    destruct c as [|y [|z c]]; [destruct I| |].
    + destruct I as [->|[]]. exact (IH _ _ _ (assumed k s first f x F M) C' H).
    + exact (IH _ _ _ F C' H).
Qed.
End Sound.

(* Nothing lies within `least - 1` ticks, with the edges that index order and memory allow. *)
Definition check_trail (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (gs : list group) (lives : list life)
    (all : list (edge positive)) (least : Z) (items : list item) : bool :=
  check_free l es stores gs lives all &&
  replay counts stores lives (index_of l) (arcs_of all) (least - 1) 1 (Map.empty _) none_known items.

(* The checker is sound: what it accepts bounds the makespan of every plan, and so of every right
   schedule. *)
Theorem trail_bounds_plans : forall counts l es stores gs lives all least items,
  check_trail counts l es stores gs lives all least items = true -> bounds counts l es stores least.
Proof.
  intros counts l es stores gs lives all least items H s0 first last V0 L0. unfold check_trail in H.
  apply andb_true_iff in H as [F H].
  destruct (plan_with_free_edges l es stores gs lives all F s0 V0) as (s & V & Va & L).
  specialize (L counts first last L0). unfold check_free in F. rewrite !andb_true_iff in F.
  destruct F as [[[_ G] Ls] _].
  destruct (Z_le_gt_dec least (last - first)) as [Done|Late]; [exact Done|exfalso].
  apply (replayed counts l es all stores gs lives s first last (least - 1) G Ls V Va L ltac:(lia)
    items 1 (Map.empty _) none_known (nothing_is_true _ _ _)).
  - intros i c E. rewrite Map.gempty in E. discriminate.
  - exact H.
Qed.

Theorem trail_on_the_problem : forall counts l es stores gs lives all least items,
  check_trail counts l es stores gs lives all least items = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> least <= last - first.
Proof.
  intros counts l es stores gs lives all least items H.
  apply bounded_schedules; [|exact (trail_bounds_plans _ _ _ _ _ _ _ _ _ H)].
  unfold check_trail in H. apply andb_true_iff in H as [F _]. exact (free_written _ _ _ _ _ _ F).
Qed.
