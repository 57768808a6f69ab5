"""Values that went out as v1 objects and came back."""

import json
from typing import Final

from msgspec.structs import replace

from app.dump.snapshot_file import CASE_MEMBERS
from app.explain.conformance_case.case import ENCODERS
from app.explain.conformance_case.encode_affinity import without_broken_parts
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES
from core.events import Kind, Object
from core.objects.pod import Pod

GOLDEN_MEMBERS: Final = {member: kind for member, kind in CASE_MEMBERS.items() if kind in ENCODERS}
"""Member of a case that is written -> kind of the objects in it."""


def decoded(kind: Kind, v1_object: object) -> Object:
    """Decode a v1 object."""
    return RESOURCES[kind].decode(json.dumps(v1_object).encode())


def pod_of(v1_object: object) -> Pod:
    """Decode a pod."""
    return decode_pod(json.dumps(v1_object).encode())


def again(found: Object) -> Object:
    """Encode a value and decode it again; what the usage of a pod is predicted from is in no case."""
    back = decoded(type(found), ENCODERS[type(found)](found))
    return replace(back, load=found.load) if isinstance(found, Pod) and isinstance(back, Pod) else back


def whole(found: Object) -> Object:
    """Return a value without what is broken of an existing pod."""
    return without_broken_parts(found) if isinstance(found, Pod) else found
