"""Settings come from the environment, flags win, and a wrong value is refused by its name."""

from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from app.settings.configuration import load_configuration
from app.settings.settings import PortRule, Settings, SettingsError, effects, port_rule


def load_settings(**flags: object) -> Settings:
    return load_configuration(flags=flags).settings


def kebab_case(part: object) -> str:
    return str(part).lower().replace("_", "-").replace(" ", "-") or "empty"


def test_nothing_set_gives_the_defaults() -> None:
    configuration = load_configuration()
    assert Settings() == configuration.settings
    assert not configuration.sources
    assert not configuration.unknown_variables


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("LISTEN", "0.0.0.0:1", "0.0.0.0:1"),
        ("LISTEN", "[::1]:0", "[::1]:0"),
        ("HEALTH_PORT", "0", 0),
        ("HEALTH_PORT", "65535", 65535),
        ("MAX_SCORE", "1", 1),
        ("MAX_SCORE", "20", 20),
        ("PROFILE", "full", "full"),
        ("PLUGIN_ARGS", '{"NodeName":{}}', '{"NodeName":{}}'),
        ("EQUIVALENCE_CACHE", "false", False),
        ("EQUIVALENCE_MODE", "spec", "spec"),
        ("PARTITION", '{"in":["a"]}', '{"in":["a"]}'),
        ("STALE_AFTER", "1", 1.0),
        ("HTTP_TIMEOUT", "0.1", 0.1),
        ("DECIDE", "any-node", "any-node"),
        ("DECIDE_SCHEDULERS", "a,b", ("a", "b")),
        ("PREEMPT", "verb", "verb"),
        ("PREEMPT", "evict", "evict"),
        ("GRACE_PERIOD", "1.5", 1.5),
        ("ADMIN", "", ""),
        ("ADMIN", "localhost:65535", "localhost:65535"),
        ("LOG_LEVEL", "error", "error"),
        ("BYPASS_NAMESPACES", "kube-system, a", ("kube-system", "a")),
        ("BYPASS_NAMESPACES", "", ()),
        ("TLS_DIRECTORY", "", None),
        ("LEADER_ELECTION", "kindred", "kindred"),
        ("LOG_FORMAT", "json", "json"),
        ("KUBERNETES", "1.36", "1.36"),
        ("KUBERNETES", "auto", "auto"),
        ("FEATURE_GATES", "", {}),
        (
            "FEATURE_GATES",
            " NodeDeclaredFeatures=false, PodLevelResources=true,",
            {"NodeDeclaredFeatures": False, "PodLevelResources": True},
        ),
    ],
    ids=kebab_case,
)
def test_a_variable_sets_the_field_of_its_name(
    variable: str, value: str, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    assert load_settings().model_dump() == {**Settings().model_dump(), variable.lower(): expected}
    assert expected == getattr(load_settings(), variable.lower())


def test_a_variable_without_the_prefix_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN", "localhost:1")
    assert load_settings().listen == "127.0.0.1:8888"


@pytest.mark.parametrize(
    ("variable", "value", "rule"),
    [
        ("HEALTH_PORT", "65536", "less than or equal to 65535"),
        ("HEALTH_PORT", "-1", "greater than or equal to 0"),
        ("HEALTH_PORT", "http", "valid integer"),
        ("HEALTH_PORT", "", "valid integer"),
        ("LISTEN", "", "expected HOST:PORT"),
        ("LISTEN", "8888", "expected HOST:PORT, such as 127.0.0.1:8888 or [::1]:8888"),
        ("LISTEN", ":8888", "expected HOST:PORT"),
        ("LISTEN", "[]:8888", "expected HOST:PORT"),
        ("LISTEN", "::1:8888", "expected HOST:PORT"),
        ("LISTEN", "[localhost]:8888", "expected HOST:PORT"),
        ("LISTEN", "localhost:http", "expected HOST:PORT"),
        ("LISTEN", "localhost:-1", "expected HOST:PORT"),
        ("LISTEN", "localhost:65536", "expected HOST:PORT"),
        ("LISTEN", "localhost:", "expected HOST:PORT"),
        ("LEADER_ELECTION", "", "should match pattern"),
        ("LEADER_ELECTION", "My_Lease", "should match pattern"),
        ("DECIDE", "question", "'off', 'any-node' or 'listed-nodes'"),
        ("STALE_AFTER", "0.9", "greater than or equal to 1"),
        ("HTTP_TIMEOUT", "0", "greater than or equal to 0.05"),
        ("HTTP_TIMEOUT", "376", "less than or equal to 375"),
        ("PREEMPT", "on", "'off', 'verb' or 'evict'"),
        ("GRACE_PERIOD", "0", "greater than or equal to 1"),
        ("GRACE_PERIOD", "3601", "less than or equal to 3600"),
        ("ADMIN", "8890", "expected HOST:PORT"),
        ("MAX_SCORE", "0", "greater than or equal to 1"),
        ("MAX_SCORE", "101", "less than or equal to 100"),
        ("MAX_SCORE", "1.5", "valid integer"),
        ("EQUIVALENCE_CACHE", "perhaps", "valid boolean"),
        ("EQUIVALENCE_MODE", "uid", "'controller' or 'spec'"),
        ("EXPLAIN_ACCESS", "admins", "'all' or 'review'"),
        ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ],
    ids=kebab_case,
)
def test_a_wrong_value_is_refused_with_its_variable_and_the_rule(
    variable: str, value: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"KINDRED_{variable}={value!r}: ")
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^--prot: "):
        load_settings(prot=1)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().health_port = 1


@pytest.mark.parametrize("value", ["1.33", "1.38", "2.0", "v1.36", "1.36.1", "", "AUTO"])
def test_a_release_that_is_not_known_is_refused_with_those_that_are(value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(kubernetes=value)
    rule = "expected one of auto, 1.34, 1.35, 1.36, 1.37"
    assert str(caught.value) == f"--kubernetes={value!r}: Value error, {rule}"


@pytest.mark.parametrize(
    ("release", "gates", "rule"),
    [
        pytest.param(
            "auto", "NoSuchGate=true", "feature gate NoSuchGate is not known at 1.37; there are ", id="unknown"
        ),
        pytest.param(
            "1.34",
            "NodeDeclaredFeatures=true",
            "feature gate NodeDeclaredFeatures is not known at 1.34; there are ",
            id="not yet",
        ),
        pytest.param(
            "1.37",
            "NodeDeclaredFeatures=false",
            "feature gate NodeDeclaredFeatures is locked on at 1.37; free to set are ",
            id="locked",
        ),
        pytest.param("1.36", "NodeDeclaredFeatures", "expected NAME=true or NAME=false", id="without a value"),
        pytest.param("1.36", "NodeDeclaredFeatures=maybe", "Input should be a valid boolean", id="no boolean"),
    ],
)
def test_a_feature_gate_that_cannot_be_set_is_refused_with_why(release: str, gates: str, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(kubernetes=release, feature_gates=gates)
    assert str(caught.value).startswith("--feature-gates=")
    assert rule in str(caught.value)


def test_with_auto_a_gate_is_allowed_that_some_release_has() -> None:
    settings = load_settings(feature_gates="NodeDeclaredFeatures=false")
    assert settings.feature_gates == {"NodeDeclaredFeatures": False}


CERTIFIED: Final = {"tls_directory": "/nowhere"}
EFFECTS: Final[tuple[dict[str, Any], ...]] = (
    {"bind": True},
    {"decide": "any-node"},
    {"decide": "listed-nodes"},
    {"preempt": "verb"},
    {"preempt": "evict"},
)
OPEN_HOSTS: Final = ("0.0.0.0", "[::]", "10.1.2.3", "kindred.example", "0", "localhost.example", "[::ffff:10.1.2.3]")  # noqa: S104
each_effect = pytest.mark.parametrize("effect", EFFECTS, ids=str)
each_open_host = pytest.mark.parametrize("host", OPEN_HOSTS)


@each_open_host
@each_effect
def test_a_verb_with_an_effect_is_not_served_to_other_machines_without_their_certificates(
    effect: dict[str, Any], host: str
) -> None:
    with pytest.raises(SettingsError) as rejected:
        load_settings(listen=f"{host}:1", **effect)
    ((name, value),) = effect.items()
    assert str(rejected.value) == (
        f"--listen='{host}:1': is not the loopback, and every client could use KINDRED_{name.upper()}="
        f"{str(value).lower()}: needs KINDRED_TLS_DIRECTORY or KINDRED_ALLOW_UNAUTHENTICATED_EFFECTS=true"
    )
    for allowed in (CERTIFIED, {"allow_unauthenticated_effects": True}):
        assert load_settings(listen=f"{host}:1", **effect, **allowed).listen == f"{host}:1"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"])
@each_effect
def test_a_verb_with_an_effect_is_served_on_the_loopback(effect: dict[str, Any], host: str) -> None:
    settings = load_settings(listen=f"{host}:1", **effect)
    assert not port_rule(settings, "extender").is_open
    assert len(effects(settings)) == 1


def test_all_settings_with_effects_are_named_at_once() -> None:
    with pytest.raises(
        SettingsError, match="KINDRED_BIND=true and KINDRED_DECIDE=any-node and KINDRED_PREEMPT=evict: "
    ):
        load_settings(listen="[::]:1", bind=True, decide="any-node", preempt="evict")


@each_open_host
def test_verbs_without_an_effect_and_health_are_served_to_all_without_names(host: str, tmp_path: Path) -> None:
    settings = load_settings(listen=f"{host}:1", health_port=0)
    assert port_rule(settings, "extender") == port_rule(settings, "health") == PortRule(is_open=True, guarded=())
    (tmp_path / "ca.crt").touch()
    settings = load_settings(listen=f"{host}:1", health_port=0, tls_directory=tmp_path)
    assert not port_rule(settings, "extender").is_open
    assert port_rule(settings, "health").is_open, "it has no TLS"


@each_open_host
def test_the_admin_port_is_served_to_other_machines_only_with_a_proof(host: str) -> None:
    with pytest.raises(SettingsError) as rejected:
        load_settings(admin=f"{host}:0")
    assert str(rejected.value) == (
        f"--admin='{host}:0': is not the loopback: needs KINDRED_ADMIN_TOKEN_FILE or KINDRED_ADMIN_READ_TOKEN_FILE"
    )
    with pytest.raises(SettingsError, match="is not the loopback"):
        load_settings(admin=f"{host}:0", allow_unauthenticated_effects=True)
    for proof in ({"admin_token_file": "a"}, {"admin_read_token_file": "a"}):
        assert not port_rule(load_settings(admin=f"{host}:0", **proof), "admin").is_open
