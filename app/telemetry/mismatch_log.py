"""The equivalence cache's word to operators."""

import logging

import msgspec

from app.json_text import encode
from app.logs import one_line
from core.equivalence.cache import Mismatch

log = logging.getLogger(__name__)


class MismatchLog:
    """Logs the first wrong result of the equivalence cache with the data to reproduce it; others are counted.

    One is enough to turn the cache off and report it; each would be as large as the first.
    """

    def __init__(self) -> None:
        self._told = False

    def __call__(self, mismatch: Mismatch) -> None:
        """Take note of one."""
        if self._told:
            return
        self._told = True
        # What the pod is like came with a request, and no such thing is logged; the API server has it, too.
        pod = {"namespace": mismatch.pod.namespace, "name": mismatch.pod.name, "uid": mismatch.pod.uid}
        text = _json({**msgspec.structs.asdict(mismatch), "pod": pod})
        log.error(
            "the equivalence cache was wrong; answered afresh, cache cleared. Please report it, and run with "
            "KINDRED_EQUIVALENCE_CACHE=false: %s",
            one_line(text),
        )
        log.debug("its pod: %s", one_line(_json(mismatch.pod)))


def _json(value: object) -> str:
    return encode(value, unknown=str).decode(errors="replace")
