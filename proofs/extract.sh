#!/bin/sh
# Compiles the checkers and what they rest on in FOLDER, and makes a program of them, FOLDER/judge.
#
#     sh extract.sh FOLDER
set -eu
folder=$1
mkdir -p "$folder"
cp judge.ml Definitions.v Stores.v AllRules.v Packing.v Starts.v OneMachine.v Extraction.v "$folder"
cd "$folder"
for file in Definitions Stores AllRules Packing Starts OneMachine Extraction; do
  coqc -q -Q . Bubbleproof "$file.v"
done
ocamlopt -w -a checker.mli checker.ml judge.ml -o judge
