import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.models.weighing import (
    Branch,
    TokenTree,
    common_prefix,
    label_tree,
    normalised,
    token_tree,
)

END = 9  # ends every branch, as a closing quote does, so that none is the beginning of another
words = st.lists(st.integers(0, 3), max_size=4)


@st.composite
def forests(draw):
    """A prompt, then fields: a key each, then two options or more, each ended."""
    prompt = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))
    fields = draw(
        st.lists(
            st.tuples(words, st.lists(words, min_size=2, max_size=4, unique_by=tuple)),
            min_size=1,
            max_size=4,
        )
    )
    return [[[*prompt, *key, *label, END] for label in labels] for key, labels in fields]


def path(tree: TokenTree, node: int) -> list[int]:
    """The nodes from the trunk to `node`, both ends included."""
    found = []
    while node >= 0:
        found.append(node)
        node = int(tree.parents[node])
    return found[::-1]


def known_of(tree: TokenTree, share: float) -> int:
    return int(share * len(tree.trunk))


@settings(deadline=None, max_examples=40)
@given(forest=forests())
def test_every_branch_is_the_trunk_and_a_way_down_the_tree(forest) -> None:
    tree = label_tree(forest)
    flat = [branch for field in forest for branch in field]
    for number, branch in enumerate(flat):
        last = [(n, t) for n, t, o in zip(tree.step_node, tree.step_token, tree.step_branch,
                                          strict=True) if o == number][-1]  # fmt: skip
        walked = [int(tree.tokens[n]) for n in path(tree, int(last[0]))]
        assert [*tree.trunk, *walked, int(last[1])] == branch


@settings(deadline=None, max_examples=40)
@given(forest=forests(), share=st.floats(0, 0.99))
def test_a_node_sees_the_trunk_its_ancestors_and_itself_alone(forest, share) -> None:
    tree = label_tree(forest)
    known = known_of(tree, share)
    seen = tree.visible(known)
    length = len(tree.trunk)
    assert seen.shape == (len(tree.unread(known)), length + len(tree.tokens))
    for row in range(length - known):
        assert np.flatnonzero(seen[row]).tolist() == list(range(known + row + 1))
    for node in range(len(tree.tokens)):
        expected = [*range(length), *(length + n for n in path(tree, node))]
        assert np.flatnonzero(seen[length - known + node]).tolist() == expected


@settings(deadline=None, max_examples=40)
@given(forest=forests())
def test_no_token_is_read_twice_at_one_place(forest) -> None:
    tree = label_tree(forest)
    assert len(set(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True))) == len(
        tree.tokens
    )
    assert (tree.parents < np.arange(len(tree.parents))).all()


@settings(deadline=None, max_examples=40)
@given(forest=forests(), seed=st.integers(0, 99))
def test_the_tree_gives_what_scoring_each_branch_whole_gives(forest, seed) -> None:
    """With a made-up model whose next-token log-probabilities depend on the whole text before."""

    def log_p(before: list[int]) -> np.ndarray:
        made = np.random.default_rng([seed, len(before), *before]).normal(size=10)
        return made - np.logaddexp.reduce(made)

    tree = label_tree(forest)
    trunk = tree.trunk.tolist()
    befores = [[*trunk, *(int(tree.tokens[n]) for n in path(tree, int(node)))]
               for node in tree.step_node]  # fmt: skip
    steps = np.array([log_p(b)[t] for b, t in zip(befores, tree.step_token, strict=True)])
    found = normalised(tree.totals(steps), [len(field) for field in forest])
    for field, logs in zip(forest, found, strict=True):
        whole = np.array([sum(log_p(b[:i])[b[i]] for i in range(len(b))) for b in field])
        assert logs == pytest.approx(whole - np.logaddexp.reduce(whole))
        assert np.exp(logs).sum() == pytest.approx(1)


def test_labels_that_begin_alike_share_their_tokens() -> None:
    tree = label_tree([[[1, 2, 3, END], [1, 2, 3, 4, END]], [[1, 5, 6, END], [1, 5, 7, END]]])
    assert tree.trunk.tolist() == [1]
    assert tree.tokens.tolist() == [2, 3, 4, 5, 6, 7]
    assert tree.parents.tolist() == [-1, 0, 1, -1, 3, 3]
    assert tree.depths.tolist() == [0, 1, 2, 0, 1, 1]
    assert tree.positions(0).tolist() == [0, 1, 2, 3, 1, 2, 2]
    # What the options of a field share is no step; what follows 3 tells the first two apart.
    assert tree.step_node.tolist() == [1, 1, 2, 3, 4, 3, 5]
    assert tree.step_branch.tolist() == [0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("field", [[[1, 2]], [[1, 2], [1, 2, 3]], [[1, 2], [1, 2]]])
def test_labels_that_cannot_be_told_apart_are_refused(field) -> None:
    with pytest.raises(ValueError, match="told apart"):
        label_tree([field])


def test_the_longest_common_beginning() -> None:
    assert common_prefix([[1, 2, 3], [1, 2], [1, 2, 4]]) == [1, 2]
    assert common_prefix([[1], [2]]) == []


@st.composite
def hung(draw):
    """A text, and branches behind any of its tokens."""
    trunk = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    places = st.integers(1, len(trunk))
    tokens = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)
    branches = draw(st.lists(st.builds(Branch, places, tokens, st.just(0)), min_size=1, max_size=8))
    return trunk, branches


@settings(deadline=None, max_examples=40)
@given(case=hung(), share=st.floats(0, 0.99))
def test_branches_hang_at_any_place(case, share) -> None:
    """Each is the trunk up to its place and a way down; a node sees that and nothing else."""
    trunk, branches = case
    tree = token_tree(trunk, branches)
    known, length = int(share * len(trunk)), len(trunk)
    seen, positions = tree.visible(known), tree.positions(known)
    assert (positions == seen.sum(axis=1) - 1).all()
    asked = zip(tree.step_node, tree.step_token, tree.step_branch, strict=True)
    spelt: dict[int, list[int]] = {}
    for node, token, number in asked:
        way = path(tree, int(node))
        place = length + 1 + (int(tree.parents[way[0]]) if way else int(node))
        assert place == branches[number].place
        before = [*trunk[:place], *(int(tree.tokens[n]) for n in way)]
        spelt.setdefault(int(number), before[:place]).append(int(token))
        if way:
            row = length - known + way[-1]
            expected = [*range(place), *(length + n for n in way)]
            assert np.flatnonzero(seen[row]).tolist() == expected
    assert spelt == {n: [*trunk[: b.place], *b.tokens] for n, b in enumerate(branches)}
