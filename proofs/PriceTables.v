(* Prices of successive ticks, their sums, and rows of numbers by start: what `Prices.v` computes
   with.

   `upto m x` is the price of all ticks before x. A row lists a function's values at `first`,
   `first + 1`, ...; `shows row first n g` says that it has n of them. *)

Require Import ZArith Lia List Bool Permutation.
Import ListNotations.
Open Scope Z_scope.

Definition prices := list Z.
Fixpoint total (m : prices) : Z := match m with [] => 0 | q :: rest => q + total rest end.
Definition upto (m : prices) (x : Z) := total (firstn (Z.to_nat x) m).

(* From steps (tick, price from there on), 0 before the first, within a horizon of h ticks. *)
Fixpoint expand (from least price h : Z) (steps : list (Z * Z)) : option prices :=
  match steps with
  | [] => Some (repeat price (Z.to_nat (h - from)))
  | (t, q) :: rest =>
      if (least <=? t) && (t <? h) && (0 <=? q) then
        match expand t (t + 1) q h rest with
        | Some later => Some (repeat price (Z.to_nat (t - from)) ++ later)
        | None => None
        end
      else None
  end.

Definition not_negative (m : prices) := forallb (Z.leb 0) m.

(* ---- Rows. ---- *)

Fixpoint zip (f : Z -> Z -> Z) (a b : list Z) : list Z :=
  match a, b with x :: a', y :: b' => f x y :: zip f a' b' | _, _ => [] end.

(* The first n of a list, which goes on with `more` where it ends. *)
Fixpoint window (n : nat) (l : list Z) (more : Z) : list Z :=
  match n, l with
  | O, _ => []
  | S n', [] => more :: window n' [] more
  | S n', x :: rest => x :: window n' rest more
  end.

Fixpoint sums (so_far : Z) (m : prices) : list Z :=
  so_far :: match m with [] => [] | q :: rest => sums (so_far + q) rest end.

(* The sums of all prices before each tick, and of all. *)
Definition sheet := (list Z * Z)%type.
Definition sheet_of (m : prices) : sheet := (sums 0 m, total m).
Definition sums_from (m : sheet) (first : Z) (n : nat) :=
  window n (skipn (Z.to_nat first) (fst m)) (snd m).

(* The least of each number of a list and all that follow it. *)
Fixpoint lows (l : list Z) : list Z :=
  match l with
  | [] => []
  | x :: rest => match lows rest with [] => [x] | m :: later => Z.min x m :: m :: later end
  end.

Definition shows (row : list Z) (first : Z) (n : nat) (g : Z -> Z) :=
  length row = n /\ forall i, (i < n)%nat -> nth i row 0 = g (first + Z.of_nat i).

Lemma shows_at : forall row first n g x, shows row first n g ->
  first <= x -> x - first < Z.of_nat n -> nth (Z.to_nat (x - first)) row 0 = g x.
Proof. intros row first n g x [_ H] A B. rewrite H by lia. f_equal. lia. Qed.

Lemma nth_window : forall n l more i, (i < n)%nat -> nth i (window n l more) 0 = nth i l more.
Proof.
  induction n as [|n IH]; intros l more i L; [lia|].
  destruct l as [|x l], i as [|i]; cbn; try reflexivity.
  - rewrite IH by lia. destruct i; reflexivity.
  - apply IH. lia.
Qed.

Lemma window_length : forall n l more, length (window n l more) = n.
Proof.
  induction n as [|n IH]; intros l more; [reflexivity|].
  destruct l; cbn; rewrite IH; reflexivity.
Qed.

Lemma nth_skip : forall (l : list Z) f i d, nth i (skipn f l) d = nth (f + i) l d.
Proof.
  induction l as [|x l IH]; intros [|f] i d; cbn; try reflexivity; [destruct i; reflexivity|].
  apply IH.
Qed.

Lemma nth_sums : forall m a i, nth i (sums a m) (a + total m) = a + total (firstn i m).
Proof.
  induction m as [|q m IH]; intros a [|i]; cbn; try lia; [destruct i; lia|].
  replace (a + (q + total m)) with (a + q + total m) by lia. rewrite IH. lia.
Qed.

Lemma shows_sums : forall m first n, 0 <= first ->
  shows (sums_from (sheet_of m) first n) first n (upto m).
