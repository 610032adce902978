"""Commands about the papers: what they claim, the theorems, and the pages on both."""
