#!/bin/sh
# Compiles the checkers and what they rest on in FOLDER, and makes a program of them, FOLDER/judge.
#
#     sh extract.sh FOLDER
set -eu
folder=$1
mkdir -p "$folder"
files="Definitions Stores AllRules Packing Starts SortedStarts Exchange Instances OneMachine PriceTables
  PricePayments Prices Loads Groups InOrder Lifecycles FreeEdges OneStore Extraction"
cp judge.ml "$folder"
for file in $files; do
  cp "$file.v" "$folder"
done
cd "$folder"
for file in $files; do
  coqc -q -Q . Bubbleproof "$file.v"
done
ocamlopt -w -a checker.mli checker.ml judge.ml -o judge
