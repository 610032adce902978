(* Split backward, every action one tick, rank 0 holds two activations at once, each until its W has
   ended: no valid schedule of m >= 2 microbatches on p ranks is below (p + 1) m + 1 (`split_two`), and
   for even m and p >= 2 one takes as long, with two on every rank (`two_meets`).

   A round trip is 2p + 1 ticks, and two lives at a time would give (2p + 1) m / 2. What is lost is
   parity. Where a forward on its way down and an I on its way up pass without waiting, they do so
   between two ranks, and their phases (start less rank; start less 2p - 1 - rank) differ by an even
   number. Let a and b be those phases of b's forward and a's I for neighbours a, b: `crossing`. From
   one crossing to the next, b turns round and the one after next starts when a has ended: 2p + 1 ticks
   in all and an even number, so 2p + 2.

   `two_in_order`: microbatches run in the order of their numbers. `two_of_starts`: in any order (the
   k-th start of a class is a schedule too). *)

Require Import ZArith Lia List Bool PeanoNat.
From Bubbleproof Require Import Definitions Stores Starts Pipeline Sums StageStarts ZBH1.
Import ListNotations.
Open Scope Z_scope.

Section Ordered.

Variables (p m : nat).
Variables F I W : nat -> nat -> Z.
Hypothesis some_ranks : (1 <= p)%nat.

Record in_turn : Prop := InTurn {
  d_down : forall i j, (S i < p)%nat -> (j < m)%nat -> F i j + 1 <= F (S i) j;
  d_turn : forall j, (j < m)%nat -> F (p - 1)%nat j + 1 <= I (p - 1)%nat j;
  d_back : forall i j, (S i < p)%nat -> (j < m)%nat -> I (S i) j + 1 <= I i j;
  d_last : forall j, (j < m)%nat -> I 0%nat j + 1 <= W 0%nat j }.

Hypothesis D : in_turn.
Hypothesis meet : forall i j k, (i < p)%nat -> (j < m)%nat -> (k < m)%nat -> F i j <> I i k.
Hypothesis order_F : forall i k, (i < p)%nat -> (S k < m)%nat -> F i k + 1 <= F i (S k).
Hypothesis order_W : forall k, (S k < m)%nat -> W 0%nat k + 1 <= W 0%nat (S k).
Hypothesis room : forall k, (S (S k) < m)%nat -> W 0%nat k + 1 <= F 0%nat (S (S k)).
Variables first last : Z.
Hypothesis begin : forall j, (j < m)%nat -> first <= F 0%nat j.
Hypothesis finish : forall j, (j < m)%nat -> W 0%nat j + 1 <= last.

Notation far := (p - 1)%nat.
Definition FF i j := F i j - Z.of_nat i.
Definition II i j := I i j - (2 * Z.of_nat p - 1 - Z.of_nat i).

Lemma FF_grows : forall n i j, (i + n < p)%nat -> (j < m)%nat -> FF i j <= FF (i + n) j.
Proof.
  induction n as [|n IH]; intros i j L Hj; [rewrite Nat.add_0_r; lia|].
  specialize (IH i j ltac:(lia) Hj). assert (A := d_down D (i + n) j ltac:(lia) Hj).
  rewrite Nat.add_succ_r. unfold FF in *. lia.
Qed.

Lemma II_falls : forall n i j, (i + n < p)%nat -> (j < m)%nat -> II (i + n) j <= II i j.
Proof.
  induction n as [|n IH]; intros i j L Hj; [rewrite Nat.add_0_r; lia|].
  specialize (IH i j ltac:(lia) Hj). assert (A := d_back D (i + n) j ltac:(lia) Hj).
  rewrite Nat.add_succ_r. unfold II in *. lia.
Qed.

Lemma FF_far : forall i j, (i < p)%nat -> (j < m)%nat -> FF i j <= FF far j.
Proof. intros i j Hi Hj. replace far with (i + (far - i))%nat by lia. apply FF_grows; lia. Qed.
Lemma II_far : forall i j, (i < p)%nat -> (j < m)%nat -> II far j <= II i j.
Proof. intros i j Hi Hj. replace far with (i + (far - i))%nat by lia. apply II_falls; lia. Qed.
Lemma II_0 : forall i j, (i < p)%nat -> (j < m)%nat -> II i j <= II 0 j.
Proof. intros i j Hi Hj. replace i with (0 + i)%nat by lia. apply II_falls; lia. Qed.
Lemma turned : forall j, (j < m)%nat -> FF far j <= II far j.
Proof. intros j Hj. assert (A := d_turn D j Hj). unfold FF, II. lia. Qed.
Lemma whole_trip : forall j, (j < m)%nat -> II 0 j + 2 * Z.of_nat p <= W 0%nat j.
Proof. intros j Hj. assert (A := d_last D j Hj). unfold II. lia. Qed.

