"""Preferences: judges and people on several responses to one question."""
