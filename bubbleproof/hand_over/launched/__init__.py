"""Scripts that ``hand-over`` writes as they stand here; they know nothing of this package."""
