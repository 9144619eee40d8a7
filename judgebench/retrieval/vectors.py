"""Vectors of whole texts, kept on disk, and those nearest to a query (exact cosines).

Texts ranked by the words that they share with a question: no model, no waiting.

A corpus of texts: rows of a table, or text files of a folder.

The passages of a corpus, found for a question.
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from judgebench.data.tables import SUFFIXES, collect_table
from judgebench.errors import Problem, raise_any
from judgebench.files import to_json, write_atomically
from judgebench.models.checkpoint import WEIGHTS, fetch, identify
from judgebench.models.encoder import Encoder, find_encoder, open_encoder
from judgebench.records import content_hash
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.texts import passages_of

WORDS = "words"  # the embedder that needs no model

Nearest = Callable[[str, int], list[int]]  # a question, how many: their places, the best first


@dataclass
class Library:
    """The documents of `corpus`, cut into passages of at most `characters` between sentences, or
    between words where a sentence is longer.

    `embedder` names an encoder (`models.encoder`), or is `words` (`retrieval.words`). It is
    opened with the first question; vectors are kept in `folder`.
    """

    corpus: Corpus
    embedder: str
    characters: int
    folder: Path
    _passages: list[str] = field(default_factory=list, init=False, repr=False)
    _nearest: Nearest | None = field(default=None, init=False, repr=False)

    def find(self, question: str, k: int, besides: Collection[str] = ()) -> tuple[str, ...]:
        """At most `k` passages, the best first, none of them in `besides`; none at all for a
        question without a word. Raises what opening an encoder raises."""
        if not words_of(question):
            return ()
        if self._nearest is None:
            every = (passages_of(d.text, self.characters) for d in self.corpus.documents)
            self._passages = list(dict.fromkeys(passage for own in every for passage in own))
            self._nearest = self._opened()
        places = self._nearest(question, k + len(besides))
        found = (self._passages[place] for place in places)
        return tuple([passage for passage in found if passage not in besides][:k])

    def _opened(self) -> Nearest:
        if self.embedder == WORDS:
            return WordSearch(self._passages).nearest
        from judgebench.files import disk_errors
        from judgebench.models.encoder import open_encoder

        encoder = open_encoder(self.embedder)
        held = Corpus(tuple(Document(str(i), text) for i, text in enumerate(self._passages)))
        folder = self.folder / f"{Path(self.embedder).name}-{held.content_hash}"
        if not folder.exists():
            n = len(self._passages)
            _LOG.warning("%s passages to look things up in get their vectors, once", f"{n:,}")
        with disk_errors(folder):
            vectors = embeddings(held, encoder, folder)
        return lambda question, k: nearest(vectors, embed_whole(encoder, [question]), k)[0].tolist()

    def describe(self) -> dict[str, Any]:
        """The facts on which results depend."""
        about = {"corpus": self.corpus.describe(), "embedder": about_embedder(self.embedder)}
        return {**about, "characters": self.characters}

    def close(self) -> None:
        """Give back the encoder and the vectors; another question opens them again."""
        self._nearest = None


def about_embedder(name: str) -> dict[str, Any]:
    """The facts on which nearness of texts depends: the weights of an encoder, or that words
    count."""
    if name == WORDS:
        return {"name": WORDS}
    return dict(identify(str(fetch(name)) if name in WEIGHTS else name))


@dataclass(frozen=True, slots=True)
class Document:
    """One text. `id` is its file, with the line where the file is a table."""

    id: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their source, no text twice and none empty.

    `duplicates` and `empty` count what was left out for that.
    """

    documents: tuple[Document, ...] = ()
    duplicates: int = 0
    empty: int = 0

    @property
    def content_hash(self) -> str:
        """Sixteen hex digits of the SHA-256 of the texts in their order; ids do not count."""
        digest = hashlib.sha256()
        for document in self.documents:
            content = document.text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big"))
            digest.update(content)
        return digest.hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """A description of its content, for a manifest."""
        return {
            "documents": len(self.documents),
            "content": self.content_hash,
            "duplicates": self.duplicates,
            "empty": self.empty,
        }


