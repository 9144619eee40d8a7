"""Probabilities of labels from tokens' log-probabilities in a generated JSON object.

A label is a string of the object, and a generator writes it token by token. Where the options
still part, each token that could have come next continues some of them; one that continues a
single option decides for it, so its probability is that option's. The probability of an option is

    P(o) = sum over such tokens t of P(tokens before t) * p(t) / sum of p over all fitting tokens

given everything written before the label's opening quote. Tokens that fit no option count
nothing, so it is the same whether an engine tells its probabilities before or after its grammar.

An engine lists only its most probable tokens, and tells nothing of the branches it did not take.
What mass lies there is counted, and above MOST_UNKNOWN nothing is said of the field.

The second half of the module finds the labels in the object's text: where, and in which letters.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import takewhile
from operator import is_not
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import SetupError
from judgebench.models.checkpoints import ChatEncoder, too_long
from judgebench.models.contract import (
    Before,
    Completions,
    Drawn,
    Draws,
    LabelField,
    LabelsAsked,
    Message,
    Reply,
    Request,
    TokenScores,
)
from judgebench.records import Usage

MOST_UNKNOWN = 0.01
_ENOUGH = MOST_UNKNOWN / 2  # of the probability may stay unexplored
_TOO_SMALL = 1e-4  # a branch that is not worth a look for any reason
_LEAST = 1e-38  # float32 knows nothing smaller; an engine says 0


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was written, or could have been: its bytes, which need not be whole
    characters, its natural log-probability, and its id where that is known."""

    piece: bytes
    log_probability: float
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A written token and the most probable ones at its place (itself among them or not)."""

    written: Token
    listed: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a label: behind the first `at` tokens of the reply and then `branch`.

    `lead` is what the label's first token holds before the opening quote, `written` what the
    branch spells, the lead with it. `options` are those that can still follow.
    """

    at: int
    branch: tuple[Token, ...]
    lead: bytes
    written: bytes
    options: Sequence[str]

    def ids_before(self, written: Sequence[Token]) -> list[int | None]:
        """The ids of the reply's tokens, as they would be here; `written` are those it has."""
        return [token.id for token in (*written[: self.at], *self.branch)]

    def grammar(self) -> str | None:
        """The grammar of what an engine may write here, where it is asked anew, if options are
        written without needless escapes; None where they were not, or a character is half
        written."""
        whole = [self.lead + _spellings(option)[0] for option in self.options]
        if not all(text.startswith(self.written) for text in whole):
            return None
        try:
            return grammar([text[len(self.written) :].decode() for text in whole])
        except UnicodeDecodeError:  # inside a character
            return None


# The tokens listed at a place; None where the engine was not there and cannot be asked.
# Probabilities are of all tokens, or of those that a grammar lets pass.
Ask = Callable[[Place], Sequence[Token] | None]


@dataclass(frozen=True, slots=True)
class LabelsRead:
    """Normalised log-probabilities by field and option, and why a field is left out."""

    log_probabilities: Mapping[str, Mapping[str, float]]
    problems: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """All problems in one line; empty where every field was read."""
        return "; ".join(self.problems)


def must_be_chained(asked: LabelsAsked) -> None:
    """Raise SetupError for what one generated object cannot give: several fields, each of them
    conditioned on the prompt alone."""
    if asked.conditioning == "independent" and len(asked.fields) > 1:
        raise SetupError(
            "an engine that generates one JSON object conditions each label on those before it: "
            "ask for chained probabilities, or for one metric a request"
        )


def recorded(steps: Sequence[Step]) -> Ask:
    """Answers from what an engine listed along the way that it took."""
    ways = [_with_written(step) for step in steps]

    def ask(place: Place) -> Sequence[Token] | None:
        *behind, here = ways[place.at : place.at + len(place.branch) + 1]
        same = [way[0] for way in behind]
        if len(same) < len(place.branch) or any(map(is_not, same, place.branch)):
            return None  # the reply ended, or went another way
        return here

    return ask


def _with_written(step: Step) -> list[Token]:
    """The listed tokens, the written one first and once."""
    same = [t for t in step.listed if t.piece == step.written.piece]
    nearest = min(
        same, key=lambda t: abs(t.log_probability - step.written.log_probability), default=None
    )
    return [step.written, *(t for t in step.listed if t is not nearest)]