Proof.
  intros m first n F. split; [apply window_length|]. intros i L.
  unfold sums_from, sheet_of. cbn [fst snd]. rewrite nth_window by exact L. rewrite nth_skip.
  pose proof (nth_sums m 0 (Z.to_nat first + i)) as S. rewrite !Z.add_0_l in S. rewrite S.
  unfold upto. f_equal. f_equal. lia.
Qed.

Lemma shows_zip : forall f a b first n g h, shows a first n g -> shows b first n h ->
  shows (zip f a b) first n (fun x => f (g x) (h x)).
Proof.
  intros f a b first n g h [La A] [Lb B].
  assert (E : forall a b n, length a = n -> length b = n -> length (zip f a b) = n /\
    forall i, (i < n)%nat -> nth i (zip f a b) 0 = f (nth i a 0) (nth i b 0)).
  { clear. induction a as [|x a IH]; intros [|y b] [|n] La Lb; cbn in *; try discriminate.
    - split; [reflexivity|]. intros i L. lia.
    - injection La as La. injection Lb as Lb. destruct (IH b n La Lb) as [E N].
      split; [congruence|]. intros [|i] L; [reflexivity|]. apply N. lia. }
  destruct (E a b n La Lb) as [L N]. split; [exact L|]. intros i I.
  rewrite N, A, B by exact I. reflexivity.
Qed.

Lemma shows_zeros : forall first n, shows (repeat 0 n) first n (fun _ => 0).
Proof.
  intros first n. split; [apply repeat_length|]. intros i _. apply nth_repeat.
Qed.

Lemma lows_length : forall l, length (lows l) = length l.
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn. destruct (lows l); cbn in *; lia.
Qed.

Lemma lows_least : forall l i j, (i <= j)%nat -> (j < length l)%nat ->
  nth i (lows l) 0 <= nth j l 0.
Proof.
  induction l as [|x l IH]; intros i j I J; cbn in J; [lia|].
  pose proof (lows_length l) as E. cbn [lows]. destruct (lows l) as [|m later] eqn:Lows.
  - destruct l; [|discriminate]. cbn in J. replace j with 0%nat by lia.
    replace i with 0%nat by lia. cbn. lia.
  - destruct i as [|i], j as [|j]; try lia.
    + cbn. lia.
    + specialize (IH 0%nat j ltac:(lia) ltac:(lia)). cbn in IH |- *. lia.
    + specialize (IH i j ltac:(lia) ltac:(lia)). destruct i; cbn in IH |- *; exact IH.
Qed.

(* ---- Sums of prices. ---- *)

Lemma firstn_subset : forall n (m : prices) q, In q (firstn n m) -> In q m.
Proof. intros n m q I. rewrite <- (firstn_skipn n m). apply in_or_app. left. exact I. Qed.

Lemma total_is : forall l, (forall q, In q l -> 0 <= q) -> 0 <= total l.
Proof.
  induction l as [|q l IH]; intros H; cbn; [lia|].
  pose proof (H q (or_introl eq_refl)). specialize (IH (fun x I => H x (or_intror I))). lia.
Qed.

Lemma total_app : forall a b, total (a ++ b) = total a + total b.
Proof. induction a as [|q a IH]; intros b; cbn; [lia|]. rewrite IH. lia. Qed.

Lemma upto_grows : forall m x y, (forall q, In q m -> 0 <= q) -> x <= y ->
  upto m x <= upto m y.
Proof.
  intros m x y P L. unfold upto. replace (Z.to_nat y) with (Z.to_nat x + (Z.to_nat y - Z.to_nat x))%nat
    by lia. generalize (Z.to_nat y - Z.to_nat x)%nat. generalize (Z.to_nat x). revert P. clear.
  induction m as [|q m IH]; intros P [|a] b; rewrite ?firstn_nil; try (cbn; lia).
  - cbn [Nat.add firstn total]. apply total_is. intros z I. apply P, (firstn_subset b), I.
  - cbn [Nat.add firstn total]. specialize (IH (fun x I => P x (or_intror I)) a b). lia.
Qed.
Lemma upto_within : forall m x, (forall q, In q m -> 0 <= q) -> 0 <= upto m x <= total m.
Proof.
  intros m x P. split.
  - apply total_is. intros q I. apply P, (firstn_subset (Z.to_nat x)), I.
  - pose proof (firstn_skipn (Z.to_nat x) m) as E. apply (f_equal total) in E.
    rewrite total_app in E. unfold upto. pose proof (total_is (skipn (Z.to_nat x) m)) as T.
    rewrite <- E. apply Z.le_sub_le_add_l. rewrite Z.sub_diag. apply T. intros q I. apply P.
    rewrite <- (firstn_skipn (Z.to_nat x) m). apply in_or_app. right. exact I.
