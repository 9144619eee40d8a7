"""A ranking run: arguments written, control cases made, evaluators trained, all put to them."""
