"""Whether the settings for access on the admin port have their intended effect."""

from collections.abc import Iterator
from typing import Final

from app.commands.doctor.findings import ADMIN_PORT
from app.scheduler_configuration.finding import Finding, Severity
from app.settings import Settings

CHECK: Final = "explain-access"


def access_findings(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for a setting without effect, and for callers that see more names than they may list."""
    if settings.explain_access == "review" and not settings.admin:
        yield _warning("explainAccess", "review, but there is no admin port on which to hide names", "admin")
    if settings.explain_access == "review" and settings.admin_token_file is None:
        yield _warning(
            "explainAccess",
            "review, but there is no admin: no caller can set the partition, or see decisions without the right to "
            "list all pods",
            "adminTokenFile",
        )
    if settings.explain_access == "all" and settings.admin_read_token_file is not None:
        yield Finding(
            CHECK,
            Severity.INFO,
            "explainAccess",
            "all: callers with the read token see the names of pods in all namespaces",
            "explainAccess: review, if these callers may not list all pods",
            ADMIN_PORT,
        )


def _warning(where: str, message: str, fix: str) -> Finding:
    return Finding(CHECK, Severity.WARNING, where, message, fix, ADMIN_PORT)
