import io
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.files import shipped_folder
from judgebench.ranking.task import SPLITS, TaskInstance
from judgebench.ranking.task_file import load_reader

READER: Any = load_reader(shipped_folder("tasks") / "casimedicos.py")
names_a_place, versions = READER.names_a_place, READER.versions

DOCUMENT = """QUESTION TYPE: INVENTED
CLINICAL CASE:
A man (aged 40) has pain.
1- is no option here.
What is it?
1- Gout.
2- A long option
over two lines.
3- Fracture.
4- nan
CORRECT ANSWER: 3
The correct answer is 3.
Option 1 hurts less, "as he says".
"""


def read_casimedicos(path: Path) -> tuple[list[TaskInstance], tuple[str, ...]]:
    found: tuple[list[TaskInstance], tuple[str, ...]] = READER.read({"archive": path}, None, 0)
    return found


def iob2(text: str) -> str:
    """Sentences, one a line, as tokens with labels, one a line."""
    lines = [[f"{token} O" for token in line.split(" ")] for line in text.strip().splitlines()]
    return "\n\n".join("\n".join(line) for line in lines) + "\n\n"


def archive(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name in ("train", "dev", "test"):
            if name in members or not members.get("only"):
                data = iob2(members.get(name, DOCUMENT)).encode()
                info = tarfile.TarInfo(f"casimedicos-arg/EN/{name}.tsv")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture(scope="module")
def published(shared_data: Path) -> tuple[list[TaskInstance], tuple[str, ...]]:
    return read_casimedicos(shared_data / "casimedicos-arg" / "casimedicos-arg.tar.gz")


def test_published_documents_are_read_in_their_split(published) -> None:
    instances, notes = published
    firsts = [i for i in instances if i.version == 0]
    assert Counter(i.split for i in firsts) == dict(zip(SPLITS, (381, 55, 117), strict=True))
    assert Counter(len(i.options) for i in firsts) == {4: 298, 5: 255}
    assert Counter(i.label for i in firsts) == {"3": 153, "4": 114, "2": 114, "1": 112, "5": 60}
    assert len(instances) == 298 * 4 + 255 * 5
    assert not any("left out" in note for note in notes)


def test_no_published_explanation_names_a_place(published) -> None:
    instances, notes = published
    firsts = [i for i in instances if i.version == 0]
    assert all(i.argument for i in firsts)
    assert sum(names_a_place(i.argument, len(i.options)) for i in firsts) == 0
    (note,) = (note for note in notes if "rewritten" in note)
    assert int(note.split()[0]) > 240


def test_each_place_holds_the_right_option_once(published) -> None:
    instances, _ = published
    of_group: dict[str, list[TaskInstance]] = {}
    for i in instances:
        of_group.setdefault(i.group, []).append(i)
    for held in of_group.values():
        assert sorted(i.label for i in held) == [str(k) for k in range(1, len(held[0].options) + 1)]
        assert len({i.label_text for i in held}) == len({i.argument for i in held}) == 1
        assert len({i.split for i in held}) == 1
    assert len({i.item_id for i in instances}) == len(instances)


def test_a_document_is_rebuilt_from_its_tokens(tmp_path: Path) -> None:
    instances, _ = read_casimedicos(archive(tmp_path / "a.tar.gz"))
    first = instances[0]
    assert first.text == "A man (aged 40) has pain. 1- is no option here. What is it?"
    assert first.options == ("Gout.", "A long option over two lines.", "Fracture.")
    assert (first.item_id, first.label, first.split) == ("train-0", "3", "train")
    assert first.argument == 'Gout hurts less, "as he says".'
    assert [i.item_id for i in instances[:3]] == ["train-0", "train-0-v1", "train-0-v2"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("CORRECT ANSWER: 3", "CORRECT ANSWER: 4", "right answer is none of the options"),
        ("CORRECT ANSWER: 3", "So it is 3", "parts are not marked"),
        ("CLINICAL CASE:", "CASE:", "parts are not marked"),
        ("2- A long option\nover two lines.\n3- Fracture.\n", "", "lacks options"),
        ('Option 1 hurts less, "as he says".\n', "", "says nothing but the number"),
    ],
)
def test_a_document_without_a_question_is_named(tmp_path, old, new, reason) -> None:
    bad = DOCUMENT.replace(old, new)
    assert bad != DOCUMENT
    instances, notes = read_casimedicos(archive(tmp_path / "a.tar.gz", dev=DOCUMENT + bad))
    assert {i.group for i in instances} == {"train-0", "dev-0", "test-0"}
    assert notes[-1].startswith("1 documents are left out: dev-1 (")
    assert reason in notes[-1]


def test_a_torn_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_text("nothing of the kind")
    with pytest.raises(SetupError, match="cannot be read as an archive"):
        read_casimedicos(path)


