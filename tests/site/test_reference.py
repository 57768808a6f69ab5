"""The reference that is made from the code."""

from app.commands.cli import main
from tests.site import reference


def test_every_command_has_its_help() -> None:
    page = reference.commands()
    assert [name for name in main.commands if f"\n## kindred {name}\n" not in page] == []
    assert "--scheduler-config" in page


def test_the_invalidation_table_has_its_reasons() -> None:
    expected = "| CSIDriver | ADD, UPDATE, DELETE | NodeVolumeLimits | all nodes |"
    assert expected in reference.invalidation_table()


def test_the_routes_of_both_ports_are_listed() -> None:
    scheduler, _, admin = reference.routes().partition("## The admin port")
    assert ("`POST /filter`" in scheduler, "`POST /explain`" in admin) == (True, True)
