(* A rank that has no room for one microbatch: `NoRoom` of verify/candidates/rank_claims.py, with
   lemma 20 of docs/guide/formal.md. Then nothing keeps the rules and the capacities at all.

   Take the last slice of a microbatch, and t the start of its F on stage h of the rank. The rank's F
   of that microbatch on the stages up to h, of every slice, have begun by t, and give nothing back
   before the B of this slice on stage h has ended, `life_of` later. So where that is more than 0, all
   of them are held at t, when releases come before acquisitions. Counted are the stages whose last
   slice lives longer than no time (`lives_on`), and h is the highest of them. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables Loads
  Steps Lifecycles OneMachine FreeEdges Volume Staged Samples RankClaims.
Import ListNotations.
Open Scope Z_scope.

Definition lives_on (n : stage_numbers) (g : nat) := 0 <? life_of n g (slices n - 1).
Definition all_slices (n : stage_numbers) (g : nat) :=
  if lives_on n g then Z.of_nat (slices n) * units n g else 0.

Definition check_no_room (l : table) (es : list (edge positive)) (stores : list (store positive))
    (n : stage_numbers) (nm : stage_names) (r : Z) (at_ : nat) (give : givers) : bool :=
  let k := index_of l in
  match nth_error stores at_ with
  | None => false
  | Some st =>
      check_staged n nm k (arcs_of es) && check_uses n nm k (arcs_of es) r give l st &&
      Nat.ltb 0 (microbatches n) && Nat.ltb 0 (slices n) &&
      match capacity _ st with
      | Some cap => cap <? base _ st + total (map (all_slices n) (own_stages n r))
      | None => false
      end
  end.

(* ---- It is sound. ---- *)

Lemma highest_one : forall (f : nat -> bool) l, (forall g, In g l -> f g = false) \/
  exists h, In h l /\ f h = true /\ forall g, In g l -> f g = true -> (g <= h)%nat.
Proof.
  intros f. induction l as [|x l [None_|(h & I & Fh & M)]]; [left; intros g []| |].
  - destruct (f x) eqn:F; [right | left].
    + exists x. repeat split; [left; reflexivity | exact F |]. intros g [<-|I] Fg; [lia|].
      rewrite (None_ g I) in Fg. discriminate.
    + intros g [<-|I]; [exact F | exact (None_ g I)].
  - right. destruct (f x) eqn:F; [destruct (Nat.leb_spec x h) as [Le|Gt]|].
    + exists h. repeat split; [right; exact I | exact Fh |]. intros g [<-|J] Fg; [exact Le | auto].
    + exists x. repeat split; [left; reflexivity | exact F |]. intros g [<-|J] Fg; [lia|].
      specialize (M g J Fg). lia.
    + exists h. repeat split; [right; exact I | exact Fh |]. intros g [<-|J] Fg; [congruence | auto].
Qed.

(* What one microbatch holds, sample by sample. *)
Definition of_one (n : stage_numbers) (x : sample) : Z :=
  let '(g, j, i) := x in if lives_on n g && Nat.eqb j 0 then units n g else 0.

Lemma one_microbatch : forall n r, (0 < microbatches n)%nat ->
  total (map (of_one n) (samples n r)) = total (map (all_slices n) (own_stages n r)).
Proof.
  intros n r M. unfold samples. rewrite total_flat. f_equal. apply map_ext. intros g.
  rewrite total_flat. unfold all_slices. destruct (microbatches n) as [|m]; [lia|]. cbn [seq map total].
  rewrite map_map. rewrite (map_ext _ (fun _ => if lives_on n g then units n g else 0))
    by (intros i; cbn; rewrite andb_true_r; reflexivity).
  rewrite total_constant, seq_length, total_nothing; [destruct (lives_on n g); lia|].
  intros j J. apply in_seq in J. rewrite map_map. apply total_nothing. intros i _. cbn [of_one].
  destruct (Nat.eqb_spec j 0); [lia | rewrite andb_false_r; reflexivity].
Qed.

Theorem no_room_no_plan : forall l es stores n nm r at_ give,
  check_no_room l es stores n nm r at_ give = true ->
  forall s, plan (index_of l) es stores s -> False.
Proof.
  intros l es stores n nm r at_ give H s V. unfold check_no_room in H.
  destruct (nth_error stores at_) as [st|] eqn:St; [|discriminate]. cbv zeta in H.
  rewrite !andb_true_iff, !Nat.ltb_lt in H. destruct H as [[[[Staged Uses] M] Sl] Full].
  destruct (capacity _ st) as [cap|] eqn:Cap; [|discriminate]. apply Z.ltb_lt in Full.
  pose proof (uses_fit l es stores n nm s r st give Staged V Uses (nth_error_In _ _ St) cap Cap) as Fits.
  rewrite <- (one_microbatch n r M) in Full.
  assert (Zero : forall now x, In x (samples n r) -> 0 <= in_use l n nm s now x)
    by (intros now x I; exact (in_use_least l es n nm s r Staged now x I)).
  enough (exists now, forall x, In x (samples n r) -> of_one n x <= in_use l n nm s now x) as (now & Le).
  { specialize (Fits now). pose proof (total_below (of_one n) (in_use l n nm s now) _ Le). lia. }
  destruct (highest_one (lives_on n) (own_stages n r)) as [None_|(h & Ih & Lh & Most)].
  - exists 0. intros [[g j] i] I. rewrite <- (Z.add_0_l (of_one _ _)).
    cbn [of_one]. rewrite (None_ g (own_stage _ _ _ _ _ I)). exact (Zero 0 (g, j, i) I).
  - apply filter_In in Ih as [Ih _]. apply in_seq in Ih.
    assert (Sh : is_sample n h 0 (slices n - 1)) by (repeat split; lia).
    exists (s (to nm h 0 (slices n - 1))). intros [[g j] i] I. cbn [of_one].
    destruct (lives_on n g) eqn:Lg; [|exact (Zero _ (g, j, i) I)].
    destruct (Nat.eqb_spec j 0) as [->|J]; [|exact (Zero _ (g, j, i) I)].
    specialize (Most g (own_stage _ _ _ _ _ I) Lg). apply sample_is in I as [I _].
    pose proof (life_is n nm l es stores s Staged V h 0 (slices n - 1) Sh) as Life.
    unfold lives_on in Lh. apply Z.ltb_lt in Lh.
    assert (Sg : is_sample n g 0 (slices n - 1)) by (destruct I as (? & ? & ?); repeat split; lia).
    destruct (slices_later n nm l es stores s Staged V g 0 (slices n - 1) Sg i
      ltac:(destruct I as (? & ? & ?); lia)) as [A1 B1].
    replace h with (g + (h - g))%nat in Sh, Life by lia.
    destruct (stages_later n nm l es stores s Staged V 0 (slices n - 1) (h - g) g Sh) as [A2 B2].
    cbn [andb in_use]. replace (g + (h - g))%nat with h in * by lia.
    destruct (Z.leb_spec (s (to nm g 0 i)) (s (to nm h 0 (slices n - 1)))); [|lia].
    destruct (Z.ltb_spec (s (to nm h 0 (slices n - 1))) (ending l s (fro nm g 0 i))); cbn [andb]; lia.
Qed.

(* So no schedule of the problem keeps the rules and the capacities of its stores. *)
Theorem no_schedule_has_room : forall l es stores n nm r at_ give,
  well_written l stores && check_no_room l es stores n nm r at_ give = true ->
  forall rows,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows -> False.
Proof.
  intros l es stores n nm r at_ give H rows R M. apply andb_true_iff in H as [W H].
  exact (no_room_no_plan l es stores n nm r at_ give H _ (rows_are_a_plan l es stores W rows R M)).
Qed.
