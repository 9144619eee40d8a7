"""The audit wing: published studies, decided again beside baselines that never read an answer."""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Wing

WING = Wing(name="audit", commands=Named("judgebench.published.commands:commands"))
"""The wing."""
