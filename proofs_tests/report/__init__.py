"""Tests of the pictures and pages; what they show is derived by hand or by brute force."""
