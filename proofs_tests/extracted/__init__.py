"""The checkers that Coq extracted, beside the definition in Python and the fast checker."""
