"""A decision that expires and is compared with new verdicts and labels."""

from judgebench.certificate.admission import admit, deciders
from judgebench.certificate.issue import certify
from judgebench.certificate.record import Certificate
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(settings=str | Certificate, admit=admit, read=deciders, certify=certify)