def read_labels(
    text: str, pieces: Sequence[bytes], fields: Sequence[LabelField], ask: Ask
) -> LabelsRead:
    """Log-probabilities of the options of each field of `text`, which `pieces` spell.

    Fields are read from the last to the first, for an engine that is asked and not recorded
    keeps the beginning of what it wrote.
    """
    found, problems = {}, []
    # Thoughts may stand before the text, and marks of the turn's end behind it.
    offset = b"".join(pieces).rfind(as_bytes(text))
    if offset < 0:
        return LabelsRead({}, ("the tokens do not spell the reply",))
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict):
        return LabelsRead({}, ("the reply is no JSON object",))
    for asked in reversed(fields):
        start = value_start(text, asked.key)
        if start is None or written.get(asked.key) not in asked.options:
            unlike = "the reply holds none of the labels, letter by letter"
            problems.append(
                f"{asked.key}: {'is not written once in the reply' if start is None else unlike}"
            )
            continue
        at, lead = _token_at(pieces, offset + len(as_bytes(text[:start])))
        read = _FieldReading(ask, asked.options)
        read.explore(Place(at, (), lead, b"", asked.options))
        if read.unknown > MOST_UNKNOWN:
            problems.append(
                f"{asked.key}: {read.unknown:.0%} of the probability could be any label's"
            )
        else:
            found[asked.key] = read.log_probabilities()
    return LabelsRead(dict(reversed(found.items())), tuple(reversed(problems)))


@dataclass
class _FieldReading:
    """The probability of each option of one field, as it is gathered."""

    ask: Ask
    options: Sequence[str]
    masses: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    unlisted: float = 0.0
    unexplored: list[tuple[float, Sequence[str]]] = field(default_factory=list)

    @property
    def unknown(self) -> float:
        """The probability of which it is not known whose it is."""
        return self.unlisted + math.fsum(share for share, _ in self.unexplored)

    def explore(self, first: Place) -> None:
        """Share out the probability, the largest branch first, until the rest matters little."""
        branches = [(-1.0, 0, first)]
        count = 0
        while -math.fsum(share for share, _, _ in branches) > _ENOUGH or self._unmet(branches):
            share, _, place = heappop(branches)
            for part, found in self._shared(place, -share):
                count += 1
                heappush(branches, (-part, count, found))
        self.unexplored += [(-share, place.options) for share, _, place in branches]

    def _unmet(self, branches: Sequence[tuple[float, int, Place]]) -> bool:
        """Return whether the largest branch is worth a look for an option that was not met yet."""
        if not branches or -branches[0][0] < _TOO_SMALL:
            return False
        return any(option not in self.masses for *_, place in branches for option in place.options)

    def _shared(self, place: Place, share: float) -> Iterator[tuple[float, Place]]:
        """Give `share` to the options that can follow; what stays open comes back."""
        listed = self.ask(place) or ()
        weights = [math.exp(token.log_probability) for token in listed]
        nexts = [
            (weight, found)
            for token, weight in zip(listed, weights, strict=True)
            if weight > 0 and (found := _behind(place, token)).options
        ]
        if not nexts:
            self.unexplored.append((share, place.options))
            return
        unlisted = _unlisted(place, weights)
        total = math.fsum(weight for weight, _ in nexts) + unlisted
        self.unlisted += share * unlisted / total
        for weight, found in nexts:
            part = share * weight / total
            if len(found.options) == 1:
                self.masses[found.options[0]] += part
            elif found.written == place.written:  # a token without text leads nowhere
                self.unexplored.append((part, found.options))
            else:
                yield part, found

    def log_probabilities(self) -> dict[str, float]:
        """ln P(o), normalised. A branch that was not explored is divided among the options that
        it can lead to as the rest is; an option that is never met is given the most it can have."""
        least = max(self.unknown, _LEAST)
        masses = {option: self.masses[option] for option in self.options}
        for share, options in self.unexplored:
            known = math.fsum(self.masses[option] for option in options)
            for option in options if known else ():
                masses[option] += share * self.masses[option] / known
        masses = {option: mass or least for option, mass in masses.items()}
        total = math.fsum(masses.values())
        return {option: math.log(mass / total) for option, mass in masses.items()}


def _behind(place: Place, token: Token) -> Place:
    """The place behind a token; without options where it begins no label."""
    written = place.written + token.piece
    value = written[len(place.lead) :] if written.startswith(place.lead) else b""
    options = [o for o in place.options if value and begins(value, o)]
    return replace(place, branch=(*place.branch, token), written=written, options=options)


