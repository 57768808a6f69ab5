"""Missing rights of the caller: the verb, the resource and the namespace, and the RBAC rule to add."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

from app.api_server.client import StatusError
from app.logs import one_line

_USER: Final = re.compile(r'[Uu]ser "([^"]+)"')


class Right(NamedTuple):
    """Verbs on one resource. Without a namespace: in the whole cluster."""

    verb: str
    """One, or several separated by commas."""
    resource: str
    """The plural, with a subresource behind a slash."""
    group: str = ""
    namespace: str = ""


class MissingRightsError(Exception):
    """The API server forbids a request. The message is a line for people; `rules` are the lines of YAML to add."""

    def __init__(self, rights: Sequence[Right], user: str = "") -> None:
        """Take rights for one verb, all in one namespace or in the cluster."""
        first = rights[0]
        resources = ", ".join(right.resource for right in rights)
        place = f"in namespace {first.namespace}" if first.namespace else "in the whole cluster"
        role = f"a Role in namespace {first.namespace}" if first.namespace else "a ClusterRole"
        may_not = f"{user or 'this user'} may not {first.verb.replace(',', ' and ')} {resources} {place}"
        super().__init__(f"{may_not}. Add to {role}:")
        self.rights = tuple(rights)
        self.rules = tuple(f"  {rule}" for rule in _rules(rights))


def _rules(rights: Sequence[Right]) -> Iterator[str]:
    """Yield the rules of a Role or ClusterRole, each as one line of YAML."""
    by_group: dict[str, list[str]] = {}
    for right in rights:
        by_group.setdefault(right.group, []).append(right.resource)
    verbs = _listed(rights[0].verb.split(","))
    for group, resources in by_group.items():
        yield f'- {{apiGroups: ["{group}"], resources: {_listed(resources)}, verbs: {verbs}}}'


def _listed(names: Sequence[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"[{quoted}]"


def user_in(refusal: str) -> str:
    """Return the user that the API server names in a refusal; empty if it names none."""
    found = _USER.search(refusal)
    return one_line(found[1]) if found else ""


@asynccontextmanager
async def needing(right: Right) -> AsyncIterator[None]:
    """Wrap a request that needs a right. Raises MissingRightsError if the API server forbids it."""
    try:
        yield
    except StatusError as error:
        # A service behind the API server's proxy can return 403, too, without a Status and so without a reason.
        if error.code != HTTPStatus.FORBIDDEN or not error.reason:
            raise
        raise MissingRightsError([right], user_in(error.message)) from None
