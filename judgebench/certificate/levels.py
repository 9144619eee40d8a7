"""How often a watched certificate may be wrong, shared out among what is watched.

All levels hold for all metrics, at all looks and for ever, together: of a judge that stays as it
was, on answers that stay as they were, 2.5 % of certificates are ever revoked and 5 % ever warned.
"""

from __future__ import annotations

NOISE = 0.0025  # the noise of the judge was measured too low
CHANGED = 0.01  # the judge is taken for another
KEPT = 0.0025  # a watched share looked better than it is, and lies on the wrong side of its bound
FALLEN = 0.01  # a watched share is taken to be on the wrong side of its bound
REVOKED = NOISE + CHANGED + KEPT + FALLEN

SHARES = 0.01  # a share of the population was measured too low
SHIFTED = 0.02  # the answers are taken for others
ROOM = 0.01  # a watched share looked better than it is, and is near its bound
NEAR = 0.01  # a watched share is taken to be near its bound
WARNED = SHARES + SHIFTED + ROOM + NEAR
