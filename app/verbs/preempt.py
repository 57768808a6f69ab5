"""The wire of `preempt`: ExtenderPreemptionArgs in, ExtenderPreemptionResult out.

Source: k8s.io/kube-scheduler extender/v1/types.go. Go reads keys in any case. The result has no field for an error.
After a status other than 200, kube-scheduler would skip an ignorable extender and evict the offered victims. So the
response to a bad request has no node, and an `Error` that only people read.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    MAX_NODES,
    NULL,
    Body,
    DecodeError,
    GoStruct,
    decoding,
    decoding_field,
    refuse_too_many_elements,
    under,
)
from app.verbs.effects import Effects, RejectedNodes
from app.verbs.endpoint import Verb
from app.verbs.filter import Bypass, Patient
from app.verbs.pods import LookupState
from app.verbs.request import Request, VerbOutcome, VerbResponse
from app.verbs.wire_in import decode_incoming_pod
from app.verbs.wire_out import error_json
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.preemption import Offer, accepted
from core.profile import Profile

_ARGS: Final = GoStruct("ExtenderPreemptionArgs", "Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
_VICTIMS: Final = GoStruct("MetaVictims", "Pods", "NumPDBViolations")
_META_POD: Final = GoStruct("MetaPod", "UID")

_OFF: Final = "switched off, so that nobody is preempted: set KINDRED_PREEMPT=verb, or take preemptVerb away"

_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _UidOnly(msgspec.Struct):
    uid: str | None = None


class _WholePod(msgspec.Struct):
    metadata: _UidOnly | None = None


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
    """The preempting pod, and the victims on each candidate node."""

    pod: Pod
    offers: Mapping[str, Offer]


class PreemptVerb:
    """The verb, from request bytes to response bytes. Invalid contents never make it raise.

    It changes nothing itself, but kube-scheduler evicts the victims of its response. So with effects, the response is
    for the pod as the API server has it.
    """

    def __init__(
        self,
        profile: Profile,
        mirror: ClusterMirror,
        rejected_nodes: RejectedNodes,
        *,
        offset: Callable[[int], int],
        bypass: Bypass,
    ) -> None:
        """Evaluate with the mirror. Refused nodes are searched for victims, too. Untouched pods get all offers.

        `offset` returns, for a number of nodes, the index of the first node to try.
        """
        self._profile = profile
        self._mirror = mirror
        self._rejected_nodes = rejected_nodes
        self._offset = offset
        self._bypass = bypass

    def preempt(self, request: Request, effects: Effects | None) -> VerbResponse:
        """Return the ExtenderPreemptionResult for ExtenderPreemptionArgs, without the cache."""
        try:
            args = decode_preemption_args(request.body)
        except DecodeError as error:
            text = str(error)
            return VerbResponse(preempt_error(text), outcome=VerbOutcome.BAD_REQUEST, error=text)
        if self._bypass.covers(args.pod):
            return _all_offers(args)
        if effects is not None and effects.lookup.pods is not None:
            found = effects.lookup.of(args.pod)
            if found.state is LookupState.UNKNOWN:
                why = _not_seen(args.pod)
                return VerbResponse(preempt_error(why), outcome=VerbOutcome.RETRIED, error=why, unknown_pod=args.pod)
            if found.pod is None:
                message = f"no pending pod {args.pod.full_name} has this uid"
                return _invalid(message, VerbOutcome.NO_FIT, args.pod, len(args.offers))
            assumed = self._mirror.assumed.get(found.pod.uid)
            if assumed is not None and assumed.is_reported and not assumed.is_doubtful:
                message = f"pod {found.pod.full_name} has a place, or is bound, but not in the watch yet"
                return _invalid(message, VerbOutcome.NO_FIT, args.pod, len(args.offers))
            args = PreemptionArgs(found.pod, args.offers)
        return self._accepted(args)

    def unread(self, incoming: Pod, problem: str, _: Effects) -> VerbResponse:
        """Respond for a pod that the watch does not show, and that could not be read, without a node."""
        message = f"{_not_seen(incoming)}, and could not be read: {problem}"
        return _invalid(message, VerbOutcome.FAILED, incoming)

    def preempt_bypassed(self, body: Body) -> VerbResponse | None:
        """Respond for a pod that passes untouched, whatever the state of the mirror. None for other or invalid pods."""
        try:
            args = decode_preemption_args(body)
        except DecodeError:
            return None
        return _all_offers(args) if self._bypass.covers(args.pod) else None

    def _accepted(self, args: PreemptionArgs) -> VerbResponse:
        try:
            filters = self._profile.under(self._mirror.rules).filters
            found = accepted(self._mirror, filters, args.pod, args.offers, self._more_nodes(args))
        except WorkLimitError as error:
            return _invalid(str(error), VerbOutcome.TOO_MUCH_WORK, args.pod, len(args.offers))
        return _offered(args, found, VerbOutcome.FIT if found else VerbOutcome.NO_FIT)

    def _more_nodes(self, args: PreemptionArgs) -> list[str]:
        """Return the nodes that only Kindred rejected. The first node varies, because not all nodes may be tried."""
        names = [name for name in self._rejected_nodes.of_this_attempt(args.pod) if name not in args.offers]
        first = self._offset(len(names)) if names else 0
        return names[first:] + names[:first]


def decode_preemption_args(body: Body) -> PreemptionArgs:
    """Decode ExtenderPreemptionArgs with keys in any case. Raises DecodeError that names the field."""
    refuse_too_many_elements(body)
    fields = _ARGS.decode(body)
    victims, meta_victims = (fields.get(field, NULL) for field in ("NodeNameToVictims", "NodeNameToMetaVictims"))
    pod = decode_incoming_pod(fields.get("Pod", NULL))
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
    """Return an ExtenderPreemptionResult without a node, so that no pod is preempted, and with the reason."""
    return b'{"NodeNameToMetaVictims":{},"Error":' + error_json(message) + b"}"


def _all_offers(args: PreemptionArgs) -> VerbResponse:
    """Return the offers with victims. kube-scheduler rejects an offer without victims.

    An offer has no victims if another extender rejected the node. That extender then finds the victims.
    """
    offers = {name: offer for name, offer in args.offers.items() if offer.uids}
    return _offered(args, offers, VerbOutcome.BYPASSED)


def _not_seen(pod: Pod) -> str:
    return f"pod {pod.full_name} is not in the watch as the request has it"


def _offered(args: PreemptionArgs, offers: Mapping[str, Offer], outcome: VerbOutcome) -> VerbResponse:
    pod, body = args.pod, preemption_result(offers)
    return VerbResponse(body, "", outcome, pod.full_name, pod.uid, len(args.offers), len(offers))


def _invalid(error: str, outcome: VerbOutcome, pod: Pod, nodes: int = 0) -> VerbResponse:
    return VerbResponse(preempt_error(error), "", outcome, pod.full_name, pod.uid, nodes, error=error)


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
    """Read Victims or MetaVictims. Fields of neither are ignored, as in Go."""
    fields = _VICTIMS.fields_of(victims)
    with under("Pods"):
        pods = fields.get("Pods", NULL)
        uids = tuple(_uids_of_whole_pods(pods) if whole_pods else _uids(pods))
    with under("NumPDBViolations"):
        violations = decoding(_count_decoder.decode, fields.get("NumPDBViolations", NULL))
    return Offer(uids, violations or 0)


def _uids_of_whole_pods(raw: msgspec.Raw) -> Iterator[str]:
    pods = decoding(_whole_pods_decoder.decode, raw)
    for position, pod in enumerate(pods or ()):
        yield _checked(pod.metadata.uid if pod.metadata is not None else None, f"[{position}].metadata.uid")


def _uids(raw: msgspec.Raw) -> Iterator[str]:
    pods = decoding(_meta_pods_decoder.decode, raw)
    for position, pod in enumerate(pods or ()):
        field = f"[{position}].UID"
        uid = _META_POD.fields_of(pod).get("UID", NULL)
        yield _checked(decoding_field(_text_decoder.decode, uid, field), field)


def _checked(uid: str | None, field: str) -> str:
    if not uid:
        raise DecodeError(field, "required")
    return uid


def preempt_verb(preempter: PreemptVerb | None, effects: Effects) -> Verb:
    """Return the verb `preempt`, which does not use the cache. None: the verb is off, and no pod is preempted."""
    if preempter is None:
        off = VerbResponse(preempt_error(_OFF), outcome=VerbOutcome.NO_FIT, error=_OFF)
        return Verb("preempt", lambda _: off, preempt_error, preempt_error, bypassed=lambda _: None)
    return Verb(
        "preempt",
        run=Patient(preempter.preempt, preempter.unread, effects),
        error=preempt_error,
        shed=preempt_error,
        bypassed=lambda request: preempter.preempt_bypassed(request.body),
    )
