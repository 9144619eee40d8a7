"""Certificates of judges: a decision is written down, expires, and is compared with new labels."""
