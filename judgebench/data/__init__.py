"""Read answers and human labels from files with any columns and spellings."""
