"""Differences as text: how many by resource, and which objects, all of them if it is wide."""

from collections.abc import Mapping

from click import unstyle

from app.commands.diff_text import diff_text
from app.commands.printer import laid_out
from app.commands.text_columns import WIDTH
from core.mirror.comparer import Difference, Differences

SAME = {"nodes": Differences(listed=60), "pods": Differences(listed=1306, assumed=(Difference("a/b", "u"),))}
OTHER = {
    "nodes": Differences(listed=60, differing=(Difference("node1", "u1", ("labels", "taints")),)),
    "pods": Differences(
        listed=300,
        missed=(Difference("shop/web-0", "u2"),),
        redundant=(Difference("shop/web-1", "u3"),),
        unreadable=2,
        other_versions=7,
    ),
}


def lines(found: Mapping[str, Differences], *, wide: bool = False) -> list[str]:
    text = unstyle(laid_out(diff_text(found, wide=wide))).splitlines()
    assert wide or max(map(len, text)) <= WIDTH
    return text


def test_no_difference_is_said_with_what_was_listed() -> None:
    assert lines(SAME) == [
        "The mirror equals the API server's lists.",
        "",
        "RESOURCE  LISTED  MISSED  REDUNDANT  DIFFERING  ASSUMED",
        "nodes         60       0          0          0        0",
        "pods       1,306       0          0          0        1",
    ]


def test_each_object_that_differs_is_named_with_what_differs() -> None:
    assert lines(OTHER) == [
        "The mirror differs from the API server in 3 objects.",
        "",
        "RESOURCE  LISTED  MISSED  REDUNDANT  DIFFERING  ASSUMED",
        "nodes         60       0          0          1        0",
        "pods         300       1          1          0        0",
        "",
        "RESOURCE  OBJECT      DIFFERENCE",
        "nodes     node1       differing: labels, taints",
        "pods      shop/web-0  missed: not in the mirror",
        "pods      shop/web-1  redundant: in the mirror alone",
    ]


def test_wide_text_has_what_cannot_be_compared_too() -> None:
    found = lines(OTHER, wide=True)
    assert found[2].split()[-3:] == ["UNREADABLE", "OTHER", "VERSIONS"]
    assert found[4].split() == ["pods", "300", "1", "1", "0", "0", "2", "7"]


def test_of_many_objects_the_first_are_named_unless_it_is_wide() -> None:
    many = tuple(Difference(f"{'n' * 60}/{number}-{'p' * 200}", str(number)) for number in range(25))
    found = {"persistentvolumeclaims": Differences(listed=25, missed=many)}
    assert lines(found)[-1] == "... and 5 more objects, see -o wide"
    wide = lines(found, wide=True)
    assert len(wide) == 6 + 25
    assert all(each.name in wide[6 + place] for place, each in enumerate(many))
