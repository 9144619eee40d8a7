"""Results of analyses and their presentation as plain data: rows, tables, figures, parts."""
