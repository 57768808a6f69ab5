"""docs/judged.md has a row for each field of a Pod and each default plugin of every release, and no other row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from app.objects.decode_pod import WirePod
from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.scheduler_configuration.schema import KNOWN, POINTS
from core.plugins import DEFAULTS
from core.plugins import PLUGINS as OF_KINDRED
from tests.e2e.binaries import RELEASES as BUILT
from tests.upstream.judges import FIELDS, PLUGINS, UPSTREAM, Judge, Row, each, in_tree, releases_of_field
from tests.upstream.recording import Upstream, encoded, file_of

RELEASES: Final = [*UPSTREAM.values()]
ROWS: Final = {**dict(each(FIELDS)), **dict(each(PLUGINS))}
DECIDING: Final = Path("manifests/scheduler/decide.yaml")
SIDES: Final = {"filter": "filter", "score": "score"}
"""Extension point -> the method of Kindred's plugin. What the other points prepare is inside of these two."""
RENDERED: Final = {
    "Pod.kind",
    "ObjectMeta.annotations",
    "ObjectMeta.creationTimestamp",
    "ObjectMeta.generateName",
    "ObjectMeta.resourceVersion",
    "OwnerReference.uid",
    "PodSpec.schedulerName",
    "PodCondition.lastTransitionTime",
    "PodCondition.message",
}
"""Fields that Kindred decodes although no node depends on them by the rules of kube-scheduler.

Kindred checks the kind, finds gangs by annotations, shows the times and the message, and chooses its scope by the
scheduler's name.
"""


