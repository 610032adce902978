(* The samples of a rank: its stages, all microbatches and slices; and sums over them. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Packing PriceTables Steps Volume Staged.
Import ListNotations.
Open Scope Z_scope.

Definition sample := (nat * nat * nat)%type.
Definition own_stages (n : stage_numbers) (r : Z) := filter (fun g => rank_of n g =? r) (seq 0 (stages n)).
Definition samples (n : stage_numbers) (r : Z) : list sample :=
  flat_map (fun g => flat_map (fun j => map (fun i => (g, j, i)) (seq 0 (slices n)))
    (seq 0 (microbatches n))) (own_stages n r).
Definition least_of (f : nat -> Z) (l : list nat) : Z :=
  match l with [] => 0 | g :: rest => fold_right (fun x m => Z.min (f x) m) (f g) rest end.
Definition both_ends (n : stage_numbers) (r : Z) :=
  least_of (head n) (own_stages n r) + least_of (tail n) (own_stages n r).
Definition by_stage (n : stage_numbers) (r : Z) (f : nat -> nat -> Z) : Z :=
  total (map (fun g => total (map (f g) (seq 0 (slices n)))) (own_stages n r)).

Lemma sample_is : forall n r g j i, In (g, j, i) (samples n r) <->
  is_sample n g j i /\ rank_of n g = r.
Proof.
  intros n r g j i. unfold samples, is_sample. rewrite in_flat_map. split.
  - intros (g' & G & J). apply filter_In in G as [G R]. apply in_seq in G. apply Z.eqb_eq in R.
    apply in_flat_map in J as (j' & J & I). apply in_seq in J.
    apply in_map_iff in I as (i' & E & I). apply in_seq in I. injection E as -> -> ->.
    repeat split; (lia || exact R).
  - intros ((G & J & I) & R). exists g. split.
    + apply filter_In. split; [apply in_seq; lia | apply Z.eqb_eq, R].
    + apply in_flat_map. exists j. split; [apply in_seq; lia|].
      apply in_map_iff. exists i. split; [reflexivity | apply in_seq; lia].
Qed.

Lemma total_constant : forall {A} (l : list A) c, total (map (fun _ => c) l) = c * Z.of_nat (length l).
Proof. intros A. induction l as [|x l IH]; intros c; [cbn; lia|]. cbn [map total length]. rewrite IH. lia. Qed.

Lemma total_nothing : forall {A} (f : A -> Z) l, (forall x, In x l -> f x = 0) -> total (map f l) = 0.
Proof.
  intros A f. induction l as [|x l IH]; intros H; [reflexivity|]. cbn [map total].
  rewrite (H x (or_introl eq_refl)), IH by (intros y I; apply H; right; exact I). reflexivity.
Qed.

Lemma sum_by_stage : forall n r (f : nat -> nat -> Z),
  total (map (fun x : sample => let '(g, j, i) := x in f g i) (samples n r)) =
  Z.of_nat (microbatches n) * by_stage n r f.
Proof.
  intros n r f. unfold samples, by_stage. rewrite total_flat, <- total_times. f_equal.
  apply map_ext. intros g. rewrite total_flat.
  rewrite (map_ext _ (fun _ => total (map (f g) (seq 0 (slices n)))))
    by (intros j; rewrite map_map; reflexivity).
  rewrite total_constant, seq_length. lia.
Qed.

Lemma busy_flat : forall {A} (d : positive -> Z) (f : A -> list positive) l,
  busy positive d (flat_map f l) = total (map (fun x => busy positive d (f x)) l).
Proof.
  intros A d f. induction l as [|x l IH]; [reflexivity|]. cbn [flat_map map total].
  rewrite busy_app, IH. reflexivity.
Qed.

Lemma least_of_is : forall f l g, In g l -> least_of f l <= f g.
Proof.
  intros f [|x l] g I; [destruct I|]. unfold least_of.
  induction l as [|y l IH]; cbn [fold_right].
  - destruct I as [->|[]]. lia.
  - destruct I as [->|[->|I]]; [specialize (IH (or_introl eq_refl)); lia | lia |].
    specialize (IH (or_intror I)). lia.
Qed.

Lemma own_stage : forall n r g j i, In (g, j, i) (samples n r) -> In g (own_stages n r).
Proof.
  intros n r g j i I. apply sample_is in I as ((G & _) & R). apply filter_In.
  split; [apply in_seq; lia | apply Z.eqb_eq, R].
Qed.
