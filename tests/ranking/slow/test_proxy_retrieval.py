"""The passages that a sentence encoder finds."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")

from judgebench.errors import JudgebenchError  # noqa: E402
from judgebench.judges.retrieval import Corpus  # noqa: E402
from judgebench.ranking.examples import PassageRetriever  # noqa: E402
from judgebench.text import passages_of  # noqa: E402

TEXTS = [
    "Ticks live in tall grass and in leaf litter. Wear long trousers when you walk there. "
    "A tick that is found on the skin should be pulled out with fine tweezers, straight up and "
    "without a twist. Wash the bite with soap and water afterwards. A red ring around the bite in "
    "the weeks that follow may be a sign of Lyme disease, which is treated with antibiotics.",
    "Influenza is a contagious illness of the airways. It brings fever, cough and aching muscles. "
    "A vaccination every autumn protects against severe courses of the disease.",
    "Rabies is passed on by the bite of a sick animal, most often of a dog or a bat. "
    "Without vaccination after the bite it is nearly always fatal.",
    "Iron is found in meat, beans and lentils. A lack of iron makes people pale and tired.",
    "Regular walks and swimming strengthen the heart and lower the blood pressure.",
    "Sugar and soft drinks are the main cause of tooth decay. Brush twice a day with fluoride.",
    "Poor sleep has many causes. A dark, cool bedroom and fixed hours help most people.",
]


def test_passages_come_from_the_nearest_documents(tmp_path: Path) -> None:
    try:
        retriever = PassageRetriever(Corpus(tuple(TEXTS)), "minilm", tmp_path)
    except JudgebenchError as error:
        pytest.skip(f"the weights of minilm cannot be had: {error}")
    ticks = retriever.find("How is a tick removed from the skin?")
    flu = retriever.find("Does the flu vaccine help?")
    assert "pulled out" in ticks[0]
    assert "vaccination" in flu[0]
    assert set(ticks) <= {c for text in TEXTS for c in passages_of(text, 300)}
    assert len(ticks) == len(flu) == 3
    about = json.loads(json.dumps(retriever.describe()))
    assert about["corpus"]["documents"] == 7
    assert about["encoder"]["sha256"]
