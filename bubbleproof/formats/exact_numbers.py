"""The largest whole number that every JSON reader keeps exactly (RFC 7493, section 2.2)."""

from __future__ import annotations

LARGEST = (1 << 53) - 1
