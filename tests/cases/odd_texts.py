"""Texts that files break on, and verdicts full of them."""

from hypothesis import strategies as st

from judgebench.records import Lookup, Showing, Status, Usage, Verdict

NASTY = [
    "line\nline\r\nline\rline",
    "\u2028\u2029\x85\x0b\x0c\x1c\x1e",
    "lone \ud800 surrogate",
    "\udfff",
    "nul \x00 bell \x07",
    "😀 ﷽ ñ",
    '"quoted" \\ {"status": "ok"}',
    "",
    " ",
    "\ufeff",
]

# Texts that try to be code in a page, a sheet or a template.
HOSTILE = [
    "</script><script>document.title='pwned'</script>",
    "<!--<script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "{{ 7*7 }} {% raw %}",
    "</title><svg/onload=document.title='pwned'>",
    '=HYPERLINK("x") " b \' c & d \u2028 e \u0000 f \ud800 g \u202e h 😀',
    "-1, or\r\n+1; 'quoted'",
]

# Two lone surrogates side by side may form a pair, which JSON reads as the one character it means.
texts = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(NASTY)
counts = st.integers(0, 2**40)
unknown_or = lambda values: st.none() | values  # noqa: E731
verdicts = st.builds(
    Verdict,
    item_id=texts,
    content_hash=texts,
    judge=texts,
    signature=texts,
    status=st.sampled_from(Status),
    labels=st.dictionaries(texts, texts, max_size=3),
    probabilities=unknown_or(
        st.dictionaries(texts, st.dictionaries(texts, st.floats(0, 1), max_size=3), max_size=2)
    ),
    attempt=counts,
    repeat=counts,
    reason=texts,
    raw=texts,
    usage=st.builds(Usage, counts, unknown_or(counts), unknown_or(counts)),
    cost=unknown_or(st.floats(0, 1e6)),
    latency=st.integers(0, 10**12).map(lambda micros: micros / 1e6),
    shown=st.lists(
        st.builds(Showing, counts, counts, st.dictionaries(texts, texts, max_size=1)), max_size=2
    ).map(tuple),
    rationale=texts,
    transcript=st.lists(
        st.builds(Lookup, texts, st.lists(texts, max_size=2).map(tuple)), max_size=1
    ).map(tuple),
)
