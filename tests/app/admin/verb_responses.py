"""What the OpenAPI description says of the responses of the verbs, to hold real ones against."""

from collections.abc import Mapping

import jsonschema_rs

from app.admin.openapi import describe
from app.main import create_service
from app.settings.settings import Settings
from core.mirror.cluster import ClusterMirror


def described_responses() -> Mapping[str, jsonschema_rs.Draft202012Validator]:
    """Return the description of the response of each verb, by path."""
    description = describe(create_service(Settings(), ClusterMirror(), None).app)
    return {
        path: jsonschema_rs.Draft202012Validator(
            operations["post"]["responses"]["200"]["content"]["application/json"]["schema"]
            | {"components": description["components"]}
        )
        for path, operations in description["paths"].items()
        if "post" in operations
    }
