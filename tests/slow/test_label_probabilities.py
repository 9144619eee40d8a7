"""Label probabilities by a real model of 135 million parameters, held against plain passes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_requests import LABELS, METRICS, SCHEMA, TOO_LONG, ask, replies_of

from judgebench.errors import SetupError
from judgebench.models import open_backend, token_scoring
from judgebench.models.checkpoints import ChatEncoder
from judgebench.models.contract import (
    Backend,
    Conditioning,
    LabelField,
    LabelsAsked,
    Message,
    Reply,
    Request,
)
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import CLOSE as CLOSE_TOKEN
from judgebench.models.token_scoring import LabelScorer, ReplyTokens, TextReader, label_texts

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines"))),
        reason="needs transformers, outlines and torch (make test-transformers)",
    ),
]

SETTINGS = BackendSettings(context=512, concurrency=3, threads=1)
FIELDS = tuple(LabelField(metric, tuple(LABELS)) for metric in METRICS)
TEXTS = ["Drink water.", "Take forty aspirins at once and tell nobody of it.", 'Say "{}".', ""]
CLOSE = 1e-4  # natural logarithms; measured differences are about a tenth of it


def asked(how: Conditioning, fields: tuple[LabelField, ...] = FIELDS) -> LabelsAsked:
    return LabelsAsked(fields, how)


@pytest.fixture(scope="module")
def backend(smollm2: Path) -> Iterator[Backend]:
    backend = open_backend(f"transformers:{smollm2}", SETTINGS)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def engine(smollm2_folder: Path) -> tuple[Any, Any, ChatEncoder]:
    """The model in float32, its tokenizer and encoder, without the backend around them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(smollm2_folder, dtype="float32").eval()
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    return model, tokenizer, ChatEncoder(tokenizer, "smollm2")


def scorer(engine: tuple[Any, Any, ChatEncoder], context: int = 8192) -> LabelScorer:
    model, _, encoder = engine
    return LabelScorer(model, encoder, context)


def plainly(engine: tuple[Any, Any, ChatEncoder], text: str, reply: Reply, how: Conditioning):
    """Every field's log-probabilities from whole texts alone, one pass an option, none shared.

    An option's is the sum over its tokens, and in the end of all tokens that begin with a quote.
    """
    import torch

    model, tokenizer, encoder = engine
    prompt = encoder.chat(ask(text).messages)
    quotes = [i for t, i in tokenizer.get_vocab().items() if t.startswith('"')]
    said = json.loads(reply.text)
    for number, field in enumerate(FIELDS):
        before = {f.key: said[f.key] for f in FIELDS[:number]} if how == "chained" else {}
        totals = []
        for option in field.options:
            written = json.dumps(
                {**before, field.key: option}, ensure_ascii=False, separators=(",", ":")
            ).removesuffix("}")
            ids = tokenizer(prompt + written, add_special_tokens=False)["input_ids"]
            begins = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
            with torch.inference_mode():
                log_p = model(input_ids=torch.tensor([ids[:-1]])).logits[0].log_softmax(-1)
            total = sum(float(log_p[i - 1, ids[i]]) for i in range(begins, len(ids) - 1))
            # A quote that the tokenizer joins with the label's own last sign stands for itself.
            close = quotes if tokenizer.decode(ids[-1:]) == '"' else ids[-1:]
            totals.append(total + float(log_p[-1, close].logsumexp(-1)))
        yield field.key, np.array(totals) - np.logaddexp.reduce(totals)


@pytest.mark.parametrize("how", ["independent", "chained"])
def test_the_tree_says_what_a_plain_pass_for_each_label_says(engine, how) -> None:
    weigh = scorer(engine)
    for text in TEXTS[1:3]:
        reply = weigh.reply(ask(text, labels_asked=asked(how)))
        assert reply.log_probabilities is not None
        for key, plain in plainly(engine, text, reply, how):
            assert list(reply.log_probabilities[key].values()) == pytest.approx(plain, abs=CLOSE)


def test_the_first_label_is_the_same_chained_or_not_and_later_ones_are_not(engine) -> None:
    alone, chained = [
        scorer(engine).reply(ask("Rest.", labels_asked=asked(how))).log_probabilities or {}
        for how in ("independent", "chained")
    ]
    assert alone[METRICS[0]] == pytest.approx(chained[METRICS[0]], abs=CLOSE)
    assert alone[METRICS[-1]] != pytest.approx(chained[METRICS[-1]], abs=0.1)


