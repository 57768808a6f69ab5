"""Faults of explanations: a decision that is told otherwise than it was made."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="last-failing-plugin-blamed",
        breaks="A node is told to have failed by the last predicate that fails there, not the first.",
        old="deciding[(verdicts.codes > 0) & (deciding == 0)] = place",
        new="deciding[verdicts.codes > 0] = place",
        tests=("test_summary.py", "test_bounds.py", "test_golden_cases.py"),
    ),
    Fault(
        id="repelling-term-told-to-attract",
        breaks="The weight of a preferred anti-affinity term is told without its sign.",
        old="            [(each.term, -each.weight) for each in pod.affinity.preferred_anti_affinity],\n        ),",
        new="            [(each.term, each.weight) for each in pod.affinity.preferred_anti_affinity],\n        ),",
        tests=("test_summary.py", "test_bounds.py", "test_golden_cases.py"),
    ),
    Fault(
        id="affecting-terms-told-last",
        breaks="Of very many terms, those that do not affect the node are told.",
        old="key=lambda each: each[3] is Effect.NONE)",
        new="key=lambda each: each[3] is not Effect.NONE)",
        tests=("test_summary.py", "test_bounds.py", "test_golden_cases.py"),
    ),
    Fault(
        id="ties-among-domains-lost",
        breaks="Of many domains with equally many pods, fewer are shown than the limit.",
        old="np.flatnonzero(numbers == least)[: limit - len(above)]",
        new="np.flatnonzero(numbers == least)[: limit - len(above) - 1]",
        tests=("test_summary.py", "test_bounds.py", "test_golden_cases.py"),
    ),
    Fault(
        id="explanation-charged-for-its-terms",
        breaks="A pod that is just within its work is refused an explanation.",
        old="    with mirror.work.uncharged():  # the decision that they are of",
        new="    if mirror is not None:  # the decision that they are of",
        tests=("test_summary.py", "test_work_limit.py"),
    ),
    Fault(
        id="unlabelled-nodes-counted-as-a-domain",
        breaks="Nodes that lack the label count as one more domain with room.",
        old="domains_with_fit=int(np.count_nonzero(fitting[1:])),",
        new="domains_with_fit=int(np.count_nonzero(fitting)),",
        tests=("test_summary.py", "test_bounds.py", "test_golden_cases.py"),
    ),
)
