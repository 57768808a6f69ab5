"""Whether kube-scheduler's calls reach Kindred: its address, TLS and time, for all pods and among other extenders."""

from typing import Final
from urllib.parse import urlsplit

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, SETTINGS, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.scheduler_config import DEFAULT_TIMEOUT
from app.scheduler_configuration.schema import TlsConfig, go_duration
from app.settings.settings import wants_certificates
from app.settings.types import split_address

_SERVED: Final = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "preemptVerb": "preempt"}
_CA_LINE: Final = "tlsConfig: {caFile: /etc/kubernetes/kindred/ca.crt}"
_ALL: Final = 100


def _verbs(registration: Registration) -> Found:
    extender = registration.extender
    if not extender.verbs:
        close = "prioritizeVerb: prioritize and weight: 1, for a start"
        yield error(extender.at(), "has no verb, so Kindred is never called", close)
    for field, verb in extender.verbs.items():
        if verb != (served := _SERVED[field]):
            message = f"{verb!r}: kube-scheduler calls /{verb}, and Kindred serves /{served}"
            yield error(extender.at(field), message, f"{field}: {served}")


def _prefix(registration: Registration) -> Found:
    where, prefix = registration.extender.at("urlPrefix"), registration.extender.url_prefix
    example = "urlPrefix: http://kindred.kindred.svc:8888"
    try:
        url = urlsplit(prefix)
        port = url.port
    except ValueError as problem:
        yield error(where, f"{prefix!r} is no URL: {problem}", example)
        return
    if url.scheme not in {"http", "https"} or not url.hostname:
        yield error(where, f"{prefix!r} is no URL that begins with http:// or https://", example)
    elif url.query or url.fragment or url.path.strip("/"):
        ends_in_verb = url.path.strip("/").rpartition("/")[2] in _SERVED.values()
        tell = error if url.query or url.fragment or ends_in_verb else warning
        hint = "kube-scheduler appends the verb to it, and Kindred serves no such path, unless a proxy takes it off"
        yield tell(where, f"{prefix!r}: {hint}", f"urlPrefix: {url.scheme}://{url.netloc}")
    elif port is None:
        own = split_address(registration.settings.listen).port
        yield warning(
            where,
            f"{prefix!r} has no port, which means {443 if url.scheme == 'https' else 80}; Kindred's is "
            f"{own}{registration.remark}",
            f"urlPrefix: {url.scheme}://{url.hostname}:{own}",
        )


def _timeout(registration: Registration) -> Found:
    extender, settings = registration.extender, registration.settings
    if extender.timeout > settings.deadline:
        return
    default = extender.timeout == DEFAULT_TIMEOUT and extender.http_timeout == "0"
    tell = error if extender.bind_verb else warning
    yield tell(
        extender.at("httpTimeout"),
        f"{f'not set, which means {DEFAULT_TIMEOUT:g} s' if default else extender.http_timeout}, and Kindred's "
        f"httpTimeout is {settings.http_timeout:g} s{registration.remark}: Kindred rejects a queued request, and "
        f"gives up a binding, after {settings.deadline:g} s. kube-scheduler closes the connection before, and tries a "
        "pod again that may be bound already",
        f"httpTimeout: {go_duration(settings.http_timeout)}, or {setting('http_timeout', f'{extender.timeout:g}')}",
    )


def _is_https(registration: Registration) -> bool:
    return registration.extender.scheme == "https"


