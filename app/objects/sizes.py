"""The size limits of Kubernetes itself, checked in every input: from the API server, in dumps and in requests.

The limits reject only objects that no API server stores, so they never drop an object of a real cluster. Source:
k8s.io/apimachinery pkg/api/validation/objectmeta.go and pkg/util/validation/validation.go, and k8s.io/kubernetes
pkg/apis/core/validation/validation.go. Only sizes are checked, not characters. An API server has no limit for the
`values` of a node affinity or, in objects of older releases, of a label selector. It also has none for a constraint's
`topologyKey`, for names of images, claims, owners and schedulers, and for `spec.nodeName`, which a Binding sets.
"""

from typing import Final

MAX_NAME_BYTES: Final = 253
"""Limit of an object's name: a DNS subdomain."""
MAX_NAMESPACE_BYTES: Final = 63
"""Limit of a namespace's name: a DNS label."""
MAX_UID_BYTES: Final = 317
"""Limit of a uid. The API server makes UUIDs of 36 bytes. In a manifest a uid may be NAMESPACE/NAME."""
MAX_LABEL_KEY_BYTES: Final = 317
"""Limit of a qualified name: a DNS subdomain, a slash, and a name of 63. Keys of labels, taints and topologies."""
MAX_LABEL_VALUE_BYTES: Final = 63


def is_longer(text: str, limit: int) -> bool:
    """Return whether a text has more than `limit` bytes of UTF-8, which Go's len counts."""
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)
