"""Exam questions with options, asked openly: made by a model, checked by people, compared."""
