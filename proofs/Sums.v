(* Sums over the first n numbers, and counts: what the proofs about all orders of the microbatches
   (StageStarts.v and those that rest on it) calculate with. *)

Require Import ZArith Lia Bool.
Open Scope Z_scope.

Fixpoint sum (n : nat) (f : nat -> Z) : Z := match n with O => 0 | S k => sum k f + f k end.
Definition one (b : bool) : Z := if b then 1 else 0.
Definition during (a x b : Z) : bool := (a <=? x) && (x <? b).   (* a <= x < b *)

Lemma one_during : forall a x b, a <= x < b /\ one (during a x b) = 1 \/
  ~ a <= x < b /\ one (during a x b) = 0.
Proof.
  intros a x b. unfold during. destruct (Z.leb_spec a x), (Z.ltb_spec x b); cbn; [left|right..];
    lia.
Qed.

Lemma one_range : forall b, 0 <= one b <= 1.
Proof. intros []; cbn; lia. Qed.

Lemma sum_le : forall n f g, (forall k, (k < n)%nat -> f k <= g k) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros f g H; cbn; [lia|].
  specialize (IH f g (fun k L => H k (Nat.lt_lt_succ_r _ _ L))). specialize (H n ltac:(lia)). lia.
Qed.

Lemma sum_ext : forall n f g, (forall k, (k < n)%nat -> f k = g k) -> sum n f = sum n g.
Proof. intros n f g H. apply Z.le_antisymm; apply sum_le; intros k L; rewrite H by exact L; lia.
Qed.

Lemma sum_const : forall n c, sum n (fun _ => c) = Z.of_nat n * c.
Proof. induction n as [|n IH]; intros c; cbn [sum]; [|rewrite IH]; lia. Qed.

Lemma sum_one : forall n, sum n (fun _ => 1) = Z.of_nat n.
Proof. intros n. rewrite sum_const. lia. Qed.

Lemma sum_zero : forall n, sum n (fun _ => 0) = 0.
Proof. intros n. rewrite sum_const. lia. Qed.

Lemma sum_add : forall n f g, sum n (fun k => f k + g k) = sum n f + sum n g.
Proof. induction n as [|n IH]; intros f g; cbn; [|rewrite IH]; lia. Qed.

Lemma sum_scale : forall n f c, sum n (fun k => f k * c) = sum n f * c.
Proof. induction n as [|n IH]; intros f c; cbn; [|rewrite IH]; lia. Qed.

Lemma sum_app : forall n k f, sum (n + k) f = sum n f + sum k (fun x => f (n + x)%nat).
Proof.
  intros n. induction k as [|k IH]; intros f; cbn [sum]; [rewrite Nat.add_0_r; lia|].
  rewrite Nat.add_succ_r. cbn [sum]. rewrite IH. lia.
Qed.

Lemma sum_swap : forall n m (g : nat -> nat -> Z),
  sum n (fun x => sum m (g x)) = sum m (fun j => sum n (fun x => g x j)).
Proof.
  induction n as [|n IH]; intros m g; cbn [sum]; [rewrite sum_const; lia|].
  rewrite IH, <- sum_add. reflexivity.
Qed.

Lemma sum_positive : forall n f, 1 <= sum n f -> exists j, (j < n)%nat /\ 1 <= f j.
Proof.
  induction n as [|n IH]; intros f H; cbn in H; [lia|].
  destruct (Z_le_gt_dec 1 (f n)) as [L|L]; [exists n; split; [lia | exact L]|].
  destruct (IH f ltac:(lia)) as (j & Hj & E). exists j. split; [lia | exact E].
Qed.

Lemma sum_grows : forall g, (forall x, 0 <= g x) -> forall i k, sum i g <= sum (i + k) g.
Proof.
  intros g H i k. rewrite sum_app. enough (0 <= sum k (fun x => g (i + x)%nat)) by lia.
  rewrite <- (sum_zero k). apply sum_le. intros x _. apply H.
Qed.

(* Of things of which no two are there together, one at most is there. *)
Lemma sum_alone : forall n f, (forall j, (j < n)%nat -> f j <= 1) ->
  (forall j k, (j < k)%nat -> (k < n)%nat -> 1 <= f j -> f k <= 0) -> sum n f <= 1.
Proof.
  induction n as [|n IH]; intros f H1 H2; cbn; [lia|].
  assert (A : sum n f <= 1) by (apply IH; intros; [apply H1; lia | eapply H2; eauto]).
  destruct (Z_le_gt_dec 1 (sum n f)) as [L|L]; [|specialize (H1 n ltac:(lia)); lia].
  apply sum_positive in L as (j & Hj & E). specialize (H2 j n Hj ltac:(lia) E). lia.
Qed.

(* How many of n ticks from a on an action that starts at s and takes d ticks covers. *)
Definition ticks (a : Z) (n : nat) (g : Z -> Z) : Z := sum n (fun x => g (a + Z.of_nat x)).

Lemma covered : forall a n s d, 0 <= d ->
  ticks a n (fun t => one (during s t (s + d))) =
  Z.max 0 (Z.min (a + Z.of_nat n) (s + d) - Z.max a s).
