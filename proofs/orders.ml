(* Prints each rank's order as Coq's theorems have it (ordered.ml), one rank a line:

       orders P M V    all p <= P and m <= M; interleaved with 2 to V chunks where p divides m,
                       zb-h1 where m >= p

   A line is a family, p, m, v, the rank, and its tasks such as 2F0. *)

open Ordered

let rec nat_of n = if n = 0 then O else S (nat_of (n - 1))
let rec int_of n = match n with O -> 0 | S k -> 1 + int_of k

let print_task (kind, (stage, microbatch)) =
  Printf.printf " %d%c%d" (int_of stage) "FBIW".[int_of kind] (int_of microbatch)

let print_rank name p m v order r =
  Printf.printf "%s %d %d %d %d" name p m v r;
  List.iter print_task (order (nat_of r));
  print_newline ()

let print_ranks name p m v order =
  for r = 0 to p - 1 do print_rank name p m v order r done

let () =
  let most k = int_of_string Sys.argv.(k) in
  for p = 1 to most 1 do
    for m = 1 to most 2 do
      let np = nat_of p and nm = nat_of m in
      print_ranks "gpipe" p m 1 (order_gpipe np nm);
      print_ranks "1f1b" p m 1 (order_1f1b np nm);
      if m >= p then print_ranks "zb-h1" p m 1 (order_zbh1 np nm);
      if m mod p = 0 then
        for v = 2 to most 3 do print_ranks "interleaved" p m v (order_interleaved np (nat_of v) nm) done
    done
  done
