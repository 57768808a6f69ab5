"""docs/judged.md agrees with the table of judges and the shipped registrations."""

from app.scheduler_configuration.plugin_sets import Profile
from app.scheduler_configuration.schema import WrittenPlugin, WrittenPluginSet
from tests import judged_page
from tests.upstream.judges import FIELDS, PLUGINS, Judge, each

OFF = WrittenPluginSet(disabled=(WrittenPlugin("A"),))
ONE = WrittenPluginSet(enabled=(WrittenPlugin("A"),), disabled=(WrittenPlugin("*"),))


def test_the_page_names_every_field_and_every_plugin_at_its_points() -> None:
    fields = "\n".join(judged_page.fields_table())
    assert all(f"| {row.of} | " in fields and f"`{name.partition('.')[2]}`" in fields for name, row in each(FIELDS))
    plugins = [line.split(" | ")[:2] for line in judged_page.plugins_table()]
    shown = {f"{plugin[2:]}.{point}" for plugin, points in plugins[2:] for point in points.split(", ")}
    assert shown == {name for name, _ in each(PLUGINS)}


def test_what_no_component_judges_is_listed_with_its_consequence() -> None:
    lines = [line.split(" | ") for line in judged_page.open_table()][2:]
    expected = [name for name, row in (*each(FIELDS), *each(PLUGINS)) if row.judge is Judge.NOBODY]
    assert [line[0].removeprefix("| ") for line in lines] == expected
    assert all(line[1] and line[2].removesuffix(" |") for line in lines)


def test_a_profile_has_a_default_plugin_unless_it_or_all_are_disabled() -> None:
    assert judged_page.in_tree(Profile(), "A", "filter")
    assert not judged_page.in_tree(Profile(plugins={"multiPoint": OFF}), "A", "filter")
    assert judged_page.in_tree(Profile(plugins={"multiPoint": OFF}), "B", "filter")
    assert judged_page.in_tree(Profile(plugins={"multiPoint": ONE}), "A", "filter")
    assert not judged_page.in_tree(Profile(plugins={"multiPoint": ONE}), "B", "filter")


def test_what_a_profile_says_for_a_point_wins() -> None:
    profile = Profile(plugins={"score": OFF, "multiPoint": ONE})
    assert judged_page.in_tree(profile, "A", "filter")
    assert not judged_page.in_tree(profile, "A", "score")
    assert not judged_page.in_tree(Profile(plugins={"score": OFF}), "A", "score")
    assert judged_page.in_tree(Profile(plugins={"score": OFF}), "A", "placementScore")
