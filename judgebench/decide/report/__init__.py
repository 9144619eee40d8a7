"""The decisions of a report: their tables, figures, opening, evidence and CSV."""
