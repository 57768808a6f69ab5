"""Kubeconfig files merged as kubectl merges them, with look-ups by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
import yaml

from app.api_server.credential_errors import ConfigurationError
from app.files import MAX_CONFIGURATION_BYTES, read_file

_KINDS: Final = ("context", "cluster", "user")
_FORM: Final = "empty or not a kubeconfig: clusters, contexts and users are lists of entries with a name"
T = TypeVar("T")


class Entry(NamedTuple, Generic[T]):
    """A context, cluster or user, and the folder that its paths are relative to."""

    value: T
    folder: Path


class KubeconfigFiles:
    """The contexts, clusters and users of some files. Of equal names, the first counts."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read the files. Raises ConfigurationError."""
        self.where = f"kubeconfig {':'.join(files)}"
        self._current: list[object] = []
        self._entries: dict[str, dict[str, Entry[object]]] = {kind: {} for kind in _KINDS}
        for file in files:
            self._load(file)

    def current_context(self) -> str:
        """Return the current context of the first file that has one. Raises ConfigurationError."""
        for current in self._current:
            if isinstance(current, str) and current:
                return current
        raise ConfigurationError(f"{self.where}: no context given and no current-context; {self._there_are('context')}")

    def entry(self, where: str, kind: str, name: str, type_: type[T]) -> Entry[T]:
        """Return the context, cluster or user of a name. Raises ConfigurationError."""
        found = self._entries[kind].get(name)
        if found is None:
            raise ConfigurationError(f"{where}: no {kind} {name}; {self._there_are(kind)}")
        try:
            return Entry(msgspec.convert(found.value or {}, type_), found.folder)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{where}: {kind} {name}: {_explained(kind, str(error))}") from None

    def _load(self, file: str) -> None:
        try:
            config = yaml.safe_load(read_file(Path(file), MAX_CONFIGURATION_BYTES))
        except OSError as error:
            raise ConfigurationError(f"kubeconfig {file}: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigurationError(f"kubeconfig {file}: not YAML: {' '.join(str(error).split())}") from None
        folder = Path(file).absolute().parent
        try:
            self._current.append(config.get("current-context"))
            for kind in _KINDS:
                for entry in config.get(f"{kind}s") or ():
                    if isinstance(name := entry["name"], str):
                        self._entries[kind].setdefault(name, Entry(entry.get(kind), folder))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ConfigurationError(f"kubeconfig {file}: {_FORM}") from None

    def _there_are(self, kind: str) -> str:
        names = ", ".join(self._entries[kind])
        return f"there are: {names}" if names else f"there is no {kind}"


def _explained(kind: str, error: str) -> str:
    """(user, Expected `str`, got `int` - at `$.token`) -> user.token: expected str, got int."""
    message, _, path = error.replace("`", "").partition(" - at $.")
    return f"{kind}{'.' if path else ''}{path}: {message[:1].lower()}{message[1:]}"
