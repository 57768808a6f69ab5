"""Faults of the visibility of pod names on the admin port."""

from typing import Final

from tests.mutants.fault import Fault

_HIDDEN: Final = ("test_hidden_names.py", "test_replaced_names.py")

FAULTS: Final = (
    Fault(
        id="bodies-of-the-admin-port-without-a-sum",
        breaks="A few clients of the admin port fill the memory with bodies that are allowed each.",
        old="if size and self._in_progress + size > self._most:",
        new="if size > self._most:",
        tests=("test_admin_bodies.py",),
    ),
    Fault(
        id="bodies-of-the-admin-port-count-for-ever",
        breaks="After some requests the admin port takes no body any more.",
        old="            self._in_progress -= size",
        new="            pass",
        tests=("test_admin_bodies.py",),
    ),
    Fault(
        id="long-texts-for-any-number-of-clients",
        breaks="Clients that read slowly hold copies of all nodes and pods until the memory is full.",
        old="    if work.readers >= MAX_READERS:",
        new="    if work.readers < 0:",
        tests=("test_responses.py",),
    ),
    Fault(
        id="decisions-show-environments",
        breaks="A reader of the admin port gets the passwords in the environments of all pods.",
        old="if key in _READ}",
        new="if key}",
        tests=("test_decisions_routes.py",),
    ),
    Fault(
        id="all-yaml-read-at-once",
        breaks="The threads that read YAML take the time of the event loop.",
        old="            async with reading:\n",
        new="            if reading:\n",
        tests=("test_explain_routes.py",),
    ),
    Fault(
        id="runbook-stopped-by-tls-on-the-loopback",
        breaks="With full-offload and decide, `kindred status` by a port-forward gets no response.",
        old='tls = _followed("admin", settings, clients=False) if tokens else None',
        new='tls = _followed("admin", settings, clients=False)',
        tests=("test_admin_auth.py",),
    ),
    Fault(
        id="unknown-routes-let-through",
        breaks="A route that shows pods of all namespaces is open to whoever may list none.",
        old="if viewer.is_full or path in NAMELESS or path in HIDING:",
        new='if viewer.is_full or path in NAMELESS or path in HIDING or path.startswith("/debug"):',
        tests=_HIDDEN,
    ),
    Fault(
        id="remedies-name-hidden-pods",
        breaks="The text of a remedy is plain, so that no name in it is hidden.",
        old='text = PodText("remove pod ", self.pod, f", which no owner makes again, from {self.node}")',
        new='text = f"remove pod {self.pod}, which no owner makes again, from {self.node}"',
        tests=_HIDDEN,
    ),
    Fault(
        id="pending-pods-of-all-namespaces",
        breaks="GET /pending lists the pods of namespaces that the caller may not see.",
        old="            if not self._sees(pod.namespace):",
        new="            if False:",
        tests=_HIDDEN,
    ),
    Fault(
        id="uid-of-a-hidden-pod-explained",
        breaks="A pod of any namespace is explained to whoever knows its uid.",
        old="[pod for pod in seen if sees is None or sees(pod.namespace)]",
        new="[*seen]",
        tests=_HIDDEN,
    ),
    Fault(
        id="manifest-with-the-uid-of-a-hidden-pod",
        breaks="A manifest takes the place of the pod with its uid, so that the response says whether there is one.",
        old="return pod if sees is None else known.without_foreign_uid(pod)",
        new="return pod",
        tests=_HIDDEN,
    ),
    Fault(
        id="unknown-uid-answered-without-a-review",
        breaks="While the API server is down, only the uids of pods that exist get 503.",
        old="            await viewer.need(namespaces.named)",
        new="            await viewer.need({*namespaces.named, *namespaces.of_others})",
        tests=_HIDDEN,
    ),
    Fault(
        id="search-tells-of-hidden-names",
        breaks="A search says that names are hidden only where a hidden name contains the text.",
        old="msgspec.structs.replace(found, names_hidden=why)",
        new="msgspec.structs.replace(found, names_hidden=visible.why)",
        tests=("test_access.py",),
    ),
    Fault(
        id="names-shown-while-the-api-server-is-down",
        breaks="Where the API server cannot be asked, everything is shown.",
        old="            return _unknown(seen, str(error))",
        new="            return _ALL",
        tests=_HIDDEN,
    ),
    Fault(
        id="callers-reviewed-as-kindred",
        breaks="A review with the caller's token goes over a connection with Kindred's certificate, which wins.",
        old="tls = None if access.tls is None else msgspec.structs.replace(access.tls, certificate=None, key=None)",
        new="tls = access.tls",
        tests=("test_access_reviews.py",),
    ),
    Fault(
        id="answers-of-one-caller-for-all",
        breaks="What one caller may see is kept for every caller of the namespace.",
        old="encode((caller.token, namespace))",
        new="encode(namespace)",
    ),
    Fault(
        id="rights-never-expire",
        breaks="A right that was taken away counts as long as the service runs.",
        old="        if self._clock() < until:\n            return True",
        new="        if until:\n            return True",
    ),
)
