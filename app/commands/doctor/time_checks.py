"""Checks of the httpTimeout against the time limits of Kindred."""

from app.commands.doctor.findings import EXTENDER_TYPE, SETTINGS, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.go_duration import go_duration
from app.scheduler_configuration.scheduler_config import DEFAULT_TIMEOUT

_LONG = 10.0  # seconds for which one pod stops the scheduling loop
_ROOM = 1.0  # seconds for the network and for open requests


def _deadline(registration: Registration) -> Found:
    extender, deadline = registration.extender, registration.settings.deadline
    if not (extender.filter_verb or extender.prioritize_verb) or extender.timeout < 0 or extender.timeout > deadline:
        return
    lower = max(round(extender.timeout * 0.8, 3), 0.05)
    yield warning(
        extender.at("httpTimeout"),
        f"{_timeout(registration)}: kube-scheduler closes the connection before Kindred rejects a queued request, "
        f"which it does after {deadline:g} s, its deadline{registration.known.remark}. The attempt fails by a timeout "
        "without a reason, and the work of Kindred is lost",
        f"httpTimeout: {go_duration(deadline + _ROOM)}, or {setting('deadline', f'{lower:g}')}",
    )


def _bind_timeout(registration: Registration) -> Found:
    extender, limit = registration.extender, registration.settings.bind_timeout
    if not extender.bind_verb or extender.timeout < 0 or extender.timeout > limit:
        return
    lower = max(round(extender.timeout * 0.8, 3), 0.1)
    yield error(
        extender.at("httpTimeout"),
        f"{_timeout(registration)}: kube-scheduler gives up while Kindred still binds, for up to {limit:g} s, its "
        f"bindTimeout{registration.known.remark}, and tries a pod again that may be bound already",
        f"httpTimeout: {go_duration(limit + _ROOM)}, or {setting('bind_timeout', f'{lower:g}')}",
    )


def _length(registration: Registration) -> Found:
    extender = registration.extender
    if extender.timeout < 0:
        yield error(
            extender.at("httpTimeout"),
            f"{extender.http_timeout} ends before the call begins: every call fails",
            f"httpTimeout: {go_duration(DEFAULT_TIMEOUT)}",
        )
    elif extender.filter_verb and extender.timeout > _LONG:
        yield warning(
            extender.at("httpTimeout"),
            f"{extender.http_timeout} is long: kube-scheduler schedules no other pod while it waits for filter, so a "
            f"Kindred that hangs stops the scheduling of all",
            f"httpTimeout: {go_duration(DEFAULT_TIMEOUT)}",
        )


def _timeout(registration: Registration) -> str:
    extender = registration.extender
    if extender.timeout == DEFAULT_TIMEOUT and extender.http_timeout == "0":
        return f"not set, which means {DEFAULT_TIMEOUT:g} s"
    return extender.http_timeout


CHECKS = (
    Check("timeout-below-deadline", SETTINGS, _deadline, of_settings=True),
    Check("timeout-below-bind-timeout", SETTINGS, _bind_timeout, of_settings=True),
    Check("timeout-length", EXTENDER_TYPE, _length),
)