Proof.
  intros a n s d D. unfold ticks. induction n as [|n IH]; cbn [sum]; [lia|]. rewrite IH.
  destruct (one_during s (a + Z.of_nat n) (s + d)) as [[? ->]|[? ->]]; lia.
Qed.

(* If life j has ended when life j + n starts, for all j, then n at most are alive. *)
Lemma few_alive : forall (s e : nat -> Z) n m, (1 <= n)%nat -> (forall j k,
  (j + n <= k)%nat -> (k < m)%nat -> e j <= s k) ->
  forall now, sum m (fun j => one (during (s j) now (e j))) <= Z.of_nat n.
Proof.
  intros s e n m Hn Near now. set (g := fun j => one (during (s j) now (e j))).
  assert (Some_n : forall x, sum x g <= Z.of_nat x).
  { intros x. rewrite <- (sum_one x). apply sum_le. intros; apply one_range. }
  enough (W : forall x, (x <= m)%nat -> sum x g <= Z.of_nat n) by (apply W; lia).
  induction x as [|x IH]; intros Hx; [cbn; lia|]. destruct (Nat.le_gt_cases (S x) n) as [S1|S1].
  { specialize (Some_n (S x)). lia. }
  cbn [sum]. unfold g at 2. specialize (IH ltac:(lia)).
  destruct (one_during (s x) now (e x)) as [[H ->]|[H ->]]; [|lia].
  assert (x = (x - (n - 1)) + (n - 1))%nat as E by lia.
  rewrite E. rewrite sum_app. rewrite (sum_ext _ g (fun _ => 0)), sum_const.
  - enough (sum (n - 1) (fun y => g (x - (n - 1) + y)%nat) <= Z.of_nat (n - 1)) by lia.
    rewrite <- (sum_one (n - 1)). apply sum_le. intros; apply one_range.
  - intros k Hk. unfold g. specialize (Near k x ltac:(lia) ltac:(lia)).
    destruct (one_during (s k) now (e k)) as [[? ->]|[? ->]]; lia.
Qed.
Lemma ticks_app : forall a n k g, ticks a (n + k) g = ticks a n g + ticks (a + Z.of_nat n) k g.
Proof.
  intros a n k g. unfold ticks. rewrite sum_app. f_equal. apply sum_ext. intros x _. f_equal. lia.
Qed.

Lemma sum_single : forall n j c, (j < n)%nat -> sum n (fun k => if Nat.eqb k j then c else 0) = c.
Proof.
  induction n as [|n IH]; intros j c L; [lia|]. cbn [sum].
  destruct (Nat.eqb_spec n j) as [->|N].
  - rewrite (sum_ext _ _ (fun _ => 0)), sum_const; [lia|].
    intros k Hk. destruct (Nat.eqb_spec k j); lia.
  - rewrite IH by lia. lia.
Qed.
Lemma sum_member : forall n g k, (k < n)%nat -> (forall x,
  (x < n)%nat -> 0 <= g x) -> g k <= sum n g.
Proof.
  induction n as [|n IH]; intros g k L H; [lia|]. cbn [sum].
  assert (0 <= sum n g).
  { rewrite <- (sum_zero n). apply sum_le. intros x Hx. apply H. lia. }
  destruct (Nat.eq_dec k n) as [->|N]; [lia|].
  specialize (IH g k ltac:(lia) ltac:(intros; apply H; lia)). specialize (H n ltac:(lia)). lia.
Qed.

Lemma sum_two : forall n g k h, (k < n)%nat -> (h < n)%nat -> k <> h -> (forall x,
  (x < n)%nat -> 0 <= g x) ->
  g k + g h <= sum n g.
Proof.
  intros n g k h K H N G.
  assert (A := sum_member n (fun x => g x - (if Nat.eqb x k then g k else 0)) h H).
  assert (E := sum_add n (fun x => g x - (if Nat.eqb x k then g k else 0)) (fun x => if Nat.eqb x
    k then g k else 0)).
  rewrite sum_single in E by exact K. rewrite (sum_ext n _ g) in E by (intros; lia).
  cbn beta in A. destruct (Nat.eqb_spec h k); [congruence|]. rewrite E.
  enough (g h - 0 <= sum n (fun x => g x - (if Nat.eqb x k then g k else 0))) by lia.
  apply A. intros x Hx. destruct (Nat.eqb_spec x k) as [->|]; [lia|]. specialize (G x Hx). lia.
Qed.

(* Sums that agree and are ordered term by term agree term by term. *)
Lemma sum_tight : forall n g h, (forall k, (k < n)%nat -> g k <= h k) -> sum n h <= sum n g ->
  forall k, (k < n)%nat -> h k = g k.
Proof.
  intros n g h H S k K. assert (A := sum_member n (fun x => h x - g x) k K).
  assert (E := sum_add n (fun x => h x - g x) g). rewrite (sum_ext n _ h) in E by (intros; lia).
  cbn beta in A. specialize (A ltac:(intros x Hx; specialize (H x Hx); lia)). specialize (H k K).
  lia.
Qed.