def _tls(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    if not _is_https(registration):
        if extender.enable_https or extender.tls_config is not None:
            yield error(
                extender.at("urlPrefix"),
                f"{extender.url_prefix!r} is plain HTTP: the scheme alone decides, not enableHTTPS or tlsConfig",
                f"urlPrefix: {extender.url_prefix.replace('http://', 'https://', 1)}",
            )
    elif not tls.has_ca and (tls.insecure or extender.enable_https):
        tell = warning if tls.insecure else error
        yield tell(
            extender.at("tlsConfig.insecure" if tls.insecure else "tlsConfig.caFile"),
            f"{'true' if tls.insecure else 'not set, with enableHTTPS'}: kube-scheduler accepts any certificate, so "
            "redirected traffic decides on every pod",
            f"{_CA_LINE}, without insecure",
        )
    elif not tls.has_ca:
        yield warning(
            extender.at("enableHTTPS"),
            "false, with an https URL and no CA: an authority of the machine must have signed the certificate, and "
            "the cluster's CA is none",
            f"enableHTTPS: true, and {_CA_LINE}",
        )


def _tls_of_kindred(registration: Registration) -> Found:
    extender, settings = registration.extender, registration.settings
    tls = extender.tls_config or TlsConfig()
    if settings.tls_directory and not _is_https(registration):
        yield error(
            extender.at("urlPrefix"),
            f"{extender.url_prefix!r} is plain HTTP, but Kindred serves TLS (tlsDirectory): every call fails",
            f"urlPrefix: {extender.url_prefix.replace('http://', 'https://', 1)}, enableHTTPS: true and {_CA_LINE}",
        )
    elif _is_https(registration) and not settings.tls_directory:
        yield error(
            extender.at("urlPrefix"),
            f"{extender.url_prefix!r} is TLS, but Kindred serves plain HTTP (no tlsDirectory): every call fails, "
            "unless a proxy in between terminates TLS",
            f"{setting('tls_directory')}, or an http URL",
        )
    elif wants_certificates(settings) and not tls.has_certificate:
        yield error(
            extender.at("tlsConfig.certFile"),
            "no client certificate, but Kindred requires one (tlsDirectory): every call fails",
            "tlsConfig.certFile and tlsConfig.keyFile",
        )


def _node_cache(registration: Registration) -> Found:
    extender = registration.extender
    if extender.filter_verb and not extender.node_cache_capable:
        yield error(
            extender.at("nodeCacheCapable"),
            "not true: every call carries all Node objects, and after filter, kube-scheduler scores resources as if "
            "the nodes were empty (issue 141781)",
            "nodeCacheCapable: true",
        )


def _managed_resources(registration: Registration) -> Found:
    extender, off = registration.extender, registration.filters_off()
    names = ", ".join(each.name for each in extender.managed_resources)
    if names and off and extender.filter_verb:
        yield error(
            extender.at("managedResources"),
            f"only pods that request {names} are sent to Kindred; nobody filters the others by {', '.join(off)}",
            "take managedResources out",
        )
    ignored = [each.name for each in extender.managed_resources if each.ignored_by_scheduler]
    if ignored:
        yield error(
            extender.at("managedResources"),
            f"{', '.join(ignored)}: ignoredByScheduler, so kube-scheduler does not count it, and neither does Kindred",
            "take ignoredByScheduler out",
        )


def _others(registration: Registration) -> Found:
    order, settings, extender = registration.config.order(), registration.settings, registration.extender
    others = [each for each in registration.config.extenders if each.filter_verb and each is not extender]
    if registration.decided and others:
        names = ", ".join(each.at() for each in others)
        yield error(
            others[0].at("filterVerb"),
            f"{names}: another extender filters, and Kindred does not take its rules into account. Kindred ignores "
            "the result of an extender before it with any-node. An extender after it can only reject the one node, "
            "and the pod is tried again",
            f"take filterVerb out of {names}",
        )
        return
    behind = ", ".join(each.at() for each in order[order.index(extender) + 1 :] if each.filter_verb)
    if behind and settings.percentage_of_nodes_to_score != _ALL and extender.filter_verb:
        yield warning(
            extender.at(),
            f"returns a sample of the nodes (percentageOfNodesToScore {settings.percentage_of_nodes_to_score}), and "
            f"{behind} filters after it: pods stay pending that would fit on another node",
            f"put Kindred last, or {setting('percentage_of_nodes_to_score', '100')}",
        )
    if behind and settings.preempt == "evict":
        yield warning(
            extender.at(),
            f"is before {behind}: Kindred evicts pods for a pod that these may reject",
            f"put Kindred last, or {setting('preempt', 'verb')}",
        )


CHECKS: Final = (
    Check("verb-name", BEHAVIOUR, _verbs),
    Check("url-prefix", EXTENDER_TYPE, _prefix),
    Check("timeout", SETTINGS, _timeout, of_settings=True),
    Check("tls", "kubernetes pkg/scheduler/extender.go (makeTransport)", _tls),
    Check("tls-of-kindred", SETTINGS, _tls_of_kindred, needs_settings=True),
    Check("node-cache-capable", "kubernetes issue 141781", _node_cache),
    Check("managed-resources", EXTENDER_TYPE, _managed_resources),
    Check("other-extenders", BEHAVIOUR, _others, of_settings=True),
)
