"""Probes: answers altered on purpose, with what must then happen to a judge's verdict."""
