(* Reads problems, schedules and certificates for the checkers that Coq extracted (checker.ml).

   Words on standard input, separated by blanks; numbers of any size; a list is its length, then its
   members:

       P tasks edges stores   a problem: what follows is about it
           task   duration, list of resources       (tasks are numbered from 1)
           edge   before after lag
           store  base, list of capacities (none or one), list of events
           event  task, 1 at its end or 0, delta
       S rows                 a schedule; a row is resource, task, start
       C resource tasks head tail claim             a certificate of one resource

   Each S is answered by a line of five digits, 1 where a rule is kept: complete, placed,
   dependencies, exclusive (in the order listed), memory; each C by 1 where it is accepted. *)

open Checker

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

let read_problem () =
  let named = ref 0 in
  let table =
    many (fun () ->
        incr named;
        let ticks = number () in
        (positive_of !named, (ticks, many number)))
  in
  let edges =
    many (fun () ->
        let before = task () in
        let after = task () in
        ((before, after), number ()))
  in
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
  (table, edges, instance table edges, stores)

let read_row () =
  let place = number () in
  let task = task () in
  { place; task; start = number () }

let bit kept = print_char (if kept then '1' else '0')

let judge (_, _, problem, stores) rows =
  let same = Pos.eq_dec in
  bit (check_complete same problem rows);
  bit (check_placed same problem rows);
  bit (check_dependencies same problem rows);
  bit (check_ordered problem rows);
  bit (check_memory same problem stores rows);
  print_newline ()

let certified (table, edges, _, _) =
  let resource = number () in
  let crowd = many task in
  let least_head = number () in
  let least_tail = number () in
  let given = { resource; crowd; least_head; least_tail; claim = number () } in
  bit (check_one_machine table edges given);
  print_newline ()

let rec follow problem =
  match word () with
  | "" -> ()
  | "P" -> follow (read_problem ())
  | "S" -> judge problem (many read_row); follow problem
  | "C" -> certified problem; follow problem
  | other -> failwith ("no command " ^ other)

let () = follow ([], [], instance [] [], [])
