"""Steps of a remedy about claims and volumes."""

import msgspec

from core.diagnosis.amounts.quantities import quantity_text

_BYTES = "ephemeral-storage"


class CreateClaim(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="createClaim"):
    """Create a missing PersistentVolumeClaim of the pod.

    With a StorageClass, which waits for the first consumer, the claim requests the available capacity. Without a class
    it is bound to a volume that every node can reach.
    """

    claim: str
    """NAMESPACE/NAME"""
    storage_class: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        how = (
            f"of StorageClass {self.storage_class}" if self.storage_class else "bound to a volume that the node reaches"
        )
        return f"create the PersistentVolumeClaim {self.claim} {how}"


class ProvideVolume(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="provideVolume"):
    """Bind a claim to a new PersistentVolume that meets the claim's requirements, and that every node can reach."""

    claim: str
    """NAMESPACE/NAME"""
    volume: str
    """The volume name in the claim. Empty if any name is possible."""
    storage_class: str
    """The class of claim and volume. Empty for none."""
    capacity: int
    """Bytes, or 0 if the claim requests none."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        name = f" {self.volume}" if self.volume else ""
        size = f" of {quantity_text(_BYTES, self.capacity, round_up=True)}" if self.capacity else ""
        where = f" in StorageClass {self.storage_class}" if self.storage_class else ""
        return f"bind the claim {self.claim} to a PersistentVolume{name}{size}{where} that the node reaches"


class AllowTopology(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="allowTopology"):
    """Add the topology of the node to allowedTopologies of a StorageClass."""

    storage_class: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"add the node's topology to allowedTopologies of StorageClass {self.storage_class}"


class ResizeClaim(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="resizeClaim"):
    """Lower the request of a claim. An existing claim cannot shrink, and must be created anew."""

    claim: str
    """NAMESPACE/NAME"""
    requested: int
    """In bytes."""
    to: int
    """The largest volume for which there is capacity, in bytes."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        less = quantity_text(_BYTES, self.to)
        return f"create the claim {self.claim} anew with {less} instead of {quantity_text(_BYTES, self.requested)}"
