"""Probabilities of given texts by a model in this process: labels, places in a text, whole texts.

Texts that begin alike are one tree of tokens, for one forward pass: all labels of all metrics
behind a prompt, or what could have come instead at any place of a text. Branches that begin alike
share their first tokens; what all begin with is the trunk. Each token attends to the trunk before
its branch and to its own ancestors alone, and its position is its depth, so that the pass computes
for each branch what a pass of its own would compute. (Tree attention is known from speculative
decoding: Miao et al., SpecInfer, ASPLOS 2024, section 4.2.)

`label_texts` and `ReplyTokens` make the replies whose probabilities are asked for. Tokens are those
of the real text, also where prompt and reply meet. What closes a label is its quote, which
tokenizers join with what follows (`","` may be one token), and what follows is not asked about: so
all tokens that begin with a quote together count as the close.

`TreeReader` reads trees with a transformers model, and `LabelScorer` weighs labels by it without
generating a token: the shared beginning of the prompts (system text and rubric) is computed once
and kept. With `independent`, one forward pass then weighs all labels of all metrics; with
`chained`, one pass per metric continues from the likeliest label of the one before.

`TokenWeigher` makes a `Weigher` of any engine that is a `TokenModel` with `Texts`: it says which
tokens are read, and in what windows. No engine is imported before it is used.
"""

from __future__ import annotations

import inspect
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import accumulate, groupby, islice, takewhile
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import SetupError
from judgebench.models.checkpoint import ChatEncoder
from judgebench.models.contract import (
    Before,
    Completions,
    Drawn,
    Draws,
    LabelsAsked,
    Message,
    Reply,
    Request,
    Weighed,
)
from judgebench.records import Usage

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tokens = Sequence[int]
Token = TypeVar("Token")


class Branch(NamedTuple):
    """Tokens that could stand behind the first `place` of the trunk; those before `weighed` are
    read, and their own probability is not asked."""

    place: int
    tokens: Tokens
    weighed: int = 0


@dataclass(frozen=True)
class TokenTree:
    """A trunk, and nodes of one token each; a parent stands before its children.

    The last token of a branch is only predicted, never read, and so is no node. Steps are what is
    asked: how likely `step_token` follows `step_node`, on the way to the end of the branch
    `step_branch`. A node or parent of -1 is the trunk's last token, -2 the one before it.
    """

    trunk: Ints  # (trunk,)
    tokens: Ints  # (nodes,)
    parents: Ints  # (nodes,)
    step_node: Ints  # (steps,)
    step_token: Ints  # (steps,)
    step_branch: Ints  # (steps,)

    @property
    def depths(self) -> Ints:
        """The depth of each node in tokens behind the trunk's end, 0 for its children. (nodes,)"""
        depths = np.zeros(len(self.parents), np.int64)
        for node, parent in enumerate(self.parents):
            depths[node] = 1 + (depths[parent] if parent >= 0 else parent)
        return depths

    def unread(self, known: int) -> Ints:
        """The tokens of a pass when `known` tokens of the trunk are in the cache. (rows,)"""
        return np.concatenate([self.trunk[known:], self.tokens])

    def positions(self, known: int) -> Ints:
        """The place of each row's token in its own branch's text. (rows,)"""
        length = len(self.trunk)
        return np.concatenate([np.arange(known, length), length + self.depths])

    def visible(self, known: int) -> NDArray[np.bool_]:
        """The cached tokens and rows (columns) to which each row attends to. (rows, known +
        rows)"""
        length, nodes = len(self.trunk), len(self.tokens)
        seen = np.zeros((length - known + nodes, length + nodes), np.bool_)
        seen[: length - known, :length] = np.tri(length - known, length, known, np.bool_)
        own = seen[length - known :]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                own[node] = own[parent]
            else:
                own[node, : length + parent + 1] = True
            own[node, length + node] = True
        return seen

    def totals(self, step_log_p: Floats) -> Floats:
        """Each branch's log-probability: the sum over its steps' (steps,). (branches,)"""
        return np.asarray(np.bincount(self.step_branch, step_log_p), np.float64)


def normalised(totals: Floats, options: Sequence[int]) -> list[Floats]:
    """Each field's options' log-probabilities, normalised over them, from those of all branches:
    what all options of a field share cancels out. `options` counts each field's."""
    fields = np.split(totals, np.cumsum(options)[:-1])
    return [field - np.logaddexp.reduce(field) for field in fields]


