"""Write a report down: CSV, Markdown, LaTeX, one self-contained page, figures."""