def _unlisted(place: Place, weights: Sequence[float]) -> float:
    """At most so much mass is in fitting tokens that are not listed: what the list leaves of 1, or
    its least probability for each string that such a token could be."""
    rest = max(0.0, 1.0 - math.fsum(weights))
    gone = max(0, len(place.written) - len(place.lead))
    strings = sum(max(0, len(as_bytes(o)) + 2 - gone) + _ENDINGS for o in place.options)
    return min(rest, strings * min(weights))


_ENDINGS = 8  # how a token may go on behind a closing quote: a comma, a brace, a line's end, ...


def _token_at(pieces: Sequence[bytes], offset: int) -> tuple[int, bytes]:
    """The token that holds the byte at `offset`, and what it holds before that."""
    for number, piece in enumerate(pieces):
        if offset < len(piece):
            return number, piece[:offset]
        offset -= len(piece)
    raise ValueError("no token reaches so far")


_ENDED = re.compile(rb'"[ \t\n\r]*(?:[,}].*)?', re.DOTALL)


def value_start(text: str, key: str) -> int | None:
    """The place where a key's value begins in the text of a JSON object; None where the key is not
    written once."""
    # Within a string the quote before the key would be escaped.
    member = rf"(?<!\\){re.escape(json.dumps(key, ensure_ascii=False))}\s*:\s*"
    ends = [match.end() for match in re.finditer(member, text)]
    return ends[0] if len(ends) == 1 else None


def begins(value: bytes, option: str) -> bool:
    """Return whether `value` begins the JSON string of `option`, or is all of it and more."""
    for spelling in _spellings(option):
        if spelling.startswith(value):
            return value != b""
        if value.startswith(spelling):
            return _ENDED.fullmatch(value, len(spelling) - 1) is not None
    return False


@lru_cache(maxsize=4096)
def _spellings(option: str) -> tuple[bytes, ...]:
    """The JSON string of a label, with letters beyond ASCII as they are and escaped."""
    return tuple(as_bytes(json.dumps(option, ensure_ascii=escaped)) for escaped in (False, True))


def grammar(rests: Sequence[str]) -> str:
    """One of the rests of labels, each with its closing quote, and what may stand behind it in an
    object: in the notation that llama.cpp and xgrammar share."""
    escaped = (rest.replace("\\", "\\\\").replace('"', '\\"') for rest in rests)
    labels = " | ".join(f'"{rest}"' for rest in escaped)
    return f'root ::= ({labels}) ws ("," [^\\x00]* | "}}" ws)\nws ::= [ \\t\\n]*'


def as_bytes(text: str) -> bytes:
    """UTF-8, also of half a surrogate pair, which JSON can hold."""
    return text.encode("utf-8", "surrogatepass")


Floats = NDArray[np.float64]
Tokens = Sequence[int]
Text = tuple[Tokens, int]  # a text, and the place from which its tokens are weighed: 1 or later
AnyToken = TypeVar("AnyToken")


def common_prefix(sequences: Sequence[Sequence[AnyToken]]) -> list[AnyToken]:
    """The longest beginning that all have."""
    together = takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [column[0] for column in together]


# Stands at the end of a text for any token that begins with the closing quote.
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
    written = ""
    for f in asked.fields:
        yield [[_reply(written, f.key, option) for option in f.options]]
        label = f.options[int(np.argmax(found[f.key]))]
        written += f"{_json(f.key)}:{_json(label)},"


