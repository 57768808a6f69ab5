"""The settings: their names, allowed values and meanings. Their sources are in app/settings/configuration.py."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import AliasGenerator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.settings.groups import (
    OFF,
    MirrorSettings,
    ObservingSettings,
    PortSettings,
    ReplicaSettings,
    SchedulingSettings,
    UsageSettings,
)
from app.settings.types import AUTO, split_address
from core.releases.differences import rules_of
from core.releases.release import RELEASES, FeatureGateError, nearest

PREFIX: Final = "KINDRED_"
_LATE: Final = 120.0
"""Seconds from the time at which the mirror is stale until a new watch has shown all pods."""
PortName: TypeAlias = Literal["extender", "health", "admin"]
_ADDRESSES: Final[Mapping[PortName, str]] = {"extender": "listen", "health": "listen", "admin": "admin"}
_PROOFS: Final[Mapping[PortName, tuple[str, ...]]] = {
    "extender": ("tls_directory",),
    "health": (),
    "admin": ("admin_token_file", "admin_read_token_file"),
}
"""Port -> settings. With any one of them, all clients of the port must authenticate, if they could have effects."""
CLIENT_AUTHORITIES: Final = "ca.crt"
"""File of `tls_directory`."""


def key_of(name: str) -> str:
    """Return the key of a field in the file."""
    return to_camel(name)


def variable_of(name: str) -> str:
    """Return the name of a field's environment variable."""
    return PREFIX + name.upper()


class SettingsError(ValueError):
    """A setting has a value that is not allowed. The message names the setting, the value and the rule."""


class Settings(
    ObservingSettings, ReplicaSettings, PortSettings, MirrorSettings, UsageSettings, SchedulingSettings, BaseSettings
):
    """All settings. Each field is the variable KINDRED_<FIELD>, a key of the file and a flag of `kindred serve`.

    Pydantic takes the fields of the last base first, and so does the documentation. No field is called PORT or begins
    with SERVICE_: beside a Service called kindred, Kubernetes sets KINDRED_PORT and KINDRED_SERVICE_* in every
    container of the namespace, to values of its own.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        alias_generator=AliasGenerator(serialization_alias=key_of),  # the keys of the file; variables have the names
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        env_parse_none_str=None,
        hide_input_in_errors=True,  # a value may have a password by mistake; configuration.py shows the others
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Reject combinations of settings that are not allowed. The message names a field first."""
        if rule := _wrong_gates(self.kubernetes, self.feature_gates):
            raise WrongTogetherError("feature_gates", self, rule)
        if self.tls_client_names and not self.tls_directory:
            raise WrongTogetherError("tls_client_names", self, f"needs {variable_of('tls_directory')}")
        for name in ("usage_prometheus_token_file", "usage_prometheus_ca_file"):
            if getattr(self, name) and not self.usage_prometheus_url.lower().startswith("https:"):
                raise WrongTogetherError(name, self, f"needs {variable_of('usage_prometheus_url')} with https")
        if self.usage_source == "prometheus" and not self.usage_prometheus_url:
            raise WrongTogetherError("usage_source", self, f"needs {variable_of('usage_prometheus_url')}")
        decided = {*self.decide_schedulers, self.decide_claims_scheduler, self.decide_groups_scheduler}
        if self.decide != OFF and (both := sorted(decided.intersection(self.bypass_schedulers))):
            raise WrongTogetherError("bypass_schedulers", self, f"{', '.join(both)}: Kindred decides for its pods")
        if error := _wrong_port(self):
            raise error
        return self

    @property
    def deadline(self) -> float:
        """Seconds within which `bind` responds, and the evaluation of another request begins."""
        return 0.8 * self.http_timeout

    @property
    def assumed_pod_ttl(self) -> float:
        """Seconds after the end of its binding within which the watch must confirm an assumed pod.

        More than `staleAfter`: bound pods must count while requests are served and the watch is late.
        """
        return self.stale_after + _LATE

    @property
    def elects(self) -> bool:
        """Whether only the leader of several replicas serves."""
        return self.leader_election != OFF


