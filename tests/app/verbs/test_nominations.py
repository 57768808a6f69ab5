"""A nominated node is not refused while the watch may be late with the victims that went."""

import asyncio

import pytest

from app.settings.settings import Settings
from app.verbs.effects import Nominations, RejectedNodes
from app.verbs.filter import Extender, Patient
from app.verbs.request import Request, VerbOutcome, VerbResponse
from app.wiring.engine import create_profile
from core.events import ClusterEvent
from tests.app.questions import ANTI_AFFINITY_RULES, by_name, decoded
from tests.app.verbs.receptions import effects_over
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of

HOSTNAME = "kubernetes.io/hostname"
REPELLED = labelled(app="repelled")


def standing(name: str, on: str, priority: int = 1) -> PodBuilder:
    return make_pod(name).label("app", "repelled").on(on).priority(priority)


def preemptor(nominated: str = "n0") -> PodBuilder:
    pod = make_pod("preemptor").priority(10).required_anti_affinity(term(HOSTNAME, REPELLED))
    return pod.nominated(nominated) if nominated else pod


class Requested:
    """`filter` over a mirror, at a time that can be set."""

    def __init__(self, *pods: PodBuilder, ours: str = "") -> None:
        self.now = 100.0
        nodes = [make_node(name).label(HOSTNAME, name) for name in ("n0", "n1")]
        self.mirror = mirror_of(*nodes, *pods)
        nominations = Nominations(self.mirror, lambda: self.now, lambda uid: uid == ours)
        self._rejected = RejectedNodes(self.mirror, lambda: self.now)
        self._extender = Extender(create_profile(Settings()), self.mirror)
        self._effects = effects_over(
            self.mirror, lambda: self.now, rejected_nodes=self._rejected, nominations=nominations
        )

    def rejected(self) -> list[str]:
        """Return the nodes that the preemptor was refused on."""
        return self._rejected.of_this_attempt(pod_of(preemptor()))

    def response(self, pod: PodBuilder) -> VerbResponse:
        """Return an answer about both nodes."""
        return self._extender.filter(Request(by_name(pod, "n0", "n1")), self._effects)

    def last_response(self, pod: PodBuilder) -> VerbResponse:
        """Return the answer about both nodes after all looks."""

        async def requested() -> VerbResponse:
            patient = Patient(self._extender.filter, self._extender.unread, self._effects)
            response = patient(Request(by_name(pod, "n0", "n1")))
            return response if isinstance(response, VerbResponse) else await response

        return asyncio.run(requested())

    def decisions(self) -> int:
        """Return how many outcomes of decisions were counted."""
        return sum(self._effects.decisions.values())

    def error(self, pod: PodBuilder, *names: str) -> str:
        """Return the error of an answer, which is empty where the nodes are judged."""
        response = decoded(self._extender.filter(Request(by_name(pod, *(names or ("n0", "n1")))), self._effects).body)
        if not response["Error"]:
            assert set(response["FailedNodes"].values()) <= {ANTI_AFFINITY_RULES}
        error: str = response["Error"]
        return error


FULL = (standing("low", "n0"), standing("middle", "n1", 5))


@pytest.mark.parametrize("names", [("n0",), ("n0", "n1")], ids=["the nominated node alone", "all nodes"])
def test_a_refusal_is_held_back_while_a_possible_victim_stands_there(names: tuple[str, ...]) -> None:
    error = Requested(*FULL).error(preemptor(), *names)
    assert error.startswith("pod default/preemptor does not fit on its nominated node n0")


def test_it_is_told_when_the_watch_has_had_its_time() -> None:
    requested = Requested(*FULL)
    assert requested.error(preemptor())
    requested.now += 2.9
    assert requested.error(preemptor())
    requested.now += 0.2
    assert not requested.error(preemptor())


def test_nodes_of_a_refusal_that_is_held_back_are_not_remembered_as_refused() -> None:
    requested = Requested(*FULL)
    assert requested.error(preemptor())
    assert requested.rejected() == []
    requested.now += 3.1
    assert requested.error(preemptor()) == ""
    assert requested.rejected() == ["n0", "n1"]


def test_where_kindred_itself_evicts_the_refusal_is_told_and_yet_doubtful() -> None:
    pod = preemptor().uid("mine")
    response = Requested(*FULL, ours="mine").response(pod)
    assert response.retryable
    assert decoded(response.body)["FailedNodes"].keys() == {"n0", "n1"}


def test_a_refusal_of_a_pod_that_kindred_does_not_decide_for_is_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.filter._RETRY_DELAYS", (0.0,))
    requested = Requested(*FULL, ours="default/preemptor")
    response = requested.last_response(preemptor())
    assert (response.outcome, response.retryable, requested.decisions()) == (VerbOutcome.NO_FIT, True, 0)


def test_an_error_is_doubtful_and_a_fit_is_not() -> None:
    assert Requested(*FULL).response(preemptor()).retryable
    assert not Requested(FULL[0]).response(preemptor()).retryable


def test_another_nomination_has_a_time_of_its_own() -> None:
    requested = Requested(*FULL)
    assert requested.error(preemptor())
    requested.now += 3.1
    assert requested.error(preemptor("n1"))


def test_the_pod_fits_as_soon_as_the_victim_is_seen_to_be_gone() -> None:
    requested = Requested(*FULL)
    assert requested.error(preemptor())
    requested.mirror.apply(ClusterEvent("Delete", pod_of(FULL[0])))
    assert not requested.error(preemptor())


@pytest.mark.parametrize(
    ("pods", "pod", "names"),
    [
        pytest.param(FULL, preemptor(""), ("n0", "n1"), id="nothing-is-nominated"),
        pytest.param(FULL, preemptor(), ("n1",), id="another-node-is-asked-about"),
        pytest.param(FULL, preemptor("gone"), ("n0", "n1"), id="the-nominated-node-is-unknown"),
        pytest.param(FULL[:1], preemptor(), ("n0", "n1"), id="another-node-fits"),
        pytest.param(
            (standing("high", "n0", 10), FULL[1]), preemptor(), ("n0", "n1"), id="nobody-there-is-less-important"
        ),
        pytest.param((FULL[0].terminating(), FULL[1]), preemptor(), ("n0", "n1"), id="the-victim-is-seen-to-be-going"),
    ],
)
def test_a_refusal_is_told_at_once_where(pods: tuple[PodBuilder, ...], pod: PodBuilder, names: tuple[str, ...]) -> None:
    assert not Requested(*pods).error(pod, *names)
