"""A finding about a KubeSchedulerConfiguration, as a document or as a registration."""

from enum import Enum
from typing import Final

import msgspec

VALIDATION: Final = "kubernetes pkg/scheduler/apis/config/validation/validation.go"


class Severity(Enum):
    """The severity of a finding."""

    ERROR = "error"
    """kube-scheduler does not start, pods are placed wrongly or not at all, or a rule is not enforced."""
    WARNING = "warning"
    """The registration works, but not well: late, with too much weight, unsafe."""
    INFO = "info"
    """A fact to check. If it is intended, there is nothing to do."""


class Finding(msgspec.Struct, frozen=True):
    """A problem, with the check that found it."""

    id: str
    severity: Severity
    where: str
    message: str
    fix: str
    reference: str
