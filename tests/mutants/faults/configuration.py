"""Faults of the configuration: the order of sources, rejected values, and messages."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="file-wins-over-the-environment",
        breaks="A value of the file wins over the environment's.",
        old="    values.update(of_environment)\n",
        new="    values = {**of_environment, **values}\n",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="source-of-a-flag-not-told",
        breaks="A value that a flag has set is told to be from the environment.",
        old="    sources.update({name: flag_of(name) for name in given})\n",
        new="",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="service-links-told-as-slips",
        breaks="Variables that Kubernetes sets for a Service called kindred are told as misspelt settings.",
        old="if ours and variable not in known and not _SERVICE_LINKS.fullmatch(variable):",
        new="if ours and variable not in known:",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="lease-as-long-as-its-deadline",
        breaks="A Lease may be as short as the deadline of its renewal, so that two may lead.",
        old="if settings.lease_duration <= settings.lease_renew_deadline:",
        new="if settings.lease_duration < settings.lease_renew_deadline:",
        tests=("test_settings.py", "test_configuration.py"),
    ),
    Fault(
        id="admin-port-open-beyond-the-loopback",
        breaks="The admin port listens on all addresses without a token or a certificate.",
        old="            is_loopback(self.admin_host) or any(getattr(self, name) for name in _ADMIN_PROOFS)\n",
        new="            self.admin_host or any(getattr(self, name) for name in _ADMIN_PROOFS)\n",
        tests=("test_settings.py", "test_configuration.py"),
    ),
)