def token_tree(trunk: Tokens, branches: Iterable[Branch]) -> TokenTree:
    """The tree of `trunk` and `branches`.

    >>> tree = token_tree([1, 2, 3], [Branch(1, (7, 8)), Branch(3, (7, 8)), Branch(3, (7, 9))])
    >>> tree.tokens.tolist(), tree.parents.tolist(), tree.positions(2).tolist()
    ([7, 7], [-3, -1], [2, 1, 3])
    """
    grown: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    steps: list[tuple[int, int, int]] = []
    for number, branch in enumerate(branches):
        at = branch.place - len(trunk) - 1
        for i, token in enumerate(branch.tokens):
            if i >= branch.weighed:
                steps.append((at, token, number))
            if i < len(branch.tokens) - 1:
                at = grown.setdefault((at, token), len(grown))
    parents, tokens = np.array(list(grown) or np.empty((0, 2)), np.int64).T
    return TokenTree(np.array(trunk, np.int64), tokens, parents, *np.array(steps, np.int64).T)


def label_tree(fields: Sequence[Sequence[Tokens]]) -> TokenTree:
    """The tree of `fields`: for each, for each of its options, the whole text's tokens.

    Raises ValueError where a field has one option only, or one branch is the beginning of
    another of its field: its label could not be distinguished from the other.
    """
    trunk = common_prefix([option for field in fields for option in field])
    branches = []
    for field in fields:
        shared = len(common_prefix(field))
        if shared == min(map(len, field)):
            raise ValueError("two labels cannot be told apart by their tokens")
        place, weighed = len(trunk), shared - len(trunk)
        branches += [Branch(place, option[place:], weighed) for option in field]
    return token_tree(trunk, branches)


def common_prefix(sequences: Sequence[Sequence[Token]]) -> list[Token]:
    """The longest beginning that all have."""
    together = takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [column[0] for column in together]


Branches = list[list[list[int]]]  # for each field, for each of its options: token ids


# Stands at the end of a branch for any token that begins with the closing quote.
CLOSE = -1


def label_texts(asked: LabelsAsked, found: Mapping[str, Floats]) -> Iterator[list[list[str]]]:
    """The texts weighed in one pass after another: replies up to a label's end, by field and
    option.

    The closing quote belongs to a label: it tells it from one that only begins with it.
    `found` is filled between the passes: of `chained` fields, a reply holds the labels before it.
    """
    if asked.conditioning == "independent":
        yield [[_reply("", f.key, option) for option in f.options] for f in asked.fields]
        return
    said = ""
    for field in asked.fields:
        yield [[_reply(said, field.key, option) for option in field.options]]
        chosen = field.options[int(np.argmax(found[field.key]))]
        said += f"{_json(field.key)}:{_json(chosen)},"


