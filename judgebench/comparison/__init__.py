"""What changed between two runs, or between two judges."""
