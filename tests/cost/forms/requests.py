"""Forms of requests: ExtenderArgs with odd names and nodes, explanations, manifests."""

import base64
from collections.abc import Callable
from typing import Any, Final

from tests.bench.cluster import HOST, node_name
from tests.cost.attack import ROOM, Object, grown, grown_map, longest
from tests.cost.forms.form import Form, expression, pod

_ANY: Final = "decoding"


def _names(name: str, make: Callable[[int], list[str]], *, of_issue: bool = False) -> Form:
    def document(size: int) -> Object:
        return {"Pod": pod({}), "Nodes": None, "NodeNames": make(size - ROOM)}

    return Form(name, "names", "question", document, of_issue=of_issue)


def _items(name: str, item: Callable[[int], Object]) -> Form:
    def document(size: int) -> Object:
        return {"Pod": pod({}), "Nodes": {"metadata": {}, "items": grown(size - ROOM, item)}, "NodeNames": None}

    return Form(name, "nodes", "question", document)


def _one_item(name: str, make: Callable[[int], Object]) -> Form:
    def document(size: int) -> Object:
        return {"Pod": pod({}), "Nodes": {"metadata": {}, "items": [make(size - ROOM)]}, "NodeNames": None}

    return Form(name, "nodes", "question", document)


def _explain(name: str, make: Callable[[int], Any]) -> Form:
    return Form(name, "explain", "explain", lambda size: make(size - ROOM))


def _yaml(name: str, make: Callable[[int], str], *, of_issue: bool = False) -> Form:
    return Form(name, "manifest", "manifest", make, of_issue=of_issue, sizes=(16384, 65536, 160_000))


