// How nodes look: those that fit are filled, darker or brighter by score; those that do not have a pattern for each
// reason, so that nothing depends on colour alone.

const PATTERNS = ["slash", "cross", "dot", "bar", "pole", "ring"];
const SYMBOLS = ["╱", "✕", "•", "━", "┃", "○"];

/** The sign of a class of nodes, 0 for those that fit. */
export const symbol = (number) => (number ? SYMBOLS[(number - 1) % SYMBOLS.length] : "■");

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
    this.classes = PATTERNS.map((_, number) => read(`--class-${number + 1}`));
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
export function drawNode(context, palette, number, score, [x, y, size]) {
  if (!number) {
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
  const color = palette.classes[(number - 1) % PATTERNS.length];
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
  pattern(context, PATTERNS[(number - 1) % PATTERNS.length], x, y, size);
  context.restore();
}

function pattern(context, kind, x, y, size) {
  const middle = [x + size / 2, y + size / 2];
  const inset = size * 0.22;
  const [left, top, right, bottom] = [x + inset, y + inset, x + size - inset, y + size - inset];
  const lines = {
    slash: [[left, bottom, right, top]],
    cross: [[left, bottom, right, top], [left, top, right, bottom]],
    bar: [[left, middle[1], right, middle[1]]],
    pole: [[middle[0], top, middle[0], bottom]],
  }[kind];
  context.beginPath();
  for (const [fromX, fromY, toX, toY] of lines ?? []) {
    context.moveTo(fromX, fromY);
    context.lineTo(toX, toY);
  }
  if (!lines) context.arc(...middle, size * (kind === "dot" ? 0.18 : 0.24), 0, 2 * Math.PI);
  if (kind === "dot") context.fill();
  else context.stroke();
}

function numbers(color) {
  return [1, 3, 5].map((from) => Number.parseInt(color.slice(from, from + 2), 16));
}
