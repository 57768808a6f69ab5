"""Services, reduced to the fields that plugins read."""

import msgspec

from core.objects.labels import NOTHING, Selector


class Service(msgspec.Struct, frozen=True, gc=False):
    """A v1.Service: the pods of its namespace that it selects. A service without a selector selects none.

    Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/helper/spread.go (GetPodServices). Unlike a label
    selector, the selector of a service is never validated.
    """

    namespace: str
    name: str
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"