class PortRule(NamedTuple):
    """The clients of a port, and the part of it that is not for clients without authentication."""

    is_open: bool
    """Whether clients on other machines need no authentication. Responses to them name nothing that their request did
    not name."""
    guarded: tuple[str, ...]
    """Settings that such a port must not have, as VARIABLE=value. Otherwise the service does not start."""


def port_rule(settings: Settings, port: PortName) -> PortRule:
    """Return whether a port is open to clients without authentication, and the settings that it must not have then.

    The loopback may serve everything, because only processes of this machine, or of this pod, reach it.
    """
    if port == "admin":
        proofs = any(getattr(settings, name) for name in _PROOFS[port])
        is_open = bool(settings.admin) and not is_loopback(split_address(settings.admin).host) and not proofs
        return PortRule(is_open, (f"{variable_of('admin')}={settings.admin}",) if is_open else ())
    is_open = not is_loopback(split_address(settings.listen).host) and (
        port == "health" or not wants_certificates(settings)
    )
    if port == "health" or settings.allow_unauthenticated_effects:
        return PortRule(is_open, ())
    return PortRule(is_open, effects(settings))


def effects(settings: Settings) -> tuple[str, ...]:
    """Return the settings that let requests of the scheduler's port have an effect, as VARIABLE=value.

    `bind` binds, `decide` counts a pod on its node, and `evict` evicts. `verb` is one of them because its response has
    uids of pods that the request did not name.
    """
    on = {
        "bind": settings.bind,
        "decide": settings.decide != OFF,
        "preempt": settings.preempt != "off",
    }
    return tuple(f"{variable_of(name)}={text_of(getattr(settings, name))}" for name, is_on in on.items() if is_on)


def wants_certificates(settings: Settings) -> bool:
    """Return whether a client of the scheduler's port must have a certificate that `ca.crt` of the directory signed.

    The existence of that file decides only where a client without a certificate could have no effect. So a Secret that
    has lost it never opens a port that binds, decides or evicts: such a service does not start.
    """
    if settings.tls_directory is None:
        return False
    is_alone = settings.allow_unauthenticated_effects or is_loopback(split_address(settings.listen).host)
    if settings.tls_client_names or (effects(settings) and not is_alone):
        return True
    return (settings.tls_directory / CLIENT_AUTHORITIES).exists()


def text_of(value: object) -> str:
    """Return the value of a setting as a variable has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_quoted(name: str) -> bool:
    """Return whether an error of a setting may repeat its value. An unknown name may be a typo for any setting."""
    return name in Settings.model_fields and not name.endswith("_url")


class WrongTogetherError(ValueError):
    """A setting has a value that another setting does not allow."""

    def __init__(self, name: str, settings: Settings, rule: str) -> None:
        super().__init__(rule)
        self.name = name
        self.value: object = getattr(settings, name)


def _wrong_port(settings: Settings) -> WrongTogetherError | None:
    """Return the error of a port that may not listen as it is set, or of its clients; None without an error."""
    for port, address in _ADDRESSES.items():
        rule = port_rule(settings, port)
        if not (rule.is_open and rule.guarded):
            continue
        keys = [variable_of(name) for name in _PROOFS[port]]
        served = ""
        if port == "extender":
            keys.append(f"{variable_of('allow_unauthenticated_effects')}=true")
            served = f", and every client could use {' and '.join(rule.guarded)}"
        return WrongTogetherError(
            address, settings, f"is not the loopback{served}: needs {', '.join(keys[:-1])} or {keys[-1]}"
        )
    return None


def _wrong_gates(release: str, gates: Mapping[str, bool]) -> str:
    """Return the error in the feature gates; empty if they are valid. With `auto`, any known release may allow one."""
    candidates = [nearest(release).release] if release != AUTO else RELEASES
    for name, value in gates.items():
        problems = []
        for candidate in candidates:
            try:
                rules_of(candidate, {name: value})
            except FeatureGateError as error:
                problems.append(str(error))
        if len(problems) == len(candidates):
            return problems[-1]
    return ""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
