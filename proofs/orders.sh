#!/bin/sh
# Compiles the orders of the theorems and what they rest on in FOLDER, and makes a program of them,
# FOLDER/orders (orders.ml says what it prints).
#
#     sh orders.sh FOLDER
set -eu
folder=$1
mkdir -p "$folder"
files="Definitions Starts Packing Pipeline OneF1B GPipe ZBH1 Orders OrdersExtraction"
cp orders.ml "$folder"
for file in $files; do cp "$file.v" "$folder"; done
cd "$folder"
for file in $files; do coqc -q -Q . Bubbleproof "$file.v"; done
ocamlopt -w -a ordered.mli ordered.ml orders.ml -o orders
