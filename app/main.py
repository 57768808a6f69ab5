"""create_app(): the one place where settings, mirror, plugins and routes are put together."""

from fastapi import FastAPI

from app import __version__
from app.extender_v1 import Extender
from app.routes.extender import extender_routes
from app.routes.health import health_router
from app.settings import Settings
from core.mirror.cluster import ClusterMirror
from core.profile import affinity_profile


def create_extender(settings: Settings, mirror: ClusterMirror) -> Extender:
    """Return the verbs over a mirror, as the settings want them."""
    profile = affinity_profile(
        hard_pod_affinity_weight=settings.hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=settings.ignore_preferred_terms_of_existing_pods,
    )
    return Extender(profile, mirror, settings.max_score)


def create_app(settings: Settings, mirror: ClusterMirror) -> FastAPI:
    """Return the service that answers from a mirror. Whoever feeds the mirror does so between two requests."""
    # The interactive pages of FastAPI load scripts from elsewhere, and the verbs are not for browsers.
    app = FastAPI(title="Kindred", version=__version__, openapi_url=None)
    app.router.routes.extend(extender_routes(create_extender(settings, mirror), settings.max_body_bytes))
    app.include_router(health_router(mirror))
    return app
