(* Transition systems in which what may happen stays possible, and the graph of who waits for whom.

   There are finitely many events. Each happens at most once, and may happen as soon as all that it
   needs has happened; nothing else holds it back. A state is the list of what has happened, the
   latest first. Every semantics of verify/communication/semantics.py is such a system
   (Semantics.v says which events there are and what they need).

   `ends` says that no state stands still before all has happened. `ends_iff_no_cycle` is what
   verify/communication/deadlock.py rests on: a program gets stuck exactly where the graph has a
   cycle, whatever happens first. *)

Require Import List Arith Lia.
Import ListNotations.

Section WaitGraph.

Variable E : Type.
Variable same : forall x y : E, {x = y} + {x <> y}.
Variable events : list E.
Variable needs : E -> list E.

Definition may (happened : list E) (e : E) :=
  In e events /\ ~ In e happened /\ forall f, In f (needs e) -> In f happened.

Inductive reached : list E -> Prop :=
| at_first : reached []
| next : forall l e, reached l -> may l e -> reached (e :: l).

Definition stands_still (l : list E) := forall e, ~ may l e.

Definition ends := forall l, reached l -> stands_still l -> forall e, In e events -> In e l.

(* e waits for f, directly or through others. *)
Inductive waits : E -> E -> Prop :=
| directly : forall e f, In e events -> In f (needs e) -> waits e f
| through : forall e f g, waits e f -> waits f g -> waits e g.

Definition no_cycle := forall e, ~ waits e e.

(* Whoever is needed is there: of a program, that its messages match. *)
Definition closed := forall e f, In e events -> In f (needs e) -> In f events.

(* ---- Without a cycle all happens. ---- *)

Lemma missing : forall l e, In e events -> ~ In e l -> stands_still l ->
  exists f, In f (needs e) /\ ~ In f l.
Proof.
  intros l e I N S.
  destruct (Exists_dec (fun f => ~ In f l) (needs e)) as [X|X].
  - intros f. destruct (in_dec same f l); [right|left]; tauto.
  - apply Exists_exists in X. exact X.
  - destruct (S e). split; [exact I|]. split; [exact N|]. intros f If.
    destruct (in_dec same f l) as [?|M]; [assumption|]. destruct X. apply Exists_exists. eauto.
Qed.

(* From one that is missing to another for which it waits: no more steps than events. *)
Lemma cycle_found : closed -> forall l, stands_still l -> forall n seen e,
  length events <= n + length seen -> NoDup seen -> incl seen events ->
  (forall x, In x seen -> waits x e) -> In e events -> ~ In e seen -> ~ In e l ->
  exists c, waits c c.
Proof.
  intros C l S. induction n as [|n IH]; intros seen e L D I W Ie Ns Nl.
  - assert (K : length (e :: seen) <= length events).
    { apply NoDup_incl_length; [constructor; assumption|].
      intros x [<-|J]; [exact Ie | exact (I x J)]. }
    cbn in K. lia.
  - destruct (missing l e Ie Nl S) as (f & If & Nf). assert (D1 := directly e f Ie If).
    destruct (same f e) as [->|Q]; [exists e; exact D1|].
    destruct (in_dec same f seen) as [J|J].
    + exists f. exact (through f e f (W f J) D1).
    + apply (IH (e :: seen) f); cbn.
      * lia.
      * constructor; assumption.
      * intros x [<-|Jx]; [exact Ie | exact (I x Jx)].
      * intros x [<-|Jx]; [exact D1 | exact (through x e f (W x Jx) D1)].
      * exact (C e f Ie If).
      * intros [<-|Jx]; tauto.
      * exact Nf.
Qed.

Theorem no_cycle_ends : closed -> no_cycle -> ends.
Proof.
  intros C A l R S e I. destruct (in_dec same e l) as [?|N]; [assumption|].
  destruct (cycle_found C l S (length events) [] e) as (c & W); cbn; try tauto.
  - lia.
  - constructor.
  - intros x [].
  - destruct (A c W).
Qed.

(* What happens has been preceded by all for which it waits. *)
Lemma needed_before : forall l, reached l -> forall a e b, l = a ++ e :: b ->
  forall f, In f (needs e) -> In f b.
Proof.
  intros l R. induction R as [|l e R IH M]; intros a x b E' f I.
  - destruct a; discriminate.
  - destruct a as [|y a]; cbn in E'; injection E' as -> ->.
    + apply M, I.
    + exact (IH a x b eq_refl f I).
Qed.

Lemma waited_before : forall e f, waits e f ->
  forall l, reached l -> forall a b, l = a ++ e :: b -> In f b.