def reached(upstream: Upstream, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield TYPE.FIELD for each field that needs a row: all of a Pod, but for those in values of no effect."""
    seen, left = set[str](), ["Pod"]
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        for field, value in upstream.fields.get(kind, {}).items():
            yield f"{kind}.{field}"
            if (row := rows.get(f"{kind}.{field}")) is not None and row.judge is not Judge.NO_EFFECT:
                left.append(value)


def points(upstream: Upstream) -> Iterator[str]:
    for name, plugin in upstream.plugins.items():
        yield from (f"{name}.{point}" for point in plugin.points)


def problems(rows: Mapping[str, Row], releases: Sequence[Upstream]) -> list[str]:
    """Return the fields and plugins without a row, and the rows without a field or plugin."""
    there = {
        name: upstream.kubernetes for upstream in releases for name in (*reached(upstream, rows), *points(upstream))
    }
    missing = [f"{name} of {release} has no row" for name, release in there.items() if name not in rows]
    return missing + [f"no release has {name}" for name in rows if name not in there]


def test_every_field_and_every_plugin_of_each_release_has_one_row() -> None:
    assert problems(ROWS, RELEASES) == []
    counted = Counter(name for name, _ in (*each(FIELDS), *each(PLUGINS)))
    assert [name for name, times in counted.items() if times > 1] == []


def test_a_row_that_is_taken_out_is_missed_and_so_is_a_field_that_a_release_brings() -> None:
    for name in ROWS:
        without = {other: row for other, row in ROWS.items() if other != name}
        assert any(found.startswith(f"{name} of v1.") for found in problems(without, RELEASES)), name
    newest = RELEASES[-1]
    for kind, found in (("Volume", 1), ("PodSchedulingGroup", 1), ("Probe", 0)):  # the last is in values of no effect
        fields = {**newest.fields, kind: {**newest.fields[kind], "teapot": ""}}
        assert len(problems(ROWS, [*RELEASES, replace(newest, fields=fields)])) == found, kind
    assert problems({**ROWS, "Probe.exec": ROWS["Pod.kind"]}, RELEASES) == ["no release has Probe.exec"]


def test_a_value_that_is_judged_as_a_whole_is_in_a_field_that_has_a_judge() -> None:
    whole = {row.of for row in FIELDS if row.judge is Judge.WHOLE}
    for upstream in RELEASES:
        holders = [
            ROWS[f"{kind}.{field}"].judge
            for kind, fields in upstream.fields.items()
            for field, value in fields.items()
            if value in whole and f"{kind}.{field}" in ROWS
        ]
        assert holders
        assert not {*holders} & {Judge.PARTS, Judge.NO_EFFECT}


def test_a_row_has_a_source_and_the_releases_of_its_fields_and_what_nobody_judges_has_a_consequence() -> None:
    for name, row in each(FIELDS):
        assert bool(row.source) == (row.judge is not Judge.PARTS), name
        field = name.partition(".")[2]
        dated = releases_of_field(row.of, field)
        assert (f"`{field}`: {dated}" in row.note.split("<br>")) if dated else (f"`{field}`: " not in row.note), name
    assert all(row.note for row in PLUGINS if row.judge is Judge.NOBODY)


def test_kindred_has_the_plugins_and_modules_that_judge_a_field_and_the_side_that_judges_at_a_point() -> None:
    for row in PLUGINS:
        if row.judge is Judge.KINDRED:
            assert {SIDES[point] for point in row.names if point in SIDES} <= {*dir(OF_KINDRED[row.of]())}, row.of
    for name, row in each(FIELDS):
        assert bool(row.by) is (row.judge in {Judge.KINDRED, Judge.RETAINED, Judge.CLAIMS, Judge.GROUPS}), name
        if row.judge is Judge.KINDRED:
            assert all(by in OF_KINDRED or Path(by).exists() for by in row.by), name


def decoded(structs: Iterable[Any], kind: str) -> Iterator[tuple[str, bool]]:
    """Yield the fields of a type with whether the decoder has them, for all values that are judged by parts."""
    wires = {field.encode_name: field.type for struct in structs for field in msgspec.structs.fields(struct)}
    fields = {name: value for upstream in RELEASES for name, value in upstream.fields.get(kind, {}).items()}
    for field, value in fields.items():
        yield f"{kind}.{field}", field in wires
        if value and field in wires and ROWS[f"{kind}.{field}"].judge is Judge.PARTS:
            yield from decoded([*structs_in(wires[field])], value)


def structs_in(found: Any) -> Iterator[Any]:  # noqa: ANN401  # a type, of any form
    """Yield the structs in a type such as `list[Container] | None`, also of a field that is kept as bytes at first."""
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        yield found
    for part in found if isinstance(found, tuple) else get_args(found):
        yield from structs_in(part)


def test_what_kindred_judges_is_decoded_wherever_a_pod_has_it() -> None:
    found = [*decoded([WirePod], "Pod")]
    judged = {name for name, row in each(FIELDS) if row.judge in {Judge.KINDRED, Judge.PARTS}}
    assert [name for name, there in found if not there and name in judged] == []
    assert judged == {name for name, _ in found} & judged


def test_what_kindred_decodes_is_judged_or_shown() -> None:
    names = {name for name, there in decoded([WirePod], "Pod") if there and ROWS[name].judge is Judge.NO_EFFECT}
    # The structs of containers are shared: an ephemeral container has neither ports nor resources.
    assert {name for name in names if not name.startswith("EphemeralContainer.")} == RENDERED


def test_the_shipped_profiles_of_decide_have_the_plugins_that_the_table_leaves_to_them() -> None:
    decide, claims, groups = load_scheduler_config(DECIDING).profiles
    for row in PLUGINS:
        for point in row.names:
            assert in_tree(groups, row.of, point), row.of
            if row.judge is Judge.RETAINED:
                assert in_tree(decide, row.of, point), row.of
            elif row.judge is Judge.CLAIMS:
                assert in_tree(claims, row.of, point), row.of
                assert not in_tree(decide, row.of, point), row.of
            elif row.judge is Judge.KINDRED:
                assert not in_tree(decide, row.of, point), row.of
    for name, row in each(FIELDS):
        profile = {Judge.RETAINED: decide, Judge.CLAIMS: claims, Judge.GROUPS: groups}.get(row.judge)
        assert profile is None or all(in_tree(profile, plugin, "preEnqueue") for plugin in row.by), name


def test_plugin_sets_know_the_plugins_and_no_point_that_no_release_has() -> None:
    assert {*KNOWN} == {name for upstream in RELEASES for name in upstream.plugins}
    there = {name for upstream in RELEASES for name in points(upstream)}
    assert {f"{name}.{point}" for name, plugin in DEFAULTS.items() for point in plugin.points} <= there
    assert {*POINTS} - {"multiPoint"} == {point for upstream in RELEASES for point in upstream.points}


def test_each_known_release_is_recorded_whole_from_the_patch_release_that_is_built() -> None:
    for release, found in UPSTREAM.items():
        assert found.kubernetes == BUILT[release]
        assert len([*reached(found, ROWS)]) > 250
        assert len([*points(found)]) > 45
        assert file_of(release).read_bytes() == encoded(found)
