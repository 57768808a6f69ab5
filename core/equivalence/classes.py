"""The classes of pods, and the rows of each. Pods of one class agree in every field that an enabled plugin reads.

Source: the equivalence class design ("same controller = same class"), corrected by upstream's experience: pods of one
controller can differ (kubernetes issue 56265, PR 58555). So the fields are part of the class, too.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from core.equivalence.ranking import NO_SLOTS, Ranking
from core.equivalence.rows import FilterRow, Miss, PluginRow, Row, ScoreRow, counters_unchanged
from core.equivalence.validity import NEVER, Validities
from core.framework.interface import AnyFilter, AnyScore, Code, Plugin, Status
from core.framework.scores import NOT_SCORED
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Demand, Pod, PodClaim

if TYPE_CHECKING:
    from core.equivalence.unfit import Unfit

Mode: TypeAlias = Literal["controller", "spec"]


class ClassKey(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The key of a class. A pod is of a class if all of it is equal, so a hash collision cannot give a wrong result."""

    fields: tuple[Hashable, ...]
    """The UID of the controller, in the mode `controller`, and the declared fields."""
    bound: tuple[Hashable, ...]
    """What else the class depends on: see `Classifier.bound`."""


_DEMAND: Final = "demand."
ALL_FIELDS: Final = (
    *(field for field in Pod.__struct_fields__ if field != "demand"),
    *(f"{_DEMAND}{field}" for field in Demand.__struct_fields__),
)
"""What a plugin may declare: `requests`, `demand.images`."""
_BLANK: Final = Pod(uid="", namespace="", name="")
_HASH_BYTES: Final = 8


class ClassFieldError(ValueError):
    """A plugin declares a field that pods do not have."""


class Classifier:
    """Finds the class of a pod, by the fields that the enabled plugins declare."""

    def __init__(self, plugins: Iterable[Plugin], mode: Mode) -> None:
        """Mode `controller`: pods without a controller have no class. Mode `spec`: pods with equal fields are a class.

        Raises ClassFieldError.
        """
        self._plugins = tuple(plugins)
        self._mode = mode
        for plugin in self._plugins:
            for field in plugin.class_fields:
                if field not in ALL_FIELDS:
                    raise ClassFieldError(f"{plugin.name}: pods have no field {field}")
        declared = {field for plugin in self._plugins for field in plugin.class_fields}
        self.fields: Final = tuple(field for field in ALL_FIELDS if field in declared)
        """The fields that any enabled plugin reads, in the order of the Pod."""
        self._referring = [each for each in self._plugins if type(each).references is not Plugin.references]
        self._reads_volumes = "volumes" in declared
        self._knowing = [each for each in self._plugins if type(each).knows_each is not Plugin.knows_each]
        self._read = attrgetter(*self.fields, "controller")  # at least two fields, so that it returns a tuple
        parts = dict.fromkeys(_DEMAND[:-1] if field.startswith(_DEMAND) else field for field in self.fields)
        self.parts: Final[Callable[[Pod], tuple[Any, ...]]] = attrgetter(*parts, "controller")
        """Pod -> the objects with its declared fields, and its controller. They are mostly those of other pods, too."""
        self._mappings = [at for at, field in enumerate(self.fields) if isinstance(attrgetter(field)(_BLANK), Mapping)]

    def key(self, mirror: ClusterMirror, pod: Pod) -> ClassKey | None:
        """Return the class of a pod, or None if it has no class and is evaluated afresh."""
        return self.key_of(pod, self.bound(mirror, pod))

    def bound(self, mirror: ClusterMirror, pod: Pod) -> tuple[Hashable, ...]:
        """Return what the fields of a pod refer to, after the UID and the name of a pod that has a class of its own."""
        return (self._identity(mirror, pod), *[plugin.references(mirror, pod) for plugin in self._referring])

    def binds_alike(self, bound: tuple[Hashable, ...]) -> bool:
        """Return whether all pods with the same fields have this result of `bound`."""
        return bound[0] is None and not self._knowing

    def key_of(self, pod: Pod, bound: tuple[Hashable, ...]) -> ClassKey | None:
        """Return the class by the result of `bound`, or None, see `key`."""
        *fields, controller = self._read(pod)
        owner = ""
        if self._mode == "controller":
            if controller is None:
                return None
            owner = controller.uid
        for at in self._mappings:
            fields[at] = frozenset(fields[at].items())
        return ClassKey((owner, *fields), bound)

    def _identity(self, mirror: ClusterMirror, pod: Pod) -> tuple[str, str] | None:
        """Return the UID and name of a pod that must own its claims, or None for any other one."""
        if (
            pod.volumes
            and self._reads_volumes
            and any(isinstance(each, PodClaim) and each.ephemeral for each in pod.volumes)
        ):
            return pod.uid, pod.name
        for plugin in self._knowing:
            if plugin.knows_each(mirror, pod):
                return pod.uid, pod.name
        return None

    def representative(self, mirror: ClusterMirror, pod: Pod) -> Pod:
        """Return the pod with only the declared fields. Plugins get this pod for the class.

        So a plugin that reads an undeclared field finds it blank at the first request already, not only in a cached
        result.
        """
        known = {field: attrgetter(field)(pod) for field in self.fields}
        demand = {field.removeprefix(_DEMAND): known.pop(field) for field in self.fields if field.startswith(_DEMAND)}
        if self._identity(mirror, pod) is not None:
            known |= {"uid": pod.uid, "name": pod.name}
        return replace(_BLANK, **known, demand=replace(_BLANK.demand, **demand))