(* Somewhere b's forward passes a's I. *)
Lemma pass : forall n a b, (n < p)%nat -> (a < m)%nat -> (b < m)%nat -> F 0%nat b < I 0%nat a -> I n a < F n b ->
  exists i, (S i <= n)%nat /\ F i b < I i a /\ I (S i) a < F (S i) b.
Proof.
  induction n as [|n IH]; intros a b L Ha Hb A C; [lia|].
  destruct (Z_lt_ge_dec (F n b) (I n a)) as [E|E].
  - exists n. split; [lia|]. split; assumption.
  - assert (X := meet n b a ltac:(lia) Hb Ha).
    destruct (IH a b ltac:(lia) Ha Hb A ltac:(lia)) as (i & ? & ? & ?). exists i. split; [lia|]. split; assumption.
Qed.

Lemma crossing : forall k, (S k < m)%nat -> exists a b c, a = b + 2 * c /\
  F 0%nat (S k) <= a <= FF far (S k) /\ FF far k <= b /\
  b + 2 * Z.of_nat p + 1 <= Z.max (W 0%nat k + 1) (F 0%nat (S k) + 1).
Proof.
  intros k Hk. assert (T := turned k ltac:(lia)). assert (T0 := II_far 0 k ltac:(lia) ltac:(lia)).
  assert (G := FF_far 0 (S k) ltac:(lia) Hk). assert (E := whole_trip k ltac:(lia)).
  assert (F0 : FF 0 (S k) = F 0%nat (S k)) by (unfold FF; lia).
  destruct (Z_lt_ge_dec (F 0%nat (S k)) (I 0%nat k)) as [A|A].
  - destruct (Z_lt_ge_dec (I far k) (F far (S k))) as [C|C].
    + destruct (pass far k (S k) ltac:(lia) ltac:(lia) Hk A C) as (i & Hi & L & U).
      set (c := Z.of_nat p - 1 - Z.of_nat i).
      exists (Z.max (FF i (S k)) (II (S i) k + 2 * c)), (Z.max (FF i (S k)) (II (S i) k + 2 * c) - 2 * c), c.
      assert (G1 := FF_grows i 0 (S k) ltac:(lia) Hk). assert (G2 := FF_far (S i) (S k) ltac:(lia) Hk).
      assert (G3 := II_far (S i) k ltac:(lia) ltac:(lia)). assert (G4 := II_0 i k ltac:(lia) ltac:(lia)).
      assert (S1 := d_down D i (S k) ltac:(lia) Hk). assert (S2 := d_back D i k ltac:(lia) ltac:(lia)).
      cbn [Nat.add] in G1. unfold FF, II in *. lia.
    + assert (X := meet far (S k) k ltac:(lia) Hk ltac:(lia)).
      exists (FF far (S k)), (FF far (S k)), 0. assert (O := order_F far k ltac:(lia) Hk).
      unfold FF, II in *. lia.
  - assert (X := meet 0 (S k) k ltac:(lia) Hk ltac:(lia)).
    exists (F 0%nat (S k)), (F 0%nat (S k) - 2 * Z.of_nat p), (Z.of_nat p). unfold FF, II in *. lia.
Qed.

Lemma crossings : forall k, (S k < m)%nat -> exists a b c, a = b + 2 * c /\
  F 0%nat (S k) <= a <= FF far (S k) /\ FF far k <= b /\
  b + 2 * Z.of_nat p + 1 <= Z.max (W 0%nat k + 1) (F 0%nat (S k) + 1) /\
  2 * first + 2 + Z.of_nat k * (2 * Z.of_nat p + 2) <= a + b.
