"""How long the event loop was held."""

from prometheus_client import CollectorRegistry

from app.telemetry.metrics.loop_holds import LoopHolds


def test_holds_are_a_histogram_and_the_longest_is_kept() -> None:
    registry = CollectorRegistry()
    holds = LoopHolds(registry)
    for seconds in (0.0005, 0.2, 0.02):
        holds.observe(seconds)
    name = "kindred_event_loop_held_seconds"
    counts = {le: registry.get_sample_value(f"{name}_bucket", {"le": le}) for le in ("0.001", "0.025", "0.25", "+Inf")}
    assert counts == {"0.001": 1, "0.025": 2, "0.25": 3, "+Inf": 3}
    assert registry.get_sample_value("kindred_event_loop_longest_hold_seconds") == 0.2
