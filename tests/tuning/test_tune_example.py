"""The shipped example of judges that learn."""

from pathlib import Path

import pytest

import judgebench as jb


@pytest.mark.long
def test_the_shipped_example_shows_what_one_would_have_claimed(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs the extra `tuning`")
    found = jb.tune("tune", tmp_path / "run")
    learnt = found.results.values("judge", "gain")
    assert learnt == ["bag-of-words", "recalibrated", "words"]
    about = {"judge": "words", "metric": "empathy", "as": "in-sample"}
    sides = {
        row["side"]: row.estimate.value
        for row in found.results.select("otherwise", "accuracy", **about)
    }
    assert sides["otherwise"] > sides["learnt"] + 0.3
    shown = {row["shown"] for row in found.results.select("gain", judge="words", side="difference")}
    assert "not shown" in shown
    assert "shown" not in shown
    assert "strongest baseline: by-system" in str(found)
    # Controls that are fitted in the same folds take part in decisions.
    said = " ".join(str(jb.decide(jb.open_run(tmp_path / "run"))).split())
    assert "does no better than the baseline bag-of-words" in said
