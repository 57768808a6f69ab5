"""Steps as instructions, and as JSON."""

import msgspec
import pytest

from core.diagnosis.amounts.requirements import AskedOfNode, Source
from core.diagnosis.remedies.remedy import (
    AddNode,
    ChangeHostPort,
    DropNodeName,
    DropRequirement,
    Kind,
    LowerRequest,
    RaiseMaxSkew,
    RelaxSpread,
    Remedy,
    RemovePod,
    RunPod,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)


def drop(operator: str, *values: str, source: Source = Source.NODE_AFFINITY) -> DropRequirement:
    return DropRequirement(AskedOfNode(source, 0, "disk", operator, values))


STEPS: list[tuple[Step, str]] = [
    (LowerRequest("cpu", 4300, 3200), "lower the cpu request by 4300m to 3200m"),
    (LowerRequest("memory", 2**30, 0), "drop the memory request of 1Gi"),
    (TolerateTaint("gpu", "a100", "NoSchedule"), "tolerate the taint gpu=a100:NoSchedule"),
    (drop("In", "ssd", source=Source.NODE_SELECTOR), "drop disk=ssd from the pod's nodeSelector"),
    (drop("In", "hdd", "ssd"), "drop disk in (hdd, ssd) from the pod's required node affinity"),
    (drop("NotIn", "hdd"), "drop disk notin (hdd) from the pod's required node affinity"),
    (drop("Exists"), "drop disk from the pod's required node affinity"),
    (drop("DoesNotExist"), "drop !disk from the pod's required node affinity"),
    (drop("Gt", "4"), "drop disk > 4 from the pod's required node affinity"),
    (drop("Lt", "4"), "drop disk < 4 from the pod's required node affinity"),
    (SetLabel("n1", "disk", "ssd", None), "label n1 disk=ssd"),
    (SetLabel("n1", "disk", "ssd", "hdd"), "label n1 disk=ssd instead of hdd"),
    (SetLabel("n1", "disk", None, "hdd"), "take the label disk=hdd from n1"),
    (Uncordon("n1"), "uncordon n1"),
    (RaiseMaxSkew(0, "zone", "a", 1, 3), "raise maxSkew for zone from 1 to 3"),
    (RemovePod("shop/web-0", "u", "n1"), "remove pod shop/web-0 from n1"),
    (
        RemovePod("shop/web-0", "u", "n1", ["shop/web", "shop/all"]),
        "remove pod shop/web-0 from n1, whose eviction shop/web and shop/all forbid now",
    ),
    (RelaxSpread(0, "zone"), "set whenUnsatisfiable for zone to ScheduleAnyway"),
    (ChangeHostPort(80, "TCP", 81), "use the host port 81/TCP instead of 80"),
    (DropNodeName("n9"), "drop nodeName n9 from the pod"),
    (RunPod("shop", {"a": "1", "b": ""}, "n1", {"zone": "a"}), "run a pod with a=1,b= in namespace shop where zone=a"),
    (RunPod("shop", {}, "n1", {"zone": "a"}), "run a pod in namespace shop where zone=a"),
    (AddNode("n7", "n1", "a", labels={"disk": "ssd"}), "add a node like n1 named n7 with disk=ssd in zone a"),
    (AddNode("n1-copy", "n1", ""), "add a node like n1"),
    (AddNode("n1-copy", "n1", "a", ["b", "c"]), "add a node like n1 in zone a, or in b or c"),
]


@pytest.mark.parametrize(("step", "text"), STEPS, ids=[text for _, text in STEPS])
def test_a_step_is_an_instruction(step: Step, text: str) -> None:
    assert text == step.text


def test_every_step_survives_json() -> None:
    remedy = Remedy(Kind.COMBINED, "n1", tuple(step for step, _ in STEPS), "much")
    assert msgspec.json.encode(remedy) == msgspec.json.encode(
        msgspec.json.decode(msgspec.json.encode(remedy), type=Remedy)
    )
