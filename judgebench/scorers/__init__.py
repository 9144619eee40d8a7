"""Numbers for answers, beside judges and humans."""
