"""All rows of one class."""

from typing import Final

from core.equivalence.cells import Miss
from core.equivalence.classes import ClassKey, equivalence_hash, key_text
from core.equivalence.ranking import NO_RANKING, NO_SLOTS
from core.equivalence.rows import Row
from core.objects.pod import Pod

ENTRY_BYTES: Final = 2500
"""Size of a class without its rows: a short key, the representative, dictionaries."""
SHORT_KEY: Final = 1000
"""Up to this many bytes, the text of a key is short."""
KEY_FACTOR: Final = 4
"""Bytes of a pod's fields in memory per byte of their text: 3.5 to 5. The text may have a megabyte."""


class ClassEntry:
    """The rows of one class: by plugin, verdicts and raw scores separately."""

    __slots__ = (
        "_own_bytes",
        "asked_at",
        "chain",
        "filters",
        "first_pod",
        "hash",
        "hash_text",
        "hits",
        "in_cache",
        "key",
        "last_slots",
        "made_at",
        "miss",
        "misses",
        "nbytes",
        "questions",
        "ranking",
        "representative",
        "scores",
    )

    def __init__(self, key: ClassKey, first_pod: Pod, representative: Pod, now: float) -> None:
        """Create an entry without results, at a time of the cache's clock."""
        self.key = key
        self.hash = equivalence_hash(key)
        self.hash_text = f"{self.hash:016x}"
        self._own_bytes = ENTRY_BYTES + KEY_FACTOR * max(0, len(key_text(key)) - SHORT_KEY)
        self.first_pod = first_pod.full_name
        self.representative = representative
        self.miss = Miss.NEW_CLASS
        self.filters: dict[str, Row] = {}
        self.scores: dict[str, Row] = {}
        self.chain: Row | None = None  # the verdicts of all filters together: the first failure of each node
        self.last_slots = NO_SLOTS  # of the last decision
        self.ranking = NO_RANKING
        self.made_at = now
        self.asked_at = now
        self.questions = 0
        self.hits = 0  # cached cells
        self.misses = 0  # cells that were not cached
        self.nbytes = 0  # as counted in the cache's sum
        self.in_cache = True

    def filter_row(self, name: str) -> Row:
        """Return the verdicts of a plugin."""
        row = self.filters.get(name)
        if row is None:
            row = self.filters[name] = Row(self.miss)
        return row

    def score_row(self, name: str) -> Row:
        """Return the raw scores of a plugin."""
        row = self.scores.get(name)
        if row is None:
            row = self.scores[name] = Row(self.miss)
        return row

    def chain_row(self) -> Row:
        """Return the verdicts of all filters together."""
        if self.chain is None:
            self.chain = Row(self.miss)
        return self.chain

    def weigh(self) -> int:
        """Add up the bytes, about."""
        rows = [*self.filters.values(), *self.scores.values()]
        if self.chain is not None:
            rows.append(self.chain)
        ranking = 0 if self.ranking is None else self.ranking.nbytes
        return self._own_bytes + ranking + sum(row.nbytes for row in rows)
