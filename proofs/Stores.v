(* Rule 5 of verify/spec.py: what stores hold, and when that is right.

   A store has a base load and perhaps a capacity. An event changes its load when a task starts or
   ends; a task that is listed on several resources is timed by its first row, and one that is not
   listed changes nothing. The load at a moment counts all changes up to it, those of that moment
   included, so that releases come before acquisitions. Rule 5 asks that at every moment, from
   before the first change on, each load lies within 0 and the capacity.

   Moments are without end, and changes are not: `check_memory` looks at the base load and at the
   moments of the changes alone, and `check_memory_iff` says that this is the same. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions.
Import ListNotations.
Open Scope Z_scope.

Section Stores.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable p : problem T.

Record event := Event { owner : T; at_end : bool; delta : Z }.
Record store := Store { base : Z; capacity : option Z; events : list event }.

Definition moment (rows : schedule T) (e : event) : option Z :=
  match find (fun x => same_task T same (task _ x) (owner e)) rows with
  | Some x => Some (if at_end e then finish T p x else start _ x)
  | None => None
  end.

(* What the events up to a moment add. *)
Fixpoint added (rows : schedule T) (now : Z) (l : list event) : Z :=
  match l with
  | [] => 0
  | e :: rest =>
      match moment rows e with
      | Some t => if t <=? now then delta e else 0
      | None => 0
      end + added rows now rest
  end.

Definition load (rows : schedule T) (s : store) (now : Z) := base s + added rows now (events s).

Definition fits (s : store) (n : Z) :=
  0 <= n /\ match capacity s with Some c => n <= c | None => True end.

Definition in_memory (stores : list store) (rows : schedule T) :=
  forall s, In s stores -> forall now, fits s (load rows s now).

(* ---- The checker. ---- *)

Definition check_fits (s : store) (n : Z) :=
  (0 <=? n) && match capacity s with Some c => n <=? c | None => true end.

Definition check_store (rows : schedule T) (s : store) :=
  check_fits s (base s) &&
  forallb (fun e => match moment rows e with
                    | Some t => check_fits s (load rows s t)
                    | None => true
                    end) (events s).

Definition check_memory (stores : list store) (rows : schedule T) :=
  forallb (check_store rows) stores.

(* ---- It is sound and complete. ---- *)

Lemma check_fits_iff : forall s n, check_fits s n = true <-> fits s n.
Proof.
  intros s n. unfold check_fits, fits. rewrite andb_true_iff, Z.leb_le.
  destruct (capacity s); [rewrite Z.leb_le|]; intuition.
Qed.

(* Two moments with the same changes up to them have the same load. *)
Lemma added_alike : forall rows l now then_,
  (forall e t, In e l -> moment rows e = Some t -> (t <= now <-> t <= then_)) ->
  added rows now l = added rows then_ l.
Proof.
  intros rows. induction l as [|e rest IH]; intros now then_ H; [reflexivity|]. cbn.
  rewrite (IH now then_) by (intros f t I; apply H; right; exact I).
  destruct (moment rows e) as [t|] eqn:E; [|reflexivity].
  specialize (H e t (or_introl eq_refl) E).
  destruct (Z.leb_spec t now), (Z.leb_spec t then_); lia.
Qed.

Lemma added_nothing : forall rows l now,
  (forall e t, In e l -> moment rows e = Some t -> now < t) -> added rows now l = 0.
Proof.
  intros rows. induction l as [|e rest IH]; intros now H; [reflexivity|]. cbn.
  rewrite IH by (intros f t I; apply H; right; exact I).
  destruct (moment rows e) as [t|] eqn:E; [|reflexivity].
  specialize (H e t (or_introl eq_refl) E). destruct (Z.leb_spec t now); lia.
Qed.

(* Some moment is before all changes. *)
Lemma before_all : forall rows l, exists now,
  forall e t, In e l -> moment rows e = Some t -> now < t.
Proof.
  intros rows. induction l as [|e rest (now & H)]; [exists 0; intros e t []|].
  destruct (moment rows e) as [u|] eqn:E.
  - exists (Z.min now (u - 1)). intros f t [<-|I] F; [assert (u = t) by congruence; lia|].
    specialize (H f t I F). lia.
  - exists now. intros f t [<-|I] F; [congruence | exact (H f t I F)].
Qed.

(* Up to a moment there is a last change, or none. *)
Lemma last_change : forall rows l now,
  (forall e t, In e l -> moment rows e = Some t -> now < t) \/
  exists e t, In e l /\ moment rows e = Some t /\ t <= now /\
    forall f u, In f l -> moment rows f = Some u -> u <= now -> u <= t.
Proof.
  intros rows l now. induction l as [|e rest IH]; [left; intros e t []|].
  assert (K : forall t, moment rows e = Some t -> t <= now ->
    exists f u, In f (e :: rest) /\ moment rows f = Some u /\ u <= now /\
      forall g w, In g (e :: rest) -> moment rows g = Some w -> w <= now -> w <= u).
  { intros t E L. destruct IH as [N|(f & u & I & F & Lu & M)].
    - exists e, t. repeat split; [left; reflexivity | exact E | exact L |].
      intros g w [<-|I] G Lw; [assert (t = w) by congruence; lia|].
      specialize (N g w I G). lia.
    - destruct (Z_le_gt_dec t u) as [C|C].
      + exists f, u. repeat split; [right; exact I | exact F | exact Lu |].
        intros g w [<-|J] G Lw; [assert (t = w) by congruence; lia | exact (M g w J G Lw)].
      + exists e, t. repeat split; [left; reflexivity | exact E | exact L |].
        intros g w [<-|J] G Lw; [assert (t = w) by congruence; lia|].
        specialize (M g w J G Lw). lia. }
  destruct (moment rows e) as [t|] eqn:E.
  - destruct (Z_le_gt_dec t now) as [L|L]; [right; exact (K t eq_refl L)|].
    destruct IH as [N|(f & u & I & F & Lu & M)]; [left|right].
    + intros g w [<-|J] G; [assert (t = w) by congruence; lia | exact (N g w J G)].
    + exists f, u. repeat split; [right; exact I | exact F | exact Lu |].
      intros g w [<-|J] G Lw; [assert (t = w) by congruence; lia | exact (M g w J G Lw)].
  - destruct IH as [N|(f & u & I & F & Lu & M)]; [left|right].
    + intros g w [<-|J] G; [congruence | exact (N g w J G)].
    + exists f, u. repeat split; [right; exact I | exact F | exact Lu |].
      intros g w [<-|J] G Lw; [congruence | exact (M g w J G Lw)].
Qed.

Lemma check_store_iff : forall rows s,
  check_store rows s = true <-> forall now, fits s (load rows s now).
Proof.
  intros rows s. unfold check_store. rewrite andb_true_iff, check_fits_iff, forallb_forall. split.
  - intros [B H] now. unfold load.
    destruct (last_change rows (events s) now) as [N|(e & t & I & E & L & M)].
    + rewrite (added_nothing rows (events s) now N), Z.add_0_r. exact B.
    + rewrite (added_alike rows (events s) now t).
      * specialize (H e I). rewrite E in H. apply check_fits_iff, H.
      * intros f u J F. split; [exact (M f u J F) | lia].
  - intros H. split.
    + destruct (before_all rows (events s)) as (now & N). specialize (H now). unfold load in H.
      rewrite (added_nothing rows (events s) now N), Z.add_0_r in H. exact H.
    + intros e I. destruct (moment rows e) as [t|]; [|reflexivity]. apply check_fits_iff, H.
Qed.

Theorem check_memory_iff : forall stores rows,
  check_memory stores rows = true <-> in_memory stores rows.
Proof.
  intros stores rows. unfold check_memory, in_memory. rewrite forallb_forall.
  split; intros H s I; apply check_store_iff, H, I.
Qed.

End Stores.
