(* The checkers as a program: Coq writes checker.ml, `judge.ml` reads problems and schedules for it.

   Booleans, options, lists and pairs become OCaml's own; numbers stay Coq's, of any size. What one
   trusts beyond the proofs is Coq's extraction, OCaml, and judge.ml. *)

Require Import ZArith Extraction ExtrOcamlBasic.
From Bubbleproof Require Import Definitions Stores AllRules Instances OneMachine Prices FreeEdges
  OneStore Volume SpanIdle.

Extraction Language OCaml.
Set Warnings "-extraction-opaque-accessed".
Extraction "checker.ml" check_complete check_placed check_dependencies check_ordered check_memory
  check_one_machine check_one_store check_idle_machine check_idle_store check_volume check_prices
  check_free well_written instance Pos.eq_dec Z.ltb Z.add Z.mul Z.opp.