def _reply(said: str, key: str, label: str) -> str:
    """As a reply that is bound to a schema is written: without spaces between the parts."""
    return f"{{{said}{_json(key)}:{_json(label)}"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class ReplyTokens:
    """Token ids of a prompt with a reply behind it, always those of the whole text.

    A control token ends what a tokenizer joins. Where the prompt's last one stands, the text is
    cut, and what follows is tokenised apart and remembered, if the first texts prove that to be
    the same.
    """

    def __init__(self, encoder: ChatEncoder) -> None:
        if not encoder.tokenizer.is_fast:
            why = "its tokenizer does not tell which characters a token stands for"
            raise SetupError(f"transformers: this model cannot weigh labels: {why}")
        self._encoder, self._tokenizer = encoder, encoder.tokenizer
        self._cuttable: bool | None = None
        self._tail = lru_cache(maxsize=4096)(self._whole)

    def branches(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        """The ids of the prompt and each reply, CLOSE in the place of the closing quote."""
        if self._cuttable is False:
            return self._tokens(prompt, fields, 0)
        cut = max((found.start() for found in self._encoder.control.finditer(prompt)), default=0)
        tokens = self._tokens(prompt, fields, cut)
        if self._cuttable is None:
            self._cuttable = cut > 0 and tokens == self._tokens(prompt, fields, 0)
        return tokens if self._cuttable else self._tokens(prompt, fields, 0)

    def _tokens(self, prompt: str, fields: Sequence[Sequence[str]], cut: int) -> Branches:
        """The ids where what stands before `cut` is tokenised apart; of the whole text with 0."""
        head = self._encoder.ids(prompt[:cut]) if cut else []
        tail: Callable[[str, str], list[int]] = self._tail if cut else self._whole
        return [[head + tail(prompt[cut:], reply) for reply in field] for field in fields]

    def _whole(self, prompt: str, reply: str) -> list[int]:
        found = self._tokenizer(
            prompt + reply, add_special_tokens=False, return_offsets_mapping=True
        )
        ids = list(found["input_ids"])
        start, _ = found["offset_mapping"][-1]
        # A quote that is joined to the label's last letters is kept as it is.
        return [*ids[:-1], CLOSE] if start == len(prompt + reply) - 1 else ids

    @cached_property
    def closing(self) -> list[int]:
        """The ids of all tokens that begin with a quote."""
        # Behind another token, or some tokenizers take a token's first space away.
        before = self._encoder.ids("x")[-1]
        start = self._tokenizer.decode([before]) + '"'
        every = range(len(self._tokenizer))
        texts = self._tokenizer.batch_decode([[before, token] for token in every])
        return [token for token, text in zip(every, texts, strict=True) if text.startswith(start)]


_PASSED = {"attention_mask", "position_ids", "past_key_values", "logits_to_keep"}
_MASKED = ("sdpa", "eager")  # ways to attend that take a mask of any shape
_WINDOWED = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
# How far the tree may be from plain passes, in natural logarithms; half precision rounds coarsely.
_ROUNDING = {"torch.float32": 1e-2, "torch.float64": 1e-2}
_COARSE_ROUNDING = 0.5
_STEPS = 1024  # of one pass: a row over the vocabulary each


class Prefix:
    """Tokens that were read, and the keys and values that each layer keeps of them."""

    def __init__(self, tokens: list[int], states: list[tuple[Any, Any]]) -> None:
        self.tokens, self._states = tokens, states

    @classmethod
    def of(cls, model: Any, tokens: list[int]) -> Prefix:
        if not tokens:
            return cls([], [])
        import torch

        cache = cls([], []).cache()
        ids = torch.tensor([tokens], device=model.device)
        model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cls(tokens, [(layer.keys, layer.values) for layer in cache.layers])

    def cache(self) -> Any:
        """A cache to go on from; going on leaves this one as it is.

        Without the model's configuration no layer drops what slides out of its window.
        """
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self._states):
            cache.update(keys, values, layer)
        return cache


