"""The requests for the Lease of an election."""

import asyncio
import logging
from http import HTTPStatus
from typing import Final

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.api_server.election import Create, Failure, Get, LeaseResponse, Request, Update, decode_lease, encode_lease
from app.objects.decode import DecodeError
from app.process.logs import one_line

log = logging.getLogger(__name__)

_GROUP: Final = 'apiGroups: ["coordination.k8s.io"], resources: ["leases"]'


def rbac_rules(name: str) -> tuple[str, ...]:
    """Return the rules of a Role in the namespace of the Lease that leading needs, each as one line of YAML.

    The rule for `create` has no resource name, because authorization does not read the name in the body.
    """
    return (f'{_GROUP}, verbs: ["create"]', f'{_GROUP}, resourceNames: ["{name}"], verbs: ["get", "update"]')


class LeaseApi:
    """Carries out the requests of an election."""

    def __init__(self, client: ApiClient, namespace: str, name: str, timeout: float) -> None:
        """`namespace` and `name` of the Lease. `timeout` of a request in seconds."""
        self.trouble = ""
        """The error of the last request, in one line. Empty if it succeeded."""
        self._logged: set[str] = set()  # errors since the last success
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timeout = timeout
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"

    async def respond(self, request: Request) -> LeaseResponse:
        """Send a request and return its response. A repeated error is logged once."""
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._send(request)
            lease = decode_lease(body)
        except StatusError as error:
            return self._failure(request, error)
        except (ApiError, CredentialsError) as error:
            return self._failed(str(error))
        except DecodeError as error:
            return self._failed(f"lease {self._namespace}/{self._name} cannot be read: {error}")
        except TimeoutError:
            return self._failed(f"lease {self._namespace}/{self._name}: no response within {self._timeout:g} s")
        self.trouble = ""
        self._logged.clear()
        return lease

    async def _send(self, request: Request) -> bytes:
        match request:
            case Create(record):
                metadata = {"namespace": self._namespace, "name": self._name}
                return await self._client.post(self._collection, encode_lease(metadata, record))
            case Update(lease, record):
                return await self._client.put(self._path, encode_lease(lease.metadata, record))
        # Without a resourceVersion the server does a quorum read. Its watch cache could return an old state.
        return await self._client.get(self._path, {})

    def _failure(self, request: Request, error: StatusError) -> Failure:
        if error.code == HTTPStatus.NOT_FOUND and isinstance(request, Get):
            return Failure.ABSENT
        if error.code == HTTPStatus.CONFLICT:  # another candidate was first
            return Failure.FAILED
        rules = "; ".join(rbac_rules(self._name))
        missing = f"; the RBAC rules that are needed: {rules}" if error.code == HTTPStatus.FORBIDDEN else ""
        return self._failed(f"{error}{missing}")

    def _failed(self, trouble: str) -> Failure:
        if trouble not in self._logged:
            self._logged.add(trouble)
            log.warning("leader election: %s", one_line(trouble))
        self.trouble = one_line(trouble)
        return Failure.FAILED
