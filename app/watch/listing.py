"""The objects of an unfinished sync. The mirror gets them only when the sync is complete."""

from app.watch.object_reader import Unreadable
from core.events import Object


class Listing:
    """The present objects."""

    def __init__(self) -> None:
        self.present: dict[str, Object] = {}  # full name -> object
        self.unreadable: dict[str, str] = {}  # full name -> uid, empty if the uid is unreadable, too

    def close(self) -> None:
        """Drop the objects at once. The error that ended a sync may keep this listing alive for a while."""
        self.present.clear()
        self.unreadable.clear()

    def add(self, told: Object | Unreadable) -> None:
        """Add an object. If it is unreadable but was readable before, the readable state stays."""
        if isinstance(told, Unreadable):
            self.unreadable[told.full_name] = told.uid
        else:
            self.present[told.full_name] = told

    def remove(self, told: Object | Unreadable) -> None:
        """Remove an object that was deleted during the sync."""
        self.present.pop(told.full_name, None)
        self.unreadable.pop(told.full_name, None)
