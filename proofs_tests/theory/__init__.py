"""Tests of the vocabulary, the timing, the measures and the published families."""