def equivalence_hash(key: ClassKey) -> int:
    """Return the 64 bits that identify a class in output. They are the same in every process, and may be 0."""
    return int.from_bytes(blake2b(key_text(key), digest_size=_HASH_BYTES).digest(), "big")


def key_text(key: ClassKey) -> bytes:
    """Return a class as text, the same in every process."""
    return msgspec.json.encode((*key.fields, *key.bound), order="deterministic", enc_hook=str)


ENTRY_BYTES: Final = 3500
"""Size of a class without its rows: a short key, the representative, dictionaries, ids."""
SHORT_KEY: Final = 1000
"""Up to this many bytes, the text of a key is short."""
KEY_FACTOR: Final = 8
"""Bytes of a pod's fields in memory per byte of their text: 3.5 to 5, twice, because the fields of the last pod may be
other objects than those of the first. The text may have a megabyte."""


class ClassEntry:
    """The rows of one class: by plugin, verdicts and raw scores separately."""

    __slots__ = (
        "_own_bytes",
        "bound_at",
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
        "objects",
        "parts",
        "questions",
        "ranking",
        "representative",
        "requested_at",
        "scores",
        "unfit",
    )

    def __init__(self, key: ClassKey, first_pod: Pod, representative: Pod, now: float) -> None:
        """Create an entry without results, at a time of the cache's clock."""
        self.key = key
        self.hash = equivalence_hash(key)
        self.hash_text = f"{self.hash:016x}"
        self._own_bytes = ENTRY_BYTES + KEY_FACTOR * max(0, len(key_text(key)) - SHORT_KEY)
        self.first_pod = first_pod.full_name
        self.representative = representative
        self.parts: tuple[Any, ...] = ()  # of its last pod, see Classifier.parts
        self.objects: tuple[int, ...] = ()  # their ids
        self.bound_at = NEVER  # time of the last change of anything but a pod when `bound` was looked up
        self.miss = Miss.NEW_CLASS
        self.filters: dict[str, FilterRow] = {}
        self.scores: dict[str, ScoreRow] = {}
        self.chain: Row | None = None  # the verdicts of all filters together: the first failure of each node
        self.last_slots = NO_SLOTS  # of the last decision
        self.ranking: Ranking | None = None  # from the second decision in a row among the same nodes
        self.unfit: Unfit | None = None  # of a class that fitted nowhere last
        self.made_at = now
        self.requested_at = now
        self.questions = 0
        self.hits = 0  # cached cells
        self.misses = 0  # cells that were not cached
        self.nbytes = 0  # as counted in the cache's sum
        self.in_cache = True

    def has_room_for(self, demand: Demand) -> bool:
        """Return whether a pod's demand takes little more than is counted. The key has what plugins read of it."""
        return KEY_FACTOR * (len(msgspec.json.encode(demand, enc_hook=str)) - SHORT_KEY) <= self._own_bytes

    def filter_row(self, plugin: AnyFilter) -> FilterRow:
        """Return the verdicts of a plugin."""
        row = self.filters.get(plugin.name)
        if row is None:
            row = self.filters[plugin.name] = FilterRow(self.miss, plugin=plugin)
        row.plugin = plugin
        return row

    def score_row(self, plugin: AnyScore) -> ScoreRow:
        """Return the raw scores of a plugin."""
        row = self.scores.get(plugin.name)
        if row is None:
            row = self.scores[plugin.name] = ScoreRow(self.miss, plugin=plugin)
        row.plugin = plugin
        return row

    def chain_row(self) -> Row:
        """Return the verdicts of all filters together."""
        if self.chain is None:
            self.chain = Row(self.miss)
        return self.chain

    def update_size(self) -> int:
        """Add up the bytes, about."""
        rows: list[Row] = [*self.filters.values(), *self.scores.values()]
        if self.chain is not None:
            rows.append(self.chain)
        ranking = 0 if self.ranking is None else self.ranking.nbytes
        unfit = 0 if self.unfit is None else self.unfit.nbytes
        return self._own_bytes + ranking + unfit + sum(row.nbytes for row in rows)


