"""The sizes that Kubernetes itself bounds, refused on every way in: from the API server, in dumps and in requests.

The bounds reject only objects that no API server stores, so that nothing of a real cluster is lost: k8s.io/apimachinery
pkg/api/validation/objectmeta.go and pkg/util/validation/validation.go, and k8s.io/kubernetes
pkg/apis/core/validation/validation.go. The sizes are looked at, not the characters. An API server has no bound for the
`values` of a node affinity or, in objects of older releases, of a label selector. It has none for a constraint's
`topologyKey`, for names of images, claims, owners and schedulers, nor for `spec.nodeName`, which a Binding sets.
"""

from typing import Final

MAX_NAME_BYTES: Final = 253
"""Of the name of an object: a DNS subdomain."""
MAX_NAMESPACE_BYTES: Final = 63
"""Of the name of a namespace: a DNS label."""
MAX_UID_BYTES: Final = 317
"""Of a uid: the API server makes UUIDs, of 36; in a manifest it may be NAMESPACE/NAME."""
MAX_LABEL_KEY_BYTES: Final = 317
"""Of a qualified name: a DNS subdomain, a slash, and a name of 63. Labels, taints and topologies have such keys."""
MAX_LABEL_VALUE_BYTES: Final = 63


def is_longer(text: str, limit: int) -> bool:
    """Return whether a text has more bytes than that, as Go counts them."""
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)
