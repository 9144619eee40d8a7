"""A decision that expires and is compared with new verdicts and labels."""

from judgebench.certificate.issue import certify
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(certify=certify)
