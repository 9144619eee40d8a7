"""The stress section of a report: its tables, figure, misses and CSV."""
