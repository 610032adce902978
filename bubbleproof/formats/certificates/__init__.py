"""Parts of certificate files: layouts, and windows with proofs of their own."""
