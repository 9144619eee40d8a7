"""Make labels.csv and verdicts.csv, in which a column says more than most judges do. Synthetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
LABELS = ("Friendly", "Rude")
ASKED = {
    "Does it greet?": 0.08,
    "Does it thank?": 0.15,
    "Does it shout?": 0.9,
    "Does it scold?": 0.85,
}


def main() -> None:
    """Write both tables; the same every time."""
    rng = np.random.default_rng(7)
    texts = [f"text-{n:03}" for n in range(200)]
    items = pd.DataFrame([(t, a) for t in texts for a in ASKED], columns=["text", "asked"])
    items.insert(0, "item_id", items.text + "/" + items.asked)
    usual = items.asked.map(ASKED).to_numpy()
    truth = rng.random(len(items)) < usual

    def said(right: float) -> list[str]:
        off = rng.random(len(items)) > right
        return [LABELS[int(x)] for x in truth ^ off]

    for who in ("Ada", "Ben", "Cleo"):
        items[who] = said(0.93)
    items.to_csv(HERE / "labels.csv", index=False)
    verdicts = items[["item_id"]].copy()
    verdicts["reader"] = said(0.95)
    verdicts["column-reader"] = [LABELS[int(x > 0.5)] for x in usual]
    verdicts.to_csv(HERE / "verdicts.csv", index=False)


if __name__ == "__main__":
    main()
