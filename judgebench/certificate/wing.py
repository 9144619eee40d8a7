"""The certificate wing: a decision that expires and is compared with new verdicts and labels."""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Wing

WING = Wing(
    name="certificate",
    certify=Named("judgebench.certificate.issue:certify"),
    commands=Named("judgebench.cli.watch:commands"),
)
