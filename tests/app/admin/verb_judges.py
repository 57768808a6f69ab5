"""What the OpenAPI description says of the verbs, to hold real questions and answers against."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from app.admin.openapi import describe
from app.main import create_service
from app.settings import Settings
from core.mirror.cluster import ClusterMirror


class Judge:
    """What the description says of one verb."""

    def __init__(self, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        components = {"components": {"schemas": schemas}}
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        answered = operation["responses"]["200"]["content"]["application/json"]["schema"]
        self._asked = jsonschema_rs.Draft202012Validator({**asked, **components})
        self._answered = jsonschema_rs.Draft202012Validator({**answered, **components})

    def allows(self, question: object) -> bool:
        """Return whether a decoded body is one that the verb takes."""
        return self._asked.is_valid(question)

    def knows(self, answer: object) -> bool:
        """Return whether a decoded answer is one that the verb may give."""
        return self._answered.is_valid(answer)


def judges() -> Mapping[str, Judge]:
    """Return a judge for the path of each verb."""
    description = describe(create_service(Settings(), ClusterMirror(), None).app)
    return {
        path: Judge(operations["post"], description["components"]["schemas"])
        for path, operations in description["paths"].items()
        if "post" in operations
    }
