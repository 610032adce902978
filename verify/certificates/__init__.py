"""All that the reader of a certificate must believe. Knows no solver and no generator."""
