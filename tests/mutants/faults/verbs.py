"""Faults of the verbs: filter, prioritize, bind and preempt, the queue, and responses from a stale mirror."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="response-sleeps-though-the-watch-shows-the-pod",
        breaks="While pods are created, a decision takes 10 ms longer: the watch does not end its wait.",
        old="with self._mirror.pending.expecting(pod.uid, shown.set), suppress(TimeoutError):",
        new="with self._mirror.pending.expecting(pod.uid, bool), suppress(TimeoutError):",
        tests=("test_pod_lookup.py",),
    ),
    Fault(
        id="deadline-counts-from-the-queue",
        breaks="A request that was long under way has its turn after its client has given up.",
        old="            if now - turn.began > self._deadline:\n",
        new="            if now - since > self._deadline:\n",
        tests=("test_admission.py", "test_shedding.py"),
    ),
    Fault(
        id="client-that-went-away-is-answered",
        breaks="A request whose client went away while it waited is evaluated for nobody.",
        old="            if turn.gone:\n                continue\n",
        new="",
        tests=("test_admission.py", "test_shedding.py"),
    ),
    Fault(
        id="queue-takes-one-more",
        breaks="One request more than KINDRED_QUEUE_LIMIT waits.",
        old="if len(self._queue) < self._queue_limit:",
        new="if len(self._queue) <= self._queue_limit:",
        tests=("test_admission.py", "test_shedding.py"),
    ),
    Fault(
        id="mirror-never-synced-answers",
        breaks="With the policy `answer`, requests are answered from a mirror that was never complete.",
        old="if standing is SyncStatus.STALE and self._answers:",
        new="if self._answers:",
        tests=("test_stale_policy.py",),
    ),
    Fault(
        id="stale-request-not-counted",
        breaks="Requests that meet a stale mirror are missing from the metric.",
        old="        self._count(verb)\n        problems =",
        new="        problems =",
        tests=("test_stale_policy.py",),
    ),
    Fault(
        id="own-labels-pass-in-every-namespace",
        breaks="Any pod that is labelled as Kindred's passes without a filter.",
        old="or (pod.namespace == self._own_namespace and self._own.matches(pod.labels))",
        new="or self._own.matches(pod.labels)",
        tests=("test_bypass.py",),
    ),
    Fault(
        id="unresolvable-nodes-offered-for-preemption",
        breaks="Nodes that no preemption can help are told as if it could, and the other way round.",
        old="texts[status.code is not Code.UNSCHEDULABLE].append(",
        new="texts[status.code is Code.UNSCHEDULABLE].append(",
        tests=("test_extender*.py",),
    ),
    Fault(
        id="passed-on-slots-of-other-nodes",
        breaks="prioritize scores the nodes that have taken the places of those that filter passed on.",
        old="if names and lives == self._nodes.lives and len(names) == end - begin",
        new="if names and len(names) == end - begin",
        tests=("test_known_names.py", "test_extender*.py"),
    ),
    Fault(
        id="known-names-of-other-nodes",
        breaks="Names that are known again have the slots that their nodes had before some came and went.",
        old="        if self._lives != self._nodes.lives:\n            return None\n",
        new="",
        tests=("test_known_names.py", "test_extender*.py"),
    ),
    Fault(
        id="known-name-cut-short",
        breaks="A list that ends in the middle of a known name is taken for one with the whole name.",
        old="if behind < (end if text is body else len(text)) and text[behind] != _COMMA:",
        new="if text is not body and behind > len(text):",
        tests=("test_known_names.py",),
    ),
    Fault(
        id="joined-names-taken-for-distinct",
        breaks="A node that stands twice in a request is answered twice.",
        old="np.concatenate([piece.slots for piece in pieces]), distinct=False)",
        new="np.concatenate([piece.slots for piece in pieces]), distinct=True)",
        tests=("test_known_names.py",),
    ),
    Fault(
        id="heavy-pod-evaluated-again",
        breaks="A pod that takes too much work is evaluated anew for each request.",
        old="            self._to_filter.refused(pod, error)\n",
        new="",
        tests=("test_work_limit.py", "test_extender*.py"),
    ),
    Fault(
        id="doubted-refusal-remembered",
        breaks="A refusal that is not told, as the watch may be late, still counts as one to preempt for.",
        old=(
            "        asked = Asked(pod.full_name, pod.uid, len(batch), len(passed))\n"
            "        doubt = self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None\n"
            "        if doubt is not None and not doubt.told:\n"
        ),
        new=(
            "        asked = Asked(pod.full_name, pod.uid, len(batch), len(passed))\n"
            "        doubt = self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None\n"
            "        if doubt is not None and not doubt.told:\n"
            "            if self._refused_nodes is not None:\n"
            "                self._refused_nodes.note(pod, batch, verdicts)\n"
        ),
        tests=("test_nominations.py", "test_refused_nodes.py", "test_patient_filter.py", "test_preempting.py"),
    ),
    Fault(
        id="recent-pods-shrink-with-repetition",
        breaks="A pod that is asked about again weighs twice, until others are forgotten for it.",
        old="self._bytes += _weight(raw) - (_weight(before.raw) if before is not None else 0)",
        new="self._bytes += _weight(raw)",
        tests=("test_recent_pods.py",),
    ),
    Fault(
        id="new-nomination-inherits-the-doubt",
        breaks="The patience with a nominated node is over at once where another node was nominated before.",
        old="if known is None or known.node != node:",
        new="if known is None:",
        tests=("test_nominations.py",),
    ),
    Fault(
        id="refused-slot-of-another-node",
        breaks="Victims are looked for on the node that has taken the slot of the refused one.",
        old="same = [slot for slot in slots if self._changed_hands.get(slot, 0) <= refusal.node_lives]",
        new="same = slots",
        tests=("test_refused_nodes.py",),
    ),
    Fault(
        id="unknown-binding-forgotten",
        breaks="A pod whose binding may have succeeded no longer counts on its node.",
        old="        if result in {BindingResult.REFUSED, BindingResult.UNREACHABLE}:",
        new="        if result in {BindingResult.REFUSED, BindingResult.UNREACHABLE, BindingResult.UNKNOWN}:",
        tests=("test_binding_failures.py", "test_binding.py", "test_binding_faults.py"),
    ),
    Fault(
        id="refused-binding-stays-assumed",
        breaks="A pod whose binding the API server has refused counts on its node until the TTL is over.",
        old="        if result in {BindingResult.REFUSED, BindingResult.UNREACHABLE}:",
        new="        if result in {BindingResult.UNREACHABLE}:",
        tests=("test_binding_failures.py", "test_binding.py", "test_binding_faults.py"),
    ),
    Fault(
        id="leadership-not-looked-at-before-the-assumption",
        breaks="A replica that loses its Lease while it looks the pod up assumes it all the same.",
        old="        if not_leading := self._not_leading():\n            return not_leading\n        batch =",
        new="        batch =",
        tests=("test_binding_leadership.py", "test_failover.py"),
    ),
    Fault(
        id="binding-ends-with-its-caller",
        breaks="A binding under way is given up when the request that began it ends.",
        old="        return await asyncio.shield(running.task)",
        new="        return await running.task",
        tests=("test_binding.py", "test_binding_failures.py"),
    ),
    Fault(
        id="post-outlasts-the-lease",
        breaks="A binding may be posted when another replica decides already.",
        old="until = min(deadline - _FOR_THE_LOOK * self._timeout, now + self._state.seconds_left())",
        new="until = deadline - _FOR_THE_LOOK * self._timeout",
        tests=("test_binding_leadership.py",),
    ),
    Fault(
        id="conflict-taken-for-a-refusal",
        breaks="A 409 to a binding is not looked into, though the pod may have the node by an earlier attempt.",
        old="return error.code == HTTPStatus.CONFLICT or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR",
        new="return error.code >= HTTPStatus.INTERNAL_SERVER_ERROR",
        tests=("test_binding_failures.py", "test_binding.py"),
    ),
    Fault(
        id="binding-without-uid",
        breaks="A binding goes to whatever pod has the name by then.",
        old='"metadata": {"name": args.name, "namespace": args.namespace, "uid": args.uid},',
        new='"metadata": {"name": args.name, "namespace": args.namespace},',
        tests=("test_binding.py", "test_binding_failures.py"),
    ),
    Fault(
        id="keys-in-other-cases-passed-over",
        breaks="A key of a Go struct that begins with a small letter has to be in small letters as a whole.",
        old="or self._spellings.get(key.lower())\n",
        new="or self._spellings.get(key.lower() if key[:1].isupper() else key)\n",
        tests=("test_go_struct.py", "test_preempt*.py", "test_extender_bad_input.py"),
    ),
    Fault(
        id="bypassed-pod-refused-by-a-stale-mirror",
        breaks="Kindred's own pods are not scheduled while the mirror is stale.",
        old="answer = self._untouched(arrival.body) if refusal else",
        new="answer = None if refusal else",
        tests=("test_verb_endpoint.py", "test_bypass.py", "test_stale_policy.py"),
    ),
    Fault(
        id="largest-score-rounded-up",
        breaks="Scores over 0..max_score are rounded to the nearest number, not down.",
        old="(score * max_score // MAX_NODE_SCORE)",
        new="((score * max_score + MAX_NODE_SCORE // 2) // MAX_NODE_SCORE)",
        tests=("test_extender*.py", "test_node_rows.py"),
    ),
)
