"""One run under load: the service with its certificates, the faults, and the checks at the end."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.bench.live import FakeApi, Kindred, kindred, machine, repeating
from tests.load.certificates import Certificates
from tests.load.faults import FaultInjector

WINDOW: Final = 60
"""Samples of one median."""
_GROWTH: Final = 1.05
_SLACK: Final = 8.0  # MB


class Memory:
    """The resident memory of a process in MB. Call `sample` with it once a second."""

    def __init__(self) -> None:
        self.samples: list[float] = []

    def sample(self, megabytes: float) -> None:
        """Add a sample."""
        self.samples.append(megabytes)

    def growth(self) -> str:
        """Return the problem. Empty if the memory is flat, or if there are too few samples."""
        windows = second_and_last(self.samples)
        if windows is None:
            return ""
        before, after = windows
        if after <= _GROWTH * before + _SLACK:
            return ""
        return f"memory: {before:.0f} MB in the second minute, {after:.0f} MB in the last one"


def second_and_last(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the medians of the second and the last minute. None with fewer than three. In the first, caches fill."""
    if len(samples) < 3 * WINDOW:
        return None
    return median(samples[WINDOW : 2 * WINDOW]), median(samples[-WINDOW:])


_SETTINGS: Final = {"KINDRED_TEST_LIMITS": json.dumps({"cache_bytes": 16 * 1024 * 1024})}
"""The equivalence cache is full after a minute, so that later growth has another cause."""
_ROTATED_EVERY: Final = 15.0  # seconds; longer than Kindred's check for new certificates
_SURELY_TAKEN: Final = 30.0  # seconds within which Kindred has reloaded once
_RECONNECTS: Final = "100"  # requests on a connection, so that new certificates are used
_SETTLED_WITHIN: Final = 180.0  # seconds until the mirror is right: two of the longest pauses, and a list


class Trial:
    """A service under load. `options` are the options of `python -m tests.load`."""

    def __init__(self, options: Namespace, api: FakeApi, folder: Path) -> None:
        """Keep certificates and other files in a folder."""
        self._options = options
        self._api = api
        self._summary = folder / "summary.json"
        self._certificates = Certificates(folder) if options.tls else None
        self._injector = (
            FaultInjector(api.change, options.seed, options.fault_gap, time.monotonic) if options.faults else None
        )
        self._memory = Memory()
        self._first_expiry: Mapping[str, float] = {}

    @contextmanager
    def service(self) -> Iterator[Kindred]:
        """Run Kindred during the block, which begins when Kindred is ready."""
        certificates = self._certificates
        running = (
            kindred(self._api, _SETTINGS)
            if certificates is None
            else kindred(self._api, {**_SETTINGS, **certificates.settings}, certificates.client_tls())
        )
        with running as service:
            service.wait_until_ready()
            yield service

    def locust_options(self, service: Kindred) -> list[str]:
        """Return locust's options for the service."""
        options = ["--host", service.url, "--summary", str(self._summary)]
        # With faults, locust's requests to change pods would fail. The fake API server then changes them by itself.
        rate = 0.0 if self._injector is not None else self._options.churn_rate
        options += ["--fake-api", self._api.url, "--churn-rate", str(rate)]
        if self._certificates is not None:
            certificate, key = self._certificates.client
            options += ["--ca", str(self._certificates.authority), "--client-cert", str(certificate)]
            options += ["--client-key", str(key), "--reconnect-every", _RECONNECTS]
        return options

    @contextmanager
    def troubled(self, service: Kindred) -> Iterator[None]:
        """Inject faults and sample the memory during the block."""
        self._first_expiry = self._expiry(service)
        with ExitStack() as stack:
            stack.enter_context(repeating(lambda: self._memory.sample(service.memory("VmRSS")), 1.0))
            if self._certificates is not None:
                stack.enter_context(repeating(self._certificates.rotate, _ROTATED_EVERY))
            if self._injector is not None:
                self._api.change("churn", {"rate": self._options.churn_rate})
                stack.enter_context(repeating(self._injector.step, 1.0))
            yield
        if self._injector is not None:
            self._api.change("clear", {})
            self._api.change("churn", {"rate": 0})

    def problems(self, service: Kindred) -> list[str]:
        """Return the problems at the end: with the mirror, the memory, and the certificates."""
        problems = self._differences(service)
        growth = self._memory.growth()
        if growth:
            problems.append(growth)
        certificates = self._certificates
        if certificates is not None and self._options.seconds >= _SURELY_TAKEN and not self._renewed(service):
            problems.append(f"none of {certificates.rotations} new certificates was taken")
        return problems

    def report(self, problems: Sequence[str]) -> dict[str, Any]:
        """Return the numbers of the run."""
        samples, injector = self._memory.samples, self._injector
        minutes = second_and_last(samples)
        found: dict[str, Any] = {
            "machine": machine(),
            "nodes": self._options.nodes,
            "pods": self._options.pods,
            "users": self._options.users,
            "seconds": self._options.seconds,
            "pod_events": self._api.stats()["churn_events"],
            **(json.loads(self._summary.read_text("utf-8")) if self._summary.exists() else {}),
            "rss_mb": {
                "start": round(samples[0]),
                "end": round(samples[-1]),
                "max": round(max(samples)),
                **({"second_minute": round(minutes[0]), "last_minute": round(minutes[1])} if minutes else {}),
            },
            "problems": [*problems],
        }
        if injector is not None:
            found["faults"] = {"all": injector.injected.total(), **dict(sorted(injector.injected.items()))}
        if self._certificates is not None:
            found["rotations"] = self._certificates.rotations
        return found

    def _differences(self, service: Kindred) -> list[str]:
        """Compare the mirror with the cluster until they are equal, or until a timeout."""
        self._api.quiet()
        deadline = time.monotonic() + _SETTLED_WITHIN
        while (differences := service.differences()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return differences

    def _renewed(self, service: Kindred) -> bool:
        return self._expiry(service) != self._first_expiry

    def _expiry(self, service: Kindred) -> Mapping[str, float]:
        """Return port -> expiry of the certificate in use. Each new certificate expires later."""
        return service.metrics().by("port", "kindred_tls_certificate_not_after_timestamp_seconds")
