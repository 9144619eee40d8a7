"""What analyses find and what they show of it, as plain data: rows, tables, figures, parts."""