def _reply(written: str, key: str, label: str) -> str:
    """As a reply that is bound to a schema is written: without spaces between the parts."""
    return f"{{{written}{_json(key)}:{_json(label)}"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class ReplyTokens:
    """Token ids of a prompt with a reply behind it, always those of the whole text."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self._tokenizer = encoder.tokenizer

    def branches(self, prompt: str, fields: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """The ids of the prompt and each reply, CLOSE in the place of the closing quote."""
        texts = [prompt + reply for field in fields for reply in field]
        # All at once: the tokenizer reads them side by side.
        read = self._tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
        rows = zip(texts, read["input_ids"], read["offset_mapping"], strict=True)
        # A quote that is joined to the label's last letters is kept as it is.
        closed = (
            [*ids[:-1], CLOSE] if places[-1][0] == len(text) - 1 else list(ids)
            for text, ids, places in rows
        )
        return [[next(closed) for _ in field] for field in fields]

    @cached_property
    def closing(self) -> list[int]:
        """The ids of all tokens that begin with a quote."""
        return [id_ for token, id_ in self._tokenizer.get_vocab().items() if token[:1] == '"']


# How far a tree may be from plain passes, in natural logarithms; half precision rounds coarsely.
_ROUNDING = {"torch.float32": 1e-2, "torch.float64": 1e-2}
_COARSE_ROUNDING = 0.5
# Beyond these a layer does not attend to all that a text holds.
_WINDOWS = ("sliding_window", "attention_chunk_size")
# Small numbers that every vocabulary has: a beginning, and what may follow it.
_PROBE_START = list(range(20))
_PROBES = [(_PROBE_START + end, 12) for end in ([20, 21, 22], [23, 21], [20, 24, 25])]


class TokenCache:
    """Tokens that were read, and the keys and values that each layer keeps of them."""

    def __init__(self) -> None:
        from transformers import DynamicCache

        self.tokens = list[int]()
        # Without the model's configuration no layer drops what slides out of its window.
        self.states = DynamicCache()

    def keep(self, tokens: list[int], n_read: int) -> None:
        """Drop all but `tokens` from the `n_read` that the states now hold."""
        if n_read > len(tokens):
            self.states.crop(len(tokens) - n_read)
        self.tokens = tokens


class TextReader:
    """The log-probabilities of texts' tokens over the whole vocabulary, by a transformers model.

    Whether the model reads a tree as it reads the texts alone is tried out first, so that one which
    takes a mask or positions in a way of its own never gives a wrong number: its texts are read one
    by one, as are those longer than a layer's window.
    """

    def __init__(self, model: Any, closing: Tokens = ()) -> None:
        self._model, self._closing = model, closing
        config = model.config.get_text_config()
        windows = [getattr(config, name, None) or 1 << 30 for name in _WINDOWS]
        self.tree_reach = min(windows) if self._reads_trees() else 0  # tokens of a text

    def read(self, texts: Sequence[Text], cache: TokenCache | None = None) -> list[Floats]:
        """For each text, of its tokens from its place on. What `cache` holds of their common
        beginning is not read again; afterwards it holds all of that."""
        if len(texts) < 2 or max(len(ids) for ids, _ in texts) > self.tree_reach:
            return [self.read_alone(*text) for text in texts]
        return self._read_tree(texts, cache or TokenCache())

    def read_alone(self, ids: Tokens, start: int) -> Floats:
        """By a plain pass over one text."""
        weighed = np.array(ids[start:])
        # The last token is only predicted.
        log_p = self._pass(ids[:-1], logits_to_keep=len(weighed))
        return self._chosen(log_p, np.arange(len(weighed)), weighed)

    def cache_of(self, tokens: list[int]) -> TokenCache:
        """The state that the model keeps of a beginning; empty where it reads no trees."""
        cache = TokenCache()
        if tokens and len(tokens) <= self.tree_reach:
            self._pass(tokens, past_key_values=cache.states, use_cache=True, logits_to_keep=1)
            cache.tokens = tokens
        return cache

    def _reads_trees(self) -> bool:
        try:
            cache = TokenCache()
            self._read_tree(_PROBES, cache)
            by_tree = self._read_tree(_PROBES, cache)  # from what the first left there
        except Exception:  # a model without such a cache, mask or positions raises what it likes
            return False
        apart = [
            np.abs(log_p - self.read_alone(*text)).max()
            for text, log_p in zip(_PROBES, by_tree, strict=True)
        ]
        return bool(max(apart) <= _ROUNDING.get(str(self._model.dtype), _COARSE_ROUNDING))

    def _read_tree(self, texts: Sequence[Text], cache: TokenCache) -> list[Floats]:
        trunk = common_prefix([ids for ids, _ in texts])
        # What a token predicts is known only where it is read.
        n_known = min(
            len(common_prefix([cache.tokens, trunk])), min(start for _, start in texts) - 1
        )
        cache.keep(trunk[:n_known], len(cache.tokens))
        rows, steps = token_tree(texts, n_known)
        visible = visible_tokens([parent for parent, _ in rows], n_known)
        predicting, place = np.unique([row for row, _ in steps], return_inverse=True)
        log_p = self._pass(
            [token for _, token in rows],
            position_ids=self._tensor([visible.sum(axis=1) - 1]),
            attention_mask=self._mask(visible),
            past_key_values=cache.states,
            use_cache=True,
            logits_to_keep=self._tensor(predicting),
        )
        n_read = n_known + len(rows)
        cache.keep(trunk[:n_read], n_read)
        chosen = self._chosen(log_p, place, np.array([token for _, token in steps]))
        return np.split(chosen, np.cumsum([len(ids) - start for ids, start in texts])[:-1])

    def _pass(self, tokens: Tokens, **how: Any) -> Any:
        """The log-probabilities of what comes next, where it is asked: (rows, vocabulary)."""
        import torch

        with torch.inference_mode():
            logits = self._model(input_ids=self._tensor([tokens]), **how).logits[0]
            return logits.float().log_softmax(-1)

    def _chosen(self, log_p: Any, rows: NDArray[Any], tokens: NDArray[Any]) -> Floats:
        """The log-probability of each token (steps,) in its row of `log_p`."""
        row = self._tensor(rows)
        chosen = log_p[row, self._tensor(np.maximum(tokens, 0))].double().cpu().numpy()
        if CLOSE in tokens:
            closes = log_p[:, self._closing].logsumexp(-1)[row].double().cpu().numpy()
            chosen = np.where(tokens == CLOSE, closes, chosen)
        return np.asarray(chosen)

    def _mask(self, visible: NDArray[np.bool_]) -> Any:
        """The mask (1, 1, rows, columns) that is added to the attention's scores."""
        import torch

        seen, dtype = self._tensor(visible), self._model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        return mask.masked_fill_(~seen, torch.finfo(dtype).min)[None, None]

    def _tensor(self, values: Any) -> Any:
        import torch

        return torch.as_tensor(np.asarray(values), device=self._model.device)


