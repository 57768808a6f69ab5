"""Builders of a pod's containers with their requests, for tables of tests."""

from core.objects.pod_requests import Amounts, Container, Resources
from core.objects.quantity import nanos


def amounts(**quantities: str) -> Amounts:
    return {name.replace("_", "-"): nanos(text) for name, text in quantities.items()}


def asking(**requests: str) -> Container:
    return Container(Resources(amounts(**requests)))


def sidecar(**requests: str) -> Container:
    return Container(Resources(amounts(**requests)), sidecar=True)


def resized(asked: str, *, actual: str | None, allocated: str | None = None, is_sidecar: bool = False) -> Container:
    return Container(
        Resources(amounts(cpu=asked)),
        sidecar=is_sidecar,
        actual=None if actual is None else amounts(cpu=actual),
        allocated=None if allocated is None else amounts(cpu=allocated),
        reported=actual is not None,
    )
