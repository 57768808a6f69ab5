"""The requests for the Lease of an election, and for the mark that a replica sets when it takes over."""

import asyncio
import logging
import uuid
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.api_server.election import Create, Failure, Get, LeaseResponse, Request, Update, decode_lease, encode_lease
from app.objects.decode import DecodeError
from app.objects.resources import decode_identity
from app.process.logs import one_line

log = logging.getLogger(__name__)

_MAX_LOGGED: Final = 100
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
        self._logged: set[str] = set()  # some errors since the last success
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
            if len(self._logged) >= _MAX_LOGGED:  # each may have a number of its own
                self._logged.clear()
            self._logged.add(trouble)
            log.warning("leader election: %s", one_line(trouble))
        self.trouble = one_line(trouble)
        return Failure.FAILED


MARK_RULE: Final = 'apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]'
"""The rule of a Role in the namespace of the pod. It has no name, because a ReplicaSet names its pods."""
MARK: Final = "kindred.dev/TookOver"
"""The condition that is the mark."""
_ATTEMPTS: Final = 2  # a kept connection may be one that the server has closed
_MARK_TIMEOUT: Final = 1.0  # seconds of an attempt


class OwnPod:
    """The pod of this replica. A write to it is a point in the order of all writes to pods.

    The write is a condition, because `pods/status` allows less than `pods`: no other image of a container, for one.
    Kubelet keeps the conditions of others (status_manager.go, mergePodStatus).
    """

    def __init__(self, client: ApiClient, namespace: str, name: str) -> None:
        self._client = client
        self._pod = f"{namespace}/{name}"
        self._path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/status"

    async def mark(self) -> str:
        """Change the pod, and return the resourceVersion of this change. Empty if it failed, which is logged."""
        # A new message each time: the API server does not write an unchanged object.
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": MARK, "status": "True", "lastTransitionTime": now, "message": str(uuid.uuid4())}
        body, problem = msgspec.json.encode({"status": {"conditions": [condition]}}), ""
        for _ in range(_ATTEMPTS):
            try:
                async with asyncio.timeout(_MARK_TIMEOUT):
                    return decode_identity(await self._client.patch(self._path, body))[2]
            except (ApiError, CredentialsError, DecodeError) as error:
                problem = str(error)
                if isinstance(error, StatusError) and not error.is_temporary:
                    forbidden = error.code == HTTPStatus.FORBIDDEN
                    problem += f"; the RBAC rule that is needed: {MARK_RULE}" if forbidden else ""
                    break
            except TimeoutError:
                problem = f"no response within {_MARK_TIMEOUT:g} s"
        log.warning("pod %s is not marked, so the pods are listed instead: %s", self._pod, one_line(problem))
        return ""
