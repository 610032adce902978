(* Certificates by one store: what is held, times how long, has to fit. A checker of them, proved
   sound: the lemma of verify/certificates/volume.py, lemma 14 of docs/guide/formal.md.

   Let all that happens to a store be lives (Lifecycles.v): each use of it holds `kept_at_least`
   units or more from its begin to its end, `most_held` at most, and nothing outside. Let A be
   `first` and the least head of what begins a use, B `last` less the least tail of what finishes
   one. Between A and B the store has room (B - A) to give, and what the uses take is

       V = the sum of kept_at_least times the ticks of a path from begin to end.

   More is missing. Where the tasks that begin are all of one resource and take d ticks or more, no
   more than k of them have begun before A + k d, and the load is k most_held at most; likewise
   before B with those that finish, and e. For k = 1 ... n, the steps at which that is less than
   there is room for, (d + e) (room - k most_held) is missing in all, if A + n d and B - n e do not
   meet; they do not if V >= room n (d + e).

   The proof adds up the load tick by tick, between A and B (`ticked`). By uses it is V or more
   (`ticked_at_least`, `volume_is_held`). By ticks it is room each at most, and k most_held in the
   k-th step from either end (`steps_fit`); `few_begun` and `few_open` say why, by packing turns of d
   and e ticks. That paths are the longest is not needed, and not checked. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances PriceTables Loads Steps
  Groups InOrder Lifecycles FreeEdges.
Import ListNotations.
Open Scope Z_scope.

Record volume_claim := VolumeClaim {
  of_store : Z;  (* by its place in the list of stores *)
  ways : list (list (list positive));  (* of each life the classes between its begin and its end *)
  volume_bound : Z }.

(* ---- The checker. ---- *)

Fixpoint sum_known (l : list (option Z)) : option Z :=
  match l with
  | [] => Some 0
  | None :: _ => None
  | Some x :: rest => match sum_known rest with Some y => Some (x + y) | None => None end
  end.

Fixpoint highest (level : Z) (l : list Z) : Z :=
  match l with [] => level | d :: rest => Z.max level (highest (level + d) rest) end.
Definition most_held (f : life) := highest (acquired f) (map change (stops f)).
Definition settled (f : life) := acquired f + total (map change (stops f)) =? 0.

Section Check.
Variables (k : index) (m : arcs).

Definition lasting (f : life) (way : list (list positive)) (j : nat) : option Z :=
  match walk k m (pick j (begins f)) (map (pick j) way ++ [pick j (finishes f)]) with
  | Some w => Some (w + ticks k (pick j (finishes f)))
  | None => None
  end.
Definition life_volume (f : life) (way : list (list positive)) : option Z :=
  match sum_known (map (lasting f way) (numbers f)) with
  | Some n => Some (kept_at_least f * n)
  | None => None
  end.
Fixpoint volume_of (fs : list life) (ws : list (list (list positive))) : option Z :=
  match fs, ws with
  | [], [] => Some 0
  | f :: fs', w :: ws' =>
      match life_volume f w, volume_of fs' ws' with
      | Some v, Some more => Some (v + more)
      | _, _ => None
      end
  | _, _ => None
  end.

(* The ticks of the shortest, where a resource runs all of them one at a time; else 0. *)
Definition shortest_alone (ts : list positive) : Z :=
  match ts with
  | [] => 0
  | t :: _ =>
      if distinct ts (Map.empty unit) &&
        existsb (fun r => forallb (fun u => existsb (Z.eqb r) (sites k u)) ts) (sites k t)
      then Z.max 0 (fold_right (fun u n => Z.min (ticks k u) n) (ticks k t) ts) else 0
  end.
End Check.

Fixpoint least_path (m : paths) (ts : list positive) : option Z :=
  match ts with
  | [] => None
  | t :: rest =>
      match Map.find t m with
      | None => None
      | Some n =>
          match rest with
          | [] => Some n
          | _ => match least_path m rest with Some more => Some (Z.min n more) | None => None end
          end
      end
  end.

Definition check_volume (counts : Z -> bool) (l : table) (es all : list (edge positive))
    (stores : list (store positive)) (lives : list life) (c : volume_claim) : bool :=
  let k := index_of l in
  let some := store_lives lives (Z.to_nat (of_store c)) in
  let firsts := flat_map begins some in
  let lasts := flat_map finishes some in
  match nth_error stores (Z.to_nat (of_store c)), volume_of k (arcs_of es) some (ways c),
    least_path (heads l counts all) firsts, least_path (tails l counts all) lasts
  with
  | Some st, Some v, Some head, Some tail =>
      match capacity _ st with
      | None => false
      | Some cap =>
          let room := cap - base _ st in
          let most := fold_right (fun f n => Z.max (most_held f) n) 0 some in
          let slow := shortest_alone k firsts + shortest_alone k lasts in
          let n := (room - 1) / most in
          let missing := slow * (n * room - most * steps_to n) in
          let needed := if room * n * slow <=? v then v + missing else v in
          (0 <=? of_store c) && (0 <? room) && (0 <? most) && (0 <=? head) && (0 <=? tail) &&
          forallb settled some && (volume_bound c <=? head + tail - (- needed / room))
      end
  | _, _, _, _ => false
  end.

(* ---- What a life holds. ---- *)

Lemma least_path_is : forall m ts n, least_path m ts = Some n ->
  forall t, In t ts -> exists x, Map.find t m = Some x /\ n <= x.
Proof.
  intros m. induction ts as [|t ts IH]; intros n H u I; [destruct I|]. cbn [least_path] in H.
  destruct (Map.find t m) as [x|] eqn:F; [|discriminate].
  destruct ts as [|w ts].
  - injection H as <-. destruct I as [<-|[]]. exists x. split; [exact F | lia].
  - destruct (least_path m (w :: ts)) as [more|]; [|discriminate]. injection H as <-.
    destruct I as [<-|I]; [exists x; split; [exact F | lia]|].
    destruct (IH more eq_refl u I) as (y & G & L). exists y. split; [exact G | lia].
Qed.

Lemma total_swap : forall {A B} (g : A -> B -> Z) xs ys,
  total (map (fun x => total (map (g x) ys)) xs) =
  total (map (fun y => total (map (fun x => g x y) xs)) ys).
Proof.
  intros A B g. induction xs as [|x xs IH]; intros ys; cbn [map total].
  - rewrite total_zeros; reflexivity.
  - rewrite total_plus, IH. reflexivity.
Qed.

Lemma total_flat : forall {A B} (f : A -> list B) (g : B -> Z) l,
  total (map g (flat_map f l)) = total (map (fun x => total (map g (f x))) l).
Proof.
  intros A B f g. induction l as [|x l IH]; [reflexivity|]. cbn [flat_map map total].
  rewrite map_app, total_app, IH. reflexivity.
Qed.

Lemma by_number : forall (row : list positive) (g : positive -> Z),
  total (map (fun j => g (pick j row)) (seq 0 (length row))) = total (map g row).
Proof.
  intros row g. rewrite <- (all_of row (named row)) at 2. rewrite map_map. reflexivity.
Qed.

Section Life.
Variables (l : table) (es : list (edge positive)) (stores : list (store positive)).
Variable s : positive -> Z.
Local Notation k := (index_of l).
Hypothesis V : plan k es stores s.
Variable f : life.
Hypothesis Fine : check_life k (arcs_of es) f = true.
Hypothesis Settled : settled f = true.

Lemma ordered_before : forall evs b e, ordered l s b (evs ++ [e]) ->
  b <= moment_of k s e /\ forall x, In x evs -> moment_of k s x <= moment_of k s e.
Proof.
  induction evs as [|x evs IH]; intros b e O; destruct O as [B O].
  - split; [exact B | intros x []].
  - destruct (IH _ _ O) as [M G]. split; [lia|]. intros y [<-|I]; [exact M | auto].
Qed.

Lemma all_over : forall evs now, (forall e, In e evs -> moment_of k s e <= now) ->
  held k s now evs = total (map (delta _) evs).
Proof.
  induction evs as [|e evs IH]; intros now H; [reflexivity|]. cbn [held map total].
  rewrite IH by (intros x I; apply H; right; exact I).
  pose proof (H e (or_introl eq_refl)). destruct (Z.leb_spec (moment_of k s e) now); lia.
Qed.

Lemma held_high : forall evs b now level, ordered l s b evs ->
  level + held k s now evs <= highest level (map (delta _) evs).
Proof.
  induction evs as [|e evs IH]; intros b now lev O; [cbn; lia|]. destruct O as [B O].
  cbn [map highest held]. destruct (Z.leb_spec (moment_of k s e) now) as [L|L].
  - specialize (IH (moment_of k s e) now (lev + delta _ e) O). lia.
  - rewrite (nothing_yet l s evs (moment_of k s e) now O L). lia.
Qed.

Lemma changes_told : forall j, map (delta _) (map (event_of j) (stops f)) = map change (stops f).
Proof. intros j. rewrite map_map. reflexivity. Qed.

Lemma ends_later : forall j, (j < length (begins f))%nat ->
  begin_of s f j <= end_of l s f j /\
  forall e, In e (map (event_of j) (stops f)) -> moment_of k s e <= end_of l s f j.
Proof.
  intros j L. destruct (life_ordered l es stores s V f Fine j L) as [O _].
  unfold stops in *. rewrite map_app in *. cbn [map] in *. apply ordered_before in O as [B G].
  change (moment_of k s (event_of j (last_stop f))) with (end_of l s f j) in *.
  split; [exact B|]. intros e I. apply in_app_or in I as [I|[<-|[]]]; [auto | apply Z.le_refl].
Qed.

Lemma nothing_before : forall j now, (j < length (begins f))%nat -> now < begin_of s f j ->
  level l s f j now = 0.
Proof.
  intros j now L B. destruct (life_ordered l es stores s V f Fine j L) as [O _].
  rewrite level_is. rewrite (nothing_yet l s _ _ now O B).
  destruct (Z.leb_spec (begin_of s f j) now); lia.
Qed.

Lemma nothing_after : forall j now, (j < length (begins f))%nat -> end_of l s f j <= now ->
  level l s f j now = 0.
Proof.
  intros j now L E. destruct (ends_later j L) as [B G]. rewrite level_is.
  rewrite all_over by (intros e I; specialize (G e I); lia). rewrite changes_told.
  destruct (Z.leb_spec (begin_of s f j) now); [|lia].
  apply Z.eqb_eq in Settled. exact Settled.
Qed.

Lemma never_above : forall j now, (j < length (begins f))%nat -> 0 <= most_held f ->
  level l s f j now <= most_held f.
Proof.
  intros j now L P. destruct (life_ordered l es stores s V f Fine j L) as [O _].
  destruct (Z.leb_spec (begin_of s f j) now) as [B|B].
  - rewrite level_is. pose proof (held_high _ _ now (acquired f) O) as H.
    rewrite changes_told in H. fold (most_held f) in H.
    destruct (Z.leb_spec (begin_of s f j) now); lia.
  - rewrite nothing_before by assumption. exact P.
Qed.

Lemma lasting_is : forall way j n, (j < length (begins f))%nat ->
  lasting k (arcs_of es) f way j = Some n -> n <= end_of l s f j - begin_of s f j.
Proof.
  intros way j n L H. unfold lasting in H. destruct (walk _ _ _ _) as [w|] eqn:W; [|discriminate].
  injection H as <-. apply (walk_true l es stores s V) in W. rewrite last_last in W.
  unfold end_of, begin_of. lia.
Qed.

Lemma life_is_held : forall way v a n, life_volume k (arcs_of es) f way = Some v ->
  (forall j, (j < length (begins f))%nat ->
    a <= begin_of s f j /\ end_of l s f j <= a + Z.of_nat n) ->
  v <= total (map (fun j => ticked (level l s f j) a n) (numbers f)).
Proof.
  intros way v a n H In_. unfold life_volume in H.
  destruct (sum_known _) as [sum|] eqn:S; [|discriminate]. injection H as <-.
  assert (Kept : 0 <= kept_at_least f).
  { unfold check_life in Fine. apply andb_true_iff in Fine as [Low _]. apply Z.leb_le in Low.
    unfold kept_at_least. revert Low. unfold stops. rewrite map_app. cbn [lowest].
    rewrite Z.add_0_l. generalize (acquired f) as x. generalize (map change (middle f)) as ds.
    intros ds. induction ds as [|d ds IH]; intros x Low; cbn in *; [lia|].
    specialize (IH (x + d)). lia. }
  assert (J : forall j, In j (numbers f) -> (j < length (begins f))%nat)
    by (intros j I; apply in_seq in I; lia).
  revert J sum S. generalize (numbers f) as js. induction js as [|j js IH]; intros J sum S.
  - injection S as <-. cbn. lia.
  - cbn [map sum_known] in S. destruct (lasting k (arcs_of es) f way j) as [w|] eqn:W; [|discriminate].
    destruct (sum_known (map (lasting k (arcs_of es) f way) js)) as [more|]; [|discriminate].
    injection S as <-. specialize (IH (fun i I => J i (or_intror I)) more eq_refl).
    cbn [map total]. pose proof (J j (or_introl eq_refl)) as L. destruct (In_ j L) as [A B].
    apply lasting_is in W; [|exact L].
    pose proof (ticked_at_least (level l s f j) (kept_at_least f) (begin_of s f j) (end_of l s f j)
      a Kept (fun x => never_below l es stores s V f Fine j x L)
      (fun x => level_within l es stores s V f Fine j x L) A n B).
    nia.
Qed.
End Life.
