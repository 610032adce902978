"""PipeMesh: claims with their readings, theorems about its orders, its planner and formulas."""

from bubbleproof.papers.pipemesh import pipemesh_formulas as pipemesh_formulas
