"""Units as metrics."""

from app.telemetry.metrics.unit_collector import UnitCollector
from tests.core.gangs.gang_setting import GangSetting, member, node


def samples(setting: GangSetting) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for metric in UnitCollector(setting.gangs, lambda: setting.now).collect()
        for sample in metric.samples
    }


def test_units_are_counted_by_status_with_what_is_reserved_for_them() -> None:
    setting = GangSetting(node("n0"))
    setting.see(member("a"), member("b"), member("x", group="other"))
    setting.ask(member("a"))
    assert samples(setting) == {
        "kindred_unitspending": 1,
        "kindred_unitsscheduling": 0,
        "kindred_unitsreserved": 1,
        "kindred_unitsscheduled": 0,
        "kindred_unitstimed out": 0,
        "kindred_units_reserved_pods": 1,
        "kindred_units_placed_total": 1,
        "kindred_units_timed_out_total": 0,
    }
    setting.now = 60.0
    setting.gangs.begin(setting.now)
    assert samples(setting)["kindred_units_timed_out_total"] == 1