def test_the_labels_are_the_likeliest_and_the_probabilities_add_up_to_one(backend) -> None:
    for how in ("independent", "chained"):
        reply = replies_of(backend, [ask("Rest.", labels_asked=asked(how))])["k"]
        said = json.loads(reply.text)
        assert reply.finish == "stop"
        assert list(said) == METRICS
        assert list(reply.log_probabilities) == METRICS
        for key, options in reply.log_probabilities.items():
            assert list(options) == LABELS
            assert said[key] == max(options, key=options.__getitem__)
            assert sum(np.exp(list(options.values()))) == pytest.approx(1)
        assert (reply.usage.calls, reply.usage.completion_tokens) == (1, 0)
        assert reply.latency > 0


@pytest.mark.parametrize("how", ["independent", "chained"])
def test_replies_are_the_same_in_any_order_and_beside_generated_ones(backend, how) -> None:
    requests = [ask(text, str(n), labels_asked=asked(how)) for n, text in enumerate(TEXTS)]
    forth = replies_of(backend, requests)
    generated = ask("Rest.", "generated", schema=None, max_tokens=4)
    back = replies_of(backend, [*requests[:1:-1], generated, *requests[1::-1]])
    for key, reply in forth.items():
        assert back[key].text == reply.text
        assert back[key].log_probabilities == reply.log_probabilities
    assert back["generated"].usage.completion_tokens == 4


def with_system(request: Request, text: str) -> Request:
    return replace(request, messages=(Message("system", text), *request.messages[1:]))


def test_other_system_texts_between_do_not_disturb(engine, monkeypatch) -> None:
    monkeypatch.setattr(token_scoring, "_PREFIXES", 2)
    weigh = scorer(engine)
    request = ask("Rest.", labels_asked=asked("independent"))
    before = weigh.reply(request)
    for number in range(3):
        assert weigh.reply(with_system(request, f"Judge by rule {number}.")).text
    assert weigh.reply(request).log_probabilities == before.log_probabilities


def test_one_pass_reads_the_answer_and_the_labels_and_not_the_system_text(
    engine, monkeypatch
) -> None:
    model = engine[0]
    weigh = scorer(engine)
    request = with_system(ask("Rest.", labels_asked=asked("independent")), "Judge well. " * 200)
    weigh.reply(request)
    read: list[int] = []
    forward = model.forward

    def counted(**given: Any) -> Any:
        read.append(given["input_ids"].shape[1])
        return forward(**given)

    monkeypatch.setattr(model, "forward", counted)
    other = replace(request, messages=(request.messages[0], Message("user", "Rest more.")))
    reply = weigh.reply(other)
    assert len(read) == 1
    assert reply.usage.prompt_tokens is not None
    assert reply.usage.prompt_tokens > 600
    assert read[0] < 250


def test_the_trees_tokens_are_those_of_the_whole_text(engine) -> None:
    _, tokenizer, encoder = engine
    prompt = encoder.chat(ask('Say "{}".').messages)
    assert tokenizer(prompt, add_special_tokens=False)["input_ids"] == encoder(ask('Say "{}".'))
    (fields,) = label_texts(asked("independent"), {})
    texts = ReplyTokens(encoder)
    for field, options in zip(FIELDS, texts.branches(prompt, fields), strict=True):
        for option, ids in zip(field.options, options, strict=True):
            whole = json.dumps({field.key: option}, ensure_ascii=False, separators=(",", ":"))
            # A label that ends in a sign of its own is joined otherwise to each thing behind it.
            ends = ["", "}", ',"next":"x"}'] if option[-1].isalpha() else [""]
            for end in ends:
                real = tokenizer(prompt + whole[:-1] + end, add_special_tokens=False)["input_ids"]
                assert real[: len(ids) - 1] == ids[:-1]
                if option[-1].isalpha():
                    assert ids[-1] == CLOSE_TOKEN
                    assert real[len(ids) - 1] in texts.closing
                else:
                    assert real == ids