def read_corpus(path: Path, column: str = "text") -> Corpus:
    """The texts in `column` of a table (JSONL, CSV, ..., each also with .gz), or of the `.txt`
    files in a folder and in the folders below it, in the order of their paths.

    Texts are stripped. Raises SetupError with every problem: no such file or column, cells without
    a text, bytes that are not UTF-8, a corpus without a text.
    """
    problems: list[Problem] = []
    found = _files(path, problems) if path.is_dir() else _rows(path, column, problems)
    documents: list[Document] = []
    seen: set[str] = set()
    duplicates = empty = 0
    for document in found:
        if not document.text:
            empty += 1
        elif document.text in seen:
            duplicates += 1
        else:
            seen.add(document.text)
            documents.append(document)
    if not documents and not problems:
        where, allowed = column, "at least one row with a text in this column"
        if path.is_dir():
            where, allowed = "", "a folder with .txt files that hold text"
        held = f"{empty:,} empty texts" if empty else "nothing"
        problem = Problem("the corpus holds no text", str(path), None, where, held, allowed)
        problems.append(problem)
    raise_any(problems)
    return Corpus(tuple(documents), duplicates, empty)


def _files(folder: Path, problems: list[Problem]) -> Iterator[Document]:
    """A document for each text file; what cannot be read is added to `problems`."""
    paths = (p for p in folder.rglob("*") if p.suffix.lower() == ".txt" and p.is_file())
    for path in sorted(paths, key=lambda p: p.relative_to(folder).as_posix()):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"is not UTF-8: {error.reason} at byte {error.start:,}"
            problems.append(Problem(message, str(path), allowed="UTF-8"))
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror}", str(path)))
        else:
            yield Document(path.relative_to(folder).as_posix(), text.strip())


def _rows(path: Path, column: str, problems: list[Problem]) -> Iterator[Document]:
    """A document for each row of a table; what is wrong with it is added to `problems`."""
    if not path.exists():
        allowed = f"a folder of .txt files, or a file that ends in {', '.join(SUFFIXES)}"
        problems.append(Problem("no such file or folder", str(path), allowed=f"{allowed} (or .gz)"))
        return
    table = collect_table(path, [column], problems)
    for line, cell in zip(table.lines, table.columns[column], strict=True) if table else ():
        if isinstance(cell, str):
            yield Document(f"{path.name}:{line}", cell.strip())
        else:
            found = "a list" if isinstance(cell, tuple) else "a nested value"
            message = f"holds {found}, where one text was expected"
            problems.append(Problem(message, str(path), line, column))


