"""The log message about a wrong result of the equivalence cache."""

import logging

import msgspec

from app.process.json_text import encode
from app.process.logs import one_line
from core.equivalence.cache import Mismatch

log = logging.getLogger(__name__)


class MismatchLog:
    """Logs the first wrong result of the equivalence cache with the data to reproduce it; others are counted.

    One is enough to turn the cache off and report it. Each line would be as large as the first.
    """

    def __init__(self) -> None:
        self._logged = False

    def __call__(self, mismatch: Mismatch) -> None:
        """Log the first mismatch; ignore later ones."""
        if self._logged:
            return
        self._logged = True
        # The pod's spec came with a request, and no request is quoted above level debug. The API server has it, too.
        pod = {"namespace": mismatch.pod.namespace, "name": mismatch.pod.name, "uid": mismatch.pod.uid}
        text = _json({**msgspec.structs.asdict(mismatch), "pod": pod})
        log.error(
            "the equivalence cache was wrong; recomputed the result and cleared the cache. Please report it, and run "
            "with KINDRED_EQUIVALENCE_CACHE=false: %s",
            one_line(text),
        )
        log.debug("its pod: %s", one_line(_json(mismatch.pod)))


def _json(value: object) -> str:
    return encode(value, unknown=str).decode(errors="replace")
