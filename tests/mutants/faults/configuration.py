"""Faults of the configuration: the order of sources, rejected values, and messages."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="settings-of-gigabytes",
        breaks="A file of settings whose aliases stand for gigabytes takes all memory.",
        old="        refuse_traps(text, _Loader)\n        loader = ",
        new="        loader = ",
        tests=("test_configuration_file.py",),
    ),
    Fault(
        id="file-wins-over-the-environment",
        breaks="A value of the file wins over the environment's.",
        old="        values.update(found)\n",
        new="        values = {**found, **values}\n",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="source-of-a-flag-not-told",
        breaks="A value that a flag has set is told to be from the environment.",
        old="        (given, flag_of),",
        new="        (given, variable_of),",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="service-links-told-as-slips",
        breaks="Variables that Kubernetes sets for a Service called kindred are told as misspelt settings.",
        old="if ours and variable not in known and not _SERVICE_LINKS.fullmatch(variable):",
        new="if ours and variable not in known:",
        tests=("test_configuration.py",),
    ),
    Fault(
        id="admin-port-open-beyond-the-loopback",
        breaks="The admin port listens on all addresses without a token or a certificate.",
        old="if is_open else ())",
        new="if not is_open else ())",
        tests=("test_settings.py", "test_configuration.py"),
    ),
    Fault(
        id="effects-without-a-certificate",
        breaks="The scheduler's port binds and evicts for every client of a network.",
        old="    return PortRule(is_open, effects(settings))",
        new="    return PortRule(is_open, ())",
        tests=("test_settings.py", "manifests/test_overlay_settings.py"),
    ),
    Fault(
        id="a-verb-that-names-victims-is-no-effect",
        breaks="`preempt: verb` tells every client of a network uids of pods that it did not name.",
        old="""        "preempt": settings.preempt != "off",""",
        new="""        "preempt": settings.preempt == "evict",""",
        tests=("test_settings.py",),
    ),
    Fault(
        id="a-directory-that-lost-its-authorities-opens-the-port",
        breaks="A service that binds serves every client if its Secret has no authorities.",
        old="    if settings.tls_client_names or (effects(settings) and not is_alone):",
        new="    if settings.tls_client_names:",
        tests=("tls/test_server_context.py",),
    ),
    Fault(
        id="token-for-prometheus-over-plain-http",
        breaks="The token for Prometheus is sent over plain HTTP, where everybody on the way reads it.",
        old='if getattr(self, name) and not self.usage_prometheus_url.lower().startswith("https:"):',
        new="if getattr(self, name) and not self.usage_prometheus_url:",
        tests=("test_usage_feed.py",),
    ),
    Fault(
        id="password-in-an-error",
        breaks="The error of a URL with a password repeats the password.",
        old="""    return name in Settings.model_fields and not name.endswith("_url")""",
        new="    return name in Settings.model_fields",
        tests=("test_setting_types.py",),
    ),
    Fault(
        id="password-in-escapes",
        breaks="A password whose colon and @ are percent-encoded passes as the name of a host.",
        old="""    if not is_url or "%" in parts.netloc or""",
        new="""    if not is_url or""",
        tests=("test_setting_types.py",),
    ),
)
