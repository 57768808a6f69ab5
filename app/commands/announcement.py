"""The first output of `kindred serve`: the addresses of the page, of the scheduler's port, and of other ports."""

import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from app import __version__
from app.commands.dump_source import DEMO
from app.commands.printer import print_lines

_QUESTIONS: Final = (("filter", "required-affinity"), ("filter", "required-anti-affinity"), ("prioritize", "web"))


class Announcement:
    """Prints the addresses when the last port listens. The page comes first, because it is for people."""

    def __init__(self, ports: Collection[str], *, demo: bool) -> None:
        """`ports` are the names of the ports that will listen. A demo also prints sample requests."""
        self._awaited = set(ports)
        self._urls: dict[str, str] = {}
        self._tell: Mapping[str, Callable[[str], list[str]]] = {
            "admin": _of_page,
            "extender": lambda url: _of_extender(url, demo=demo),
            "health": lambda url: [f"Health and metrics at {url}/readyz and {url}/metrics"],
        }

    def listening(self, port: str, url: str) -> None:
        """Record that a port listens."""
        self._urls[port] = url
        self._awaited.discard(port)
        if not self._awaited:
            told = [
                line for name, lines in self._tell.items() if name in self._urls for line in lines(self._urls[name])
            ]
            print_lines(told)


def _of_page(url: str) -> list[str]:
    return [f"Cluster, pending pods and explanations in a browser: {url}/", f"Debugging at {url}/debug/mirror"]


def _of_extender(url: str, *, demo: bool) -> list[str]:
    lines = [f"Kindred {__version__} answers at {url}"]
    if demo and url.startswith("http:"):  # with TLS, the options of curl depend on the authority
        requests = Path(str(DEMO / "requests"))
        if requests.is_relative_to(Path.cwd()):
            requests = requests.relative_to(Path.cwd())
        lines.append("Send requests from another terminal:")
        lines += [f"  curl -s {url}/{verb} -d {shlex.quote(f'@{requests}/{name}.json')}" for verb, name in _QUESTIONS]
    return lines
