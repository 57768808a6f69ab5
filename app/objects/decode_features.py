"""The features that a node must declare for a pod, by the fields of the pod's spec.

Source: k8s.io/component-helpers nodedeclaredfeatures/features (InferForScheduling of each). The table of releases lists
the features of each release.
"""

from typing import Final

import msgspec

from app.objects.decode import NULL, decoding_field
from app.objects.decode_containers import WireContainer, WireRestartRule, WireVolumeMount
from core.objects.pod import NO_FEATURES
from core.releases import MOUNT_OPTIONS, RESTART_ALL, USERS_OF_HOST

_rules_decoder: Final[msgspec.json.Decoder[list[WireRestartRule] | None]] = msgspec.json.Decoder(
    list[WireRestartRule] | None
)
_mounts_decoder: Final[msgspec.json.Decoder[list[WireVolumeMount] | None]] = msgspec.json.Decoder(
    list[WireVolumeMount] | None
)


def needed_features(
    containers: list[WireContainer] | None,
    init_containers: list[WireContainer] | None,
    ephemeral_containers: list[WireContainer] | None,
    *,
    users_of_host: bool,
) -> frozenset[str]:
    """Return the features that a pod needs, and clear the fields that they come from. Raises DecodeError.

    `users_of_host`: the pod has the host's network and its own user namespace.
    """
    restarts = mounts = False
    for member, listed in (
        ("containers", containers),
        ("initContainers", init_containers),
        ("ephemeralContainers", ephemeral_containers),
    ):
        for index, each in enumerate(listed or ()):
            if each.volume_mounts is not NULL:
                if b"bindMountOptions" in bytes(each.volume_mounts):
                    mounts |= _mounts_with_options(each, f"spec.{member}[{index}].volumeMounts")
                each.volume_mounts = NULL
            if each.restart_policy_rules is not NULL:
                if listed is not ephemeral_containers:
                    restarts |= _restarts_all(each, f"spec.{member}[{index}].restartPolicyRules")
                each.restart_policy_rules = NULL
    if not (restarts or mounts or users_of_host):
        return NO_FEATURES
    return frozenset(
        [
            *([RESTART_ALL] if restarts else []),
            *([USERS_OF_HOST] if users_of_host else []),
            *([MOUNT_OPTIONS] if mounts else []),
        ]
    )


def _mounts_with_options(container: WireContainer, field: str) -> bool:
    mounts = decoding_field(_mounts_decoder.decode, container.volume_mounts, field) or ()
    return any(mount.bind_mount_options for mount in mounts)


def _restarts_all(container: WireContainer, field: str) -> bool:
    rules = decoding_field(_rules_decoder.decode, container.restart_policy_rules, field) or ()
    return any(rule.action == "RestartAllContainers" for rule in rules)
