(* Problems written out, as certificates are about, and what of a schedule their proofs use.

   A problem is a table of tasks, each with its duration and resources; a list of edges; and a list
   of stores. `plan` says of the starts of tasks what rules 3 to 5 of verify/spec.py ask: edges are
   kept (`kept`), tasks of one resource take turns (`turns`), stores keep their capacity (`room`).
   The starts of a schedule that keeps the rules are a plan (`rows_are_a_plan`).

   A makespan counts from the first to the last computation: `spans counts rows first last` says that
   the rows of the resources that count lie between two moments. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts.
Import ListNotations.
Open Scope Z_scope.
Module Map := PositiveMap.

Definition table := list (positive * (Z * list Z)).
Definition index := Map.t (Z * list Z).
Definition index_of (l : table) : index :=
  fold_right (fun x found => Map.add (fst x) (snd x) found) (Map.empty _) l.
Definition known (k : index) (t : positive) := match Map.find t k with Some _ => true | None => false end.
Definition ticks (k : index) (t : positive) := match Map.find t k with Some (d, _) => d | None => 0 end.
Definition sites (k : index) (t : positive) := match Map.find t k with Some (_, rs) => rs | None => [] end.
Definition has_home (k : index) (t : positive) := match sites k t with [] => false | _ => true end.

Definition instance (l : table) (es : list (edge positive)) : problem positive :=
  let k := index_of l in Problem positive (map fst l) (ticks k) (sites k) es.

(* The problem has the owners of its events, and each task has a resource. *)
Definition well_stored (k : index) (stores : list (store positive)) :=
  forallb (fun st => forallb (fun e => known k (owner _ e)) (events _ st)) stores.
Definition well_written (l : table) (stores : list (store positive)) :=
  let k := index_of l in forallb (fun x => has_home k (fst x)) l && well_stored k stores.

Definition spans (counts : Z -> bool) (p : problem positive) (rows : schedule positive)
    (first last : Z) :=
  forall x, In x rows -> counts (place _ x) = true -> first <= start _ x /\ finish _ p x <= last.

Definition check_spans (counts : Z -> bool) (p : problem positive) (rows : schedule positive)
    (first last : Z) :=
  forallb (fun x => negb (counts (place _ x)) || (first <=? start _ x) && (finish _ p x <=? last)) rows.

Theorem check_spans_iff : forall counts p rows first last,
  check_spans counts p rows first last = true <-> spans counts p rows first last.
Proof.
  intros counts p rows first last. unfold check_spans, spans. rewrite forallb_forall.
  split; intros H x I; specialize (H x I).
  - intros C. rewrite C in H. cbn in H. rewrite andb_true_iff, !Z.leb_le in H. exact H.
  - destruct (counts (place _ x)); [|reflexivity]. cbn. rewrite andb_true_iff, !Z.leb_le. auto.
Qed.

Fixpoint distinct (l : list positive) (seen : Map.t unit) : bool :=
  match l with
  | [] => true
  | t :: rest =>
      match Map.find t seen with Some _ => false | None => distinct rest (Map.add t tt seen) end
  end.

Lemma distinct_is_once : forall l seen, distinct l seen = true ->
  NoDup l /\ forall t, In t l -> Map.find t seen = None.
Proof.
  induction l as [|t l IH]; intros seen H; cbn in H; [split; [constructor|intros u []]|].
  destruct (Map.find t seen) eqn:E; [discriminate|]. apply IH in H as [N O]. split.
  - constructor; [|exact N]. intros I. apply O in I. rewrite Map.gss in I. discriminate.
  - intros u [->|I]; [exact E|]. apply O in I.
    destruct (Pos.eq_dec u t) as [->|D]; [exact E|]. rewrite Map.gso in I by exact D. exact I.
Qed.

Lemma known_is_task : forall l t, known (index_of l) t = true <-> In t (map fst l).
Proof.
  unfold known. induction l as [|[u v] l IH]; intros t; cbn.
  - rewrite Map.gempty. split; [discriminate | intros []].
  - destruct (Pos.eq_dec t u) as [->|N].
    + rewrite Map.gss. split; [left|]; reflexivity.
    + rewrite Map.gso by exact N. fold (index_of l). rewrite IH. split; [right; assumption|].
      intros [E|I]; [congruence | exact I].
Qed.

Lemma housed : forall k t, has_home k t = true -> sites k t <> [].
Proof. intros k t H E. unfold has_home in H. rewrite E in H. discriminate. Qed.

(* ---- Events and edges by their task. ---- *)

Definition changes := list (bool * Z).  (* whether at the end, delta *)
Definition changes_of (evs : list (event positive)) : Map.t changes :=
  fold_right (fun e m =>
    let own := match Map.find (owner _ e) m with Some l => l | None => [] end in
    Map.add (owner _ e) ((at_end _ e, delta _ e) :: own) m) (Map.empty _) evs.
Definition changes_at (t : positive) (m : Map.t changes) : changes :=
  match Map.find t m with Some l => l | None => [] end.

Definition arcs := Map.t (list (positive * Z)).
Definition arcs_of (es : list (edge positive)) : arcs :=
  fold_right (fun e m =>
    let '(a, b, lag) := e in
    let own := match Map.find a m with Some l => l | None => [] end in
    Map.add a ((b, lag) :: own) m) (Map.empty _) es.

Fixpoint most (b : positive) (l : list (positive * Z)) : option Z :=
  match l with
  | [] => None
  | (c, lag) :: rest =>
      if Pos.eqb b c then
        match most b rest with Some more => Some (Z.max lag more) | None => Some lag end
      else most b rest
  end.
Definition lag_of (m : arcs) (a b : positive) : option Z :=
  match Map.find a m with Some l => most b l | None => None end.

Lemma arcs_are_edges : forall es a b lag l, Map.find a (arcs_of es) = Some l ->
  In (b, lag) l -> In (a, b, lag) es.
Proof.
  induction es as [|[[a' b'] lag'] es IH]; intros a b lag l F I; cbn in F;
    [rewrite Map.gempty in F; discriminate|].
  destruct (Pos.eq_dec a a') as [->|D].
  - rewrite Map.gss in F. injection F as <-. destruct I as [[= <- <-]|I]; [left; reflexivity|].
    right. fold (arcs_of es) in I. destruct (Map.find a' (arcs_of es)) as [l|] eqn:G; [|destruct I].
    exact (IH _ _ _ _ G I).
  - rewrite Map.gso in F by exact D. right. exact (IH _ _ _ _ F I).
Qed.

Lemma most_is_one : forall b l lag, most b l = Some lag -> In (b, lag) l.
Proof.
  intros b. induction l as [|[c lag'] l IH]; intros lag H; cbn in H; [discriminate|].
  destruct (Pos.eqb_spec b c) as [<-|D]; [|right; apply IH, H].
  destruct (most b l) as [more|]; injection H as <-; [|left; reflexivity].
  destruct (Z.max_spec lag' more) as [[_ ->]|[_ ->]]; [right; apply IH; reflexivity|].
  left. reflexivity.
Qed.

Lemma lag_is_edge : forall es a b lag, lag_of (arcs_of es) a b = Some lag -> In (a, b, lag) es.
Proof.
  intros es a b lag H. unfold lag_of in H. destruct (Map.find a (arcs_of es)) as [l|] eqn:F;
    [|discriminate]. apply (arcs_are_edges es a b lag l F), most_is_one, H.
Qed.

Lemma changes_first : forall (t : positive) e rest, changes_at t (changes_of (e :: rest)) =
  if Pos.eq_dec t (owner _ e) then (at_end _ e, delta _ e) :: changes_at t (changes_of rest)
  else changes_at t (changes_of rest).
Proof.
  intros t e rest. unfold changes_at at 1. cbn [changes_of fold_right].
  destruct (Pos.eq_dec t (owner _ e)) as [->|D].
  - rewrite Map.gss. reflexivity.
  - rewrite Map.gso by exact D. reflexivity.
Qed.

(* ---- Starts that keep the rules. ---- *)

Section Plans.
Variable k : index.

Definition counted (counts : Z -> bool) (t : positive) := existsb counts (sites k t).
Definition moment_of (s : positive -> Z) (e : event positive) :=
  s (owner _ e) + if at_end _ e then ticks k (owner _ e) else 0.

Fixpoint held (s : positive -> Z) (now : Z) (l : list (event positive)) : Z :=
  match l with
  | [] => 0
  | e :: rest => (if moment_of s e <=? now then delta _ e else 0) + held s now rest
  end.

Record plan (es : list (edge positive)) (stores : list (store positive)) (s : positive -> Z) :
    Prop := Plan {
  kept : forall a b lag, In (a, b, lag) es -> known k a = true -> known k b = true ->
    s a + ticks k a + lag <= s b;
  turns : forall t u r, known k t = true -> known k u = true -> t <> u ->
    In r (sites k t) -> In r (sites k u) -> apart (s t) (ticks k t) (s u) (ticks k u);
  room : forall st now, In st stores ->
    match capacity _ st with Some c => base _ st + held s now (events _ st) <= c | None => True end }.

(* What counts lies between two moments. *)
Definition lies (counts : Z -> bool) (s : positive -> Z) (first last : Z) :=
  forall t, known k t = true -> counted counts t = true ->
    first <= s t /\ s t + ticks k t <= last.
End Plans.

Lemma some_window : forall p (rows : schedule positive), exists first last,
  within positive p rows first last.
Proof.
  intros p rows. induction rows as [|x rows (a & b & W)]; [exists 0, 0; intros x []|].
  exists (Z.min a (start _ x)), (Z.max b (finish _ p x)). intros y [<-|I]; [lia|].
  specialize (W y I). lia.
Qed.

Section FromRows.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Hypothesis W : well_written l stores = true.
Let k := index_of l.
Variable rows : schedule positive.
Hypothesis V : valid positive (instance l es) rows.
Let s := first_start positive Pos.eq_dec rows.

Lemma all_housed : forall t, In t (map fst l) -> sites k t <> [].
Proof.
  intros t I. unfold well_written in W. cbv zeta in W. rewrite andb_true_iff, forallb_forall in W.
  apply in_map_iff in I as (x & <- & I). apply housed, W, I.
Qed.

Lemma moment_is : forall e : event positive, known k (owner _ e) = true ->
  moment positive Pos.eq_dec (instance l es) rows e = Some (moment_of k s e).
Proof.
  intros e K. apply known_is_task in K. destruct V as (C & P & _).
  destruct (sites k (owner _ e)) as [|r rest] eqn:E; [destruct (all_housed _ K E)|].
  unfold moment, moment_of, s, first_start. fold k.
  destruct (find _ rows) as [x|] eqn:F.
  - unfold finish. cbn. fold k. apply find_some in F as [_ F].
    apply same_task_iff in F. rewrite F. destruct (at_end _ e); f_equal; lia.
  - destruct (listed_at positive Pos.eq_dec (instance l es) rows C P (owner _ e) r)
      as (x & Ix & Et & _); [exact K | cbn; fold k; rewrite E; left; reflexivity |].
    apply (find_none _ _ F) in Ix. cbn in Ix.
    rewrite (proj2 (same_task_iff _ _ _ _) Et) in Ix. discriminate.
Qed.

Lemma held_is_added : forall now evs, forallb (fun e => known k (owner _ e)) evs = true ->
  added positive Pos.eq_dec (instance l es) rows now evs = held k s now evs.
Proof.
  intros now. induction evs as [|e rest IH]; intros H; [reflexivity|].
  cbn in H. apply andb_true_iff in H as [K H]. cbn. rewrite moment_is by exact K.
  rewrite IH by exact H. reflexivity.
Qed.

Theorem rows_are_a_plan :
  in_memory positive Pos.eq_dec (instance l es) stores rows -> plan k es stores s.
Proof.
  intros M. destruct (some_window (instance l es) rows) as (a & b & Wide).
  assert (T := valid_is_timed positive Pos.eq_dec (instance l es) all_housed rows a b V Wide).
  constructor.
  - intros x y lag I Kx Ky.
    apply (Starts.kept _ _ _ _ _ T x y lag I); apply known_is_task; assumption.
  - intros t u r Kt Ku D. apply (Starts.turns _ _ _ _ _ T); try assumption;
      apply known_is_task; assumption.
  - intros st now I. specialize (M st I now). unfold load in M.
    rewrite held_is_added in M; [exact (proj2 M)|]. unfold well_written, well_stored in W. cbv zeta in W.
    rewrite andb_true_iff, !forallb_forall in W. fold k in W. apply W, I.
Qed.

Theorem rows_lie : forall counts first last,
  spans counts (instance l es) rows first last -> lies k counts s first last.
Proof.
  intros counts first last S t K C. apply existsb_exists in C as (r & Ir & C).
  destruct V as (Co & P & _). apply known_is_task in K.
  destruct (listed_at positive Pos.eq_dec (instance l es) rows Co P t r K Ir)
    as (x & Ix & Et & Ep & E).
  fold s in E. rewrite E. subst. specialize (S x Ix C). unfold finish in S. cbn in S.
  fold k in S. exact S.
Qed.
End FromRows.

(* ---- Longest paths: at least so long from the first that counts, to the last. ---- *)

Definition paths := Map.t Z.

Definition longer (m : paths) t n : paths :=
  match Map.find t m with
  | Some old => if old <? n then Map.add t n m else m
  | None => Map.add t n m
  end.

Definition onward (k : index) (m : paths) (e : edge positive) : paths :=
  let '(a, b, lag) := e in
  match Map.find a m with
  | Some n => if known k a && known k b then longer m b (n + ticks k a + lag) else m
  | None => m
  end.

Definition back (k : index) (m : paths) (e : edge positive) : paths :=
  let '(a, b, lag) := e in
  match Map.find b m with
  | Some n => if known k a && known k b then longer m a (lag + ticks k b + n) else m
  | None => m
  end.

Definition nothing (l : table) (counts : Z -> bool) : paths :=
  let k := index_of l in
  fold_right (fun x m => if counted k counts (fst x) then Map.add (fst x) 0 m else m) (Map.empty Z) l.
Definition heads l counts es := fold_left (onward (index_of l)) es (nothing l counts).
Definition tails l counts es := fold_left (back (index_of l)) (rev es) (nothing l counts).

Section Paths.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variables (counts : Z -> bool) (s : positive -> Z) (first last : Z).
Let k := index_of l.
Hypothesis V : plan k es stores s.
Hypothesis L : lies k counts s first last.

Definition heads_true (m : paths) :=
  forall t n, Map.find t m = Some n -> known k t = true -> first + n <= s t.
Definition tails_true (m : paths) :=
  forall t n, Map.find t m = Some n -> known k t = true -> s t + ticks k t + n <= last.

Lemma longer_is : forall m t n u x, Map.find u (longer m t n) = Some x ->
  (u = t /\ x = n) \/ Map.find u m = Some x.
Proof.
  intros m t n u x H. unfold longer in H. assert (A : Map.find u (Map.add t n m) = Some x ->
    (u = t /\ x = n) \/ Map.find u m = Some x).
  { destruct (Pos.eq_dec u t) as [->|D].
    - rewrite Map.gss. intros [= <-]. left. split; reflexivity.
    - rewrite Map.gso by exact D. right. exact H0. }
  destruct (Map.find t m) as [old|]; [destruct (old <? n)|]; auto.
Qed.

Lemma onward_true : forall m e, In e es -> heads_true m -> heads_true (onward k m e).
Proof.
  intros m [[a b] lag] I H. unfold onward. destruct (Map.find a m) as [n|] eqn:A; [|exact H].
  destruct (known k a) eqn:Ka; [|exact H]. destruct (known k b) eqn:Kb; [|exact H].
  intros t x F Kt. apply longer_is in F as [[-> ->]|F]; [|exact (H t x F Kt)].
  pose proof (kept k es stores s V a b lag I Ka Kb). pose proof (H a n A Ka). lia.
Qed.

Lemma back_true : forall m e, In e es -> tails_true m -> tails_true (back k m e).
Proof.
  intros m [[a b] lag] I H. unfold back. destruct (Map.find b m) as [n|] eqn:B; [|exact H].
  destruct (known k a) eqn:Ka; [|exact H]. destruct (known k b) eqn:Kb; [|exact H].
  intros t x F Kt. apply longer_is in F as [[-> ->]|F]; [|exact (H t x F Kt)].
  pose proof (kept k es stores s V a b lag I Ka Kb). pose proof (H b n B Kb). lia.
Qed.

Lemma folded : forall (P : paths -> Prop) f (list : list (edge positive)) m,
  (forall m e, In e list -> P m -> P (f m e)) -> P m -> P (fold_left f list m).
Proof.
  intros P f. induction list as [|e rest IH]; intros m H Pm; [exact Pm|]. cbn. apply IH.
  - intros n x I. apply H. right. exact I.
  - apply H; [left; reflexivity | exact Pm].
Qed.

Lemma nothing_is : forall t n, Map.find t (nothing l counts) = Some n ->
  n = 0 /\ counted k counts t = true.
Proof.
  intros t n. unfold nothing. cbv zeta. fold k. generalize l. intros list.
  induction list as [|x list IH]; cbn; [rewrite Map.gempty; discriminate|].
  destruct (counted k counts (fst x)) eqn:C; [|exact IH].
  destruct (Pos.eq_dec t (fst x)) as [->|D].
  - rewrite Map.gss. intros [= <-]. split; [reflexivity | exact C].
  - rewrite Map.gso by exact D. exact IH.
Qed.

Theorem heads_hold : forall some, incl some es -> heads_true (heads l counts some).
Proof.
  intros some I. unfold heads. apply (folded heads_true).
  - intros m e J. apply onward_true, I, J.
  - intros t n F K. apply nothing_is in F as [-> C]. specialize (L t K C). lia.
Qed.

Theorem tails_hold : forall some, incl some es -> tails_true (tails l counts some).
Proof.
  intros some I. unfold tails. apply (folded tails_true).
  - intros m e J. apply back_true, I, in_rev, J.
  - intros t n F K. apply nothing_is in F as [-> C]. specialize (L t K C). lia.
Qed.
End Paths.
