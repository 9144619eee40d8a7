"""The compare wing: what changed between two runs, or between two judges."""
