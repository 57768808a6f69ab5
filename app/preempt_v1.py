"""The wire of `preempt`: ExtenderPreemptionArgs in, ExtenderPreemptionResult out.

Source: k8s.io/kube-scheduler extender/v1/types.go; as everywhere, Go reads keys in any case. The result has no field
for an error, and with a status other than 200 an ignorable extender would be passed over, and the victims that were
offered would go. So a bad request is answered with no node at all, and an `Error` that only people read.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final

import msgspec

from app.bypass import Bypass
from app.extender_v1 import decode_incoming_pod
from app.limits import MAX_NODES, Body, error_json, refuse_too_many_elements
from app.observation import Answer, Asked, Outcome
from app.preemption.outcome import CallResult
from app.refused_nodes import RefusedNodes
from app.watch.decode import NULL, DecodeError, decoding, decoding_field, under
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption.offers import Offer, accepted
from core.profile import Profile

log = logging.getLogger(__name__)

_FIELDS: Final = {
    name.lower(): name for name in ("Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
}  # in lower case -> in Go's spelling

_OFF: Final = "switched off, so that nobody is preempted: set KINDRED_PREEMPT=verb, or take preemptVerb away"

_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _UidOnly(msgspec.Struct):
    uid: str | None = None


class _WholePod(msgspec.Struct):
    metadata: _UidOnly | None = None


_raw_fields_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_by_node_decoder: Final[msgspec.json.Decoder[dict[str, dict[str, msgspec.Raw] | None]]] = msgspec.json.Decoder(
    dict[str, dict[str, msgspec.Raw] | None]
)
_whole_pods_decoder: Final[msgspec.json.Decoder[list[_WholePod] | None]] = msgspec.json.Decoder(list[_WholePod] | None)
_meta_pods_decoder: Final[msgspec.json.Decoder[list[dict[str, msgspec.Raw]] | None]] = msgspec.json.Decoder(
    list[dict[str, msgspec.Raw]] | None
)
_text_decoder: Final[msgspec.json.Decoder[str | None]] = msgspec.json.Decoder(str | None)
_count_decoder: Final[msgspec.json.Decoder[int | None]] = msgspec.json.Decoder(_Int64 | None)


class PreemptionArgs(msgspec.Struct, frozen=True, gc=False):
    """The pod that wants to preempt others, and the victims on each candidate node."""

    pod: Pod
    offers: Mapping[str, Offer]


class Preempter:
    """The verb, from request bytes to response bytes. It never raises for what a request holds."""

    def __init__(  # noqa: PLR0913  # what a preemption needs
        self,
        profile: Profile,
        mirror: ClusterMirror,
        refused_nodes: RefusedNodes,
        *,
        offset: Callable[[int], int],
        observe: Callable[[CallResult, int], None],
        bypass: Bypass,
    ) -> None:
        """Answer from the mirror, and look for victims on refused nodes, too; pods that pass untouched get all offers.

        `offset` of so many nodes says with which of them to begin. `observe` is told the result of each call, and how
        many nodes are in the answer that were not offered.
        """
        self._profile = profile
        self._mirror = mirror
        self._refused_nodes = refused_nodes
        self._offset = offset
        self._observe = observe
        self._bypass = bypass

    def preempt(self, body: Body, *, cached: bool = True) -> Answer:  # noqa: ARG002 - as all verbs are called
        """Answer ExtenderPreemptionArgs with an ExtenderPreemptionResult; nothing of it comes from the cache."""
        try:
            args = decode_preemption_args(body)
        except DecodeError as error:
            self._observe(CallResult.INVALID, 0)
            return Answer(preempt_error(str(error)), outcome=Outcome.BAD_REQUEST, error=str(error))
        if self._bypass.covers(args.pod):
            return Answer(preemption_result(args.offers), outcome=Outcome.BYPASSED, asked=_asked(args, args.offers))
        found = accepted(self._mirror, self._profile.filters, args.pod, args.offers, self._more_nodes(args))
        result = CallResult.CANDIDATES if found else CallResult.NONE
        self._observe(result, len(found.keys() - args.offers.keys()))
        outcome = Outcome.FIT if found else Outcome.NO_FIT
        return Answer(preemption_result(found), outcome=outcome, asked=_asked(args, found))

    def passes_untouched(self, body: Body) -> bool:
        """Whether a question is about a pod that passes whatever the mirror is like."""
        try:
            return self._bypass.covers(decode_preemption_args(body).pod)
        except DecodeError:
            return False

    def _more_nodes(self, args: PreemptionArgs) -> list[str]:
        """Return the nodes that Kindred alone refused, not always the same ones first, as not all may be looked at."""
        names = [name for name in self._refused_nodes.of_this_attempt(args.pod.uid) if name not in args.offers]
        first = self._offset(len(names)) if names else 0
        return names[first:] + names[:first]


class PreemptOff:
    """The verb where it is switched off: nobody is preempted, and whoever looks learns why."""

    def __init__(self, observe: Callable[[CallResult, int], None]) -> None:
        """Tell `observe` of each call."""
        self._observe = observe

    def preempt(self, body: Body, *, cached: bool = True) -> Answer:  # noqa: ARG002 - as all verbs are called
        """Answer that nobody is to be preempted."""
        log.warning("preempt: %s", _OFF)
        self._observe(CallResult.OFF, 0)
        return Answer(preempt_error(_OFF), outcome=Outcome.NO_FIT, error=_OFF)

    def passes_untouched(self, body: Body) -> bool:  # noqa: ARG002 - there is nothing to pass
        """Return False."""
        return False


def decode_preemption_args(body: Body) -> PreemptionArgs:
    """Decode ExtenderPreemptionArgs with keys in any case. Raises DecodeError, which names the field."""
    refuse_too_many_elements(body)
    with under("body"):
        found = decoding(_raw_fields_decoder.decode, body)
    fields = dict.fromkeys(_FIELDS.values(), NULL)
    for key, raw in found.items():
        name = _FIELDS.get(key.lower())
        if name is None:
            raise DecodeError(key, f"unknown field; ExtenderPreemptionArgs has {', '.join(_FIELDS.values())}")
        fields[name] = raw
    victims, meta_victims = fields["NodeNameToVictims"], fields["NodeNameToMetaVictims"]
    pod = decode_incoming_pod(fields["Pod"])
    if (victims == NULL) == (meta_victims == NULL):
        raise DecodeError(
            "NodeNameToVictims, NodeNameToMetaVictims",
            "one of them required; kube-scheduler sends it by nodeCacheCapable",
        )
    if meta_victims == NULL:
        return PreemptionArgs(pod, _offers("NodeNameToVictims", victims))
    return PreemptionArgs(pod, _offers("NodeNameToMetaVictims", meta_victims))


def preemption_result(accepted_offers: Mapping[str, Offer]) -> bytes:
    """Return an ExtenderPreemptionResult."""
    by_node = {
        name: {"Pods": [{"UID": uid} for uid in offer.uids], "NumPDBViolations": offer.pdb_violations}
        for name, offer in accepted_offers.items()
    }
    return msgspec.json.encode({"NodeNameToMetaVictims": by_node})


def preempt_error(message: str) -> bytes:
    """Return an ExtenderPreemptionResult that drops every node, so that nobody is preempted, and says why."""
    return b'{"NodeNameToMetaVictims":{},"Error":' + error_json(message) + b"}"


def _asked(args: PreemptionArgs, found: Mapping[str, Offer]) -> Asked:
    return Asked(args.pod.full_name, args.pod.uid, len(args.offers), len(found))


def _offers(field: str, raw: msgspec.Raw) -> dict[str, Offer]:
    with under(field):
        by_node = decoding(_by_node_decoder.decode, raw)
        if len(by_node) > MAX_NODES:
            raise DecodeError("", f"more than {MAX_NODES} nodes")
        offers = {}
        for name, victims in by_node.items():
            with under(f"[{name}]"):
                offers[name] = _offer(victims or {}, whole_pods=field == "NodeNameToVictims")
        return offers


def _offer(victims: Mapping[str, msgspec.Raw], *, whole_pods: bool) -> Offer:
    """Read Victims or MetaVictims; members that are neither's are passed over, as Go does."""
    members = {key.lower(): raw for key, raw in victims.items()}
    with under("Pods"):
        pods = members.get("pods", NULL)
        uids = tuple(_uids_of_whole_pods(pods) if whole_pods else _uids(pods))
    with under("NumPDBViolations"):
        violations = decoding(_count_decoder.decode, members.get("numpdbviolations", NULL))
    return Offer(uids, violations or 0)


def _uids_of_whole_pods(raw: msgspec.Raw) -> Iterator[str]:
    pods = decoding(_whole_pods_decoder.decode, raw)
    for position, pod in enumerate(pods or ()):
        yield _checked(pod.metadata.uid if pod.metadata is not None else None, f"[{position}].metadata.uid")


def _uids(raw: msgspec.Raw) -> Iterator[str]:
    pods = decoding(_meta_pods_decoder.decode, raw)
    for position, pod in enumerate(pods or ()):
        field = f"[{position}].UID"
        found = next((value for key, value in pod.items() if key.lower() == "uid"), NULL)
        yield _checked(decoding_field(_text_decoder.decode, found, field), field)


def _checked(uid: str | None, field: str) -> str:
    if not uid:
        raise DecodeError(field, "required")
    return uid
