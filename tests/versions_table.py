"""The tables in docs/versions.md, from the code's tables."""

from collections.abc import Iterator

from core.releases import DIFFERENCES, GATES, RELEASES, Difference, Stage


def differences_table() -> Iterator[str]:
    """Yield the lines of the table of differences, with default feature gates."""
    yield "| plugin | what | answer, by default since | feature gate | source |"
    yield "|---|---|---|---|---|"
    for row in DIFFERENCES:
        gate = f"`{row.gate}`" if row.gate else ""
        yield f"| {_cell(row.where)} | {_cell(row.what)} | {_answers(row)} | {gate} | {_cell(row.source)} |"


def gates_table() -> Iterator[str]:
    """Yield the lines of the table of feature gates."""
    yield "| feature gate | " + " | ".join(map(str, RELEASES)) + " |"
    yield "|---" * (len(RELEASES) + 1) + "|"
    for name, stages in GATES.items():
        yield f"| `{name}` | " + " | ".join(_stage(stages.get(release)) for release in RELEASES) + " |"


def blocks() -> dict[str, str]:
    """Return name -> the table of that name."""
    return {
        name: "\n".join(lines) for name, lines in {"differences": differences_table(), "gates": gates_table()}.items()
    }


def _answers(row: Difference) -> str:
    """Return each behaviour with its first release. If all releases agree, only the gate matters."""
    begun: list[str] = []
    before = ""
    for release, answer in zip(RELEASES, row.defaults(), strict=True):
        if answer.text != before:
            begun.append(f"{release}: {_cell(answer.text)}")
        before = answer.text
    return "<br>".join(begun)


def _stage(stage: Stage | None) -> str:
    if stage is None:
        return ""
    return ("on" if stage.default else "off") + (", locked" if stage.locked else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