Proof.
  induction k as [|k IH]; intros Hk; destruct (crossing _ Hk) as (a & b & c & E & A & B & C);
    exists a, b, c; (split; [exact E|]); (split; [exact A|]); (split; [exact B|]); (split; [exact C|]).
  - assert (O := order_F 0 0 ltac:(lia) Hk). assert (Z0 := begin 0%nat ltac:(lia)).
    assert (G := FF_far 0 0 ltac:(lia) ltac:(lia)). unfold FF in *. lia.
  - destruct (IH ltac:(lia)) as (a' & b' & c' & E' & A' & B' & C' & S').
    assert (R := room k Hk). assert (O := order_F 0 (S k) ltac:(lia) Hk).
    assert (Q := order_F 0 k ltac:(lia) ltac:(lia)). lia.
Qed.

Lemma two_in_order : (2 <= m)%nat -> (Z.of_nat p + 1) * Z.of_nat m + 1 <= last - first.
Proof.
  intros Hm. assert (exists k, m = S (S k)) as (k & E) by (exists (m - 2)%nat; lia).
  destruct (crossings k ltac:(lia)) as (a & b & c & Q & A & B & C & L).
  assert (T := turned (S k) ltac:(lia)). assert (T0 := II_far 0 (S k) ltac:(lia) ltac:(lia)).
  assert (H := whole_trip (S k) ltac:(lia)). assert (O := order_W k ltac:(lia)).
  assert (Z := finish (S k) ltac:(lia)). assert (G := FF_far 0 (S k) ltac:(lia) ltac:(lia)).
  replace (Z.of_nat m) with (Z.of_nat k + 2) by lia. unfold FF, II in *. nia.
Qed.

End Ordered.
(* ---- In any order: the k-th start of each class. ---- *)

Section Any.

Variables (p m : nat).
Variables F I W : nat -> nat -> Z.
Variables first last : Z.
Hypothesis some_ranks : (1 <= p)%nat.
Hypothesis D : in_turn p m F I W.

(* One action at a time on a rank; its W's matter on rank 0 alone. *)
Hypothesis alone_F : forall i j k, (i < p)%nat -> (j < k)%nat -> (k < m)%nat -> F i j <> F i k.
Hypothesis alone_W : forall j k, (j < k)%nat -> (k < m)%nat -> W 0%nat j <> W 0%nat k.
Hypothesis meet : forall i j k, (i < p)%nat -> (j < m)%nat -> (k < m)%nat -> F i j <> I i k.
Hypothesis holds_two : forall now, sum m (fun j => one (during (F 0%nat j) now (W 0%nat j + 1))) <= 2.
Hypothesis begin : forall j, (j < m)%nat -> first <= F 0%nat j.
Hypothesis finish : forall j, (j < m)%nat -> W 0%nat j + 1 <= last.

Definition count (s : nat -> Z) (t : Z) : Z := sum m (fun j => one (s j <=? t)).

Fixpoint search (n : nat) (t : Z) (s : nat -> Z) (k : nat) : Z :=
  match n with
  | O => t
  | S n' => if Z.of_nat k + 1 <=? count s t then t else search n' (t + 1) s k
  end.
Definition kth (s : nat -> Z) (k : nat) : Z := search (Z.to_nat (last - first)) first s k.

Lemma count_grows : forall s t u, t <= u -> count s t <= count s u.
Proof.
  intros s t u L. apply sum_le. intros j _. destruct (Z.leb_spec (s j) t), (Z.leb_spec (s j) u); cbn; lia.
Qed.

Lemma searched : forall n t s k, count s (t - 1) <= Z.of_nat k -> Z.of_nat k + 1 <= count s (t + Z.of_nat n) ->
  Z.of_nat k + 1 <= count s (search n t s k) /\ count s (search n t s k - 1) <= Z.of_nat k.
Proof.
  induction n as [|n IH]; intros t s k L U; cbn [search].
  - rewrite Z.add_0_r in U. split; assumption.
  - destruct (Z.leb_spec (Z.of_nat k + 1) (count s t)) as [E|E]; [split; assumption|].
    apply IH; [replace (t + 1 - 1) with t by lia; lia|].
    replace (t + 1 + Z.of_nat n) with (t + Z.of_nat (S n)) by lia. exact U.
Qed.

Definition bounded_by_ends (s : nat -> Z) := forall j, (j < m)%nat -> first <= s j <= last.

Lemma kth_is : forall s k, bounded_by_ends s -> (k < m)%nat ->
  Z.of_nat k + 1 <= count s (kth s k) /\ count s (kth s k - 1) <= Z.of_nat k.
Proof.
  intros s k B Hk. assert (B0 := B 0%nat ltac:(lia)). apply searched.
  - unfold count. rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; lia|].
    intros j Hj. specialize (B j Hj). destruct (Z.leb_spec (s j) (first - 1)); cbn; lia.
  - rewrite Z2Nat.id by lia. unfold count. rewrite (sum_ext _ _ (fun _ => 1)); [rewrite sum_const; lia|].
    intros j Hj. specialize (B j Hj). destruct (Z.leb_spec (s j) (first + (last - first))); cbn; lia.
