"""The scorers wing: numbers for answers, beside judges and humans."""
