"""The figures of docs/tuning.md that are taken from, or computed of, a paper and public data."""

import csv
import gzip
import math
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tuning.md"


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def row(name: str) -> list[float]:
    """The numbers of the line of a table that begins with the name."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    (line,) = (line for line in lines if line.startswith(f"| {name} |"))
    return [float(cell) for cell in line.split("|")[2:-1]]


def test_the_relative_gains_follow_from_the_tables(page: str) -> None:
    ours, panda = row("AutoMedEval"), row("PandaLM")
    chain, rounds = row("without the knowledge chain"), row("without introspection")
    plain = row("MedLLaMA on 9,000 GPT-4 instructions")
    two, three = -2, -1  # accuracy of pairs and triples
    told = {
        "14.5 %": 1 - chain[two] / ours[two],
        "5.3 %": 1 - rounds[two] / ours[two],
        "8.3 %": 1 - rounds[three] / ours[three],
        "9.1 %": ours[three] / rounds[three] - 1,
        "10.9 %": ours[two] / panda[two] - 1,
        "17 %": 52.21 / rounds[three] - 1,
        "38.5 %": ours[three] / plain[three] - 1,
    }
    for printed, computed in told.items():
        digits = 1 if "." in printed else 0
        assert f"{100 * computed:.{digits}f} %" == printed
        assert printed in page
    # The same model stands in both tables, with two accuracies.
    assert row("pairs") == [70.80, 73.01, 74.61]
    assert row("triples") == [44.61, 47.13, 48.65]
    assert rounds[two] == 70.62
    assert f"{100 * (1 - 70.80 / ours[two]):.1f} %" == "5.1 %"
    assert "5.1 %" in page


def test_the_growth_that_is_forecast(page: str) -> None:
    def f(t: float) -> float:
        return 100 * 0.9 * 0.586 / (1 + math.exp(-0.453 * t - 2.83)) ** 3

    assert [f"{f(t):.2f}" for t in (0, 1, 2, 6, 7)] == ["44.41", "47.22", "49.14", "52.13", "52.35"]
    assert f"{f(math.inf):.2f}" == "52.74"
    for value in ("44.41", "47.22", "49.14", "52.13", "52.35", "52.74", "52.21"):
        assert value in page


def test_how_many_responses_are_the_same(page: str, shared_data: Path) -> None:
    folder = shared_data / "medical-safety-crowd"
    for name, n, distinct in (("expert", 3_708, 2_576), ("crowd", 2_352, 1_730)):
        with gzip.open(folder / f"medicheck-{name}.csv.gz", "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        keys = [key for key in rows[0] if key.strip().strip("-").replace("response", "").strip("-")
                in ("alexa", "dialogpt", "reddit")]  # fmt: skip
        texts = [one[key] for one in rows for key in keys if one[key]]
        assert (len(keys), len(texts), len(set(texts))) == (3, n, distinct)
        assert f"{n:,}" in page
        assert f"{distinct:,}" in page