def test_a_line_that_is_no_token_with_its_label_is_told(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", test=DOCUMENT.replace("Gout.", "Gout. extra\tcolumn"))
    with pytest.raises(SetupError, match="must hold a token and its label; found 'extra"):
        read_casimedicos(path)


READER: Any = load_reader(shipped_folder("tasks") / "casimedicos.py")
names_a_place, neutralise = READER.names_a_place, READER.neutralise

OPTIONS = (
    "Acute otitis media.", "Chest X-ray.", "Cushing's syndrome.", "Mastoiditis.", "Waiting.",
)  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    [
        "The correct answer is 3.",
        "The correct answer is: 3.",
        "I think the correct answer is 4.",
        "Therefore, the answer is 1.",
        "Correct answer, 3.",
        "Answer 4 correct.",
        "So the correct option is option 2.",
        "Option 2: the correct one.",
        "Therefore, option 2 is correct.",
    ],
)
def test_a_sentence_that_says_only_which_option_is_right_is_left_out(sentence: str) -> None:
    assert names_a_place(sentence, 5)
    assert neutralise(f"There is pus.\n{sentence}\nNo fever.", OPTIONS) == "There is pus. No fever."


@pytest.mark.parametrize(
    ("sentence", "rewritten"),
    [
        ("Answers 1, 2 and 5 are fine.", "Acute otitis media, chest X-ray and waiting are fine."),
        (
            "We rule out options 2 to 4.",
            "We rule out chest X-ray, Cushing's syndrome and mastoiditis.",
        ),
        (
            "The correct answer is 4, since it hurts.",
            "The correct answer is mastoiditis, since it hurts.",
        ),
        (
            "There is no swelling, so we discard 4.",
            "There is no swelling, so we discard mastoiditis.",
        ),
        ("The bone is intact (answer 4 is false).", "The bone is intact (mastoiditis is false)."),
        ("The bone is intact (wrong answer 4).", "The bone is intact (mastoiditis is wrong)."),
        ("The bone is intact (4 false).", "The bone is intact (mastoiditis is false)."),
        (
            "It is not mastoiditis (4), as there is no pain.",
            "It is not mastoiditis, as there is no pain.",
        ),
        ("The answer is 4, mastoiditis.", "The answer is mastoiditis."),
        ("1 and 4 are not even close.", "Acute otitis media and mastoiditis are not even close."),
        (
            "The 1 should not be, for it is mild.",
            "Acute otitis media should not be, for it is mild.",
        ),
        ("4: There is no swelling.", "Mastoiditis: There is no swelling."),
        (
            "The doubt is between 1 and 4.",
            "The doubt is between acute otitis media and mastoiditis.",
        ),
        ("Number 3 fits the picture.", "Cushing's syndrome fits the picture."),
        ("Answers 2,4 and 5 fit.", "Chest X-ray, mastoiditis and waiting fit."),
        ("The fourth is more complete.", "Mastoiditis is more complete."),
    ],
)
def test_the_number_of_an_option_becomes_its_text(sentence: str, rewritten: str) -> None:
    assert neutralise(sentence, OPTIONS) == rewritten
    assert names_a_place(sentence, 5)
    assert not names_a_place(rewritten, 5)


@pytest.mark.parametrize(
    "sentence",
    [
        "The patient has type 2 diabetes mellitus.",
        "Factor 5 is low and factor 2 is normal.",
        "He has been ill for 3 weeks and 2 days.",
        "A dose of 4 mg every 2 h is usual.",
        "Stage 5 is the last stage.",
        "Pauses are not longer than 3 seconds.",
        "Any of the 4 options can be the cause.",
        "Ocular response 3 out of 4 was seen.",
        "Growth is 2.5 cm in 1 to 2 years.",
        "In 2014 a score of 5/10 was found.",
        "Cortisol (5 mg) and DM-2 are not linked.",
        "Types 1 and 2 are rare.",
        "Receptors 5-HT4 and HER2 are not found.",
        "why not start in lower case...",
    ],
)
def test_other_numbers_stay(sentence: str) -> None:
    assert neutralise(sentence, OPTIONS) == sentence
    assert not names_a_place(sentence, 5)


def test_a_place_beyond_the_last_option_is_no_place() -> None:
    assert neutralise("Answer 5 is far away.", OPTIONS[:4]) == "Answer 5 is far away."


def test_a_capital_stays_where_the_text_uses_it_as_a_name() -> None:
    options = ("Dengue fever.", "Rash.")
    text = "It looks like Dengue to me. Answer 1 fits."
    assert neutralise(text, options) == "It looks like Dengue to me. Dengue fever fits."
    assert neutralise("We prefer option 2 here.", options) == "We prefer rash here."


def test_nothing_may_be_left() -> None:
    assert neutralise("The correct answer is 2.", OPTIONS) == ""