Qed.

Lemma kth_by : forall s k t, bounded_by_ends s -> (k < m)%nat -> Z.of_nat k + 1 <= count s t -> kth s k <= t.
Proof.
  intros s k t B Hk C. destruct (kth_is s k B Hk) as [_ U]. apply Z.nlt_ge. intros L.
  assert (G := count_grows s t (kth s k - 1) ltac:(lia)). lia.
Qed.

Lemma kth_attained : forall s k, bounded_by_ends s -> (k < m)%nat -> exists j, (j < m)%nat /\ s j = kth s k.
Proof.
  intros s k B Hk. destruct (kth_is s k B Hk) as [L U].
  assert (E := sum_add m (fun j => one (s j <=? kth s k) - one (s j <=? kth s k - 1)) (fun j => one (s j <=? kth s k - 1))).
  rewrite (sum_ext m _ (fun j => one (s j <=? kth s k))) in E by (intros; lia). unfold count in *.
  assert (P : 1 <= sum m (fun j => one (s j <=? kth s k) - one (s j <=? kth s k - 1))) by lia.
  apply sum_positive in P as (j & Hj & P). exists j. split; [exact Hj|].
  destruct (Z.leb_spec (s j) (kth s k)), (Z.leb_spec (s j) (kth s k - 1)); cbn in P; lia.
Qed.