_K1, _B = 1.2, 0.75  # the usual constants
# A word, or a single character of a script that puts no spaces between words.
_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case. Chinese, Japanese, Thai, Lao and Khmer are read
    character by character."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class WordSearch:
    """Scores `texts` by BM25; Robertson and Zaragoza (2009), "The Probabilistic Relevance
    Framework: BM25 and Beyond", equation 3.15, k1 = 1.2, b = 0.75, with the weight of a word in n
    of N texts as ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.

    >>> WordSearch(["ticks live in grass", "iron is in beans"]).nearest("Where is iron?", 1)
    [1]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=float)
        room = _K1 * (1 - _B + _B * lengths / max(1.0, lengths.mean() if len(texts) else 1.0))
        held: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                held.setdefault(word, []).append((place, times))
        self._n = len(texts)
        self._parts: dict[str, tuple[IntArray, FloatArray]] = {}
        for word, found in held.items():
            places, times_ = np.array(found).T
            weight = np.log(1 + (self._n - len(found) + 0.5) / (len(found) + 0.5))
            self._parts[word] = (places, weight * times_ * (_K1 + 1) / (times_ + room[places]))

    def scores(self, question: str) -> FloatArray:
        """One score per text, (texts,); 0 where it shares no word with the question."""
        scores = np.zeros(self._n)
        for word in sorted(set(words_of(question))):
            if word in self._parts:
                places, parts = self._parts[word]
                scores[places] += parts
        return scores

    def nearest(self, question: str, k: int) -> list[int]:
        """Places of the `k` texts of the highest scores, the best first, of equal ones the first;
        fewer where fewer share a word with the question."""
        scores = self.scores(question)
        order = np.argsort(-scores, kind="stable")[:k]
        return [int(place) for place in order if scores[place] > 0]


_LOG = logging.getLogger("judgebench.models")  # which a run shows with its progress
_TEXTS_AT_ONCE = 256  # documents whose windows are held at a time


def nearest(vectors: FloatArray, queries: FloatArray, k: int) -> IntArray:
    """Places of the `k` rows of `vectors` of the highest inner product with each query, the best
    first; fewer where there are fewer rows. Of equal ones the first.

    (documents, width) and (queries, width) give (queries, k).
    """
    scores = queries @ vectors.T
    k = min(k, len(vectors))
    found = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def embeddings(corpus: Corpus, encoder: Encoder, folder: Path) -> FloatArray:
    """One vector of length 1 for each document, (documents, width), float32.

    They are read from `folder` where the same encoder made them of the same texts before, else
    made and kept there.
    """
    about = to_json(
        {
            "corpus": corpus.content_hash,
            "documents": len(corpus.documents),
            "encoder": identify(str(encoder.folder))["sha256"],
            "max_tokens": encoder.max_tokens,
            "long_texts": "mean over windows",
        }
    )
    path = folder / "embeddings.npz"
    try:
        with np.load(path) as held:
            if str(held["about"]) == about:
                kept: FloatArray = held["vectors"]
                return kept
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        pass  # none, lost or torn: made again
    vectors = embed_whole(encoder, [document.text for document in corpus.documents])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, npz(about=np.array(about), vectors=vectors))
    return vectors


class KeptVectors:
    """The vectors of texts by an encoder, which is opened for a text that is new. Each text gets
    its vector once: they are kept below `folder` by content, some hundreds in a file."""

    def __init__(self, encoder: str, folder: Path) -> None:
        """Raises what finding an encoder raises."""
        self.about = identify(str(find_encoder(encoder)))
        self._name, self._folder = encoder, folder / self.about["sha256"]
        self._encoder: Encoder | None = None
        self._held: dict[str, FloatArray] = {}
        self._unwritten: list[str] = []

    def of(self, texts: Sequence[str]) -> FloatArray:
        """One vector per text, (texts, width), as `embed_whole` makes it."""
        if not self._held:
            for path in self._folder.glob("*.npz"):
                with np.load(path) as kept:
                    self._held |= zip(kept["keys"].tolist(), kept["vectors"], strict=True)
        keys = [content_hash(text) for text in texts]
        found = dict(zip(keys, texts, strict=True))
        new = [key for key in found if key not in self._held]
        if len(new) > _TEXTS_AT_ONCE:
            _LOG.warning("%s texts get their vectors, once", f"{len(new):,}")
        for start in range(0, len(new), _TEXTS_AT_ONCE):
            block = new[start : start + _TEXTS_AT_ONCE]
            self._encoder = self._encoder or open_encoder(self._name)
            made = embed_whole(self._encoder, [found[key] for key in block])
            self._held |= zip(block, made, strict=True)
            self._unwritten += block
            if len(self._unwritten) >= _TEXTS_AT_ONCE:
                self._write()
        return np.stack([self._held[key] for key in keys])

    def _write(self) -> None:
        if keys := self._unwritten:
            self._folder.mkdir(parents=True, exist_ok=True)
            content = npz(keys=np.array(keys), vectors=np.stack([self._held[k] for k in keys]))
            write_atomically(self._folder / f"{content_hash(keys)}.npz", content)
            self._unwritten = []

    def close(self) -> None:
        """Write what is not yet written, and give back encoder and vectors; may be used again."""
        self._write()
        self._encoder, self._held = None, {}


def npz(**arrays: Any) -> bytes:
    """The content of an npz file."""
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def embed_whole(encoder: Encoder, texts: Sequence[str]) -> FloatArray:
    """One vector per text, (texts, width), float32, of length 1, however long the text is.

    A text longer than the encoder takes is cut into windows of about equal length, and its vector
    is the mean of theirs, brought to length 1 again.
    """
    found = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        windows = [windows_of(encoder, t) for t in texts[start : start + _TEXTS_AT_ONCE]]
        vectors = encoder.embed([window for own in windows for window in own])
        ends = np.cumsum([len(own) for own in windows])
        means = np.stack([part.mean(axis=0) for part in np.split(vectors, ends[:-1])])
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        found.append(means / np.maximum(lengths, np.finfo(np.float32).tiny))
    return np.concatenate(found).astype(np.float32) if found else encoder.embed([])


def windows_of(encoder: Encoder, text: str) -> list[str]:
    """`text` in as few pieces as the encoder can take whole, of about equal numbers of tokens.

    A cut falls between words, within a word only where one is longer than a window.
    """
    tokens = encoder.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )["offset_mapping"]
    room = encoder.max_tokens - encoder.tokenizer.num_special_tokens_to_add()
    if len(tokens) <= room:
        return [text]
    size = -(-len(tokens) // -(-len(tokens) // room))
    return [window for window in _cut(text, [start for start, _ in tokens], size) if window]


def _cut(text: str, starts: Sequence[int], size: int) -> Iterator[str]:
    """Windows of at most `size` tokens, which begin at the characters `starts`."""
    first = 0
    while first < len(starts):
        end = min(first + size, len(starts))
        if end < len(starts):
            # A word begins after a space; the tokens of some vocabularies hold the space before.
            between = (
                i for i in range(end, first, -1)
                if text[starts[i]].isspace() or text[starts[i] - 1].isspace()
            )  # fmt: skip
            end = next(between, end)
        yield text[starts[first] : starts[end] if end < len(starts) else len(text)].strip()
        first = end
