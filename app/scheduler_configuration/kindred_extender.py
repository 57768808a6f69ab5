"""Which extender of a KubeSchedulerConfiguration is Kindred."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from app.scheduler_configuration.scheduler_config import Extender, SchedulerConfig

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def choose_extender(config: SchedulerConfig, prefix: str, url: str) -> tuple[Extender | None, str]:
    """Return the extender that is Kindred: by prefix or URL, by the name in its URL, or the only extender.

    Otherwise return None and the reason.
    """
    extenders = config.extenders
    if not extenders:
        return None, "there is no extender: kube-scheduler does not call Kindred"
    if prefix:
        chosen = [each for each in extenders if each.url_prefix.startswith(prefix)]
        return _one(chosen, f"urlPrefix begins with {prefix}")
    at_url = [each for each in extenders if url and _place(each.url_prefix) == _place(url)]
    called = [each for each in extenders if "kindred" in each.host]
    if len(extenders) == 1 or at_url:
        return (at_url or extenders)[0], ""
    return _one(called, "urlPrefix names a host with kindred in it")


def _one(chosen: Iterable[Extender], which: str) -> tuple[Extender | None, str]:
    found = tuple(chosen)
    if len(found) == 1:
        return found[0], ""
    return None, f"there are {len(found)} extenders whose {which}, and one of them must be Kindred"


def _place(url: str) -> tuple[str, int | None]:
    try:
        parsed = urlsplit(url)
        return parsed.hostname or "", parsed.port or _DEFAULT_PORTS.get(parsed.scheme)
    except ValueError:
        return url, None
