"""The objects of an unfinished sync; the mirror gets them only when it is complete."""

from app.watch.object_reader import Unreadable
from core.events import Object


class Listing:
    """The objects that are present."""

    def __init__(self) -> None:
        self.present: dict[str, Object] = {}  # full name -> object
        self.unreadable: dict[str, str] = {}  # full name -> uid, empty where not even that could be read

    def close(self) -> None:
        """Drop the objects at once: the error that ended a sync may keep this alive for a while."""
        self.present.clear()
        self.unreadable.clear()

    def add(self, told: Object | Unreadable) -> None:
        """Take in an object. Of one that was readable before it was not, the readable state stays."""
        if isinstance(told, Unreadable):
            self.unreadable[told.full_name] = told.uid
        else:
            self.present[told.full_name] = told

    def remove(self, told: Object | Unreadable) -> None:
        """Take out an object that went while the others were still being told."""
        self.present.pop(told.full_name, None)
        self.unreadable.pop(told.full_name, None)
