(* What SEND and RECV wait for under five semantics, as verify/communication/semantics.py has them.

   A program is one list of rows a rank. A row runs a task, or is the SEND or the RECV of a message;
   a message goes from the rank (`home`) of its producer to that of its consumer. A computation is
   one event; an end of a message is posted, starts, and ends, three events. What each of them needs
   to have happened is `needs`, and WaitGraph.v says what follows. *)

Require Import ZArith List Lia Bool.
From Bubbleproof Require Import WaitGraph.
Import ListNotations.

Inductive semantics := buffered | rendezvous | pair_stream | launch_order | rank_stream.

Section Semantics.

Variable T : Type.
Variable same : forall x y : T, {x = y} + {x <> y}.
Variable home : T -> Z.
Variable inputs : T -> list T.          (* of a task, on its own rank *)

Definition message := (T * T)%type.     (* producer, consumer *)
Variable messages : list message.

Inductive row := Run (t : T) | Send (k : message) | Recv (k : message).
Inductive event := Ran (t : T) | Posted (x : row) | Started (x : row) | Ended (x : row).

Definition same_message : forall x y : message, {x = y} + {x <> y}.
Proof. decide equality. Defined.
Definition same_row : forall x y : row, {x = y} + {x <> y}.
Proof. decide equality; apply same_message. Defined.
Definition same_event : forall x y : event, {x = y} + {x <> y}.
Proof. decide equality; apply same_row. Defined.

Definition source (k : message) := home (fst k).
Definition target (k : message) := home (snd k).

Definition is_end (x : row) : bool := match x with Run _ => false | _ => true end.
Definition message_of (x : row) : option message :=
  match x with Run _ => None | Send k | Recv k => Some k end.

(* The ends of a rank that stand in one stream, in which each starts when the one before has ended. *)
Definition one_stream (s : semantics) (k l : message) : bool :=
  match s with
  | buffered | rendezvous => ((source k =? source l) && (target k =? target l))%Z
  | pair_stream | launch_order =>
      ((source k =? source l) && (target k =? target l) ||
       (source k =? target l) && (target k =? source l))%Z
  | rank_stream => true
  end.

Definition streams_with (s : semantics) (x y : row) : bool :=
  match message_of x, message_of y with
  | Some k, Some l => one_stream s k l
  | _, _ => false
  end.

(* The rows before x in a list of rows. *)
Fixpoint earlier (x : row) (rows : list row) : list row :=
  match rows with
  | [] => []
  | y :: rest => if same_row y x then [] else y :: earlier x rest
  end.

Variable program : list (list row).

(* The rows before x on its rank. *)
Definition ahead (x : row) : list row :=
  flat_map (fun rows => if in_dec same_row x rows then earlier x rows else []) program.

(* When a rank goes on behind a row: a computation has ended, an end is posted, or has ended too. *)
Definition passed (s : semantics) (y : row) : event :=
  match y with
  | Run t => Ran t
  | _ => match s with rendezvous => Ended y | _ => Posted y end
  end.

Definition received (t : T) : list message :=
  filter (fun k => if same (snd k) t then true else false) messages.

Definition needs (s : semantics) (e : event) : list event :=
  match e with
  | Ran t => map (passed s) (ahead (Run t)) ++ map Ran (inputs t) ++
             map (fun k => Ended (Recv k)) (received t)
  | Posted x => map (passed s) (ahead x)
  | Started x => Posted x :: map Ended (filter (streams_with s x) (ahead x)) ++
             match s with launch_order => map Started (filter is_end (ahead x)) | _ => [] end
  | Ended (Run _) => []
  | Ended (Send k) => match s with
                      | buffered => [Posted (Send k)]
                      | _ => [Started (Send k); Started (Recv k)]
                      end
  | Ended (Recv k) => match s with
                      | buffered => [Started (Recv k); Ended (Send k)]
                      | _ => [Started (Send k); Started (Recv k)]
                      end
  end.

(* Under `buffered` a SEND stands in no stream: it starts, if anyone asks, as it is posted. *)
Definition events_of (x : row) : list event :=
  match x with
  | Run t => [Ran t]
  | _ => [Posted x; Started x; Ended x]
  end.

Definition events : list event := flat_map events_of (concat program).

Definition deadlock_free (s : semantics) : Prop := ends event events (needs s).

(* ---- A program made from one order of all that happens. ---- *)

Inductive occurrence := Compute (t : T) | Exchange (k : message).

Definition same_occurrence : forall x y : occurrence, {x = y} + {x <> y}.
Proof. decide equality; apply same_message. Defined.

Definition occurrence_of (x : row) : occurrence :=
  match x with Run t => Compute t | Send k | Recv k => Exchange k end.

(* What an occurrence puts into the program of rank r. *)
Definition rows_on (r : Z) (o : occurrence) : list row :=
  match o with
  | Compute t => if (home t =? r)%Z then [Run t] else []
  | Exchange k => (if (source k =? r)%Z then [Send k] else []) ++
                  (if (target k =? r)%Z then [Recv k] else [])
  end.

Definition lowered (ranks : list Z) (order : list occurrence) : list (list row) :=
  map (fun r => flat_map (rows_on r) order) ranks.

End Semantics.
