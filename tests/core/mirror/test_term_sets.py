"""Which pods carry a term: known by the number of their term set, which another set gets once it is free."""

from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, tell
from tests.core.mirror.audit import audit

NODE = make_node("n").label("zone", "a")
REPELLING = [make_pod(f"from-{app}").required_anti_affinity(term("zone", labelled(app=app))).on("n") for app in "abcd"]


def test_the_pods_that_carry_a_term_are_known_after_others_have_come_and_gone() -> None:
    mirror = mirror_of(NODE, *REPELLING[:3])
    tell(mirror, "Delete", REPELLING[0])
    tell(mirror, "Add", REPELLING[3], REPELLING[0], make_pod("plain").on("n"))
    for app in "abcd":
        (counter,) = mirror.affinity.owners("default", {"app": app})
        rows = mirror.affinity.rows_carrying(counter).tolist()
        assert [mirror.pods.pods[row].name for row in rows] == [f"from-{app}"]
    assert audit(mirror) == []


def test_a_term_that_a_pod_has_twice_is_carried_once_and_let_go_of() -> None:
    twice = make_pod("twice")
    for _ in range(2):
        twice = twice.required_anti_affinity(term("zone", labelled(app="a")))
    mirror = mirror_of(NODE, twice.on("n"))
    (counter,) = mirror.affinity.owners("default", {"app": "a"})
    assert mirror.affinity.rows_carrying(counter).tolist() == [*mirror.pods.rows.values()]
    tell(mirror, "Delete", twice.on("n"))
    assert mirror.affinity.owners("default", {"app": "a"}) == []


def test_the_audit_sees_a_term_that_is_kept_under_another_set() -> None:
    mirror = mirror_of(NODE, *REPELLING[:2])
    assert audit(mirror) == []
    for app in "ab":
        (counter,) = mirror.affinity.owners("default", {"app": app})
        counter.term_sets = {7}
    assert len([each for each in audit(mirror) if "term sets {7}" in each]) == 2
