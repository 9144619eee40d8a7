"""Review: people accept or reject altered answers, in a table or on a local page."""
