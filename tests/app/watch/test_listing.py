"""What a sync has told so far."""

from app.watch.objects import Listing, Unreadable
from core.objects.kinds import Namespace


def test_later_tellings_replace_earlier_ones() -> None:
    listing = Listing()
    for version in "12":
        listing.add(Namespace("a", resource_version=version))
    for uid in ("u1", "u2"):
        listing.add(Unreadable("b", uid))
    assert listing.present == {"a": Namespace("a", resource_version="2")}
    assert listing.unreadable == {"b": "u2"}


def test_what_went_meanwhile_is_not_there_readable_or_not() -> None:
    listing = Listing()
    readable, unreadable = Namespace("a"), Unreadable("b", "u")
    for gone in (Namespace("a"), Unreadable("a"), Namespace("b"), Unreadable("b"), Unreadable("c")):
        listing.add(readable)
        listing.add(unreadable)
        listing.remove(gone)
        assert ("a" in listing.present) is (gone.full_name != "a")
        assert ("b" in listing.unreadable) is (gone.full_name != "b")


def test_the_readable_state_stays_of_what_became_unreadable() -> None:
    listing = Listing()
    listing.add(Namespace("a"))
    listing.add(Unreadable("a", "u"))
    assert listing.present == {"a": Namespace("a")}
    assert listing.unreadable == {"a": "u"}
