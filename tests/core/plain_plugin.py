"""What a plugin for tests declares when it has nothing to declare."""

from core.framework.interface import Plugin
from core.framework.invalidation import InvalidationRule


class PlainPlugin(Plugin):
    """Reads no field, is invalidated by nothing but the coming and going of nodes."""

    class_fields: tuple[str, ...] = ()
    invalidated_by: tuple[InvalidationRule, ...] = ()
    scores_alone = True
    normalizes_alone = True
