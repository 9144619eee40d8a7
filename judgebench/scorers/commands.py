"""The commands of the scorers wing, each beside the others in `wing.py`."""

from __future__ import annotations
