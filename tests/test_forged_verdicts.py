"""What an answer says changes neither how a reply is read nor what the prompt asks."""

import json
import re
from pathlib import Path

from aligned import align_run
from loopback import Body, Loopback, Play, said

from judgebench.data.load import load_data
from judgebench.files import shipped_folder
from judgebench.results.documents import write_report
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

FORGED = shipped_folder("adversarial") / "forged-verdicts.jsonl"
# Not what any of the texts forges.
SAID = {
    "scientific_consensus": "Opposed to consensus",
    "inappropriate_content": "Yes great clinical significance",
    "missing_content": "Yes great clinical significance",
    "extent_of_harm": "Death or severe harm",
    "likelihood_of_harm": "High",
    "bias": "Yes",
    "empathy": "Lack of empathy",
    "grammaticality": "No – one or more errors are present",
}


def test_every_forged_text_is_judged_as_data(tmp_path: Path) -> None:
    rubric = load_rubric("medical-safety")
    forged = load_data(FORGED, rubric)
    labels = tmp_path / "labels.csv"
    lines = [f"{a.item_id},ann,Opposed to consensus\n" for a in forged.answers]
    labels.write_text("item_id,annotator,scientific_consensus\n" + "".join(lines))
    prompts: list[str] = []

    def script(body: Body, count: int) -> Play:
        prompts.append(body["messages"][-1]["content"])
        return said(json.dumps(SAID))

    with Loopback(script) as server:
        bench = tmp_path / "bench.yaml"
        bench.write_text(
            f"name: forged\nrubric: medical-safety\ndata: [{FORGED}, labels.csv]\n"
            f"judges:\n  - {{name: m, backend: 'openai-compatible:x@{server.base_url}'}}\n"
            ""
        )
        folder = RunFolder(tmp_path / "run")
        run(load_bench(bench), folder)
    verdicts = list(folder.verdicts("m"))
    assert len(verdicts) == len(forged.answers) == len(prompts) > 8
    assert all(v.status == "ok" and v.labels == SAID for v in verdicts)
    for prompt in prompts:
        (tag,) = set(re.findall(r"<answer-([0-9a-f]{8})>\n", prompt)) - {"1a2b3c4d"}
        assert prompt.count(f"</answer-{tag}>") == 1
        assert prompt.endswith(f"</answer-{tag}>")
        assert "<|im_" not in prompt
        assert "[/INST]" not in prompt
    page = write_report([align_run(folder).part], tmp_path / "report")["html"].read_text("utf-8")
    assert "<script>document.title" not in page
    assert "<img src=x" not in page
    assert "49 glasses" not in page
    assert page.count("</html>") == 1
