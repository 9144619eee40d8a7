"""A second reader's check of the audit: three studies by pandas and scipy alone.

    python benchmarks/audit_check.py DATA            # all three sets
    python benchmarks/audit_check.py DATA --quick    # one of them

DATA holds the published files, as for `examples/audit/decide_again.py`. From the authors' JSON
alone, without a line of judgebench, this derives for three sets of the Alternative Annotator Test
each judge's accuracy and advantage probability, its winning rate, and the accuracy and winning rate
of a rule that knows the question and nothing else; then it runs the audit and prints both side by
side, and in how many splits of the texts into halves the rule passes. Exits
with 1 where any pair differs by more than 1e-12.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, ttest_1samp

STUDIES = {"framing": 0.15, "lesion": 0.15, "summeval": 0.2}
SPLIT = {**STUDIES, "lgbteen": 0.2, "cebab_aspects": 0.1}  # sets of several questions
SEEDS = range(8)
# Ordinal sets, with the sign of the numbers from the least to the most severe label.
ORDINAL = {"lesion": 1, "summeval": -1}
DRAWN = 5  # labels in the shares of all that every question counts as having had before


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Labels (items, annotators) and verdicts (items, judges); an item's id begins with its text
    and ends with its question."""
    human, llm = (
        pd.DataFrame(json.loads((folder / f"{who}_annotations.json").read_text()))
        for who in ("human", "llm")
    )
    return human, llm.reindex(human.index)


def majority(labels: pd.DataFrame) -> pd.Series:
    """The commonest label of each row, none where two are as common."""

    def one(row: pd.Series) -> object:
        counts = row.dropna().value_counts()
        tied = len(counts) > 1 and counts.iloc[0] == counts.iloc[1]
        return None if tied or counts.empty else counts.index[0]

    return labels.apply(one, axis=1)


def median(labels: pd.DataFrame, sign: int) -> pd.Series:
    """The median label of each row; between two labels the more severe one."""
    ranked = sign * labels.astype(float)
    found = ranked.quantile(0.5, axis=1, interpolation="higher")
    return (sign * found).astype(int).astype(str)


def by_question(labels: pd.DataFrame, seed: int = 0) -> pd.Series:
    """The commonest label of each question, among the other half of the texts."""

    def drawn(text: str) -> bytes:
        return hashlib.sha256(f"{seed}\0half\0{text}".encode()).digest()[:16]

    parts = labels.index.to_series().str.split("__")
    text, asked = parts.str[0], parts.str[-1]
    texts = sorted(set(text), key=drawn)
    half = text.map({name: place % 2 for place, name in enumerate(texts)})
    said = labels.stack().rename("label").reset_index(level=1, drop=True).to_frame()
    said["half"], said["asked"] = half.reindex(said.index), asked.reindex(said.index)
    found = pd.Series(index=labels.index, dtype=object)
    for side in (0, 1):
        other = said[said.half != side]
        counts = other.groupby("asked").label.value_counts().unstack(fill_value=0)
        shares = other.label.value_counts(normalize=True).reindex(counts.columns)
        rule = (counts + DRAWN * shares).idxmax(axis=1)
        found[half == side] = asked[half == side].map(rule)
    return found


def test(
    labels: pd.DataFrame, said: pd.Series, epsilon: float, ordinal: bool
) -> tuple[float, float]:
    """Winning rate and average advantage (Calderon et al., 2025, section 3)."""
    p, shares = [], []
    for who in labels:
        others = labels.drop(columns=who)
        used = labels[who].notna() & (others.notna().sum(axis=1) >= 1) & said.notna()
        mine, theirs, rest = labels[who][used], said[used], others[used]
        close = [_close(rest, of, ordinal) for of in (theirs, mine)]
        wins, losses = close[0] >= close[1] - 1e-12, close[1] >= close[0] - 1e-12
        d = losses.astype(float) - wins.astype(float)
        if len(d) >= 30:
            p.append(ttest_1samp(d, epsilon, alternative="less").pvalue)
            shares.append(wins.mean())
    corrected = false_discovery_control(p, method="by")
    return float((corrected <= 0.05).mean()), float(np.mean(shares))


def _close(others: pd.DataFrame, said: pd.Series, ordinal: bool) -> pd.Series:
    """Equal labels, or minus the root mean square distance of ordinal ones."""
    if not ordinal:
        return others.eq(said, axis=0).where(others.notna()).mean(axis=1)
    apart = others.astype(float).sub(said.astype(float), axis=0)
    return -np.sqrt((apart**2).mean(axis=1))


def derived(data: Path, name: str, epsilon: float) -> dict[tuple[str, str], float]:
    """Every number of one set by (who, what)."""
    labels, verdicts = read(data / "AltTest" / "data" / name)
    ordinal = name in ORDINAL
    truth = median(labels, ORDINAL[name]) if ordinal else majority(labels)
    rule, found = by_question(labels), {}
    for who, said in [*verdicts.items(), ("by-asked", rule)]:
        known = truth.notna() & said.notna()
        plain = said[known].astype(float).astype(int).astype(str) if ordinal else said[known]
        found[str(who), "accuracy"] = float((plain == truth[known]).mean())
        rate, advantage = test(labels, said, epsilon, ordinal)
        found[str(who), "winning_rate"], found[str(who), "advantage"] = rate, advantage
    return found


def audit(data: Path, names: list[str]) -> pd.DataFrame:
    """Every number of the audit of these studies."""
    folder = Path(__file__).parents[1] / "examples" / "audit"
    with TemporaryDirectory() as pages:
        command = [sys.executable, folder / "decide_again.py", folder, "--downloads", data]
        only = [word for name in names for word in ("--only", name)]
        subprocess.run([*command, *only, "--to", pages], check=True, stdout=subprocess.DEVNULL)
        return pd.read_csv(Path(pages) / "audit.csv")


def main() -> int:
    """Print both, and count the pairs that differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA", help="the published files")
    parser.add_argument("--quick", action="store_true", help="one set, one split")
    asked = parser.parse_args()
    data, quick = asked.data, asked.quick
    names = {f"alttest-{name}": name for name in [*STUDIES][: 1 if quick else None]}
    numbers = audit(data, list(names))
    differ = 0
    for study, name in names.items():
        for (who, what), value in derived(data, name, STUDIES[name]).items():
            if what == "accuracy" and who == "by-asked":
                keys = ("decision", "baseline", "who")
            else:
                keys = ("decision" if what == "accuracy" else "test", what, "judge")
            analysis, statistic, column = keys
            rows = numbers[
                (numbers.analysis == analysis)
                & (numbers.statistic == statistic)
                & (numbers.study == study)
                & (numbers[column] == who)
            ]
            ours = float(rows.value.iloc[0]) if len(rows) else None
            same = ours is not None and abs(ours - value) <= 1e-12
            differ += not same
            said = "" if same else "DIFFERS"
            print(f"{study:18} {who:14} {what:13} {value:<18.15g} {ours!r:22} {said}".rstrip())
    print(f"{differ} differ")
    for name, epsilon in [] if quick else SPLIT.items():
        labels, _ = read(data / "AltTest" / "data" / name)
        rates = [
            test(labels, by_question(labels, seed), epsilon, name in ORDINAL)[0] for seed in SEEDS
        ]
        passed = sum(rate >= 0.5 for rate in rates)
        print(
            f"{name}: the rule by question passes in {passed} of {len(SEEDS)} splits of the texts"
        )
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
