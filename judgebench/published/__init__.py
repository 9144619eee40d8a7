"""The audit of published studies: does what was claimed of a judge survive what never reads?"""
