"""What does it save to weigh a target at every place of a completion in one forward pass?

A model, run by transformers in this process, draws completions of a question. A target is then
weighed behind every `--stride` tokens of each: once by the tree of all texts
(`models/weighing.py`), once by a plain pass over the whole text for each place, as an engine
without such trees does it (and one more that tells the completion's own probabilities). Both are
timed in turn on the same completions, in seconds of processor time; they must say the same.

    pip install 'judgebench-eval[transformers]'
    python benchmarks/likelihood.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median

from judgebench.models.checkpoints import ChatEncoder, fetch, load
from judgebench.models.contract import Message
from judgebench.models.token_scoring import Text, TextReader

QUESTION = "What is the likely diagnosis behind kidney stones after high doses of vitamin D?"
TARGET = "Vitamin D toxicity"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="GGUF file, folder or hub name (default: SmolLM2)")
    parser.add_argument("--tokens", type=int, default=256, help="of a completion")
    parser.add_argument("--stride", type=int, nargs="*", default=[8, 16])
    parser.add_argument("--completions", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    asked = parser.parse_args()
    import torch

    tokens, count = (32, 1) if asked.quick else (asked.tokens, asked.completions)
    torch.set_num_threads(asked.threads)
    name = asked.model or str(fetch("smollm2"))
    model, tokenizer = load(name, dtype="float32")
    encoder = ChatEncoder(tokenizer, name)
    prompt = encoder.ids(encoder.chat((Message("user", QUESTION),)))
    torch.manual_seed(0)
    with torch.inference_mode():
        drawn = model.generate(
            torch.tensor([prompt] * count), do_sample=True, min_new_tokens=tokens,
            max_new_tokens=tokens, attention_mask=torch.ones((count, len(prompt))),
        ).tolist()  # fmt: skip
    target = encoder.ids(f" {TARGET}")
    print(f"{count} completions of {tokens} tokens, prompt {len(prompt)}, target {len(target)}")
    print("stride  places  plain passes s  one pass s  ratio  furthest apart")
    for stride in asked.stride:
        groups = [texts_of(text, len(prompt), target, stride) for text in drawn]
        slow, fast, apart = compared(model, groups)
        places = tokens // stride + 1
        print(
            f"{stride:6}  {places:6}  {slow:14.2f}  {fast:10.2f}  {slow / fast:5.1f}  {apart:.1e}"
        )


def texts_of(text: list[int], start: int, target: list[int], stride: int) -> list[Text]:
    """The completion itself, and the target behind every `stride` tokens of it."""
    places = range(start, len(text) + 1, stride)
    return [(text, start), *((text[:place] + target, place) for place in places)]


def compared(model: object, groups: Sequence[list[Text]]) -> tuple[float, float, float]:
    """Median seconds of a completion in both ways, and how far the two are apart at most."""
    import torch

    slow, fast, apart = [], [], 0.0
    with torch.inference_mode():
        reader = TextReader(model)
        for texts in groups:
            began = time.process_time()
            plain = [reader.read_alone(*text) for text in texts]
            slow.append(time.process_time() - began)
            began = time.process_time()
            together = reader.read(texts)
            fast.append(time.process_time() - began)
            pairs = zip(together, plain, strict=True)
            apart = max(apart, *(float(abs(a.sum() - b.sum())) for a, b in pairs))
    return median(slow), median(fast), apart


if __name__ == "__main__":
    main()
