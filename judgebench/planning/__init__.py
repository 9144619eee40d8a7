"""What a study needs before it has a label: how many answers, annotators and draws of which."""
