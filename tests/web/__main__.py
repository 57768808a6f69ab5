"""Prints the OpenAPI description of the admin port, as the port serves it: `python -m tests.web`."""

import sys

from app.admin.openapi import PATH
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask

service = create_service(Settings(admin="127.0.0.1:0"), ClusterMirror(), None)
assert service.admin is not None
sys.stdout.buffer.write(ask(service.admin, "GET", PATH).content)
