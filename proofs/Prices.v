(* Certificates by prices: a checker of them, proved sound. Lemma of
   verify/certificates/tick_prices.py.

   Price the ticks of some resources and the units of some stores, within a horizon of `bound - 1`
   ticks. If what the microbatches must pay, each by its own precedences, is more than what there
   is to sell, no schedule fits the horizon. No index order is needed, nor that microbatches are
   alike, nor a lifecycle of a store: prices are not negative, priced stores have a capacity.

   The certificate names the parts (one a microbatch) as forests along precedences of the problem.
   That each task stands in one part at most, and that its edges are the problem's, is checked; that
   a part is a microbatch is not needed. Tasks outside of all parts pay what they cannot avoid. *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances PriceTables
  PricePayments.
Import ListNotations.
Open Scope Z_scope.

Record tariff := Tariff { priced : Z; steps : list (Z * Z) }.

Record price_list := PriceList {
  of_resources : list tariff;
  of_stores : list tariff;  (* by their places in the list of stores *)
  parts : list (forest positive);
  least_makespan : Z }.

(* ---- The checker. ---- *)

(* Tasks by the number of their part. *)
Definition parted (fs : list (forest positive)) : Map.t nat :=
  fold_right (fun tn m => Map.add (fst tn) (snd tn) m) (Map.empty _)
    (concat (map (fun nf => map (fun t => (t, fst nf)) (flat (snd nf)))
      (combine (seq 0 (length fs)) fs))).
Definition within_part (of : Map.t nat) (e : edge positive) : bool :=
  let '(a, b, _) := e in
  match Map.find a of, Map.find b of with Some i, Some j => Nat.eqb i j | _, _ => false end.

Section Shapes.
Variables (k : index) (m : arcs) (hs ts : paths) (rs : list Z) (css : list (Map.t changes)).

Definition node_of (parent : option positive) (t : positive) : option node :=
  match Map.find t hs, Map.find t ts,
    match parent with
    | None => Some 0
    | Some a => match lag_of m a t with Some lag => Some (ticks k a + lag) | None => None end
    end
  with
  | Some h, Some l, Some w =>
      if known k t && (0 <=? ticks k t) && (0 <=? h) && (0 <=? l) then
        Some (Node h l w (ticks k t) (map (fun r => existsb (Z.eqb r) (sites k t)) rs)
          (map (changes_at t) css))
      else None
  | _, _, _ => None
  end.

Fixpoint shape (parent : option positive) (f : forest positive) : option (forest node) :=
  match f with
  | Nil => Some Nil
  | Tree t kids next =>
      match node_of parent t, shape (Some t) kids, shape parent next with
      | Some n, Some a, Some b => Some (Tree n a b)
      | _, _, _ => None
      end
  end.
End Shapes.

Fixpoint find_shape (f : forest node) (seen : list (forest node * option Z)) :=
  match seen with
  | [] => None
  | (g, paid) :: rest => if same_forest f g then Some paid else find_shape f rest
  end.

(* What all pay at least; Some None: one has no place. *)
Fixpoint paid (mus lams : list sheet) (h : Z) (fs : list (option (forest node)))
    (seen : list (forest node * option Z)) (sum : Z) : option (option Z) :=
  match fs with
  | [] => Some (Some sum)
  | None :: _ => None
  | Some f :: rest =>
      let '(now, seen') := match find_shape f seen with
        | Some now => (now, seen)
        | None => let now := least_placed mus lams h f in (now, (f, now) :: seen)
        end in
      match now with
      | None => match paid mus lams h rest seen' sum with None => None | Some _ => Some None end
      | Some low => paid mus lams h rest seen' (sum + low)
      end
  end.

Fixpoint prices_of (h : Z) (l : list tariff) : option (list prices) :=
  match l with
  | [] => Some []
  | x :: rest =>
      match expand 0 0 0 h (steps x), prices_of h rest with
      | Some m, Some more => if not_negative m then Some (m :: more) else None
      | _, _ => None
      end
  end.

Fixpoint stores_of (stores : list (store positive)) (l : list tariff) :=
  match l with
  | [] => Some []
  | x :: rest =>
      match nth_error stores (Z.to_nat (priced x)), stores_of stores rest with
      | Some st, Some more =>
          match capacity _ st with
          | Some c => if (0 <=? priced x) && (base _ st <=? c) then Some (st :: more) else None
          | None => None
          end
      | _, _ => None
      end
  end.

Definition room_in (st : store positive) :=
  match capacity _ st with Some c => c - base _ st | None => 0 end.

Fixpoint store_sales (sts : list (store positive)) (lams : list prices) :=
  match sts, lams with
  | st :: sts', m :: lams' => room_in st * total m + store_sales sts' lams'
  | _, _ => 0
  end.
Definition resource_sales (mus : list prices) := total (map total mus).

(* What changes of tasks outside of all parts pay at least. *)
Fixpoint unavoidable (of : Map.t nat) (evs : list (event positive)) (m : prices) :=
  match evs with
  | [] => 0
  | e :: rest =>
      match Map.find (owner _ e) of with
      | Some _ => 0
      | None => Z.min 0 (delta _ e) * total m
      end + unavoidable of rest m
  end.
Fixpoint all_unavoidable of (sts : list (store positive)) (lams : list prices) :=
  match sts, lams with
  | st :: sts', m :: lams' => unavoidable of (events _ st) m + all_unavoidable of sts' lams'
  | _, _ => 0
  end.

Fixpoint priced_once (l : list Z) : bool :=
  match l with [] => true | x :: rest => negb (existsb (Z.eqb x) rest) && priced_once rest end.

Definition check_prices (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (c : price_list) : bool :=
  let h := least_makespan c - 1 in
  let k := index_of l in
  let of := parted (parts c) in
  let inner := filter (within_part of) es in
  let hs := heads l counts inner in
  let ts := tails l counts inner in
  let m := arcs_of inner in
  (0 <=? h) && well_written l stores && distinct (concat (map flat (parts c))) (Map.empty unit) &&
  priced_once (map priced (of_resources c)) && priced_once (map priced (of_stores c)) &&
  match prices_of h (of_resources c), prices_of h (of_stores c), stores_of stores (of_stores c) with
  | Some mus, Some lams, Some sts =>
      let css := map (fun st => changes_of (events _ st)) sts in
      let shapes :=
        map (shape k m hs ts (map priced (of_resources c)) css None) (parts c) in
      match paid (map sheet_of mus) (map sheet_of lams) h shapes [] 0 with
      | None => false
      | Some None => true
      | Some (Some sum) =>
          resource_sales mus + store_sales sts lams <? sum + all_unavoidable of sts lams
      end
  | _, _, _ => false
  end.
