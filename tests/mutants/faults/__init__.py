"""All planted faults, by area. A reviewer would see half of them. The other half are subtle."""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.mutants.fault import Fault
from tests.mutants.faults import (
    access,
    configuration,
    decoding,
    devices,
    devices_explained,
    doctor,
    dumps,
    equivalence,
    explaining,
    explanation,
    gangs,
    groups,
    leadership,
    load,
    metrics,
    mirror,
    nominated,
    plugins,
    preemption,
    printing,
    scheduler,
    selectors,
    verbs,
    watch,
    why,
    wire,
)

FAULTS: Final[Mapping[str, Sequence[Fault]]] = {
    "mirror": mirror.FAULTS,
    "equivalence": equivalence.FAULTS,
    "plugins": plugins.FAULTS,
    "devices": devices.FAULTS,
    "claims": devices_explained.FAULTS,
    "selectors": selectors.FAULTS,
    "nominated": nominated.FAULTS,
    "preemption": preemption.FAULTS,
    "explanation": explanation.FAULTS,
    "verbs": verbs.FAULTS,
    "watch": watch.FAULTS,
    "decoding": decoding.FAULTS,
    "wire": wire.FAULTS,
    "leadership": leadership.FAULTS,
    "explaining": explaining.FAULTS,
    "metrics": metrics.FAULTS,
    "doctor": doctor.FAULTS,
    "configuration": configuration.FAULTS,
    "scheduler": scheduler.FAULTS,
    "why": why.FAULTS,
    "access": access.FAULTS,
    "load": load.FAULTS,
    "gangs": gangs.FAULTS,
    "groups": groups.FAULTS,
    "printing": printing.FAULTS,
    "dumps": dumps.FAULTS,
}
"""Area -> its faults."""