# The cells of one class on one node. Source: PredicateWithECache of the equivalence class design.


class PredicateCell(msgspec.Struct, frozen=True, gc=False):
    """The verdict of a predicate. An invalid one has neither fit nor reasons, as in the design."""

    plugin: str
    fit: bool
    reasons: tuple[str, ...]
    invalid: bool
    """Whether the next request evaluates the cell again."""
    miss: str | None
    """Why the cell is invalid."""


class ScoreCell(msgspec.Struct, frozen=True, gc=False):
    """The raw score of a priority."""

    plugin: str
    raw: int | None
    """None if the cell is invalid, or if the plugin skips the pod."""
    invalid: bool
    """Whether the next request evaluates the cell again. Always true without `scores_alone`: nothing is cached."""
    miss: str | None
    """Why the cell is invalid. None for scores that are not cached."""


class CellLookup:
    """The cells of one class on one node, read without evaluating one. Valid until the next event or request."""

    def __init__(self, mirror: ClusterMirror, validities: Validities, entry: ClassEntry, node: str) -> None:
        """`node` must be the name of a known node."""
        self._mirror = mirror
        self._validities = validities
        self._entry = entry
        self._batch = mirror.batch([node])
        self._slot = mirror.nodes.slots[node]

    def predicate(self, plugin: AnyFilter) -> PredicateCell:
        """Return the cell of a predicate."""
        found = self._look_up(self._entry.filters.get(plugin.name))
        if isinstance(found, Miss):
            return PredicateCell(plugin.name, fit=False, reasons=(), invalid=True, miss=found.label)
        status = found if isinstance(found, Status) else self._entry.filters[plugin.name].statuses[found]
        fit = status.code in {Code.SUCCESS, Code.SKIP}
        return PredicateCell(plugin.name, fit, status.reasons, invalid=False, miss=None)

    def score(self, plugin: AnyScore) -> ScoreCell:
        """Return the cell of a priority."""
        if not plugin.scores_alone:
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=None)
        found = self._look_up(self._entry.scores.get(plugin.name))
        if isinstance(found, Miss):
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=found.label)
        raw = None if isinstance(found, Status) or found == NOT_SCORED else found
        return ScoreCell(plugin.name, raw, invalid=False, miss=None)

    def _look_up(self, row: PluginRow | None) -> Miss | Status | int:
        """Return the number in the cell, the status for all nodes, or the reason for a miss."""
        if row is None:
            return self._entry.miss
        found = row.outcome or (row.miss if row.empty or row.cells is None else row.cells.at(self._slot))
        if isinstance(found, Miss):
            return found
        dropped = self._dropped(row)
        return found if dropped is None else dropped

    def _dropped(self, row: PluginRow) -> Miss | None:
        """Return why the next request drops the row, or None. May run PreFilter or PreScore for counters' versions."""
        if row.as_of in (NEVER, self._validities.now):
            return None
        validity = self._validities.of[row.plugin.name]
        if validity.all_at > row.as_of:
            return Miss.CLUSTER_CHANGED
        if row.outcome is None and validity.changed_at[self._slot] > row.as_of:
            return Miss.NODE_CHANGED
        if validity.reads_counters:
            prepared = row.prepare(self._mirror, self._entry.representative, self._batch)
            if not counters_unchanged(row, prepared):
                return Miss.COUNTERS_CHANGED
        return None
