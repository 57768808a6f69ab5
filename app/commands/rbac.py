"""`kindred rbac`: the minimal roles that Kindred needs with some settings, as manifests for the API server.

Each request has its rule next to its code: `Resource.rbac_rule`, RBAC_RULES, `lease_api.rbac_rules` and MARK_RULE.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import click
import yaml

from app.api_server import lease_api
from app.commands.options import clear_errors, output_option, settings_options, warn
from app.commands.output import FORMATS, Line, OutputFormat, print_document, print_output, represent_text, table
from app.feeds import usage_feed
from app.objects.resources import RESOURCES, rule_text
from app.settings.configuration import load_configuration
from app.settings.settings import Settings, key_of, text_of
from app.simulation.objects_at_hand import OF_OWNERS
from app.verbs import executor as preemption_api
from app.verbs import pods
from app.wiring.engine import create_profile, followed_kinds

NAME: Final = "kindred"
"""The name of all objects, and the namespace by default."""
_WIDTH: Final = 116
"""Columns of the settings in the head: yamllint allows lines of 120."""
_GROUP: Final = "rbac.authorization.k8s.io"
_DECIDING: Final = (
    "profile",
    "plugin_args",
    "preempt",
    "bind",
    "leader_election",
    "decide",
    "decide_claims_scheduler",
    "decide_groups_scheduler",
    "usage_source",
    "admin",
    "usage_prometheus_url",
)
_IN_THE_HEAD: Final = _DECIDING[: _DECIDING.index("usage_prometheus_url")]


def cluster_rules(settings: Settings) -> list[dict[str, Any]]:
    """Return the rules for the whole cluster, one for each resource. Raises SettingsError."""
    profile = create_profile(settings)
    kinds = followed_kinds(settings, profile)
    rules = [RESOURCES[kind].rbac_rule for kind in kinds]
    if settings.bind:
        rules += pods.RBAC_RULES
    if settings.decide != "off":
        rules.append(pods.GET_RULE)  # to look up a pod that the watch does not show yet
    if settings.preempt == "evict":
        rules += preemption_api.RBAC_RULES
    if settings.usage_source == "metrics-api":
        rules.append(usage_feed.RBAC_RULE)
    if settings.admin:
        rules += [rule_text(each.group, [each.plural]) for each in OF_OWNERS]  # for questions about what would happen
    return _merged(rules)


def namespaced_rules(settings: Settings) -> list[dict[str, Any]]:
    """Return the rules in Kindred's own namespace: for leader election, and to mark that a replica takes over."""
    rules = lease_api.rbac_rules(settings.leader_election) if settings.elects else ()
    marks = (lease_api.MARK_RULE,) if settings.elects or settings.decide != "off" else ()
    return [_parsed(rule) for rule in (*rules, *marks)]


def rbac_documents(settings: Settings, *, account: str = NAME, namespace: str = NAME) -> list[dict[str, Any]]:
    """Return roles and their bindings for a service account. Raises SettingsError."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    documents = [*_granted("Cluster", {"name": NAME}, cluster_rules(settings), subject)]
    if own := namespaced_rules(settings):
        documents += _granted("", {"name": NAME, "namespace": namespace}, own, subject)
    return documents


def rbac_text(settings: Settings, *, account: str = NAME, namespace: str = NAME) -> str:
    """Return the same as YAML, with its purpose. Raises SettingsError."""
    made_for = ", ".join(f"{key_of(name)} {_comment(getattr(settings, name))}" for name in _IN_THE_HEAD)
    lines = wrap(made_for, _WIDTH, break_long_words=False, break_on_hyphens=False)
    head = "# Made by `kindred rbac`, the least for:\n"
    head += "".join(f"#   {line}\n" for line in lines)
    documents = rbac_documents(settings, account=account, namespace=namespace)
    return head + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False)


def _merged(rules: Iterable[str]) -> list[dict[str, Any]]:
    """Convert lines of YAML to rules, one for each resource, with all its verbs in the order of the lines."""
    verbs: dict[tuple[str, str], dict[str, None]] = {}
    for rule in map(_parsed, rules):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs.setdefault((group, resource), {}).update(dict.fromkeys(rule["verbs"]))
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [*allowed]}
        for (group, resource), allowed in verbs.items()
    ]


def _parsed(rule: str) -> dict[str, list[str]]:
    loaded: dict[str, list[str]] = yaml.safe_load("{" + rule + "}")
    return loaded


def _granted(
    scope: str, metadata: Mapping[str, str], rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    kind, head = f"{scope}Role", {"apiVersion": f"{_GROUP}/v1"}
    yield {**head, "kind": kind, "metadata": metadata, "rules": rules}
    reference = {"apiGroup": _GROUP, "kind": kind, "name": metadata["name"]}
    yield {**head, "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]}


def _comment(value: object) -> str:
    return (
        " ".join(text_of(value).split()) or "none"
    )  # arguments of plugins may have several lines, and this is a comment


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes lists of names on one line and uses no references."""

    def represent_sequence(
        self,
        tag: str,
        sequence: Iterable[Any],
        flow_style: bool | None = None,  # noqa: ARG002, FBT001  # the signature of the library
    ) -> yaml.SequenceNode:
        items = list(sequence)
        return super().represent_sequence(tag, items, flow_style=all(isinstance(item, str) for item in items))

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # the signature of the library
        return True


_Dumper.add_representer(str, represent_text)


@click.command("rbac", params=settings_options(_DECIDING))
@click.option("--service-account", default=NAME, show_default=True, help="Who is allowed.")
@click.option("--namespace", default=NAME, show_default=True, help="Namespace of the service account.")
@output_option(FORMATS, OutputFormat.YAML)
def rbac_command(
    *, service_account: str, namespace: str, output: OutputFormat, config: Path | None, **flags: str | None
) -> None:
    """Print the minimal roles that Kindred needs with these settings, and their bindings."""
    with clear_errors():
        configuration = load_configuration(config, flags)
        text = rbac_text(configuration.settings, account=service_account, namespace=namespace)
        documents = rbac_documents(configuration.settings, account=service_account, namespace=namespace)
    warn(configuration)
    if output is OutputFormat.YAML:
        print_document(text, nl=False)
        return
    listed = {"apiVersion": "v1", "kind": "List", "items": documents}
    print_output(output, listed, partial(_rules_text, documents), map(_name, documents))


def _rules_text(documents: Sequence[Mapping[str, Any]], *, wide: bool) -> Sequence[Line]:
    rows = [
        (document["kind"], group, " ".join([resource, *rule.get("resourceNames", ())]), " ".join(rule["verbs"]))
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    return table(("ROLE", "GROUP", "RESOURCE", "VERBS"), rows, 0, wide=wide)


def _name(document: Mapping[str, Any]) -> str:
    """Return the name as kubectl prints it: RESOURCE.GROUP/NAME."""
    return f"{document['kind'].lower()}.{_GROUP}/{document['metadata']['name']}"
