(* Reads problems, schedules and certificates for the checkers that Coq extracted (checker.ml).

   Words on standard input, separated by blanks; numbers of any size; a list is its length, then its
   members:

       P ranks tasks edges stores   a problem: what follows is about it; resources below `ranks`
                                    compute, and between computations the makespan is counted
           task   duration, list of resources       (tasks are numbered from 1)
           edge   before after lag
           store  base, list of capacities (none or one), list of events
           event  task, 1 at its end or 0, delta
       S rows                 a schedule; a row is resource, task, start
       F groups lives edges   what identical microbatches and stores allow to ask for, of the
                              problem; what follows but prices is then about these edges
           group  list of classes, each a list of tasks
           life   store, class that begins, units, list of stops, class that finishes, list of
                  classes on the path to it, units
           stop   list of classes on the path to it, class, 1 at its end or 0, units
       C resource tasks head tail claim             a certificate of one resource
       O resource store begin end claim             a certificate of one store, about these edges
       I and C or O                                 one of these two of span_idle, of its own rank
       V store ways claim                           a certificate of what a store holds, for how long
           way    of each life of the store the list of classes between its begin and its end
       M resources stores parts claim               a certificate by prices
           resource, store  number, list of steps (tick, price)
           part   a forest: 0 where it ends, or a task, the forest that waits for it, and the rest

   Each S is answered by a line of five digits, 1 where a rule is kept: complete, placed,
   dependencies, exclusive (in the order listed), memory; each certificate by 1 where it is
   accepted. *)

open Checker

type given = {
  ranks : z;
  table : table;
  edges : positive edge list;
  stores : positive store list;
  lives : life list;
  is_sure : bool; (* that the edges below may be asked for *)
  sure : positive edge list;
}

let small_enough = 17 (* digits that OCaml's own numbers hold *)

let rec positive_of n =
  if n = 1 then XH
  else if n land 1 = 1 then XI (positive_of (n lsr 1))
  else XO (positive_of (n lsr 1))

let z_of n = if n = 0 then Z0 else if n > 0 then Zpos (positive_of n) else Zneg (positive_of (-n))

let rec z_of_digits text from acc =
  if from = String.length text then acc
  else
    let digit = int_of_string (String.make 1 text.[from]) in
    z_of_digits text (from + 1) (Z.add (Z.mul (z_of 10) acc) (z_of digit))

let z_of_text text =
  if String.length text <= small_enough then z_of (int_of_string text)
  else if text.[0] = '-' then Z.opp (z_of_digits text 1 Z0)
  else z_of_digits text 0 Z0

let word () = Scanf.scanf " %s" (fun text -> text)
let count () = int_of_string (word ())
let number () = z_of_text (word ())
let task () = positive_of (count ())

(* A list: its length, then its members, read in order. *)
let many read =
  let n = count () in
  List.init n (fun _ -> ()) |> List.rev_map (fun () -> read ()) |> List.rev

let read_edge () =
  let before = task () in
  let after = task () in
  ((before, after), number ())

let read_problem () =
  let ranks = number () in
  let named = ref 0 in
  let table =
    many (fun () ->
        incr named;
        let ticks = number () in
        (positive_of !named, (ticks, many number)))
  in
  let edges = many read_edge in
  let event () =
    let owner = task () in
    let at_end = count () = 1 in
    { owner; at_end; delta = number () }
  in
  let store () =
    let base = number () in
    let capacity = match many number with [] -> None | most :: _ -> Some most in
    { base; capacity; events = many event }
  in
  let stores = many store in
  { ranks; table; edges; stores; lives = []; is_sure = well_written table stores; sure = edges }

let read_row () =
  let place = number () in
  let task = task () in
  { place; task; start = number () }

let read_tariff () =
  let priced = number () in
  { priced; steps = many (fun () -> let tick = number () in (tick, number ())) }

let rec read_forest () =
  match count () with
  | 0 -> Nil
  | n ->
      let kids = read_forest () in
      Tree (positive_of n, kids, read_forest ())

let read_class () = many task

let read_stop () =
  let via = many read_class in
  let by_class = read_class () in
  let ends = count () = 1 in
  { via; by_class; ends; change = number () }

let rec nat_of n = if n = 0 then O else S (nat_of (n - 1))

let read_life () =
  let in_store = nat_of (count ()) in
  let begins = read_class () in
  let acquired = number () in
  let middle = many read_stop in
  let finishes = read_class () in
  let last_via = many read_class in
  { in_store; begins; acquired; middle; finishes; last_via; freed = number () }

let bit kept = print_char (if kept then '1' else '0')

let judge { table; edges; stores; _ } rows =
  let same = Pos.eq_dec and problem = instance table edges in
  bit (check_complete same problem rows);
  bit (check_placed same problem rows);
  bit (check_dependencies same problem rows);
  bit (check_ordered problem rows);
  bit (check_memory same problem stores rows);
  print_newline ()

let answer accepted = bit accepted; print_newline ()
let computes { ranks; _ } place = Z.ltb place ranks

let freed ({ table; edges; stores; _ } as problem) =
  let groups = many (fun () -> many read_class) in
  let lives = many read_life in
  let sure = many read_edge in
  { problem with lives; sure; is_sure = check_free table edges stores groups lives sure }

let one_resource ({ ranks; table; is_sure; sure; _ } as problem) is_idle =
  let resource = number () in
  let crowd = many task in
  let least_head = number () in
  let least_tail = number () in
  let given = { resource; crowd; least_head; least_tail; claim = number () } in
  let proves =
    if is_idle then check_idle_machine ranks else check_one_machine (computes problem) in
  answer (is_sure && proves table sure given)

let one_store ({ ranks; table; is_sure; sure; stores; _ } as problem) is_idle =
  let at_resource = number () in
  let at_store = number () in
  let begin_ticks = number () in
  let end_ticks = number () in
  let given = { at_resource; at_store; begin_ticks; end_ticks; store_bound = number () } in
  let proves = if is_idle then check_idle_store ranks else check_one_store (computes problem) in
  answer (is_sure && proves table sure stores given)

let idle problem =
  match word () with
  | "C" -> one_resource problem true
  | "O" -> one_store problem true
  | other -> failwith ("no certificate of span_idle " ^ other)

let volume ({ table; edges; stores; lives; is_sure; sure; _ } as problem) =
  let of_store = number () in
  let ways = many (fun () -> many read_class) in
  let given = { of_store; ways; volume_bound = number () } in
  answer (is_sure && check_volume (computes problem) table edges sure stores lives given)

let prices ({ table; edges; stores; _ } as problem) =
  let of_resources = many read_tariff in
  let of_stores = many read_tariff in
  let parts = many read_forest in
  let given = { of_resources; of_stores; parts; least_makespan = number () } in
  answer (check_prices (computes problem) table edges stores given)

let rec follow problem =
  match word () with
  | "" -> ()
  | "P" -> follow (read_problem ())
  | "F" -> follow (freed problem)
  | "S" -> judge problem (many read_row); follow problem
  | "C" -> one_resource problem false; follow problem
  | "O" -> one_store problem false; follow problem
  | "I" -> idle problem; follow problem
  | "V" -> volume problem; follow problem
  | "M" -> prices problem; follow problem
  | other -> failwith ("no command " ^ other)

let () =
  follow { ranks = Z0; table = []; edges = []; stores = []; lives = []; is_sure = false; sure = [] }
