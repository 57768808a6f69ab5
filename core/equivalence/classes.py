"""The classes of pods. Pods are of one class if they agree in every field that an enabled plugin reads.

Source: the equivalence class design ("same controller = same class"), corrected by upstream's experience: pods of one
controller can differ (kubernetes issue 56265, PR 58555). So the fields are part of the class, too.
"""

from collections.abc import Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from core.framework.interface import Plugin
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodClaim

Mode: TypeAlias = Literal["controller", "spec"]
ClassKey: TypeAlias = tuple[Hashable, ...]
"""The key of a class. Every hit compares it in full, so a hash collision cannot give a wrong result."""

_ALL_FIELDS: Final = tuple(Pod.__struct_fields__)
_BLANK: Final = Pod(uid="", namespace="", name="")
_HASH_BYTES: Final = 8


class ClassFieldError(ValueError):
    """A plugin declares a field that pods do not have."""


class Classifier:
    """Finds the class of a pod, by the fields that the enabled plugins declare."""

    def __init__(self, plugins: Iterable[Plugin], mode: Mode) -> None:
        """Mode `controller`: pods without a controller have no class. Mode `spec`: pods with equal fields are a class.

        Raises ClassFieldError.
        """
        self._plugins = tuple(plugins)
        self._mode = mode
        for plugin in self._plugins:
            for field in plugin.class_fields:
                if field not in _ALL_FIELDS:
                    raise ClassFieldError(f"{plugin.name}: pods have no field {field}")
        declared = {field for plugin in self._plugins for field in plugin.class_fields}
        self.fields: Final = tuple(field for field in _ALL_FIELDS if field in declared)
        """The fields that any enabled plugin reads, in the order of the Pod."""
        self._referring = [each for each in self._plugins if type(each).references is not Plugin.references]
        self._reads_volumes = "volumes" in declared
        self._read = tuple((field, isinstance(getattr(_BLANK, field), Mapping)) for field in self.fields)

    def key(self, mirror: ClusterMirror, pod: Pod) -> ClassKey | None:
        """Return the class of a pod, or None if it has no class and is evaluated afresh."""
        owner = ""
        if self._mode == "controller":
            if pod.controller is None:
                return None
            owner = pod.controller.uid
        parts = [
            frozenset(getattr(pod, field).items()) if is_mapping else getattr(pod, field)
            for field, is_mapping in self._read
        ]
        identity = _identity(pod) if self._reads_volumes else None
        return (owner, identity, *parts, *[plugin.references(mirror, pod) for plugin in self._referring])

    def representative(self, pod: Pod) -> Pod:
        """Return the pod with only the declared fields. Plugins get this pod for the class.

        So a plugin that reads an undeclared field finds it blank at the first request already, not only in a cached
        result.
        """
        known = {field: getattr(pod, field) for field in self.fields}
        if self._reads_volumes and _identity(pod) is not None:
            known |= {"uid": pod.uid, "name": pod.name}
        return msgspec.structs.replace(_BLANK, **known)


def equivalence_hash(key: ClassKey) -> int:
    """Return the 64 bits that identify a class in output. They are the same in every process, and may be 0."""
    return int.from_bytes(blake2b(key_text(key), digest_size=_HASH_BYTES).digest(), "big")


def key_text(key: ClassKey) -> bytes:
    """Return a class as text, the same in every process."""
    return msgspec.json.encode(key, order="deterministic", enc_hook=str)


def _identity(pod: Pod) -> tuple[str, str] | None:
    """Return the UID and name of a pod with ephemeral volumes, which must own its claims, or None for other pods."""
    if any(isinstance(volume, PodClaim) and volume.ephemeral for volume in pod.volumes):
        return pod.uid, pod.name
    return None
