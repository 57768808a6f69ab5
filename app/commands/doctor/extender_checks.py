"""Whether kube-scheduler's calls reach Kindred: its address, TLS and time, for all pods and among other extenders."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, HANDBOOK, SETTINGS, Problem, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration, implied_settings
from app.scheduler_configuration.scheduler_config import DEFAULT_PORTS, DEFAULT_TIMEOUT
from app.scheduler_configuration.schema import TlsConfig, go_duration
from app.settings.settings import Settings, is_loopback, wants_certificates
from app.settings.types import split_address

_SERVED: Final = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "preemptVerb": "preempt"}
_CA_LINE: Final = "tlsConfig: {caFile: /etc/kubernetes/kindred/ca.crt}"
_MUTUAL: Final = "{certFile: /etc/kubernetes/kindred/tls.crt, keyFile: /etc/kubernetes/kindred/tls.key}"
_ALL: Final = 100
OTHER_REGISTRATION: Final = "other-registration"
_host: Final = re.compile(r"[\w.-]+|[0-9a-f:.%]+")
_SHIPPED_PORTS: Final[dict[int | None, str]] = {8889: "healthPort", 8890: "admin"}
"""The other ports in manifests/overlays: port -> setting."""


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
    elif not _host.fullmatch(url.hostname):
        yield error(where, f"{url.hostname!r} is the name of no host: every call fails", example)
    elif url.query or url.fragment or url.path.strip("/"):
        ends_in_verb = url.path.strip("/").rpartition("/")[2] in _SERVED.values()
        tell = error if url.query or url.fragment or ends_in_verb else warning
        hint = "kube-scheduler appends the verb to it, and Kindred serves no such path, unless a proxy takes it off"
        is_own = port in {None, split_address(registration.settings.listen).port}
        yield tell(where, f"{prefix!r}: {hint}", f"urlPrefix: {url.scheme}://{url.netloc}" if is_own else example)
    else:
        yield from _port(registration, url)


def _port(registration: Registration, url: SplitResult) -> Found:
    settings, port = registration.settings, url.port
    listens = split_address(settings.listen)
    own = listens.port
    others: dict[int | None, str] = {settings.health_port: "healthPort"}
    if settings.admin:
        others[split_address(settings.admin).port] = "admin"
    if registration.assumed:
        others = _SHIPPED_PORTS
    is_own = f"Kindred's listen is {own}{' (the default)' if registration.assumed else ''}"
    named = port or DEFAULT_PORTS[url.scheme]
    is_written = "listen" in settings.model_fields_set  # the default is for a try
    if named == own and is_written and is_loopback(listens.host) and not is_loopback(url.hostname or ""):
        yield error(
            registration.extender.at("urlPrefix"),
            f"{url.hostname} does not lead to Kindred's listen, {settings.listen}, which only its own pod or machine "
            "reaches: every call fails, unless a proxy beside it takes them",
            setting("listen", f"0.0.0.0:{own}"),
        )
    if named == own:
        return
    host = url.netloc.removesuffix(f":{port or ''}")  # with the brackets of IPv6
    where, fix = registration.extender.at("urlPrefix"), f"urlPrefix: {url.scheme}://{host}:{own}"
    if other := others.get(named):
        yield error(
            where,
            f"{named} is Kindred's port {other}, which serves no verb, and {is_own}: every call fails. kube-scheduler "
            "logs no failed prioritize below -v=5",
            fix,
        )
    else:
        written = f"the port {named}" if port else f"no port, which means {named}"
        yield warning(
            where, f"{written}, and {is_own}: right only where a Service or a proxy leads there", f"otherwise {fix}"
        )


def _same_url(registration: Registration) -> Found:
    extender = registration.extender
    for twin in registration.config.extenders:
        if twin is extender or not twin.is_at(extender.place):
            continue
        twice = ", ".join(sorted(extender.verbs.keys() & twin.verbs.keys()))
        if twice:
            yield error(
                twin.at("urlPrefix"),
                f"the Kindred of {extender.at()} again, with {twice} in both: kube-scheduler calls it twice for each "
                "pod, and its scores count twice",
                f"take {twin.at()} out",
            )
        else:
            yield warning(
                twin.at("urlPrefix"),
                f"the Kindred of {extender.at()} again: what follows is about {extender.at()} alone",
                f"one extender, with {', '.join((extender.verbs | twin.verbs).keys())}",
            )


def _effects(settings: Settings) -> frozenset[str]:
    if settings.decide != "off":
        return frozenset({"decide"})
    on = {"bind": settings.bind, "preempt": settings.preempt != "off"}
    return frozenset(name for name, is_on in on.items() if is_on)


def _registration_of(effects: frozenset[str]) -> str:
    """Return the registration of manifests/scheduler that has such effects."""
    return "decide" if "decide" in effects else "full-offload" if effects else "score-offload"


def _other_registration(registration: Registration) -> Found:
    """Compare who binds, preempts and decides. A difference in one of the first two is for `bind-off` or `preempt`."""
    config, extender, settings = registration.config, registration.extender, registration.settings
    needed, given = _effects(implied_settings(config, extender)), _effects(settings)
    apart = needed ^ given
    if "decide" in given and set(extender.verbs) == {"filterVerb"}:
        left = [profile.name for profile in registration.undecided if not profile.running("filter")]
        if left or not registration.decided:
            yield error(
                setting("decide_schedulers"),
                f"{', '.join(settings.decide_schedulers)}: {_undecided(left)}",
                f"decideSchedulers: [{', '.join(left or [profile.name for profile in config.profiles])}], as in "
                "manifests/overlays/decide",
            )
    elif "decide" in apart or len(apart) > 1:
        registered, set_up = _registration_of(needed), _registration_of(given)
        yield error(
            extender.at(),
            f"is a registration like {registered}, and Kindred's settings are like those of {set_up}. They differ in "
            f"{', '.join(sorted(apart))}. What follows from that is not listed",
            f"the settings of manifests/overlays/{registered}, or manifests/scheduler/{set_up}.yaml",
        )


def _undecided(left: list[str]) -> str:
    if left:
        return (
            f"not the profile {', '.join(left)}, which has no filter: its pods go to any node. What follows from that "
            "is not listed"
        )
    return (
        "no profile of this configuration, so Kindred decides for none of its pods, and kube-scheduler takes any node "
        "that fits"
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
        f"httpTimeout is {settings.http_timeout:g} s: Kindred rejects a queued request, and "
        f"gives up a binding, after {settings.deadline:g} s. kube-scheduler closes the connection before, and tries a "
        "pod again that may be bound already",
        f"httpTimeout: {go_duration(settings.http_timeout)}, or {setting('http_timeout', f'{extender.timeout:g}')}",
    )


def _is_https(registration: Registration) -> bool:
    return registration.extender.url_prefix.lower().startswith("https:")


def _tls(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    if not _is_https(registration):
        if extender.enable_https or extender.tls_config is not None:
            yield error(
                extender.at("urlPrefix"),
                f"{extender.url_prefix!r} is plain HTTP: the scheme alone decides, not enableHTTPS or tlsConfig",
                f"urlPrefix: {extender.url_prefix.replace('http://', 'https://', 1)}",
            )
    elif lone := _lone_half(registration, tls):
        yield lone
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


def _lone_half(registration: Registration, tls: TlsConfig) -> Problem | None:
    """Return a problem of the client certificate, as far as no settings are needed to see it."""
    extender = registration.extender
    given = {"certFile": tls.cert_file or tls.cert_data, "keyFile": tls.key_file or tls.key_data}
    if tls.has_certificate or not (any(given.values()) or (registration.assumed and _effects(registration.settings))):
        return None
    lacking = ", ".join(name for name, value in given.items() if not value)
    why = (
        "without it kube-scheduler sends no client certificate"
        if any(given.values())
        else "Kindred requires a client certificate of those who have pods bound, chosen or evicted"
    )
    tell = error if any(given.values()) else warning
    return tell(
        extender.at(f"tlsConfig.{lacking.partition(',')[0]}"), f"{lacking}: not set; {why}", f"tlsConfig: {_MUTUAL}"
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
    Check(OTHER_REGISTRATION, HANDBOOK, _other_registration, needs_settings=True),
    Check("verb-name", BEHAVIOUR, _verbs),
    Check("url-prefix", EXTENDER_TYPE, _prefix),
    Check("same-url", EXTENDER_TYPE, _same_url),
    Check("timeout", SETTINGS, _timeout, needs_settings=True),
    Check("tls", "kubernetes pkg/scheduler/extender.go (makeTransport)", _tls),
    Check("tls-of-kindred", SETTINGS, _tls_of_kindred, needs_settings=True),
    Check("node-cache-capable", "kubernetes issue 141781", _node_cache),
    Check("managed-resources", EXTENDER_TYPE, _managed_resources),
    Check("other-extenders", BEHAVIOUR, _others),
)
