"""Scorers that somebody trained: classifiers and regressors of texts, RadGraph."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.models.encoder import (
    Encoder,
    config_of,
    find_beside,
    find_encoder,
    open_encoder,
)
from judgebench.models.weights import sha256_of
from judgebench.records import Answer, Status
from judgebench.scorers.config import LearnedConfig, RadGraphConfig
from judgebench.scorers.pairs import Pair, PairScorer, about_of, weights_of
from judgebench.scorers.scorer import Scored

_FIELD = re.compile(r"{(question|answer|reference)}")
_CUT = "the tail of what the model reads is cut"
_INFINITE = Scored.none("the model gives no finite number")
_ELSEWHERE = "or compute it elsewhere and name its column: {scorer: column, name: …, from: …}"


def learned(config: LearnedConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """A classifier or regressor of one text or two, such as BLEURT (Sellam et al. 2020) in the form
    of transformers. The one number that it gives is the score; of several labels, the probability
    of one, or the expected place.
    Raises what `about_of` and finding an encoder raise, and SetupError for an unknown label."""
    about = about_of(config, answers, "torch", "transformers")
    name = find_beside(config.model, beside, "model")
    folder = find_encoder(name, "model")
    weigh = _weighed(config, config_of(folder, "model"))
    fields = _FIELD.findall("".join(config.reads))
    held: list[Encoder] = []

    def scored(pairs: Sequence[Pair]) -> Sequence[Scored]:
        import torch

        if not held:
            held.append(open_encoder(name, head=True))
        found = [Scored.none("there is no question")] * len(pairs)
        asks = "question" in fields
        asked = [i for i, (a, _) in enumerate(pairs) if a.question.strip() or not asks]
        inputs = [[_filled(one, *pairs[i]) for one in config.reads] for i in asked]
        texts = [one[0] if len(one) == 1 else tuple(one) for one in inputs]
        for places, batch in held[0].batches(texts):
            with torch.inference_mode():
                values = weigh(held[0].model(**batch).logits.cpu().double()).tolist()
            for place, value, read in zip(places, values, batch.encodings, strict=True):
                one = Scored(value, reason=_CUT if read.overflowing else "")
                found[asked[place]] = one if math.isfinite(value) else _INFINITE
        return found

    about |= {"reads": list(config.reads), "label": config.label, **weights_of(folder)}
    return PairScorer(config, about, scored, held.clear, config.better, reads=fields)


def _filled(template: str, answer: Answer, reference: str) -> str:
    """All in one go, so that no text of theirs is read as a field."""
    texts = {"question": answer.question, "answer": answer.text, "reference": reference}
    return _FIELD.sub(lambda match: texts[match[1]], template)


def _weighed(config: LearnedConfig, model: Any) -> Any:
    """What makes scores (texts,) of logits (texts, labels)."""
    import torch

    labels = [str(model.id2label[i]) for i in range(model.num_labels)]
    each, wrong = model.problem_type == "multi_label_classification", ""
    if config.label is None and each:
        wrong = "is missing: labels that do not exclude each other have no common score"
    elif config.label is not None and (len(labels) == 1 or config.label not in labels):
        wrong = "is no label of the model"
    if wrong:
        allowed = ", ".join(labels) if len(labels) > 1 else "none: it gives one number"
        raise SetupError(Problem(wrong, "", None, "label", config.label or "", allowed))
    if len(labels) == 1:
        return lambda logits: logits[:, 0]
    if config.label is None:
        places = torch.arange(len(labels), dtype=torch.float64)
        return lambda logits: logits.softmax(dim=-1) @ places
    place = labels.index(config.label)
    return lambda logits: (logits.sigmoid() if each else logits.softmax(dim=-1))[:, place]


def radgraph(config: RadGraphConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """F1-RadGraph (Delbrouck et al. 2022) by the package radgraph: how many entities of radiology
    answer and reference share.
    Raises SetupError where package or weights cannot be had, and what `about_of` raises."""
    about = about_of(config, answers)
    if find_spec("radgraph") is None:
        message = (
            "needs the package radgraph, its weights and transformers below 5: "
            f"pip install radgraph 'transformers<5'; {_ELSEWHERE}"
        )
        raise SetupError(Problem(message, field="scorer", found="radgraph"))
    held: list[Any] = []

    def opened() -> Any:
        if not held:
            held.append(_radgraph(config, beside))
        return held[0]

    def one(answer: Answer, true: str) -> Scored:
        """Each pair on its own: a text that the package cannot read stops all of its call."""
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                _, (value,), _, (found,) = opened()[0](hyps=[answer.text], refs=[true])
        except KeyError:  # it prints the error and leaves the text out
            return Scored.none("radgraph cannot read the answer or the reference", Status.FAILED)
        return Scored(value, reason="" if found["entities"] else "no entity in the reference")

    about |= {"level": config.level, "radgraph": version("radgraph"), "model": opened()[1]}
    return PairScorer(config, about, lambda pairs: [one(*pair) for pair in pairs], held.clear)


def _radgraph(config: RadGraphConfig, beside: Path) -> tuple[Any, Any]:
    """The package's scorer, and which weights it loaded."""
    from radgraph import F1RadGraph
    from radgraph.radgraph import CACHE_DIR

    own = beside / config.model
    folder = own if own.is_dir() else Path(CACHE_DIR) / config.model
    how = {"model_type": folder.name, "model_cache_dir": str(folder.parent)}
    try:
        with redirect_stdout(StringIO()):
            model = F1RadGraph(reward_level=config.level, **how)
        return model, [folder.name, sha256_of(folder / "weights.th", remember=True)]
    except Exception as error:  # the package raises what it meets, and asserts
        said = " ".join(str(error).split())[:200]
        message = f"cannot be opened by radgraph, which needs transformers below 5: {said}"
        message += f"; {_ELSEWHERE}"
        raise SetupError(Problem(message, field="model", found=config.model)) from error
