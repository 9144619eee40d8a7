"""CasiMedicos-Arg: exam questions with a clinical case, options and a doctor's explanation.

Sviridova et al. (2024), "CasiMedicos-Arg: A Medical Question Answering Dataset Annotated with
Explanatory Argumentative Structures", EMNLP. The file is their archive: one token and its
label per line, a blank line after each sentence, documents one after the other. Only the English
part is read, and only the text: the labels mark arguments, which no task here needs.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from judgebench.errors import Problem, SetupError
from judgebench.ranking.task import Split, SplitSizes, TaskInstance, versions

from .option_places import names_a_place, neutralise

FILES, LABELS, SEEDED_SPLIT = ("archive",), (), False

_MEMBERS: dict[Split, str] = {"train": "train", "development": "dev", "test": "test"}
_TYPE, _CASE, _CORRECT = "QUESTION TYPE:", "CLINICAL CASE:", "CORRECT ANSWER:"
_NO_OPTION = ("", "nan")  # what stands for the fifth option where an exam had four
_FEWEST_OPTIONS = 2


def read(
    files: Mapping[str, Path], split: SplitSizes | None, seed: int
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    """Every question in as many versions as it has options, and sentences for the report.

    Version 0 is as written; in the others the right option takes each other place, while the
    wrong ones keep their order. Documents that cannot be read as a question are left out, counted
    and named. Raises SetupError where the archive or a line of it cannot be read.
    """
    instances: list[TaskInstance] = []
    left_out: list[str] = []
    rewritten = 0
    for part, lines in _read_archive(files["archive"]).items():
        for number, document in enumerate(_documents(lines)):
            name = f"{_MEMBERS[part]}-{number}"
            try:
                question, options, label, explanation = _parse(document)
            except ValueError as error:
                left_out.append(f"{name} ({error})")
                continue
            rewritten += names_a_place(explanation, len(options))
            argument = neutralise(explanation, options)
            if not argument:
                left_out.append(f"{name} (its explanation says nothing but the number)")
                continue
            first = TaskInstance(name, question, label, argument, part, tuple(options), group=name)
            instances += versions(first)
    return instances, _notes(instances, left_out, rewritten)


def _notes(
    instances: Sequence[TaskInstance], left_out: Sequence[str], rewritten: int
) -> tuple[str, ...]:
    firsts = [i for i in instances if i.version == 0]
    four = sum(len(i.options) < max((len(j.options) for j in firsts), default=0) for i in firsts)
    notes = [
        f"{len(firsts)} questions, {four} of them with fewer options than the others; each comes "
        "in as many versions as it has options.",
        f"{rewritten} explanations named an option by its number; that was removed or rewritten by "
        "rule, and some such references may be left.",
    ]
    if left_out:
        notes.append(f"{len(left_out)} documents are left out: {', '.join(left_out)}.")
    return tuple(notes)


def _read_archive(path: Path) -> dict[Split, list[str]]:
    """The lines of each English file."""
    problems: list[Problem] = []
    found: dict[Split, list[str]] = {}
    try:
        with tarfile.open(path) as archive:
            members = {m.name.removeprefix("./"): m for m in archive.getmembers() if m.isfile()}
            for split, name in _MEMBERS.items():
                wanted = next((m for m in members if m.endswith(f"EN/{name}.tsv")), None)
                data = None if wanted is None else archive.extractfile(members[wanted])
                if data is None:
                    problems.append(
                        Problem("the archive lacks a file", str(path), None, f"EN/{name}.tsv")
                    )
                    continue
                found[split] = data.read().decode("utf-8-sig").splitlines()
                problems += _bad_lines(found[split], f"{path}:EN/{name}.tsv")
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(f"cannot be read as an archive: {reason}", str(path)))
    if problems:
        raise SetupError(problems)
    return found


def _bad_lines(lines: Sequence[str], file: str) -> Iterator[Problem]:
    for number, line in enumerate(lines, start=1):
        if line.strip() and len(line.split()) != 2:
            message = "must hold a token and its label"
            yield Problem(message, file, number, found=repr(line[:60]))
    if not any(line.startswith(_TYPE.split()[0]) for line in lines):
        yield Problem(f"holds no document, each of which starts with {_TYPE!r}", file)


def _documents(lines: Sequence[str]) -> list[list[str]]:
    """The sentences of each document. Tokens stood between spaces, so a space joins them."""
    documents: list[list[str]] = []
    tokens: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            tokens.append(line.split()[0])
            continue
        if tokens:
            sentence = " ".join(tokens)
            if sentence.startswith(_TYPE) or not documents:
                documents.append([])
            documents[-1].append(sentence)
        tokens = []
    return documents


def _parse(document: Sequence[str]) -> tuple[str, list[str], str, str]:
    """Case with question, options, place of the right one, explanation.

    Raises ValueError with the reason where it is no such document.
    """
    correct = [i for i, sentence in enumerate(document) if sentence.startswith(_CORRECT)]
    if len(correct) != 1 or len(document) < 2 or not document[1].startswith(_CASE):
        raise ValueError("its parts are not marked")
    body, explanation = document[1 : correct[0]], document[correct[0] + 1 :]
    case, options = _options(body)
    label = document[correct[0]].removeprefix(_CORRECT).strip()
    if len(options) < _FEWEST_OPTIONS or any(option in _NO_OPTION for option in options):
        raise ValueError("it lacks options")
    if label not in [str(i) for i in range(1, len(options) + 1)]:
        raise ValueError("its right answer is none of the options")
    if not case or not explanation:
        raise ValueError("it lacks the case or the explanation")
    return case, options, label, "\n".join(explanation)


def _options(body: Sequence[str]) -> tuple[str, list[str]]:
    """The case, and the options that follow on its last "1-"; an option may take several lines."""
    starts = [i for i, line in enumerate(body) if re.match(r"1-(?:\s|$)", line)]
    if not starts:
        return "", []
    options: list[str] = []
    for line in body[starts[-1] :]:
        if re.match(rf"{len(options) + 1}-(?:\s|$)", line):
            options.append(line.partition("-")[2].strip())
        else:
            options[-1] = f"{options[-1]} {line}".strip()
    while options and options[-1] in _NO_OPTION:
        options.pop()
    return " ".join(body[: starts[-1]]).removeprefix(_CASE).strip(), options
