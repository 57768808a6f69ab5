"""Steps of a remedy about claims and volumes."""

import msgspec

from core.diagnosis.amounts.quantities import quantity_text

_BYTES = "ephemeral-storage"


class CreateClaim(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="createClaim"):
    """Create a PersistentVolumeClaim that the pod names.

    It has the StorageClass, which waits for the first consumer, and requests as much as there is room for. Without a
    class it is bound to a volume that every node reaches.
    """

    claim: str
    """NAMESPACE/NAME"""
    storage_class: str

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        how = (
            f"of StorageClass {self.storage_class}" if self.storage_class else "bound to a volume that the node reaches"
        )
        return f"create the PersistentVolumeClaim {self.claim} {how}"


class ProvideVolume(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="provideVolume"):
    """Bind a claim to a new PersistentVolume, which has all that the claim asks for and which every node reaches."""

    claim: str
    """NAMESPACE/NAME"""
    volume: str
    """The name that the claim has for it; empty for any name."""
    storage_class: str
    """Of claim and volume; empty for none."""
    capacity: int
    """In bytes; 0 where the claim requests none."""

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        name = f" {self.volume}" if self.volume else ""
        size = f" of {quantity_text(_BYTES, self.capacity, round_up=True)}" if self.capacity else ""
        where = f" in StorageClass {self.storage_class}" if self.storage_class else ""
        return f"bind the claim {self.claim} to a PersistentVolume{name}{size}{where} that the node reaches"


class AllowTopology(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="allowTopology"):
    """Let allowedTopologies of a StorageClass have the topology of the node."""

    storage_class: str

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        return f"add the node's topology to allowedTopologies of StorageClass {self.storage_class}"


class ResizeClaim(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="resizeClaim"):
    """Let a claim request less. A claim that exists cannot shrink: it has to be created anew."""

    claim: str
    """NAMESPACE/NAME"""
    requested: int
    """In bytes."""
    to: int
    """The largest volume that there is room for."""

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        less = quantity_text(_BYTES, self.to)
        return f"create the claim {self.claim} anew with {less} instead of {quantity_text(_BYTES, self.requested)}"
