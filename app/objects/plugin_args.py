"""Arguments of plugins: decodes upstream's *Args by plugin to the arguments of the core's constructors.

Each plugin says what its arguments are: `Plugin.arguments`, or its constructor.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from inspect import signature
from operator import or_
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from app.objects.decode import NULL, DecodeError, decoding, decoding_field, members_of, quantity_of, under
from app.objects.decode_placement import WireNodeAffinity, WireSpreadConstraint, node_affinity_of, topology_spread_of
from app.settings.settings import Settings, SettingsError
from core.framework.arguments import Args, Keywords
from core.framework.interface import Plugin
from core.objects.affinity import NodeAffinity
from core.objects.pod import SpreadConstraint
from core.plugins import PLUGINS
from core.profile import COMPOSITES, Arguments, todays_name

S = TypeVar("S", bound=msgspec.Struct)


def strict(wire: type[S]) -> type[S]:
    """Return a subclass of a wire struct that forbids unknown fields, at every depth."""
    fields = []
    for each in msgspec.structs.fields(wire):
        annotation = with_structs(each.type, strict)
        if annotation is not each.type:
            as_before: Any = {
                "default": each.default,
                "default_factory": each.default_factory,
                "name": each.encode_name,
            }
            fields.append((each.name, annotation, msgspec.field(**as_before)))
    derived: Any = msgspec.defstruct(wire.__name__, fields, bases=(wire,), forbid_unknown_fields=True)
    return derived  # type: ignore[no-any-return]  # of dynamic bases


def with_structs(annotation: Any, replace: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # any annotation
    """Return a type with each struct in it replaced. A type without structs is returned unchanged."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return replace(annotation)
    parts = get_args(annotation)
    derived = tuple(with_structs(part, replace) for part in parts)
    if derived == parts:
        return annotation
    origin = get_origin(annotation)
    return reduce(or_, derived) if origin in {Union, UnionType} else origin[derived]


_GROUP: Final = "kubescheduler.config.k8s.io"


def _node_affinity(raw: msgspec.Raw) -> NodeAffinity:
    return node_affinity_of(b'{"nodeAffinity":' + bytes(raw) + b"}", NULL)


_OF_KUBERNETES: Final[Mapping[Any, tuple[Any, Callable[[msgspec.Raw], object]]]] = {
    NodeAffinity: (strict(WireNodeAffinity) | None, _node_affinity),
    tuple[SpreadConstraint, ...]: (list[strict(WireSpreadConstraint)] | None, topology_spread_of),  # type: ignore[misc]  # derived
}
"""Type of an argument that is written as an object of Kubernetes -> that object, and its parser."""


def plugin_arguments(settings: Settings) -> Arguments:
    """Return plugin -> arguments for the plugins with arguments in the settings. Raises SettingsError."""
    try:
        return decode_plugin_args(settings.plugin_args) if settings.plugin_args else {}
    except DecodeError as error:
        raise SettingsError(f"KINDRED_PLUGIN_ARGS: {error}") from None


def decode_plugin_args(text: str) -> Arguments:
    """Read a JSON object, plugin -> *Args, and check the arguments, also of disabled plugins. Raises DecodeError."""
    arguments: dict[str, Keywords] = {}
    for name, raw in members_of(text.encode(errors="surrogateescape")).items():
        plugin = todays_name(name)
        if plugin in COMPOSITES:
            raise DecodeError(plugin, f"has no arguments of its own, but {', '.join(COMPOSITES[plugin])} may")
        if plugin not in PLUGINS:
            raise DecodeError(name, f"unknown plugin; there are {', '.join(sorted(PLUGINS))}")
        if plugin in arguments:
            raise DecodeError(name, f"the arguments of {plugin} are already given under its other name")
        with under(plugin):
            arguments[plugin] = _keywords(plugin, raw)
    return arguments


def _keywords(name: str, raw: msgspec.Raw) -> Keywords:
    plugin = PLUGINS[name]
    args = decoding(msgspec.json.Decoder(args_type_of(plugin)).decode, raw)
    if args.kind not in {None, f"{name}Args"}:
        raise DecodeError("kind", f"expected {name}Args, got {args.kind}")
    if args.api_version is not None and not args.api_version.startswith(f"{_GROUP}/"):
        raise DecodeError("apiVersion", f"expected {_GROUP}/v1, got {args.api_version}")
    try:
        keywords = args.keywords(quantity_of)
        for each in msgspec.structs.fields(args):
            if each.type is msgspec.Raw and each.name in keywords:
                wire, parse = _OF_KUBERNETES[signature(plugin).parameters[each.name].annotation]
                decoding_field(msgspec.json.Decoder(wire).decode, keywords[each.name], each.encode_name)
                keywords[each.name] = parse(keywords[each.name])
        plugin(**keywords)
    except ValueError as error:
        field, colon, message = str(error).partition(": ")
        if field.startswith("[") or not colon:  # upstream writes several errors as a list, each with its own path
            field, message = "", str(error)
        raise DecodeError(field, message) from None
    return keywords


def args_type_of(plugin: type[Plugin]) -> type[Args]:
    """Return the arguments of a plugin as people write them."""
    if plugin.arguments is not None:
        return plugin.arguments
    fields = [
        (each.name, msgspec.Raw, NULL)
        if each.annotation in _OF_KUBERNETES
        else (each.name, each.annotation | None, None)
        for each in signature(plugin).parameters.values()
    ]
    return msgspec.defstruct(plugin.__name__, fields, bases=(Args,))  # type: ignore[return-value]  # of this base
