"""Kubeconfig files as the Kubernetes client for Python merges them, with look-ups by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec
import yaml

from app.api_server.credential_errors import ConfigurationError

if TYPE_CHECKING:
    from kubernetes.config.kube_config import ConfigNode

T = TypeVar("T")


class Entry(NamedTuple, Generic[T]):
    """A context, cluster or user, and the folder that its paths are relative to."""

    value: T
    folder: Path


class KubeconfigFiles:
    """The contexts, clusters and users of some files. Of equal names, the first counts."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read the files. Raises ConfigurationError."""
        from kubernetes.config import kube_config  # noqa: PLC0415  # big and slow: only where a live cluster is used

        self.where = f"kubeconfig {':'.join(files)}"
        self._merged = kube_config.KubeConfigMerger("")  # type: ignore[no-untyped-call]  # has no annotations
        for file in files:
            self._load(file)

    def current_context(self) -> str:
        """Return the current context of the first file that has one. Raises ConfigurationError."""
        # The merger takes the last one, which may be another cluster. kubectl takes the first.
        for config in self._merged.config_files.values():
            current = config.get("current-context")
            if isinstance(current, str) and current:
                return current
        raise ConfigurationError(f"{self.where}: no context given and no current-context; {self._there_are('context')}")

    def entry(self, where: str, kind: str, name: str, type_: type[T]) -> Entry[T]:
        """Return the context, cluster or user of a name. Raises ConfigurationError."""
        for node in self._nodes(kind):
            if node.value["name"] == name:
                try:
                    value = msgspec.convert(node.value.get(kind) or {}, type_)
                except msgspec.ValidationError as error:
                    raise ConfigurationError(f"{where}: {kind} {name}: {_explained(kind, str(error))}") from None
                return Entry(value, Path(node.path).absolute().parent)
        raise ConfigurationError(f"{where}: no {kind} {name}; {self._there_are(kind)}")

    def _load(self, file: str) -> None:
        from kubernetes.config import ConfigException  # noqa: PLC0415  # as above

        problem: str | None = None
        try:
            self._merged.load_config(file)  # type: ignore[no-untyped-call]  # has no annotations
        except OSError as error:
            problem = error.strerror
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            problem = f"not YAML: {' '.join(str(error).split())}"
        except (ConfigException, AttributeError, KeyError, TypeError, ValueError):
            problem = "empty or not a kubeconfig: clusters, contexts and users are lists of entries with a name"
        if problem:
            raise ConfigurationError(f"kubeconfig {file}: {problem}")

    def _nodes(self, kind: str) -> "list[ConfigNode]":
        nodes: list[ConfigNode] = self._merged.config.value[f"{kind}s"]
        return [node for node in nodes if isinstance(node.value, dict) and isinstance(node.value.get("name"), str)]

    def _there_are(self, kind: str) -> str:
        names = ", ".join(node.value["name"] for node in self._nodes(kind))
        return f"there are: {names}" if names else f"there is no {kind}"


def _explained(kind: str, error: str) -> str:
    """(user, Expected `str`, got `int` - at `$.token`) -> user.token: expected str, got int."""
    message, _, path = error.replace("`", "").partition(" - at $.")
    return f"{kind}{'.' if path else ''}{path}: {message[:1].lower()}{message[1:]}"
