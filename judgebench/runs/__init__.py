"""Run a benchmark: ask what is not yet answered, keep every reply, and stop cleanly.

A verdict is on disk before the next is waited for. Resuming goes by key (item, content hash of
the answer, signature of the judge, repeat): what has an ending is never asked again.
"""