Qed.

(* ---- Sums over lists of tasks. ---- *)

Lemma total_plus : forall {A} (f g : A -> Z) l,
  total (map (fun x => f x + g x) l) = total (map f l) + total (map g l).
Proof. intros A f g. induction l as [|x l IH]; cbn; lia. Qed.

Lemma total_zeros : forall {A} (f : A -> Z) l, (forall x, f x = 0) -> total (map f l) = 0.
Proof. intros A f l Z0. induction l as [|x l IH]; cbn; [reflexivity|]. rewrite Z0, IH. lia. Qed.

Lemma total_below : forall {A} (f g : A -> Z) l, (forall x, In x l -> f x <= g x) ->
  total (map f l) <= total (map g l).
Proof.
  intros A f g. induction l as [|x l IH]; intros H; cbn [map total]; [lia|].
  specialize (IH (fun y I => H y (or_intror I))). pose proof (H x (or_introl eq_refl)). lia.
Qed.

Lemma total_times : forall {A} (f : A -> Z) l n, total (map (fun x => n * f x) l) = n * total (map f l).
Proof. intros A f l n. induction l as [|x l IH]; cbn [map total]; lia. Qed.

Lemma last_of_some : forall {A} (f : A -> bool) (g : A -> Z) l,
  (forall x, In x l -> f x = false) \/
  exists x, In x l /\ f x = true /\ forall y, In y l -> f y = true -> g y <= g x.
Proof.
  intros A f g. induction l as [|x l [IH|(y & I & F & M)]]; [left; intros x []| |].
  - destruct (f x) eqn:E; [right|left].
    + exists x. split; [left; reflexivity|]. split; [exact E|]. intros y [<-|J] Y; [lia|].
      rewrite (IH y J) in Y. discriminate.
    + intros y [<-|J]; [exact E | exact (IH y J)].
  - right. destruct (f x) eqn:E.
    + destruct (Z_le_gt_dec (g x) (g y)) as [L|L].
      * exists y. split; [right; exact I|]. split; [exact F|]. intros z [<-|J] Z_; [exact L | auto].
      * exists x. split; [left; reflexivity|]. split; [exact E|]. intros z [<-|J] Z_; [lia|].
        specialize (M z J Z_). lia.
    + exists y. split; [right; exact I|]. split; [exact F|].
      intros z [<-|J] Z_; [congruence | auto].
Qed.

Lemma add_once : forall (x : Z) (a : positive) (g : positive -> Z) ns, NoDup ns ->
  total (map (fun t => if Pos.eq_dec t a then x + g t else g t) ns) =
  total (map g ns) + if in_dec Pos.eq_dec a ns then x else 0.
Proof.
  intros x a g. induction ns as [|t ns IH]; intros N; [reflexivity|].
  inversion N as [|? ? Out N']; subst. cbn [map total]. rewrite IH by exact N'.
  destruct (Pos.eq_dec t a) as [->|D].
  - destruct (in_dec Pos.eq_dec a ns); [contradiction|].
    destruct (in_dec Pos.eq_dec a (a :: ns)) as [_|J]; [lia | destruct J; left; reflexivity].
  - destruct (in_dec Pos.eq_dec a ns), (in_dec Pos.eq_dec a (t :: ns)) as [J|J]; try lia.
    + destruct J. right. assumption.
    + destruct J as [J|J]; contradiction.
Qed.
Lemma total_permuted : forall a b, Permutation a b -> total a = total b.
Proof. intros a b P. induction P; cbn; lia. Qed.

(* What the ticks from x on cost, tick by tick from tick i on. *)
Fixpoint later (m : prices) (i x : Z) : Z :=
  match m with
  | [] => 0
  | q :: rest => (if x <=? i then q else 0) + later rest (i + 1) x
  end.

Lemma later_is : forall m i x, later m i x = total m - total (firstn (Z.to_nat (x - i)) m).
Proof.
  induction m as [|q m IH]; intros i x; cbn [later total]; [rewrite firstn_nil; cbn; lia|].
  rewrite IH. destruct (Z.leb_spec x i).
  - replace (Z.to_nat (x - i)) with 0%nat by lia. replace (Z.to_nat (x - (i + 1))) with 0%nat
      by lia. cbn. lia.
  - replace (Z.to_nat (x - i)) with (S (Z.to_nat (x - (i + 1)))) by lia. cbn. lia.
Qed.