Lemma kth_after : forall s s' k, bounded_by_ends s -> bounded_by_ends s' -> (k < m)%nat ->
  (forall j, (j < m)%nat -> s j + 1 <= s' j) -> kth s k + 1 <= kth s' k.
Proof.
  intros s s' k B B' Hk A. destruct (kth_is s' k B' Hk) as [L _].
  enough (kth s k <= kth s' k - 1) by lia. apply kth_by; [exact B | exact Hk|].
  enough (count s' (kth s' k) <= count s (kth s' k - 1)) by lia. apply sum_le. intros j Hj. specialize (A j Hj).
  destruct (Z.leb_spec (s' j) (kth s' k)), (Z.leb_spec (s j) (kth s' k - 1)); cbn; lia.
Qed.

Lemma kth_next : forall s k, bounded_by_ends s -> (S k < m)%nat ->
  (forall i j, (i < j)%nat -> (j < m)%nat -> s i <> s j) -> kth s k + 1 <= kth s (S k).
Proof.
  intros s k B Hk N. destruct (kth_is s k B ltac:(lia)) as [_ U]. destruct (kth_is s (S k) B Hk) as [L _].
  assert (C : count s (kth s k) <= Z.of_nat k + 1).
  { assert (O : sum m (fun j => one (s j =? kth s k)) <= 1).
    { apply sum_alone; [intros; apply one_range|]. intros i j Hi Hj E. specialize (N i j Hi Hj).
      destruct (Z.eqb_spec (s i) (kth s k)), (Z.eqb_spec (s j) (kth s k)); cbn in *; lia. }
    enough (count s (kth s k) <= sum m (fun j => one (s j <=? kth s k - 1) + one (s j =? kth s k))) as A
      by (rewrite sum_add in A; unfold count in *; lia).
    apply sum_le. intros j _.
    destruct (Z.leb_spec (s j) (kth s k)), (Z.leb_spec (s j) (kth s k - 1)), (Z.eqb_spec (s j) (kth s k)); cbn; lia. }
  apply Z.nlt_ge. intros Q. assert (G := count_grows s (kth s (S k)) (kth s k) ltac:(lia)). lia.
Qed.

Lemma all_bounded_by_ends : forall i, (i < p)%nat -> bounded_by_ends (F i) /\ bounded_by_ends (I i) /\ bounded_by_ends (W 0).
Proof.
  intros i Hi.
  assert (forall j, (j < m)%nat -> first <= F i j /\ F i j <= last /\ first <= I i j /\ I i j <= last /\
    first <= W 0%nat j <= last) as A; [|repeat split; intros; apply A; assumption].
  intros j Hj. assert (B := begin j Hj). assert (E := finish j Hj). assert (L := d_last _ _ _ _ _ D j Hj).
  assert (T := turned p m F I W some_ranks D j Hj).
  assert (F1 := FF_far p m F I W some_ranks D i j Hi Hj). assert (I1 := II_far p m F I W some_ranks D i j Hi Hj).
  assert (I0 := II_0 p m F I W some_ranks D i j Hi Hj).
  assert (F0 := FF_grows p m F I W some_ranks D i 0 j ltac:(lia) Hj). cbn [Nat.add] in F0. unfold FF, II in *. lia.
Qed.

Lemma two_of_starts : (2 <= m)%nat -> (Z.of_nat p + 1) * Z.of_nat m + 1 <= last - first.
Proof.
  intros Hm.
  assert (Fi : forall i, (i < p)%nat -> bounded_by_ends (F i)) by (intros i Hi; apply (all_bounded_by_ends i Hi)).
  assert (Ii : forall i, (i < p)%nat -> bounded_by_ends (I i)) by (intros i Hi; apply (all_bounded_by_ends i Hi)).
  assert (Wi : bounded_by_ends (W 0)) by apply (all_bounded_by_ends 0 ltac:(lia)).
  apply (two_in_order p m (fun i => kth (F i)) (fun i => kth (I i)) (fun i => kth (W i))); try assumption.
  - constructor.
    + intros i j Hi Hj. apply kth_after; [apply Fi; lia | apply Fi; lia | exact Hj|].
      intros k Hk. apply (d_down _ _ _ _ _ D); assumption.
    + intros j Hj. apply kth_after; [apply Fi; lia | apply Ii; lia | exact Hj|].
      intros k Hk. apply (d_turn _ _ _ _ _ D); assumption.
    + intros i j Hi Hj. apply kth_after; [apply Ii; lia | apply Ii; lia | exact Hj|].
      intros k Hk. apply (d_back _ _ _ _ _ D); assumption.
    + intros j Hj. apply kth_after; [apply Ii; lia | exact Wi | exact Hj|].
      intros k Hk. apply (d_last _ _ _ _ _ D); assumption.
  - intros i j k Hi Hj Hk. destruct (kth_attained (F i) j (Fi i Hi) Hj) as (x & Hx & <-).
    destruct (kth_attained (I i) k (Ii i Hi) Hk) as (y & Hy & <-). apply meet; assumption.
  - intros i k Hi Hk. apply kth_next; [apply Fi, Hi | exact Hk|]. intros; apply alone_F; assumption.
  - intros k Hk. apply kth_next; [exact Wi | exact Hk | exact alone_W].
  - intros k Hk. set (t := kth (F 0%nat) (S (S k))).
    destruct (kth_is (F 0%nat) (S (S k)) (Fi 0%nat ltac:(lia)) Hk) as [L _]. fold t in L.
    enough (kth (W 0%nat) k <= t - 1) by lia. apply kth_by; [exact Wi | lia|].
    assert (H := holds_two t).
    enough (count (F 0%nat) t <= sum m (fun j => one (during (F 0%nat j) t (W 0%nat j + 1)) + one (W 0%nat j <=? t - 1))) as A
      by (rewrite sum_add in A; unfold count in *; lia).
    apply sum_le. intros j Hj.
    destruct (one_during (F 0%nat j) t (W 0%nat j + 1)) as [[? ->]|[? ->]],
      (Z.leb_spec (F 0%nat j) t), (Z.leb_spec (W 0%nat j) (t - 1)); cbn; lia.
  - intros j Hj. destruct (kth_attained (F 0%nat) j (Fi 0%nat ltac:(lia)) Hj) as (x & Hx & <-). apply begin, Hx.
  - intros j Hj. destruct (kth_attained (W 0%nat) j Wi Hj) as (x & Hx & <-). apply finish, Hx.
Qed.

End Any.

(* ---- The schedule that meets it, where m is even and p >= 2: two microbatches every 2p + 2 ticks. ---- *)

Section Meets.

Variables (p m : nat).
Hypothesis two_ranks : (2 <= p)%nat.
Hypothesis even : exists h, (m = 2 * h)%nat.
Notation p' := (Z.of_nat p).
Notation L := (2 * p' + 2).

Definition turn_of (j : nat) : Z := Z.of_nat (j / 2) * L.
Definition second (j : nat) : Z := Z.of_nat (j mod 2).
Definition F2 (i j : nat) : Z := turn_of j + (Z.of_nat i + 2 * second j).
Definition I2 (i j : nat) : Z := turn_of j + (2 * p' - 1 - Z.of_nat i + 2 * second j).
Definition W2 (i j : nat) : Z := turn_of j +
  if second j =? 0 then if Z.of_nat i <? p' - 1 then 2 * p' - Z.of_nat i else p' + 4
  else if Z.of_nat i =? 0 then if Nat.eqb j (m - 1) then 2 * p' + 2 else 2 * p' + 3
  else 2 * p' + 2 - Z.of_nat i.

Lemma second_is : forall j, Z.of_nat j = 2 * Z.of_nat (j / 2) + second j /\ 0 <= second j <= 1.
Proof.
  intros j. assert (E := Nat.div_mod j 2 ltac:(lia)). assert (B := Nat.mod_upper_bound j 2 ltac:(lia)).
  unfold second. lia.
Qed.

(* A difference of less than two periods is none, or one either way. *)
Lemma periods : forall a b x y, a * L + x = b * L + y -> - (2 * L) < x - y < 2 * L ->
  a = b /\ x = y \/ a = b + 1 /\ x + L = y \/ b = a + 1 /\ x = y + L.
Proof.
  intros a b x y E B. assert (-2 < a - b < 2) by nia.
  assert (a - b = 0 \/ a - b = 1 \/ a - b = -1) as [H0|[H0|H0]] by lia;
    [replace a with b in * by lia|replace a with (b + 1) in * by lia|replace b with (a + 1) in * by lia]; lia.
Qed.

Ltac split_W := repeat match goal with
  | |- context [?a =? ?b] => destruct (Z.eqb_spec a b)
  | |- context [?a <? ?b] => destruct (Z.ltb_spec a b)
  | |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b)
  | H : context [?a =? ?b] |- _ => destruct (Z.eqb_spec a b)
  | H : context [?a <? ?b] |- _ => destruct (Z.ltb_spec a b)
  | H : context [Nat.eqb ?a ?b] |- _ => destruct (Nat.eqb_spec a b)
  end.

Lemma starts_meet : 
  in_turn p m F2 I2 W2 /\
  (forall i j, (i < p)%nat -> (j < m)%nat -> I2 i j + 1 <= W2 i j) /\
  (forall i j, (i < p)%nat -> (j < m)%nat -> 0 <= F2 i j /\ W2 i j + 1 <= (p' + 1) * Z.of_nat m + 1) /\
  (forall i j k, (i < p)%nat -> (j < m)%nat -> (k < m)%nat ->
    F2 i j <> I2 i k /\ F2 i j <> W2 i k /\ I2 i j <> W2 i k /\
    (j <> k -> F2 i j <> F2 i k /\ I2 i j <> I2 i k /\ W2 i j <> W2 i k)) /\
  forall i now, (i < p)%nat -> sum m (fun j => one (during (F2 i j) now (W2 i j + 1))) <= 2.
Proof.
  destruct even as (h & Eh).
  split; [|split; [|split; [|split]]].
  - constructor; [intros i j Hi Hj | intros j Hj | intros i j Hi Hj | intros j Hj]; destruct (second_is j);
      unfold F2, I2, W2; split_W; lia.
  - intros i j Hi Hj. unfold I2, W2. destruct (second_is j). split_W; lia.
  - intros i j Hi Hj. destruct (second_is j). unfold F2, W2, turn_of.
    assert (0 <= Z.of_nat (j / 2) * L) by nia.
    assert (Em : (p' + 1) * Z.of_nat m = Z.of_nat h * L) by (rewrite Eh; lia). rewrite Em.
    assert (Z.of_nat (j / 2) + 1 <= Z.of_nat h) by lia.
    assert (U : (Z.of_nat (j / 2) + 1) * L <= Z.of_nat h * L) by nia.
    assert (U2 : Z.of_nat (j / 2) + 2 <= Z.of_nat h -> (Z.of_nat (j / 2) + 2) * L <= Z.of_nat h * L) by nia.
    split; [lia|]. split_W; try lia.
  - intros i j k Hi Hj Hk. destruct (second_is j), (second_is k). unfold F2, I2, W2, turn_of.
    split; [|split; [|split; [|intros N; split; [|split]]]]; intros E; split_W;
      match type of E with
      | ?a * _ + ?x = ?b * _ + ?y => destruct (periods a b x y E ltac:(lia)) as [[? ?]|[[? ?]|[? ?]]]
      end; lia.
  - intros i now Hi. apply (few_alive (F2 i) (fun j => W2 i j + 1) 2 m ltac:(lia)).
    intros j k J K. destruct (second_is j), (second_is k). unfold F2, W2, turn_of.
    assert (J1 : Z.of_nat (j / 2) + 1 <= Z.of_nat (k / 2)) by lia.
    assert (J2 : (Z.of_nat (j / 2) + 1) * L <= Z.of_nat (k / 2) * L) by (clear - J1; nia).
    assert (J3 : second k < second j -> (Z.of_nat (j / 2) + 2) * L <= Z.of_nat (k / 2) * L)
      by (intros C; assert (Z.of_nat (j / 2) + 2 <= Z.of_nat (k / 2)) as G by lia; clear - G; nia).
    split_W; lia.
Qed.

End Meets.

(* ---- Schedules as rows. ---- *)

Section Rows.

Variables (p m : nat).
Notation given := (split_pipeline p m 1).
Notation at_ k i j := ((k, (i, j)) : split).

(* What rank i holds: one activation of a microbatch from the start of its forward to the end of its
   weight backward. *)
Definition held_split (rows : schedule split) (i : nat) (now : Z) : Z :=
  load split same_split given rows (uses split m (fun j => at_ Fwd i j) (fun j => at_ Wgt i j)) now.

Lemma split_housed : forall t, In t (tasks _ given) -> homes _ given t <> [].
Proof. discriminate. Qed.

Section Valid.

Variables (rows : schedule split) (first last : Z).
Hypothesis V : valid split given rows.
Hypothesis L : within split given rows first last.
Notation s := (first_start split same_split rows).

Lemma split_timed : timed split given s first last.
Proof. apply valid_is_timed; [intros x I; apply split_is_well_formed, I | exact V | exact L]. Qed.

Lemma split_step : forall a b, split_follows p m a b -> s a + 1 <= s b.
Proof.
  intros a b H. assert (T := kept _ _ _ _ _ split_timed a b 0 (proj2 (in_split_edges p m 1 a b 0) (conj H eq_refl))).
  cbn [duration split_pipeline] in T. destruct a as [ka [ia ja]], b as [kb [ib jb]].
  assert (In (ka, (ia, ja)) (tasks _ given) /\ In (kb, (ib, jb)) (tasks _ given)) as [A B]
    by (inversion H; subst; split; apply is_split; lia).
  specialize (T A B). lia.
Qed.

Lemma split_alone : forall k l i a b, (i < p)%nat -> (a < m)%nat -> (b < m)%nat ->
  at_ k i a <> at_ l i b -> s (at_ k i a) <> s (at_ l i b).
Proof.
  intros k l i a b Hi Ha Hb D.
  assert (T := Starts.turns _ _ _ _ _ split_timed (at_ k i a) (at_ l i b) (Z.of_nat i)
    (proj2 (is_split p m 1 k i a) (conj Hi Ha)) (proj2 (is_split p m 1 l i b) (conj Hi Hb)) D
    (or_introl eq_refl) (or_introl eq_refl)).
  cbn [duration split_pipeline] in T. unfold apart in T. lia.
Qed.

Lemma split_held : forall i now, (i < p)%nat -> held_split rows i now =
  sum m (fun j => one (during (s (at_ Fwd i j)) now (s (at_ Wgt i j) + 1))).
Proof.
  intros i now Hi. apply (uses_alive split same_split given split_housed rows (proj1 V));
    intros j Hj; try (apply is_split; lia).
  assert (A := split_step _ _ (turns_back p m i j Hi Hj)). assert (B := split_step _ _ (weights p m i j Hi Hj)).
  cbn [duration split_pipeline]. lia.
Qed.

Lemma split_two_ : (1 <= p)%nat -> (2 <= m)%nat -> (forall now, held_split rows 0 now <= 2) ->
  (Z.of_nat p + 1) * Z.of_nat m + 1 <= last - first.
Proof.
  intros Hp Hm Two. apply (two_of_starts p m (fun i j => s (at_ Fwd i j)) (fun i j => s (at_ Inp i j))
    (fun i j => s (at_ Wgt i j)) first last Hp); [constructor| | | | | | |exact Hm].
  - intros i j Hi Hj. apply split_step, goes_on; assumption.
  - intros j Hj. apply split_step, turns_back; lia.
  - intros i j Hi Hj. apply split_step, goes_back; assumption.
  - intros j Hj. apply split_step, weights; lia.
  - intros i j k Hi Hj Hk. apply split_alone; try lia. intros [= E]. lia.
  - intros j k Hj Hk. apply split_alone; try lia. intros [= E]. lia.
  - intros i j k Hi Hj Hk. apply split_alone; try lia. discriminate.
  - intros now. rewrite <- split_held by lia. apply Two.
  - intros j Hj. apply (Starts.inside _ _ _ _ _ split_timed (at_ Fwd 0%nat j)), is_split. lia.
  - intros j Hj. apply (Starts.inside _ _ _ _ _ split_timed (at_ Wgt 0%nat j)), is_split. lia.
Qed.

End Valid.

Definition start_two (x : split) : Z :=
  let '(k, (i, j)) := x in
  match k with Fwd => F2 p i j | Inp => I2 p i j | Wgt => W2 p m i j end.
End Rows.

Theorem split_two : forall p m, (1 <= p)%nat -> (2 <= m)%nat -> forall rows first last,
  valid split (split_pipeline p m 1) rows -> within split (split_pipeline p m 1) rows first last ->
  (forall now, held_split p m rows 0 now <= 2) -> (Z.of_nat p + 1) * Z.of_nat m + 1 <= last - first.
Proof. intros p m Hp Hm rows first last V L. exact (split_two_ p m rows first last V L Hp Hm). Qed.

Theorem two_meets : forall p m, (2 <= p)%nat -> (exists h, (m = 2 * h)%nat) -> exists rows,
  valid split (split_pipeline p m 1) rows /\
  within split (split_pipeline p m 1) rows 0 ((Z.of_nat p + 1) * Z.of_nat m + 1) /\
  forall i now, (i < p)%nat -> held_split p m rows i now <= 2.
Proof.
  intros p m Hp Even. destruct (starts_meet p m Hp Even) as (T & Own & Ends & Apart & Two).
  exists (rows_of split (split_pipeline p m 1) (start_two p m)).
  assert (Q : timed split (split_pipeline p m 1) (start_two p m) 0 ((Z.of_nat p + 1) * Z.of_nat m + 1)).
  { assert (FI : forall i j, (i < p)%nat -> (j < m)%nat -> F2 p i j + 1 <= I2 p i j).
    { intros i j Hi Hj. unfold F2, I2. lia. }
    constructor.
    - intros [k [i j]] I. apply is_split in I as [Hi Hj]. assert (A := FI i j Hi Hj).
      assert (B := Own i j Hi Hj). assert (C := Ends i j Hi Hj).
      cbn [duration split_pipeline]. destruct k; cbn [start_two]; lia.
    - intros a b lag I _ _. apply in_split_edges in I as [H ->]. cbn [duration split_pipeline].
      rewrite Z.add_0_r. destruct H as [i j Hi Hj|i j Hi Hj|i j Hi Hj|i j Hi Hj]; cbn [start_two].
      + exact (FI i j Hi Hj).
      + exact (Own i j Hi Hj).
      + exact (d_down _ _ _ _ _ T i j Hi Hj).
      + exact (d_back _ _ _ _ _ T i j Hi Hj).
    - intros [k [i j]] [k' [i' j']] r It Iu D Rt Ru. apply is_split in It as [Hi Hj], Iu as [Hi' Hj'].
      cbn in Rt, Ru. destruct Rt as [Rt|[]], Ru as [Ru|[]]. assert (i' = i) by lia. subst i'.
      cbn [duration split_pipeline]. unfold apart.
      destruct (Apart i j j' Hi Hj Hj') as (A1 & A2 & A3 & A4).
      destruct (Apart i j' j Hi Hj' Hj) as (B1 & B2 & B3 & _).
      assert (N : k = k' -> j <> j') by congruence.
      destruct k, k'; cbn [start_two]; try specialize (A4 (N eq_refl)); lia. }
  destruct (timed_is_valid split _ (split_is_well_formed p m 1) _ 0 _ (Z.le_refl 0) Q) as [V L].
  split; [exact V|]. split; [exact L|]. intros i now Hi. rewrite (split_held p m _ _ _ V L i now Hi).
  erewrite sum_ext; [exact (Two i now Hi)|]. intros j Hj. cbn beta.
  rewrite !(starts_of_rows _ _ _ (split_housed p m)) by (apply is_split; lia). reflexivity.
Qed.
