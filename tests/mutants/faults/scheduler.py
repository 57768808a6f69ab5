"""Faults of explanations by the scheduler's configuration: wrong plugins, wrong judge, and wrong weights."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="written-default-keeps-its-weight",
        breaks="A default plugin that is written without a weight keeps its default weight.",
        old="return written[plugin] or 1  #",
        new="return written[plugin] or _WEIGHTS.get(plugin, 1)  #",
        tests=("test_plugin_sets.py",),
    ),
    Fault(
        id="plugin-that-is-enabled-twice-starts",
        breaks="kube-scheduler does not start with a plugin that is enabled twice, and the doctor says nothing.",
        old="            elif count > 1:",
        new="            elif count > 2:",
        tests=("test_scheduler_config.py",),
    ),
    Fault(
        id="nothing-binds-and-it-starts",
        breaks="Everything is off at multiPoint, no plugin sorts or binds, and the doctor says nothing.",
        old="        if not profile.order(point):\n            yield",
        new="        if not point:\n            yield",
        tests=("test_scheduler_config.py",),
    ),
    Fault(
        id="decided-pod-passes-by-its-namespace",
        breaks="A pod of a bypassed namespace passes, and its scheduler without filters places it on any node.",
        old="pod.namespace in self._namespaces and not self._decides_for(pod)",
        new="pod.namespace in self._namespaces",
        tests=("test_scopes.py",),
    ),
    Fault(
        id="other-filters-first",
        breaks="Plugins that only an extension point names are asked before those of multiPoint.",
        old="first = [*overriding, *expanded, *written]",
        new="first = [*written, *expanded]",
        tests=("test_plugin_sets.py",),
    ),
    Fault(
        id="extender-without-verb-scores",
        breaks="Kindred's scores count where its extender has no prioritizeVerb.",
        old="scores = kindred.prioritize_verb",
        new="scores = True",
    ),
    Fault(
        id="extender-weight-unscaled",
        breaks="Kindred's scores weigh a tenth of what kube-scheduler makes of them.",
        old="kindred.weight * self._max_score * _SCALE",
        new="kindred.weight * self._max_score",
    ),
    Fault(
        id="managed-resources-ignored",
        breaks="An extender for a resource is taken for one that is asked about all pods.",
        old="return not self.managed_resources or any(",
        new="return True or any(",
    ),
    Fault(
        id="ignored-by-scheduler-added",
        breaks="Resources that the plugin's arguments ignore stay ignored where an extender manages others.",
        old='with_argument(found, "ignored_resources", ignored) if',
        new='with_argument(found, "ignored_resources", [*found["NodeResourcesFit"]["ignored_resources"], *ignored]) if',
        tests=("test_scheduler_plugins.py",),
    ),
    Fault(
        id="kindreds-arguments-for-the-schedulers",
        breaks="A plugin that kube-scheduler runs is judged by Kindred's arguments.",
        old="for plugin in own.filters if not changed.get(plugin.name)}",
        new="for plugin in own.filters}",
        tests=("test_scheduler_plugins.py", "test_scheduler_profiles.py"),
    ),
    Fault(
        id="answered-by-the-schedulers-arguments",
        breaks="What `filter` returns is told by the arguments of kube-scheduler's plugin.",
        old="if all(judged.get(plugin.name) is plugin for plugin in served.filters):",
        new="if judged:",
        tests=("test_explained_profile.py",),
    ),
    Fault(
        id="refusal-of-kindred-wakes-by-no-event",
        breaks="A pod that only Kindred refuses seems to wait forever.",
        old="    return found if len(plugins) == len(deciding) else [*found, ANY_EVENT]",
        new="    return found",
        tests=("test_explained_profile.py",),
    ),
    Fault(
        id="scheduler-of-pods-forgotten",
        breaks="Pending pods of two schedulers are of one class, and judged by the profile of one.",
        old="return (*apart, explained.scheduler, classifier.key",
        new="return (*apart, classifier.key",
        tests=("test_pending_command.py", "test_pending.py"),
    ),
    Fault(
        id="bypassed-pod-is-judged-by-kindred",
        breaks="An explanation says that rules of Kindred keep pods off nodes that it passes untouched.",
        old="called = self._kindred is not None and not passes and self._kindred",
        new="called = self._kindred is not None and self._kindred",
        tests=("app/explain/test_bypassed.py",),
    ),
    Fault(
        id="disabled-preemption-preempts",
        breaks="Preemption is proposed to pods whose profile has it disabled.",
        old="*([preempted] if decision.explained.preempts else ()),",
        new="preempted,",
        tests=("app/explain/test_scheduler_plugins.py",),
    ),
    Fault(
        id="kindred-evicts-for-pods-that-it-does-not-filter",
        breaks="Preemption by Kindred is proposed to pods that kube-scheduler does not ask it about.",
        old="preempts=(self._evicts and bool(extender.filters))",
        new="preempts=self._evicts",
        tests=("app/explain/test_scheduler_plugins.py",),
    ),
    Fault(
        id="bypassed-pod-has-rules-that-kube-scheduler-lacks",
        breaks="A rule of Kindred alone keeps pods off nodes that it passes untouched, without a configuration.",
        old="replace(self._untouched, scheduler=explained.scheduler)",
        new="replace(explained, served=NO_RULES)",
        tests=("app/explain/test_bypassed.py",),
    ),
)