def token_tree(
    texts: Sequence[Text], n_known: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The tree of texts behind the first `n_known` tokens, which all share: its rows, each a parent
    row (-1 for what is known) and a token, the parent first; and, text by text, the steps that are
    weighed: the row that predicts and the token. A text's last token is only predicted.

    >>> token_tree([([1, 2, 3, 7], 2), ([1, 2, 4, 8], 3)], 1)
    ([(-1, 2), (0, 3), (0, 4)], [(0, 3), (1, 7), (2, 8)])
    """
    row_of: dict[tuple[int, int], int] = {}
    steps = []
    for ids, start in texts:
        row = -1
        for place in range(n_known, len(ids)):
            if place >= start:
                steps.append((row, ids[place]))
            if place < len(ids) - 1:
                row = row_of.setdefault((row, ids[place]), len(row_of))
    return list(row_of), steps


def visible_tokens(parents: Sequence[int], n_known: int) -> NDArray[np.bool_]:
    """The known tokens and rows (columns) that each row attends to: (rows, known + rows)."""
    visible = np.zeros((len(parents), n_known + len(parents)), np.bool_)
    visible[:, :n_known] = True
    for row, parent in enumerate(parents):
        if parent >= 0:
            visible[row] = visible[parent]
        visible[row, n_known + row] = True
    return visible


_PREFIXES = 16  # as many system texts are kept: `per_metric` judging takes turns with several


class LabelScorer:
    """Answers requests that ask for labels, with a transformers model."""

    def __init__(self, model: Any, encoder: ChatEncoder, context: int) -> None:
        self._encoder, self._context = encoder, context
        self._texts = ReplyTokens(encoder)
        self._reader = TextReader(model, self._texts.closing)
        self._prefix = lru_cache(_PREFIXES)(self._read_prefix)

    def reply(self, request: Request) -> Reply:
        """The likeliest labels as a JSON object, and every label's log-probability.

        Raises SetupError for a model whose tokens do not tell labels apart.
        """
        assert request.labels_asked is not None
        began = time.perf_counter()
        prompt = self._encoder.chat(request.messages)
        cache = deepcopy(self._prefix(*takewhile(lambda m: m.role != "user", request.messages)))
        options = {field.key: field.options for field in request.labels_asked.fields}
        log_p: dict[str, Floats] = {}
        for texts in label_texts(request.labels_asked, log_p):
            fields = self._texts.branches(prompt, texts)
            longest = max(len(option) for field in fields for option in field)
            if longest > self._context:
                return too_long(request, longest, self._context)
            log_p |= zip(list(options)[len(log_p) :], self._weighed(fields, cache), strict=False)
        labels = {key: options[key][int(np.argmax(log_p[key]))] for key in options}
        return Reply(
            key=request.key,
            text=json.dumps(labels, ensure_ascii=False, separators=(",", ":")),
            usage=Usage(1, len(self._encoder.ids(prompt)), 0),
            latency=time.perf_counter() - began,
            log_probabilities={
                key: dict(zip(options[key], log_p[key].tolist(), strict=True)) for key in options
            },
        )

    def _weighed(
        self, fields: Sequence[Sequence[list[int]]], cache: TokenCache
    ) -> Iterator[Floats]:
        """Each field's options' log-probabilities, normalised over them: what all options of a
        field share cancels out."""
        texts = [(ids, _parting(options)) for options in fields for ids in options]
        log_p = iter(self._reader.read(texts, cache))
        for options in fields:
            totals = np.array([next(log_p).sum() for _ in options])
            yield totals - np.logaddexp.reduce(totals)

    def _read_prefix(self, *before: Message) -> TokenCache:
        """The state that the model keeps of the tokens with which every prompt with these messages
        before its first question begins.

        They depend on no answer, or replies would depend on the order of answers. The last is
        left out, for it may grow together with what follows.
        """
        chats = [self._encoder.chat((*before, Message("user", text))) for text in ("0", "A")]
        return self._reader.cache_of(common_prefix([self._encoder.ids(c) for c in chats])[:-1])


def _parting(field: Sequence[Tokens]) -> int:
    """The place where the options of a field part. Raises SetupError where one begins another."""
    place = len(common_prefix(field))
    if place == min(map(len, field)):
        raise SetupError(
            "transformers: this model cannot weigh labels: two cannot be told apart by their tokens"
        )
    return place


class TokenModel(Protocol):
    """A model as tokens see it. One pass reads `window` of them, and says what follows the last."""

    @property
    def window(self) -> int: ...

    def log_p(self, groups: Sequence[Sequence[Text]]) -> Sequence[Sequence[Floats]]:
        """The log-probabilities of each text's tokens from its place on. Texts of a group begin
        alike, which an engine may read once; other groups change nothing."""
        ...

    def sampled(self, prompt: Tokens, draws: Draws) -> Sequence[list[int]]:
        """Completions without the token that ends them."""
        ...


class TokenWeigher:
    """A `TokenScorer` over a `TokenModel`.

    Tokens are those of the whole text, also where it meets what stands before it: a token that
    they share counts as the text's.
    """

    def __init__(self, encoder: ChatEncoder, model: TokenModel) -> None:
        self._encoder, self._model = encoder, model

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[TokenScores]:
        tokens = [self._tokens(*text) for text in texts]
        log_p = iter(self._model.log_p([[text] for text in tokens if self._fits(*text)]))
        return [
            TokenScores(next(log_p)[0].tolist())
            if self._fits(*text)
            else TokenScores(
                reason=self._too_long("the text with what stands before it", len(text[0]))
            )
            for text in tokens
        ]

    def _fits(self, ids: Tokens, start: int) -> bool:
        return len(ids) <= self._model.window + 1  # the last token is only predicted

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        prompt, start = self._tokens(before, "")
        spelt = [self._encoder.ids(self._encoder.disarmed(target)) for target in targets]
        needed = start + draws.max_tokens + max(map(len, spelt))
        if needed > self._model.window:
            return Completions(reason=self._too_long("prompt, completion and target", needed))
        sampled = self._model.sampled(prompt, draws)
        groups, all_places = [], []
        for tokens in sampled:
            places = range(0, len(tokens) + 1, draws.stride)
            text = [*prompt, *tokens]
            behind = [
                ([*text[: start + at], *target], start + at) for target in spelt for at in places
            ]
            groups.append([(text, start), *behind] if tokens else behind)
            all_places.append(places)
        drawn = []
        for tokens, places, log_p in zip(
            sampled, all_places, self._model.log_p(groups), strict=True
        ):
            own = log_p[0].tolist() if tokens else []
            totals = np.array([part.sum() for part in log_p[bool(tokens) :]])
            by_target = totals.reshape(len(spelt), len(places)).tolist()
            drawn.append(Drawn(tokens, own, places, by_target))
        return Completions(drawn, spelt)

    def _tokens(self, before: Before, text: str) -> tuple[list[int], int]:
        """The tokens of both, and where those of the text begin."""
        source, text = self._encoder, self._encoder.disarmed(text)
        if isinstance(before, str):
            head = source.disarmed(before)
            first = source.opening if head else [source.prefix]
        else:
            head, first = source.chat(before), []
        alone, whole = source.ids(head), source.ids(head + text)
        return [*first, *whole], len(first) + len(common_prefix([alone, whole]))

    def _too_long(self, what: str, tokens: int) -> str:
        return f"{what} has {tokens} tokens, and the model reads {self._model.window}"
