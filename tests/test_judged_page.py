"""Which default plugins a profile of kube-scheduler has."""

from app.scheduler_configuration.plugin_sets import Profile
from app.scheduler_configuration.schema import WrittenPlugin, WrittenPluginSet
from tests import judged_page

OFF = WrittenPluginSet(disabled=(WrittenPlugin("A"),))
ONE = WrittenPluginSet(enabled=(WrittenPlugin("A"),), disabled=(WrittenPlugin("*"),))


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
