"""A finding about a KubeSchedulerConfiguration, as a document or as a registration."""

from enum import Enum
from typing import Final

import msgspec

VALIDATION: Final = "kubernetes pkg/scheduler/apis/config/validation/validation.go"


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    """kube-scheduler does not start with it, pods are placed wrongly or not at all, or a rule is not enforced."""
    WARNING = "warning"
    """It works, and not as it should: late, too strong, unsafe."""
    INFO = "info"
    """Good to know; nothing to do, where it is meant so."""


class Finding(msgspec.Struct, frozen=True):
    """A problem, with the check that has found it."""

    id: str
    severity: Severity
    where: str
    message: str
    fix: str
    reference: str
