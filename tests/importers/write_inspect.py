"""Write files/inspect.eval and inspect.json with inspect_ai itself.

pip install inspect-ai aiohttp
PYTHONPATH=tests/cases python tests/importers/write_inspect.py tests/importers/files
"""

import os
import sys
import tempfile
from pathlib import Path

from aiohttp import ClientSession
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, accuracy, includes, model_graded_qa, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from model_server import QUESTIONS, serve

# Ours, so that the files hold no sentence of the tool's own prompt.
GRADING = (
    "Question: {question}\nAnswer: {answer}\nReference: {criterion}\n"
    "Is the answer right? End with GRADE: C or GRADE: I."
)


@scorer(metrics={"length": [accuracy()], "polite": [accuracy()]})
def style() -> Scorer:
    """A rule with two values."""

    async def score(state: TaskState, target: object) -> Score:
        text = state.output.completion
        size = "long" if len(text) > 20 else "short"
        return Score(value={"length": size, "polite": "please" in text})

    return score


@solver
def stumbles(where: str) -> Solver:
    """A solver that fails on one sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == where:
            raise ValueError("the tool of the agent was missing")
        return state

    return solve


def model(name: str, base_url: str) -> Model:
    """A model behind the server. inspect_ai's own client needs a later `openai` than litellm."""

    async def ask(messages: list[ChatMessage], *_: object) -> ModelOutput:
        asked = [{"role": message.role, "content": message.text} for message in messages]
        body = {"model": name, "messages": asked}
        async with ClientSession() as session, session.post(url, json=body) as reply:
            said = await reply.json()
            if reply.status != 200:
                raise RuntimeError(said["error"]["message"])
        output = ModelOutput.from_content(name, said["choices"][0]["message"]["content"])
        output.usage = ModelUsage()  # else a tokeniser is downloaded to count with
        return output

    url = f"{base_url}/chat/completions"
    return get_model(f"mockllm/{name}", custom_outputs=ask)


def run(folder: Path, base_url: str, form: str, **settings: object) -> EvalLog:
    samples = [
        Sample(id=key, input=question, target=target, metadata={"topic": key, "words": [1, 2]})
        for key, question, target in QUESTIONS
    ]
    task = Task(
        dataset=samples,
        solver=[stumbles("fine"), generate()],
        scorer=[
            model_graded_qa(GRADING, model=model("grader", base_url)),
            includes(),
            style(),
        ],
        name="library",
        **settings,
    )
    (log,) = eval(
        task,
        model=model("small", base_url),
        log_dir=str(folder),
        log_format=form,  # type: ignore[arg-type]
        fail_on_error=False,
        max_retries=0,
        display="none",
        log_realtime=False,
    )
    return log


def _small(log: EvalLog) -> EvalLog:
    """The log without what is large or names this machine: events and tracebacks."""
    for sample in log.samples or []:
        sample.events, sample.events_data, sample.attachments = [], None, {}
        for score in (sample.scores or {}).values():
            score.metadata = None  # the grader's whole prompt
        if sample.error:
            sample.error.traceback = sample.error.traceback_ansi = ""
            sample.error.message = sample.error.message[:200]
    return log


def main(to: Path) -> None:
    with serve(fails="print") as server, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # no git commit and no path of this machine in the logs
        for name, form, settings in (
            ("inspect.eval", "eval", {"epochs": Epochs(2)}),
            ("inspect.json", "json", {}),
        ):
            log = run(Path(folder), server.base_url, form, **settings)
            write_eval_log(_small(read_eval_log(log.location)), to / name, format=form)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
