"""Rankings: systems that wrote arguments, ranked by proxy evaluators, judges and humans."""