Proof.
  intros e f W. induction W as [e f I N|e f g W1 IH1 W2 IH2]; intros l R a b E'.
  - exact (needed_before l R a e b E' f N).
  - assert (J := IH1 l R a b E'). apply in_split in J as (c & d & ->).
    assert (K := IH2 l R (a ++ e :: c) d). rewrite in_app_iff. right; right. apply K.
    rewrite E', <- app_assoc. reflexivity.
Qed.

Lemma once : forall l, reached l -> NoDup l.
Proof. intros l R. induction R as [|l e R IH M]; constructor; [apply M | exact IH]. Qed.

(* Nothing on a cycle ever happens. *)
Theorem cycle_never_happens : forall e, waits e e -> forall l, reached l -> ~ In e l.
Proof.
  intros e W l R I. apply in_split in I as (a & b & E'). assert (N := once l R).
  assert (J := waited_before e e W l R a b E'). rewrite E' in N.
  apply NoDup_remove_2 in N. apply N. rewrite in_app_iff. right. exact J.
Qed.

(* ---- A system always comes to stand still. ---- *)

Lemma may_dec : forall l e, In e events -> {may l e} + {~ may l e}.
Proof.
  intros l e I. destruct (in_dec same e l) as [J|J]; [right; intros (_ & N & _); tauto|].
  destruct (Forall_dec (fun f => In f l) (fun f => in_dec same f l) (needs e)) as [F|F].
  - left. rewrite Forall_forall in F. repeat split; assumption.
  - right. intros (_ & _ & H). apply F, Forall_forall, H.
Qed.

Lemma inside : forall l, reached l -> incl l events.
Proof.
  intros l R. induction R as [|l e R IH M]; [intros x []|].
  intros x [<-|I]; [apply M | exact (IH x I)].
Qed.

Lemma goes_on : forall n l, length events <= n + length l -> reached l ->
  exists k, reached k /\ stands_still k.
Proof.
  assert (D : forall l, (exists e, may l e) \/ stands_still l).
  { intros l. destruct (Exists_dec (fun e => In e events /\ may l e) events) as [X|X].
    - intros e. destruct (in_dec same e events) as [I|I]; [|right; tauto].
      destruct (may_dec l e I); [left|right]; tauto.
    - left. apply Exists_exists in X as (e & _ & _ & M). eauto.
    - right. intros e M. apply X, Exists_exists. exists e. split; [apply M | split; [apply M | exact M]]. }
  induction n as [|n IH]; intros l L R.
  - exists l. split; [exact R|]. destruct (D l) as [(e & M)|S]; [|exact S].
    assert (K : length (e :: l) <= length events).
    { apply NoDup_incl_length; [apply once | apply inside]; constructor; assumption. }
    cbn in K. lia.
  - destruct (D l) as [(e & M)|S]; [|exists l; tauto].
    apply (IH (e :: l)); [cbn; lia | constructor; assumption].
Qed.

Lemma waits_from : forall e f, waits e f -> In e events.
Proof. intros e f W. induction W; assumption. Qed.

Theorem ends_iff_no_cycle : closed -> (ends <-> no_cycle).
Proof.
  intros C. split; [|exact (no_cycle_ends C)]. intros A e W.
  destruct (goes_on (length events) []) as (l & R & S); [cbn; lia | constructor|].
  apply (cycle_never_happens e W l R), (A l R S), (waits_from e e W).
Qed.

(* ---- Whatever happens first, the same happens (lemma 6 of docs/guide/formal.md). ---- *)

(* What may happen still may after another. *)
Theorem possible_stays : forall l e f, may l e -> may l f -> e <> f -> may (e :: l) f.
Proof.
  intros l e f (_ & _ & _) (I & N & H) D. split; [exact I|]. split.
  - intros [->|J]; tauto.
  - intros g J. right. exact (H g J).
Qed.

(* So both orders come to the same: the same has happened, and the same may happen next. *)
Theorem both_orders_alike : forall l e f, reached l -> may l e -> may l f -> e <> f ->
  reached (f :: e :: l) /\ reached (e :: f :: l) /\
  (forall g, In g (f :: e :: l) <-> In g (e :: f :: l)) /\
  forall g, may (f :: e :: l) g <-> may (e :: f :: l) g.
Proof.
  intros l e f R Me Mf D. assert (S : forall g, In g (f :: e :: l) <-> In g (e :: f :: l)).
  { intros g. cbn. tauto. }
  split; [|split; [|split; [exact S|]]].
  - constructor; [constructor; assumption | apply possible_stays; assumption].
  - constructor; [constructor; assumption | apply possible_stays; congruence || assumption].
  - intros g. unfold may. rewrite (S g). split; intros (I & N & H);
      (split; [exact I | split; [exact N | intros x J; apply S, H, J]]).
Qed.

Lemma stuck_alike : forall k l, reached k -> stands_still k -> reached l -> incl l k.
Proof.
  intros k l K S L. induction L as [|l e L IH (I & N & H)]; [intros x []|].
  intros x [<-|J]; [|exact (IH x J)].
  destruct (in_dec same e k) as [?|Q]; [assumption|]. destruct (S e). repeat split; auto.
Qed.

Theorem maximal_sequences_agree : forall k l,
  reached k -> stands_still k -> reached l -> stands_still l -> forall e, In e k <-> In e l.
Proof. intros k l K S L S' e. split; [apply (stuck_alike l k)|apply (stuck_alike k l)]; assumption. Qed.

(* Numbers that fall along every wait leave no room for a cycle. *)
Theorem falling_ends : closed -> forall h : E -> nat,
  (forall e f, In e events -> In f (needs e) -> h f < h e) -> ends.
Proof.
  intros C h H. apply no_cycle_ends; [exact C|].
  assert (F : forall e f, waits e f -> h f < h e).
  { intros e f W. induction W; [apply H; assumption | lia]. }
  intros e W. specialize (F e e W). lia.
Qed.

End WaitGraph.
