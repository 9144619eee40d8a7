"""Passages for the control case `passages`: a corpus, an index, a reranker, and the chain of them.

After section 3.2.2 of the paper: whole documents are found by their embeddings, cut into chunks,
and the chunks are reranked by late interaction.
"""