class TreeReader:
    """Reads one text after another that begin alike, from what it has read before."""

    def __init__(self, model: Any, prefix: Prefix) -> None:
        self._model = model
        self._cache = prefix.cache()
        self._read = list(prefix.tokens)

    def read(self, tree: TokenTree, closing: Sequence[int] = ()) -> Floats:
        """Each step's log-probability over the whole vocabulary, in one forward pass. (steps,)"""
        import torch

        trunk = tree.trunk.tolist()
        # What a token predicts is known only where it is read: from the first branch's place on.
        unread = len(trunk) + int(tree.step_node.min())
        known = min(len(common_prefix([self._read, trunk])), unread)
        self._forget(len(self._read) - known)
        ids = torch.as_tensor(tree.unread(known), device=self._model.device)
        rows = len(trunk) - known + tree.step_node
        kept, place = np.unique(rows, return_inverse=True)
        output = self._model(
            input_ids=ids[None],
            position_ids=torch.as_tensor(tree.positions(known), device=ids.device)[None],
            attention_mask=_additive(self._model, tree.visible(known)),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=torch.as_tensor(kept, device=ids.device),
        )
        self._read = trunk
        self._forget(len(tree.tokens))
        return _step_log_p(output.logits[0], place, tree.step_token, closing)

    def hung(self, trunk: Sequence[int], branches: Sequence[Branch]) -> Floats:
        """Each branch's log-probability. A pass reads the trunk a stretch further, with all that
        hangs there, so that memory is bounded: of a completion, one pass or a few. (branches,)"""
        order = sorted(range(len(branches)), key=lambda i: branches[i].place)
        steps = accumulate(len(branches[i].tokens) for i in order)
        found = np.empty(len(branches))
        for _, group in groupby(zip(order, steps, strict=True), lambda one: one[1] // _STEPS):
            here = [i for i, _ in group]
            tree = token_tree(trunk[: branches[here[-1]].place], [branches[i] for i in here])
            found[here] = tree.totals(self.read(tree))
        return found

    def _forget(self, last: int) -> None:
        """Drop so many tokens from the end of the cache."""
        if last:
            self._cache.crop(-last)


def plain_log_p(model: Any, ids: Sequence[int], start: int, closing: Sequence[int] = ()) -> Floats:
    """The log-probability of each token of `ids` from `start` on after those before it, by a plain
    pass."""
    import torch

    read = torch.tensor([ids[:-1]], device=model.device)  # the last is only predicted
    asked = np.array(ids[start:], np.int64)
    with torch.inference_mode():
        logits = model(input_ids=read, logits_to_keep=len(asked)).logits[0]
    return _step_log_p(logits, np.arange(len(asked)), asked, closing)


def _step_log_p(logits: Any, rows: Ints, tokens: Ints, closing: Sequence[int]) -> Floats:
    """The log-probability of each token (steps,) after its row of `logits`, over the whole
    vocabulary."""
    import torch

    log_p = logits.float().log_softmax(-1)
    row = torch.as_tensor(rows)
    found = log_p[row, torch.as_tensor(np.maximum(tokens, 0))]
    closes = torch.as_tensor(tokens == CLOSE, device=log_p.device)
    if closes.any():
        found = torch.where(closes, log_p[:, closing].logsumexp(-1)[row], found)
    return np.asarray(found.double().cpu().numpy())


def reach_of(model: Any) -> int:
    """The number of tokens that may stand in one text, so that each attends to all before it.

    Raises SetupError for a model without a plain cache, or which takes no mask of its own shape.
    """
    config = model.config.get_text_config()
    missing = _PASSED - inspect.signature(model.forward).parameters.keys()
    if missing or getattr(model, "_is_stateful", False):
        raise cannot("it keeps no keys and values that a text could go on from")
    attends = getattr(config, "_attn_implementation", "eager")
    if attends not in _MASKED:
        raise cannot(f"its attention ({attends}) takes no mask of a tree")
    kinds = set(getattr(config, "layer_types", None) or ())
    if other := kinds - _WINDOWED.keys() - {"full_attention"}:
        raise cannot(f"it has layers of the kind {', '.join(sorted(other))}")
    named = [_WINDOWED[kind] for kind in kinds & _WINDOWED.keys()] if kinds else ["sliding_window"]
    windows = [getattr(config, name, None) for name in named]
    return min((int(window) for window in windows if window), default=1 << 30)


def rounding(model: Any) -> float:
    """The distance that a pass over a tree may have from plain passes, in natural logarithms."""
    return _ROUNDING.get(str(model.dtype), _COARSE_ROUNDING)


def cannot(why: str) -> SetupError:
    """The error for a model that no tree can be put to."""
    return SetupError(f"transformers: this model cannot weigh labels without writing them: {why}")


def _additive(model: Any, visible: Any) -> Any:
    """The mask (1, 1, rows, columns) that is added to the attention's scores."""
    import torch

    seen = torch.as_tensor(visible, device=model.device)
    mask = torch.zeros(seen.shape, dtype=model.dtype, device=seen.device)
    return mask.masked_fill_(~seen, torch.finfo(model.dtype).min)[None, None]


_PREFIXES = 16  # as many system texts are kept: `per_metric` judging takes turns with several


class LabelScorer:
    """Answers requests that ask for labels, with a model that `reach_of` admits.

    Its first answer is checked against plain passes over whole texts, so that a model which reads
    a mask or positions in a way of its own is reported and never gives a wrong number.
    """

    def __init__(self, model: Any, encoder: ChatEncoder, context: int) -> None:
        self._model, self._encoder = model, encoder
        self._texts = ReplyTokens(encoder)
        self._context = min(context, reach_of(model))
        self._prefixes: OrderedDict[tuple[Message, ...], Prefix] = OrderedDict()
        self._checked = False

    def reply(self, request: Request) -> Reply:
        """The likeliest labels as a JSON object, and every label's log-probability.

        Raises SetupError for a model that cannot weigh labels so.
        """
        assert request.labels_asked is not None
        import torch

        began = time.perf_counter()
        asked = request.labels_asked
        prompt = self._encoder.chat(request.messages)
        found: dict[str, Floats] = {}
        reader: TreeReader | None = None
        with torch.inference_mode():
            for texts in label_texts(asked, found):
                branches = self._texts.branches(prompt, texts)
                longest = max(len(option) for field in branches for option in field)
                if longest > self._context:
                    error = f"the prompt and a label have {longest} tokens; the model attends to "
                    error += f"{self._context} at once"
                    return Reply(request.key, "", "too_long", error=error)
                try:
                    tree = label_tree(branches)
                except ValueError as error:
                    raise cannot(str(error)) from error
                reader = reader or TreeReader(
                    self._model, self._prefix_for(request, tree.trunk.tolist())
                )
                steps = reader.read(tree, self._texts.closing)
                logs = normalised(tree.totals(steps), [len(field) for field in branches])
                keys = [field.key for field in asked.fields][len(found) :]
                found.update(zip(keys, logs, strict=False))
            self._checked = self._checked or self._agrees(branches[-1], logs[-1])
        tokens = len(self._encoder.ids(prompt))
        options = {field.key: field.options for field in asked.fields}
        chosen = {key: options[key][int(np.argmax(logs))] for key, logs in found.items()}
        return Reply(
            key=request.key,
            text=json.dumps(chosen, ensure_ascii=False, separators=(",", ":")),
            usage=Usage(1, tokens, 0),
            latency=time.perf_counter() - began,
            log_probabilities={
                key: dict(zip(options[key], logs.tolist(), strict=True))
                for key, logs in found.items()
            },
        )

    def _prefix_for(self, request: Request, trunk: list[int]) -> Prefix:
        """The part of this text that the cache already holds; nothing where the text begins
        otherwise."""
        # Of what stands before the first question: worked examples after it differ with the answer.
        key = tuple(takewhile(lambda m: m.role != "user", request.messages))
        if key not in self._prefixes:
            self._prefixes[key] = Prefix.of(self._model, self._shared(request))
            if len(self._prefixes) > _PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(key)
        prefix = self._prefixes[key]
        fits = trunk[: len(prefix.tokens)] == prefix.tokens
        return prefix if fits and len(prefix.tokens) < len(trunk) else Prefix([], [])

    def _shared(self, request: Request) -> list[int]:
        """The tokens with which every prompt with this system text begins.

        They depend on no answer, or replies would depend on the order of answers. The last is
        left out, for it may grow together with what follows.
        """
        said = [
            tuple(m if m.role != "user" else Message("user", text) for m in request.messages)
            for text in ("0", "A")
        ]
        texts = [self._encoder.chat(messages) for messages in said]
        return common_prefix([self._encoder.ids(text) for text in texts])[:-1]

    def _agrees(self, field: Sequence[list[int]], logs: Floats) -> bool:
        """Return True where plain passes over the whole texts of one field's options say the
        same; raise SetupError where they do not."""
        shared, closing = len(common_prefix(field)), self._texts.closing
        totals = [plain_log_p(self._model, ids, shared, closing).sum() for ids in field]
        apart = float(np.abs(totals - np.logaddexp.reduce(totals) - logs).max())
        if not apart <= rounding(self._model):
            raise cannot(f"plain passes and the pass over all labels differ by {apart:.3g}")
        return True


class Texts(Protocol):
    """Texts as a model's tokens. `prefix` stands before a plain text with nothing before it: BOS,
    or EOS where there is none. `opening` is what the tokenizer itself puts before every text."""

    @property
    def prefix(self) -> int: ...

    @property
    def opening(self) -> list[int]: ...

    def ids(self, text: str) -> list[int]:
        """The tokens of a text in which control tokens are written out."""
        ...

    def disarmed(self, text: str) -> str:
        """A text whose control tokens are broken up."""
        ...

    def chat(self, messages: Sequence[Message]) -> str:
        """The prompt of a chat, its control tokens written out. Raises SetupError."""
        ...


class TokenModel(Protocol):
    """A model as tokens see it. One pass reads `window` of them, and says what follows the last."""

    @property
    def window(self) -> int: ...

    def log_p(self, texts: Sequence[tuple[Tokens, int]]) -> Sequence[Floats]:
        """For each text and place in it, the log-probabilities of its tokens from there on."""
        ...

    def sampled(self, prompt: Tokens, draws: Draws) -> Sequence[list[int]]:
        """Completions without the token that ends them."""
        ...


Hung = Callable[[Sequence[tuple[Tokens, Sequence[Branch]]]], Sequence[Floats]]


def passes_of(
    model: TokenModel, texts: Sequence[tuple[Tokens, Sequence[Branch]]]
) -> Sequence[Floats]:
    """For each text, the log-probability of each of its branches: by one pass over the text, for
    the branches that are part of it, and one for each other branch."""
    asked: list[tuple[Tokens, int]] = []
    for text, branches in texts:
        asked.append((text, min(branch.place for branch in branches)))
        others = (b for b in branches if not _goes_on(b, text))
        asked += [([*text[: b.place], *b.tokens], b.place) for b in others]
    told = iter(model.log_p(asked))
    found = []
    for text, branches in texts:
        along, first = next(told), min(branch.place for branch in branches)
        parts = [
            along[b.place - first :][: len(b.tokens)] if _goes_on(b, text) else next(told)
            for b in branches
        ]
        found.append(np.array([part.sum() for part in parts]))
    return found


def _goes_on(branch: Branch, text: Tokens) -> bool:
    """Return whether the text itself goes on as the branch does."""
    end = branch.place + len(branch.tokens)
    return list(text[branch.place : end]) == list(branch.tokens)


def windows(start: int, end: int, window: int) -> Iterator[tuple[int, int, int]]:
    """The windows in which the tokens from `start` to `end` are predicted by passes that read
    `window` tokens: from where each pass reads, and from where to where it predicts.

    As in lm-evaluation-harness with a context of one token: every token is predicted once, and
    the last pass, like the others, reads as many tokens as it can.

    >>> list(windows(1, 8, 3))
    [(0, 1, 4), (3, 4, 7), (4, 7, 8)]
    """
    to = min(end, window + 1)
    while start < end:
        yield max(0, to - window - 1), start, to
        start, to = to, min(end, to + window)


class TokenWeigher:
    """A `Weigher` over a `TokenModel`; `hung` does what `passes_of` does, with fewer passes.

    Tokens are those of the whole text, also where it meets what stands before it: a token that
    they share counts as the text's.
    """

    def __init__(self, texts: Texts, model: TokenModel, hung: Hung | None = None) -> None:
        self._texts, self._model = texts, model
        self._hung = hung or partial(passes_of, model)

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[Weighed]:
        window = self._model.window
        read = [self._tokens(*one) for one in texts]
        plans = [
            list(windows(start, len(ids), window)) if start <= window else [] for ids, start in read
        ]
        logs = iter(
            self._model.log_p(
                [
                    (ids[first:to], since - first)
                    for (ids, _), plan in zip(read, plans, strict=True)
                    for first, since, to in plan
                ]
            )
        )
        found = []
        for (_, start), plan in zip(read, plans, strict=True):
            if start > window:
                found.append(Weighed(reason=self._too_long("what stands before it", start)))
                continue
            log_p = [x for part in islice(logs, len(plan)) for x in part.tolist()]
            found.append(Weighed(log_p, sum(to - since for first, since, to in plan if first)))
        return found

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        prompt, _ = self._tokens(before, "")
        spelt = [self._texts.ids(self._texts.disarmed(target)) for target in targets]
        needed = len(prompt) + draws.max_tokens + max(map(len, spelt))
        if needed > self._model.window:
            return Completions(reason=self._too_long("prompt, completion and target", needed))
        sampled = self._model.sampled(prompt, draws)
        places = [
            range((draws.seed + i) % draws.stride if draws.spread else 0, len(s) + 1, draws.stride)
            for i, s in enumerate(sampled)
        ]
        start = len(prompt)
        asked = [
            (
                [*prompt, *tokens],
                [Branch(start + i, (token,)) for i, token in enumerate(tokens)]
                + [Branch(start + at, target) for target in spelt for at in here],
            )
            for tokens, here in zip(sampled, places, strict=True)
        ]
        drawn = []
        told = iter(self._hung([one for one in asked if one[1]]))
        for tokens, here, (_, branches) in zip(sampled, places, asked, strict=True):
            logs = next(told) if branches else np.empty(0)
            own, behind = logs[: len(tokens)].tolist(), logs[len(tokens) :]
            weighed = behind.reshape(len(spelt), len(here)).tolist()
            drawn.append(Drawn(tokens, own, here, weighed))
        return Completions(drawn, spelt)

    def _tokens(self, before: Before, text: str) -> tuple[list[int], int]:
        """The tokens of both, and where those of the text begin."""
        of, text = self._texts, self._texts.disarmed(text)
        if isinstance(before, str):
            said = of.disarmed(before)
            first = of.opening if said else [of.prefix]
        else:
            said, first = of.chat(before), []
        alone, whole = of.ids(said), of.ids(said + text)
        return [*first, *whole], len(first) + len(common_prefix([alone, whole]))

    def _too_long(self, what: str, tokens: int) -> str:
        return f"{what} has {tokens} tokens, and the model reads {self._model.window}"
