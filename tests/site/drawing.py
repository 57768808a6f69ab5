"""A drawing of boxes and arrows, as SVG that follows the reader's light or dark theme.

SVG instead of Mermaid, whose script comes from a CDN. A plotting library writes files ten times as long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

_STYLE: Final = """
    text { font: 12.5px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
    text.note { font-size: 11.5px; fill: #57606a; }
    text.left { text-anchor: start; }
    rect { fill: #f6f8fa; stroke: #57606a; rx: 5px; }
    rect.own { fill: #ddf4ff; stroke: #0969da; }
    rect.kept { fill: #dafbe1; stroke: #1a7f37; }
    rect.gone { fill: #ffebe9; stroke: #cf222e; }
    path { fill: none; stroke: #57606a; stroke-width: 1.3; marker-end: url(#head); }
    #head path { fill: #57606a; stroke: none; marker-end: none; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } text.note { fill: #9198a1; }
      rect { fill: #212830; stroke: #9198a1; }
      rect.own { fill: #122d4d; stroke: #4493f8; }
      rect.kept { fill: #12361f; stroke: #3fb950; }
      rect.gone { fill: #3d1618; stroke: #f85149; }
      path { stroke: #9198a1; } #head path { fill: #9198a1; }
    }"""
_HEAD: Final = (
    '  <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    ' orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)
_LINE: Final = 16
"""Pixels from one line of text to the next."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with lines of text in its middle. `look` is a class of the style: own, kept, gone, or none."""

    x: int
    y: int
    width: int
    height: int
    text: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line over points, with a head at its end."""

    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Lines of small text; `left` begins at the point, otherwise the point is their middle."""

    x: int
    y: int
    text: str
    left: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """All parts with the size, in pixels, and the title for readers who do not see it."""

    title: str
    width: int
    height: int
    parts: tuple[Box | Arrow | Note, ...]

    def svg(self) -> str:
        """Return the drawing as an SVG document, which is the same for the same parts."""
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"  <title>{escape(self.title)}</title>",
            f"  <style>{_STYLE}\n  </style>",
            _HEAD,
            *(f"  {line}" for part in self.parts for line in _drawn(part)),
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _drawn(part: Box | Arrow | Note) -> Iterator[str]:
    match part:
        case Box():
            look = f' class="{part.look}"' if part.look else ""
            yield f'<rect x="{part.x}" y="{part.y}" width="{part.width}" height="{part.height}"{look}/>'
            yield from _text(part.x + part.width // 2, part.y + part.height // 2, part.text, "")
        case Arrow():
            points = "L".join(f"{x} {y}" for x, y in part.points)
            yield f'<path d="M{points}"/>'
        case Note():
            yield from _text(part.x, part.y, part.text, "note left" if part.left else "note")


def _text(x: int, y: int, text: str, look: str) -> Iterator[str]:
    lines = text.split("\n")
    first = y + 4 - _LINE * (len(lines) - 1) // 2
    shown = f' class="{look}"' if look else ""
    for number, line in enumerate(lines):
        yield f'<text x="{x}" y="{first + _LINE * number}"{shown}>{escape(line)}</text>'
