"""Texts that name pods are plain text to all who compute with them, and no text to a JSON encoder."""

import msgspec
import pytest

from core.explaining.pod_names import (
    HIDDEN,
    HIDDEN_NAMESPACE,
    HIDDEN_OWNER,
    NamespaceName,
    NamesPods,
    OwnerName,
    PodName,
    PodText,
    name_of,
    uid_of,
)
from core.objects.pod import Pod

OURS = Pod("u1", "ours", "web")
THEIRS = Pod("u2", "theirs", "db")
REMOVE = PodText("remove pod ", name_of(THEIRS), " from n1")
BOTH = PodText(REMOVE, ", and ", PodText("remove pod ", name_of(OURS), " from n2"))


def sees(namespace: str) -> bool:
    return namespace == "ours"


@pytest.mark.parametrize(
    ("value", "plain", "seen", "namespaces"),
    [
        (name_of(OURS), "ours/web", "ours/web", ["ours"]),
        (name_of(THEIRS), "theirs/db", HIDDEN, ["theirs"]),
        (OwnerName("theirs/db"), "theirs/db", HIDDEN_OWNER, ["theirs"]),
        (NamespaceName("theirs"), "theirs", HIDDEN_NAMESPACE, ["theirs"]),
        (NamespaceName("ours"), "ours", "ours", ["ours"]),
        (uid_of(OURS), "u1", "u1", ["ours"]),
        (uid_of(THEIRS), "u2", "", ["theirs"]),
        (REMOVE, "remove pod theirs/db from n1", f"remove pod {HIDDEN} from n1", ["theirs"]),
        (
            BOTH,
            "remove pod theirs/db from n1, and remove pod ours/web from n2",
            f"remove pod {HIDDEN} from n1, and remove pod ours/web from n2",
            ["theirs", "ours"],
        ),
        (PodText("uncordon n1"), "uncordon n1", "uncordon n1", []),
    ],
)
def test_a_name_is_shown_to_those_who_see_its_namespace(
    value: NamesPods, plain: str, seen: str, namespaces: list[str]
) -> None:
    assert plain == value
    assert hash(plain) == hash(value)
    assert value.rendered(sees) == seen
    assert value.rendered(lambda _: True) == plain
    assert [*value.namespaces()] == namespaces
    assert type(value.rendered(sees)) is str


def test_a_name_without_a_namespace_is_of_the_empty_one() -> None:
    assert [*PodName("web").namespaces()] == ["web"]
    assert [*PodName("/web").namespaces()] == [""]


@pytest.mark.parametrize("value", [name_of(OURS), uid_of(OURS), REMOVE])
def test_no_encoder_takes_it_for_text_unasked(value: NamesPods) -> None:
    with pytest.raises(TypeError, match="is unsupported"):
        msgspec.json.encode([value])
