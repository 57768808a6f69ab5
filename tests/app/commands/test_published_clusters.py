"""Pods of clusters that people have published: the verdict, and what is said of it (data/published-clusters.yaml)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from app.commands.cli import main

KINDS = yaml.safe_load((Path(__file__).parent / "data/published-clusters.yaml").read_text("utf-8"))
CLUSTERS = [cluster for kind in KINDS.values() for cluster in kind["clusters"]]
NAMESPACE = {"kind": "Namespace", "metadata": {"name": "default"}}
FORMS: Mapping[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "list": lambda items: json.dumps({"apiVersion": "v1", "kind": "List", "items": [NAMESPACE, *items]}).encode(),
    "documents": lambda items: yaml.safe_dump_all(items).encode(),
    "utf-16": lambda items: yaml.safe_dump_all(items).replace("\n", "\r\n").encode("utf-16"),
    "lines": lambda items: "\n".join(map(json.dumps, items)).encode(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_of_each_kind_there_are_three_and_each_has_a_source(kind: str) -> None:
    sources = {cluster["source"].partition(":")[0] for cluster in KINDS[kind]["clusters"]}
    assert len(sources) >= 3
    assert all("#" in source for source in sources)


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda each: each["source"].partition(":")[0])
def test_what_is_said_of_a_pod_is_right(cluster: dict[str, Any], tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    text = FORMS[cluster.get("form", "list")](cluster["objects"]) if "objects" in cluster else None
    dump.write_bytes(text or json.dumps(cluster["export"]).encode())
    pod, release = cluster["pod"], cluster.get("release", "1.36")
    words = ["explain", pod if "/" in pod else f"default/{pod}", "--snapshot", str(dump), "--kubernetes", release]
    result = CliRunner().invoke(main, [*words, "-o", "wide"])
    reported = " ".join(result.output.split())
    assert result.exit_code == cluster["status"], reported
    assert [text for text in cluster["said"] if text not in reported] == [], reported
    assert cluster.get("unsaid", "create the PersistentVolumeClaim") not in reported
