#!/bin/sh
# What `make proofs` runs: each file compiled, with its lines, its theorems and its seconds; what
# they rest on, as Coq itself says; and all of it once more by coqchk, Coq's own library included.
#
#     sh check.sh FOLDER    FOLDER is made anew and holds what is compiled
#
# The status is 1 where a file is refused or a theorem rests on an axiom.
set -eu
folder=$1
files=$(grep '\.v$' _CoqProject)
free='Closed under the global context'
now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.1f\", $(now) - $1 }"; }
row() { printf '%-18s %6s %9s %8s\n' "$@"; }

rm -rf "$folder"
mkdir -p "$folder"
# shellcheck disable=SC2086 # names without spaces
cp _CoqProject $files "$folder"
cd "$folder"
row file lines theorems seconds
begun=$(now)
for file in $files; do
  at=$(now)
  coqc -q -Q . Bubbleproof "$file" > "$file.printed"
  row "$file" "$(wc -l < "$file")" "$(grep -c '^Theorem' "$file" || true)" "$(since "$at")"
done
# shellcheck disable=SC2086
row all "$(cat $files | wc -l)" "$(cat $files | grep -c '^Theorem')" "$(since "$begun")"

asked=$(grep -c '^  [a-z]' Assumptions.v) # names, a line each
closed=$(cat Assumptions.v.printed)
at=$(now)
modules=$(printf '%s\n' $files | sed 's/^\(.*\)\.v$/Bubbleproof.\1/')
# shellcheck disable=SC2086
coqchk -silent -o -Q . Bubbleproof $modules > coqchk.printed 2>&1
if [ "$closed" = "$free" ]; then
  echo "axioms: none under all $asked theorems (coqc)"
fi
echo "coqchk, Coq's own library included: $(since "$at") s"
sed -n '/^\*/p' coqchk.printed
if [ "$closed" != "$free" ] || ! grep -q "^\* Axioms: <none>" coqchk.printed; then
  cat Assumptions.v.printed
  exit 1
fi
