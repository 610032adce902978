(* The orders of the theorems as a program: Coq writes ordered.ml, orders.ml prints what it says. *)

Require Import Extraction ExtrOcamlBasic.
From Bubbleproof Require Import Orders.

Extraction Language OCaml.
Set Warnings "-extraction-opaque-accessed".
Extraction "ordered.ml" order_1f1b order_gpipe order_zbh1 order_interleaved.
