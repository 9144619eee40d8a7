"""Self-contained local pages."""
