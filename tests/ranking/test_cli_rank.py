"""`judgebench rank suitability` and `judgebench rank run` as people call them."""

import json
from collections.abc import Callable, Collection
from pathlib import Path

Call = Callable[..., tuple[int, str, str]]
SYSTEMS = ("gold", "big", "mid", "tiny")


def ranks(file: Path, n: int = 6, random: Collection[int] = ()) -> Path:
    """A table of two annotators who rank `n` items alike, but for the `random` ones."""
    rows = ["task,item_id,annotator,system,rank,label"]
    for i in range(n):
        for annotator in ("anna", "ben"):
            for place, system in enumerate(SYSTEMS):
                turned = annotator == "ben" and i in random
                rank = 1 + (place + (i % 4) * turned) % 4
                rows.append(f"claims,i{i},{annotator},{system},{rank},{'yn'[i % 2]}")
    file.write_text("\n".join(rows) + "\n")
    return file


def test_ranks_give_a_verdict(call: Call, here: Path) -> None:
    options = ("--require-suitable", "--min-alpha", 0.6)
    code, out, _ = call("rank", "suitability", ranks(here / "ranks.csv"), *options)
    assert code == 0
    assert "claims: suitable" in out
    assert "alpha of 1.00 reaches the bar of 0.60" in out


def test_an_unsuitable_task_is_an_exit_code_where_asked(call: Call, here: Path) -> None:
    table = ranks(here / "ranks.csv", 12, range(12))
    code, out, _ = call("rank", "suitability", table)
    assert (code, "claims: suitable" in out) == (0, False)
    assert call("rank", "suitability", table, "--require-suitable")[0] == 3


def test_a_label_can_be_left_out(call: Call, here: Path) -> None:
    table = ranks(here / "ranks.csv", 24, range(1, 24, 2))
    _, out, _ = call("rank", "suitability", table)
    assert "claims: suitable" not in out
    code, out, _ = call("rank", "suitability", table, "--leave-out", "n", "--require-suitable")
    assert code == 0
    assert "Left out: items of n." in out
    code, _, err = call("rank", "suitability", table, "--leave-out", "unknown")
    assert (code, "no item has this label" in err) == (2, True)


def test_a_run_without_ranks_says_so(call: Call, here: Path) -> None:
    code, _, err = call("rank", "suitability", here)
    assert (code, "holds no table of human ranks" in err) == (2, True)


def test_models_on_other_machines_are_named(call: Call, tmp_path: Path) -> None:
    hosted = {"name": "g", "backend": "litellm:openai/gpt-4o"}
    bench = {
        "name": "r",
        "rubric": "argument-quality",
        "judges": [{**hosted, "name": "j"}],
        "proxy": {
            "tasks": ["none.yaml"],
            "generators": [hosted],
            "evaluators": {"encoder": "owner/encoder"},
        },
    }
    (tmp_path / "bench.yaml").write_text(json.dumps(bench))
    code, _, err = call("rank", "run", tmp_path / "bench.yaml", "--local-only")
    assert code == 2
    message = "contacts another machine, which local-only forbids"
    for field in ("judges.j.backend", "proxy.generators.g.backend", "proxy.evaluators.encoder"):
        assert f"{field}: {message}" in err
