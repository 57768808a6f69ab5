"""`GET /debug/config` tells what `kindred config` would."""

from app.main import create_service
from app.settings.settings import Settings
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask


def test_every_setting_is_told_with_its_source() -> None:
    settings = Settings(admin="127.0.0.1:0", max_score=20, bypass_namespaces=("a", "b"))
    sources = {"max_score": "KINDRED_MAX_SCORE", "bypass_namespaces": "kindred.yaml: bypassNamespaces"}
    admin = create_service(settings, ClusterMirror(), None, sources).admin
    assert admin is not None
    told = ask(admin, "GET", "/debug/config").json()
    assert len(Settings.model_fields) == len(told)
    assert told["maxScore"] == {"value": 20, "source": "KINDRED_MAX_SCORE"}
    assert told["bypassNamespaces"] == {"value": ["a", "b"], "source": "kindred.yaml: bypassNamespaces"}
    assert told["profile"] == {"value": "affinity", "source": "default"}