def _one_long_name(size: int) -> list[str]:
    """One long name and many short ones: for 878 KB, a name of 100,000 characters and 90,000 names."""
    return [
        longest(size // 9),
        *grown(size - size // 9, lambda index: base64.b32encode(b"%d" % index).decode()[:5] + str(index)),
    ]


def _item(index: int, **metadata: Any) -> Object:  # noqa: ANN401 - JSON
    return {"metadata": {"name": f"n-{index}", **metadata}}


def _wide_pod(index: int) -> Object:
    """Return a pod with its own term, for a supposition."""
    term = {"labelSelector": {"matchExpressions": [expression(f"k-{index}", "Exists")]}, "topologyKey": f"k-{index}"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod({"affinity": affinity}, {"name": f"s-{index}", "uid": f"s-{index}"})


def _assumed(index: int) -> Object:
    return {"pod": _wide_pod(index), "node": node_name(index % 5000)}


def _template(size: int) -> Object:
    selector = {"nodeSelector": grown_map(size, lambda index: (f"k-{index}", "v"))}
    return {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"spec": selector}}}


def _listed(size: int, spec: Callable[[int], Object], other: Callable[[int], Object]) -> Object:
    """Return a pod beside other objects, each with half of the size."""
    of = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec(size // 2)}}
    return {"kind": "List", "items": [of, *grown(size // 2, other)]}


def _limit_range(index: int) -> Object:
    limits = {"limits": [{"type": "Pod"}, {"type": "Container", "default": {"cpu": "1"}}]}
    return {"kind": "LimitRange", "metadata": {"name": f"l-{index}"}, "spec": limits}


def _static_volume(index: int) -> Object:
    """Return a claim or a volume of a class that does not exist, so that one is looked for among all of the others."""
    kind, spec = ("PersistentVolume", {"capacity": {"storage": "1"}}) if index % 2 else ("PersistentVolumeClaim", {})
    return {"kind": kind, "metadata": {"name": f"v-{index}"}, "spec": {"storageClassName": "x", **spec}}


def _aliases(size: int) -> str:
    """Repeat one long scalar: half of the text is the scalar, the other half its aliases."""
    aliases = ",".join(["*a"] * (size // 2 // 3))
    return f"a: &a {longest(size // 2)}\nb: [{aliases}]\n"


def _laughs(size: int) -> str:
    levels = max(2, min(size // 60, 40))
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines) + "\n" + "#" * max(0, size - 60 * levels)


def _merges(size: int) -> str:
    line = ", ".join(f"k{index}: v" for index in range(size // 20))
    merges = "\n".join(f"m{index}: {{<<: *a}}" for index in range(size // 2 // 20))
    return f"a: &a {{{line}}}\n{merges}\n"


FORMS: Final = [
    _names("names-one-long", _one_long_name, of_issue=True),
    _names("names-unknown", lambda size: grown(size, lambda index: f"u-{index}")),
    _names(
        "names-known-and-one-unknown",
        lambda size: ["u", *grown(size, lambda i: node_name(i % 5000) + "x" * (i // 5000))],
    ),
    _names("names-duplicates", lambda size: grown(size, lambda index: node_name(index % 5000))),
    _names("names-limit-long", lambda size: grown(size, lambda index: f"{index:0253d}")),
    _names("names-escaped", lambda size: grown(size, lambda index: f"\x01{index}")),
    _names("names-wide-characters", lambda size: grown(size, lambda index: f"\U0001f600{index}")),
    _names("names-empty", lambda size: grown(size, lambda _: "")),
    _items("items-unknown", _item),
    _items("items-empty", lambda _: {}),
    _items("items-labels", lambda index: _item(index, labels={f"k-{index}": "v", HOST: f"h-{index}"})),
    _items(
        "items-taints",
        lambda index: {**_item(index), "spec": {"taints": [{"key": f"k-{index}", "effect": "NoSchedule"}]}},
    ),
    _items("items-images", lambda index: {**_item(index), "status": {"images": [{"names": [f"i-{index}"]}]}}),
    _items("items-resources", lambda index: {**_item(index), "status": {"allocatable": {f"e.com/r-{index}": "1"}}}),
    _one_item("item-labels", lambda size: _item(0, labels=grown_map(size, lambda index: (f"k-{index}", "v")))),
    _one_item("item-name-long", lambda size: {"metadata": {"name": longest(size)}}),
    Form("fields-unknown", _ANY, "question", lambda size: grown_map(size, lambda index: (f"f-{index}", 0))),
    Form("not-an-object", _ANY, "question", lambda size: grown(size, lambda _: 0)),
    Form("text-alone", _ANY, "question", lambda size: {"Pod": longest(size - 100), "NodeNames": ["a"]}),
    _explain("explain-adding-nodes", lambda size: {"pod": pod({}), "add_nodes": grown(size, _item)[:1000]}),
    _explain("explain-assuming", lambda size: {"pod": pod({}), "assume": grown(size, _assumed)[:1000]}),
    _explain(
        "explain-removing", lambda size: {"pod": pod({}), "remove": grown(size, lambda i: f"ns-000/p-{i}")[:1000]}
    ),
    _explain("explain-long-remove", lambda size: {"pod": pod({}), "remove": [longest(size)]}),
    _explain("explain-names", lambda size: {"pod": pod({}), "node_names": grown(size, lambda i: f"u-{i}")}),
    _explain("explain-one-long-name", lambda size: {"pod": pod({}), "node_names": _one_long_name(size)}),
    _explain("explain-long-text", lambda size: {"pod": "ns-000/" + longest(size)}),
    _explain("explain-template", _template),
    _explain(
        "explain-limit-ranges",
        lambda size: _listed(
            size, lambda half: {"containers": grown(half, lambda i: {"name": f"c-{i}"})}, _limit_range
        ),
    ),
    _explain(
        "explain-static-claims",
        lambda size: _listed(size, lambda half: {"volumes": grown(half, lambda i: {"name": f"v-{i}"})}, _static_volume),
    ),
    _yaml("yaml-long-aliases", _aliases, of_issue=True),
    _yaml("yaml-laughs", _laughs),
    _yaml("yaml-merges", _merges),
    _yaml("yaml-deep", lambda size: "[" * (size // 2) + "]" * (size // 2)),
    _yaml("yaml-deep-blocks", lambda size: "- " * (size // 2)),
    _yaml("yaml-documents", lambda size: "--- {}\n" * (size // 7)),
    _yaml("yaml-keys", lambda size: "".join(f"k{index}: v\n" for index in range(size // 9))),
    _yaml("yaml-number-keys", lambda size: "".join(f"1.{index}: v\n" for index in range(size // 9))),
    _yaml("json-texts", lambda size: "{}" * (size // 2)),
    _yaml("yaml-complex-keys", lambda size: "? " * (size // 2)),
    _yaml("yaml-long-number", lambda size: "a: " + "9" * size),
    _yaml("yaml-sexagesimal", lambda size: "a: 1" + ":1" * (size // 2)),
    _yaml("yaml-escapes", lambda size: 'a: "' + "\\x01" * (size // 4) + '"'),
    _yaml("yaml-anchors", lambda size: "a: [" + ",".join(f"&a{index} x" for index in range(size // 9)) + "]"),
    _yaml("yaml-indents", lambda size: "\n".join(" " * level + "a:" for level in range(int((2 * size) ** 0.5) - 2))),
]
