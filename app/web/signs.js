// How nodes look: those that fit are filled, darker or brighter by score; those that do not have a pattern for each of
// the most frequent reasons, so that nothing depends on colour alone.

const COLORS = 6;
// Two patterns that share a colour are as different as can be.
const PATTERNS = ["slash", "cross", "dot", "bar", "pole", "ring", "triangle", "square", "backslash", "diamond", "chevron", "plus", "dots"];
const SYMBOLS = "■╱✕•━┃○△□╲◇∨+∴";

/** The sign that the rarer reasons share. */
export const OTHERS = PATTERNS.length;

/** The sign of each reason, by its number: 0 for the nodes that fit, then the most frequent reason first. */
export function signsOf(reasons) {
  const signs = new Array(reasons.length).fill(0);
  const ranked = [...reasons.keys()].slice(1).sort((one, other) => reasons[other].nodes - reasons[one].nodes || one - other);
  ranked.forEach((number, rank) => (signs[number] = Math.min(rank + 1, OTHERS)));
  return signs;
}

/** A sign as a character. */
export const symbol = (sign) => SYMBOLS[sign];

/** The colours that the style has at the moment. */
export class Palette {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.text = read("--text");
    this.muted = read("--muted");
    this.surface = read("--surface");
    this.line = read("--line");
    this.low = numbers(read("--fit-low"));
    this.high = numbers(read("--fit-high"));
    this.classes = PATTERNS.map((_, place) => (place + 1 === OTHERS ? this.text : read(`--class-${(place % COLORS) + 1}`)));
  }

  fit(score) {
    const share = score === null ? 0.5 : Math.min(Math.max(score, 0), 100) / 100;
    return this.low.map((from, part) => Math.round(from + (this.high[part] - from) * share));
  }

  /** Black or white, whichever is told apart better from a colour. */
  over(rgb) {
    const [red, green, blue] = rgb.map((part) => ((part / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
  }
}

/** Draw one node. */
export function drawNode(context, palette, sign, score, [x, y, size]) {
  if (!sign) {
    const rgb = palette.fit(score);
    context.fillStyle = `rgb(${rgb.join(" ")})`;
    context.fillRect(x, y, size, size);
    if (size >= 19 && score !== null) {
      context.fillStyle = palette.over(rgb);
      context.font = `${Math.min(12, size * 0.45)}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(String(score), x + size / 2, y + size / 2 + 0.5);
    }
    return;
  }
  const color = palette.classes[sign - 1];
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.fillStyle = context.strokeStyle = color;
  context.globalAlpha = 0.22;
  context.fillRect(x, y, size, size);
  context.globalAlpha = 1;
  context.lineWidth = Math.max(1, size / 9);
  context.strokeRect(x, y, size, size);
  pattern(context, PATTERNS[sign - 1], x, y, size);
  context.restore();
}

const SLASH = [[0, 1], [1, 0]];
const BACKSLASH = [[0, 0], [1, 1]];
const BAR = [[0, 0.5], [1, 0.5]];
const POLE = [[0.5, 0], [0.5, 1]];
// Lines through points of a square.
const LINES = {
  slash: [SLASH],
  cross: [SLASH, BACKSLASH],
  bar: [BAR],
  pole: [POLE],
  backslash: [BACKSLASH],
  plus: [BAR, POLE],
  triangle: [[[0, 0.9], [0.5, 0], [1, 0.9], [0, 0.9], [0.5, 0]]],
  square: [[[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.1], [0.9, 0.1]]],
  diamond: [[[0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5], [0.5, 0], [1, 0.5]]],
  chevron: [[[0, 0.2], [0.5, 0.8], [1, 0.2]]],
};
// Circles: where, how large, and whether they are filled.
const CIRCLES = {
  dot: [[0.5, 0.5, 0.32, true]],
  ring: [[0.5, 0.5, 0.43, false]],
  dots: [[0.5, 0.1, 0.17, true], [0.05, 0.9, 0.17, true], [0.95, 0.9, 0.17, true]],
};

function pattern(context, kind, x, y, size) {
  const [inset, room] = [size * 0.22, size * 0.56];
  const point = ([across, down]) => [x + inset + across * room, y + inset + down * room];
  for (const line of LINES[kind] ?? []) {
    context.beginPath();
    line.forEach((each) => context.lineTo(...point(each)));
    context.stroke();
  }
  for (const [across, down, radius, filled] of CIRCLES[kind] ?? []) {
    context.beginPath();
    context.arc(...point([across, down]), radius * room, 0, 2 * Math.PI);
    if (filled) context.fill();
    else context.stroke();
  }
}

function numbers(color) {
  return [1, 3, 5].map((from) => Number.parseInt(color.slice(from, from + 2), 16));
}
