"""Faults of dumps: what a file has is dropped or misread, or what it lacks is taken for empty."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="demo-of-another-year",
        breaks="The pending pods of the demo wait since the day on which it was made.",
        old="    passed = datetime.fromtimestamp(int(now), UTC) - _TAKEN\n",
        new="    passed = _TAKEN - _TAKEN\n",
        tests=("app/commands/test_dump.py",),
    ),
    Fault(
        id="kind-that-a-dump-lacks-is-empty",
        breaks="A claim that was not dumped is said not to exist, and to be created.",
        old="        return [Namespace, *lacks] if self.unnamed else lacks\n",
        new="        return []\n",
        tests=("app/commands/test_dump.py", "test_dump_text.py"),
    ),
    Fault(
        id="empty-list-says-nothing",
        breaks="A dump that says that there is no claim leaves the volume rules unjudged.",
        old="    if not items and item_kind in RESOURCE_OF:\n",
        new="    if False:\n",
    ),
    Fault(
        id="claim-that-was-not-found-may-be-there",
        breaks="The scheduler's own word that a claim is not there counts for nothing.",
        old="    if PersistentVolumeClaim in missing and _lacks_a_claim(pod):\n",
        new="    if False:\n",
        tests=("app/commands/test_dump.py",),
    ),
    Fault(
        id="namespaces-judged-by-labels-that-nobody-dumped",
        breaks="A namespaceSelector selects no namespace of a dump without Namespaces, whatever their labels are.",
        old="        return missing if _reads_namespaces(mirror, pod) else {*missing} - {Namespace}\n",
        new="        return {*missing} - {Namespace}\n",
        tests=("app/commands/test_dump.py",),
    ),
    Fault(
        id="terms-of-others-read-no-namespaces",
        breaks="Another pod's term by the labels of namespaces keeps nobody away from it.",
        old="    others = (each.matcher for each in mirror.affinity.by_namespace(pod.namespace, pod.labels))\n",
        new="    others: Iterator[PodMatcher] = iter(())\n",
        tests=("app/commands/test_dump.py",),
    ),
    Fault(
        id="older-object-counts",
        breaks="Of an object that a folder has twice the one that was read last counts.",
        old="            if decoded == before or _version(decoded) <= _version(before):\n",
        new="            if decoded == before:\n",
        tests=("test_dump_text.py",),
    ),
    Fault(
        id="json-text-after-the-first-dropped",
        breaks="Of several JSON texts in a file the first one counts.",
        old="        start += length\n",
        new="        return\n",
        tests=("test_dump_text.py", "test_yaml_documents.py"),
    ),
    Fault(
        id="yaml-of-a-second-command-replaces-the-first",
        breaks="YAML of two commands in one file is one mapping, whose last list counts.",
        old='        texts = views_of_documents(_separated(b"".join(_without_logs(text))))\n',
        new='        texts = views_of_documents(b"".join(_without_logs(text)))\n',
    ),
    Fault(
        id="member-of-an-export-dropped",
        breaks="Objects of an export in a member that is not known are dropped without a word.",
        old='        if bytes(value)[:1] == b"[" or name in _OF_EXPORT:\n',
        new="        if name in _OF_EXPORT:\n",
    ),
    Fault(
        id="gzip-read-whole",
        breaks="A short file that unpacks to very much takes all memory before a limit stops it.",
        old="                yield unzip.decompress(rest, _AT_ONCE)\n",
        new="                yield unzip.decompress(rest)\n",
        tests=("app/commands/test_dump.py",),
    ),
)
