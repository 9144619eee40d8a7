"""Passages for the control case `passages`, after section 3.2.2 of the paper, and their corpus.

Whole documents, rows of a table or text files, are found by their embeddings (exact cosines), cut
into chunks, and the chunks are reranked by late interaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from judgebench.backends.checkpoint import identify
from judgebench.data.findings import Findings
from judgebench.data.open_table import SUFFIXES
from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.ranking.proxy.late_interaction import ColBERTReranker, EncoderReranker, Reranker
from judgebench.ranking.proxy.section import PassagesConfig
from judgebench.ranking.proxy.table import source_rows
from judgebench.texts import passages_of

if TYPE_CHECKING:
    from judgebench.ranking.proxy.encoder import Encoder
    from judgebench.stats.arrays import FloatArray, IntArray

_QUERIES_AT_ONCE = 64  # whose passages' token embeddings are held in memory
_TEXTS_AT_ONCE = 256  # documents whose windows are held at a time


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
    if problems:
        raise SetupError(problems)
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
    findings = Findings()
    for row in source_rows(path, (column,), findings):
        cell = row.cells[column]
        if isinstance(cell, str):
            yield Document(f"{path.name}:{row.line}", cell.strip())
        else:
            found = "a list" if isinstance(cell, tuple) else "a nested value"
            message = f"holds {found}, where one text was expected"
            findings.add("nested_value", message, (row.file, row.line), column)
    # The table passes over rows without any text.
    yield from [Document(path.name, "")] * findings.times("blank_row")
    problems.extend(findings.errors)


class PassageRetriever:
    """Finds passages for a query.

    The defaults of `config` are section 3.2.2 of the paper: the top five documents in chunks of 300
    characters, the top three chunks. `folder` keeps the embeddings of the documents. `encoder` is
    opened by the name in `config` where none is given. Raises what opening an encoder or
    late-interaction weights raises.
    """

    def __init__(
        self, config: PassagesConfig, corpus: Corpus, folder: Path, encoder: Encoder | None = None
    ) -> None:
        if encoder is None:
            from judgebench.ranking.proxy.encoder import open_encoder

            encoder = open_encoder(config.encoder)
        self._config, self._corpus, self._encoder = config, corpus, encoder
        self._reranker: Reranker = (
            ColBERTReranker(config.late_interaction)
            if config.late_interaction
            else EncoderReranker(encoder)
        )
        self._vectors = embeddings(corpus, encoder, folder)

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        """The passages for each query, the best first, of equal ones the first; all come from its
        top documents."""
        found: list[list[str]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            asked = queries[start : start + _QUERIES_AT_ONCE]
            vectors = embed_whole(self._encoder, asked)
            places = nearest(self._vectors, vectors, self._config.documents)
            chunks = [self._chunks(own) for own in places.tolist()]
            for own, scores in zip(chunks, self._reranker.scores(asked, chunks), strict=True):
                best = np.argsort(-np.asarray(scores), kind="stable")[: self._config.passages]
                found.append([own[i] for i in best])
        return found

    def _chunks(self, places: Sequence[int]) -> list[str]:
        """The different chunks of these documents, in their order."""
        texts = (self._corpus.documents[place].text for place in places)
        most = self._config.characters
        return list(dict.fromkeys(c for text in texts for c in passages_of(text, most)))

    def describe(self) -> dict[str, Any]:
        """What the passages rest on, for a manifest."""
        corpus = self._corpus
        return {
            "corpus": {
                "documents": len(corpus.documents),
                "content": corpus.content_hash,
                "duplicates": corpus.duplicates,
                "empty": corpus.empty,
            },
            "encoder": {"name": self._encoder.name, "max_tokens": self._encoder.max_tokens},
            "reranker": dict(self._reranker.describe()),
            **self._config.model_dump(include={"documents", "passages", "characters"}),
        }


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
    content = BytesIO()
    np.savez(content, about=np.array(about), vectors=vectors)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())
    return vectors


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
