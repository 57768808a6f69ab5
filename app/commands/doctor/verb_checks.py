"""Checks of the addresses of an extender's verbs, the pods of its requests, and the order of extenders."""

from difflib import get_close_matches
from typing import Final
from urllib.parse import urlsplit

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, HANDBOOK, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.setting_types import split_address

_SERVED: Final = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "preemptVerb": "preempt"}


def _verbs(registration: Registration) -> Found:
    extender = registration.extender
    if not extender.verbs:
        close = "prioritizeVerb: prioritize and weight: 1, for a start"
        yield error(extender.at(), "has no verb, so Kindred is never called", close)
    for field, verb in extender.verbs.items():
        served = _SERVED[field]
        if verb == served:
            continue
        if verb.strip("/") == served:
            yield warning(
                extender.at(field), f"{verb!r} makes a path with an empty part: /{verb}", f"{field}: {served}"
            )
            continue
        meant = get_close_matches(verb.lower(), _SERVED.values(), 1)
        another = "".join(f", which is for {name}" for name, each in _SERVED.items() if each == verb)
        typo = "; a typo?" if meant and not another else ""
        yield error(
            extender.at(field), f"{verb!r}{another}: Kindred serves this verb at /{served}{typo}", f"{field}: {served}"
        )


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
        return
    if url.query or url.fragment:
        yield error(
            where, f"{prefix!r}: kube-scheduler appends the verb, which then ends in the query or fragment", example
        )
    elif url.path.strip("/"):
        verb = url.path.strip("/").rpartition("/")[2]
        hint = "kube-scheduler appends the verb" if verb in _SERVED.values() else "Kindred serves no such path"
        base = f"{url.scheme}://{url.netloc}"
        tell = error if verb in _SERVED.values() else warning
        yield tell(where, f"has the path {url.path}: {hint}, unless a proxy takes it off", f"urlPrefix: {base}")
    if port is None:
        own = split_address(registration.settings.listen).port
        yield warning(
            where,
            f"{prefix!r} has no port, which means {443 if url.scheme == 'https' else 80}; Kindred's is "
            f"{own}{registration.known.remark}",
            f"urlPrefix: {url.scheme}://{url.hostname}:{own}",
        )


def _name(registration: Registration) -> Found:
    host = registration.extender.host
    if host.endswith((".svc", ".svc.cluster.local")):
        yield info(
            registration.extender.at("urlPrefix"),
            f"{host} is a name of the cluster's DNS: a static pod with hostNetwork uses the DNS of the machine",
            "dnsPolicy: ClusterFirstWithHostNet in the pod of kube-scheduler, or the Service's cluster IP as host",
        )


def _managed_resources(registration: Registration) -> Found:
    extender = registration.extender
    if not extender.managed_resources:
        return
    names = ", ".join(each.name for each in extender.managed_resources)
    off = registration.filters_off()
    tell = error if off and extender.filter_verb else warning
    consequence = f"; nobody keeps {', '.join(off)} for the others" if off else ""
    yield tell(
        extender.at("managedResources"),
        f"only pods that request {names} are sent to Kindred{consequence}",
        "take managedResources out",
    )
    ignored = [each.name for each in extender.managed_resources if each.ignored_by_scheduler]
    if ignored:
        yield error(
            extender.at("managedResources"),
            f"{', '.join(ignored)}: ignoredByScheduler, so kube-scheduler does not count it, and neither does Kindred",
            "take ignoredByScheduler out",
        )


def _order(registration: Registration) -> Found:
    order = registration.config.order()
    place = order.index(registration.extender)
    before = [each for each in order[:place] if each.filter_verb]
    behind = [each for each in order[place + 1 :] if each.filter_verb]
    where = registration.extender.at()
    if before and registration.extender.filter_verb:
        names = ", ".join(each.at() for each in before)
        yield info(
            where,
            f"gets only the nodes that {names} leaves: kube-scheduler calls extenders one after another",
            "put Kindred first, if it is fast",
        )
    if behind and registration.settings.percentage_of_nodes_to_score != _ALL and registration.extender.filter_verb:
        yield warning(
            where,
            "returns a sample of the nodes (percentageOfNodesToScore "
            f"{registration.settings.percentage_of_nodes_to_score}), and {', '.join(each.at() for each in behind)} "
            "filters after it: pods stay pending that would fit on another node",
            f"put Kindred last, or {setting('percentage_of_nodes_to_score', '100')}",
        )
    if behind and registration.settings.preempt == "evict":
        yield warning(
            where,
            f"is before {', '.join(each.at() for each in behind)}: Kindred evicts pods for a pod that these may reject",
            f"put Kindred last, or {setting('preempt', 'verb')}",
        )
    written = [each.index for each in order]
    if registration.extender.ignorable and written != sorted(written):
        yield info(where, "is called after the extenders that are not ignorable, whatever the order in the file", "")


_ALL: Final = 100

CHECKS = (
    Check("verb-name", BEHAVIOUR, _verbs),
    Check("url-prefix", EXTENDER_TYPE, _prefix),
    Check("host-name", HANDBOOK, _name),
    Check("managed-resources", EXTENDER_TYPE, _managed_resources),
    Check("extender-order", BEHAVIOUR, _order, of_settings=True),
)
