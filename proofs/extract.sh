#!/bin/sh
# Makes a program of what Coq extracts, in FOLDER: judge, the checkers (judge.ml says what it reads),
# or orders, those of the theorems (orders.ml says what it prints). What it rests on is compiled
# there, but for files that are so already, of the same text.
#
#     sh extract.sh FOLDER judge|orders
set -eu
folder=$1
program=$2
case $program in
judge)
  extracted=checker
  files="Definitions Stores AllRules Packing Starts SortedStarts Exchange Instances Bounds OneMachine
    PriceTables PricePayments Prices Loads Steps Groups InOrder Lifecycles FreeEdges OneStore SpanIdle
    Volume Extraction"
  ;;
orders)
  extracted=ordered
  files="Definitions Starts Packing Pipeline OneF1B GPipe ZBH1 Orders OrdersExtraction"
  ;;
*)
  echo "extract.sh makes judge or orders, not $program" >&2
  exit 2
  ;;
esac
mkdir -p "$folder"
cp "$program.ml" "$folder"
anew=
for file in $files; do
  if [ -n "$anew" ] || [ ! -e "$folder/$file.vo" ] || ! cmp -s "$file.v" "$folder/$file.v"; then
    anew=yes
    cp "$file.v" "$folder"
    (cd "$folder" && coqc -q -Q . Bubbleproof "$file.v")
  fi
done
cd "$folder"
ocamlopt -w -a "$extracted.mli" "$extracted.ml" "$program.ml" -o "$program"