def test_a_label_is_written_as_constrained_generation_writes_it(backend) -> None:
    """Quotes, commas and letters beyond ASCII, each forced in turn."""
    for label in LABELS:
        schema = {**SCHEMA, "properties": {m: {"enum": [label]} for m in METRICS[:2]},
                  "required": METRICS[:2]}  # fmt: skip
        reply = replies_of(backend, [ask("Rest.", schema=schema)])["k"]
        whole = LabelsAsked((LabelField(METRICS[0], (label, "x")),), "independent")
        ((texts,),) = label_texts(whole, {})
        assert reply.text.startswith(texts[0] + ",")


def test_a_prompt_that_leaves_no_room_for_a_label_is_too_long(backend, engine) -> None:
    replies = replies_of(
        backend,
        [ask(TOO_LONG, "long", labels_asked=asked("independent")),
         ask("Rest.", "short", labels_asked=asked("chained"))],
    )  # fmt: skip
    assert replies["long"].finish == "too_long"
    assert replies["long"].log_probabilities is None
    assert "512" in replies["long"].error
    assert replies["short"].finish == "stop"
    request = ask("Rest.", labels_asked=asked("independent"))
    prompt = len(engine[2](request))
    assert scorer(engine, prompt + 8).reply(request).finish == "too_long"
    assert scorer(engine, prompt + 20).reply(request).finish == "stop"


def small(kind: str, **changes: Any) -> Any:
    """A tiny model with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"vocab_size": 49152, "hidden_size": 32, "intermediate_size": 64, "head_dim": 8,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "pad_token_id": 2}  # fmt: skip
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **changes})
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Mistral", "Gemma2"])
@pytest.mark.parametrize("attends", ["sdpa", "eager"])
def test_other_architectures_say_what_plain_passes_say(engine, kind, attends) -> None:
    model = small(kind, attn_implementation=attends)
    _, tokenizer, encoder = engine
    made = (model, tokenizer, encoder)
    assert TextReader(model).tree_reach > 0
    for how in ("independent", "chained"):
        reply = scorer(made).reply(ask("Rest.", labels_asked=asked(how)))
        for key, plain in plainly(made, "Rest.", reply, how):
            found = (reply.log_probabilities or {})[key]
            assert list(found.values()) == pytest.approx(plain, abs=CLOSE)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Mistral", {"sliding_window": 64}),
        ("Gemma2", {"sliding_window": 48}),
        ("Mamba", {"state_size": 4}),
    ],
)
def test_where_no_tree_can_be_read_plain_passes_weigh(engine, kind, changes) -> None:
    """Past a sliding window, and by models that keep no keys and values."""
    model = small(kind, **changes)
    assert TextReader(model).tree_reach == changes.get("sliding_window", 0)
    made = (model, *engine[1:])
    reply = scorer(made).reply(ask("Rest. " * 30, labels_asked=asked("chained")))
    for key, plain in plainly(made, "Rest. " * 30, reply, "chained"):
        assert list((reply.log_probabilities or {})[key].values()) == pytest.approx(
            plain, abs=CLOSE
        )


def test_a_model_that_reads_the_mask_in_its_own_way_is_read_by_plain_passes(engine) -> None:
    """Here one that heeds no mask at all: labels would see each other."""
    model, tokenizer, encoder = engine
    forward = model.forward

    class Deaf:
        config, device, dtype = model.config, model.device, model.dtype

        def forward(self, input_ids=None, attention_mask=None, position_ids=None,
                    past_key_values=None, logits_to_keep=0, **rest):  # fmt: skip
            return forward(input_ids=input_ids, position_ids=position_ids,
                           past_key_values=past_key_values, logits_to_keep=logits_to_keep,
                           **rest)  # fmt: skip

        __call__ = forward

    deaf = (Deaf(), tokenizer, encoder)
    assert TextReader(model).tree_reach > 0
    assert TextReader(deaf[0]).tree_reach == 0
    reply = scorer(deaf).reply(ask("Rest.", labels_asked=asked("independent")))
    for key, plain in plainly(engine, "Rest.", reply, "independent"):
        assert list((reply.log_probabilities or {})[key].values()) == pytest.approx(
            plain, abs=CLOSE
        )


def test_labels_that_tokens_do_not_tell_apart_are_refused(engine) -> None:
    one = LabelField("harm", ("none",))
    with pytest.raises(SetupError, match="cannot be told apart"):
        scorer(engine).reply(ask("Rest.", labels_asked=asked("independent", (one,))))
