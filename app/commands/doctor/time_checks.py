"""Checks of the httpTimeout against the time limits of Kindred."""

from app.commands.doctor.findings import EXTENDER_TYPE, SETTINGS, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.go_duration import go_duration
from app.scheduler_configuration.scheduler_config import DEFAULT_TIMEOUT

_LONG = 10.0  # seconds for which one pod stops the scheduling loop


def _deadline(registration: Registration) -> Found:
    extender, settings = registration.extender, registration.settings
    if extender.timeout < 0 or extender.timeout > settings.deadline:
        return
    found = error if extender.bind_verb else warning
    yield found(
        extender.at("httpTimeout"),
        f"{_timeout(registration)}, and Kindred's httpTimeout is {settings.http_timeout:g} s"
        f"{registration.known.remark}: Kindred rejects a queued request, and gives up a binding, after "
        f"{settings.deadline:g} s. kube-scheduler closes the connection before, and tries a pod again that may be "
        "bound already",
        f"httpTimeout: {go_duration(settings.http_timeout)}, or {setting('http_timeout', f'{extender.timeout:g}')}",
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
    Check("timeout-length", EXTENDER_TYPE, _length),
)
