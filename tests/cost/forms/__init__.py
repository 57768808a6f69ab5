"""All forms by name."""

from collections.abc import Mapping
from typing import Final

from tests.cost.forms import (
    affinity,
    containers,
    devices,
    gangs,
    nodes_wanted,
    pod_metadata,
    pod_volumes,
    requests,
    spreading,
    watched,
    wire,
)
from tests.cost.forms.form import Form

_MODULES: Final = (
    affinity,
    spreading,
    nodes_wanted,
    containers,
    pod_volumes,
    pod_metadata,
    watched,
    devices,
    requests,
    gangs,
    wire,
)
ALL: Final = [form for module in _MODULES for form in module.FORMS]
FORMS: Final[Mapping[str, Form]] = {form.name: form for form in ALL}
