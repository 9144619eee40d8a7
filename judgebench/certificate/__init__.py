"""Certificates of judges, which expire: issued with a decision, watched, and renewed."""
