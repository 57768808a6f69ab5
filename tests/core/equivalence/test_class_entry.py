"""The rows of one class."""

from core.equivalence.cells import Cells, Miss
from core.equivalence.class_entry import ENTRY_BYTES, ClassEntry
from core.equivalence.classes import equivalence_hash
from core.equivalence.rows import ROW_BYTES
from core.objects.pod import Pod
from tests.core.mirror.values import pod

KEY = ("rs-1", "default")


def entry() -> ClassEntry:
    return ClassEntry(KEY, pod("p"), Pod("", "", ""), now=7.0)


def test_a_class_is_known_by_the_hash_of_its_key_and_the_pod_it_was_made_for() -> None:
    made = entry()

    assert made.key == KEY
    assert made.hash == equivalence_hash(KEY)
    assert made.first_pod == "default/p"
    assert made.representative == Pod("", "", "")
    assert (made.made_at, made.asked_at) == (7.0, 7.0)


def test_verdicts_and_raw_scores_of_a_plugin_are_rows_apart() -> None:
    made = entry()

    assert made.filter_row("InterPodAffinity") is not made.score_row("InterPodAffinity")


def test_a_plugin_keeps_its_row() -> None:
    made = entry()

    assert made.filter_row("NodePorts") is made.filter_row("NodePorts")
    assert made.filter_row("NodePorts") is not made.filter_row("NodeName")
    assert made.score_row("ImageLocality") is made.score_row("ImageLocality")


def test_rows_begin_with_why_the_class_is_new() -> None:
    made = entry()
    assert made.filter_row("One").miss is Miss.NEW_CLASS

    made.miss = Miss.EVICTED
    assert made.filter_row("Other").miss is Miss.EVICTED
    assert made.score_row("Other").miss is Miss.EVICTED


def test_a_class_weighs_its_rows_of_both_kinds() -> None:
    made = entry()
    assert made.weigh() == ENTRY_BYTES

    made.filter_row("One").cells = Cells(100, Miss.NEW_CLASS)
    made.score_row("One").cells = Cells(50, Miss.NEW_CLASS)
    assert made.weigh() == ENTRY_BYTES + 2 * ROW_BYTES + 150


def test_the_chain_of_all_filters_is_one_row_more() -> None:
    made = entry()
    made.miss = Miss.EVICTED
    chain = made.chain_row()
    assert made.chain_row() is chain
    assert chain.miss is Miss.EVICTED

    chain.cells = Cells(100, Miss.NEW_CLASS)
    assert made.weigh() == ENTRY_BYTES + ROW_BYTES + 100
