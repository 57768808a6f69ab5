// How nodes look: those that fit are filled, darker or brighter by score; those that do not have a pattern for each of
// the most frequent reasons, so that nothing depends on colour alone. By use they are filled by its share: of one hue,
// from bright to dark, as no kind of colour blindness hides brightness. What is not known of a node is an outline.

import { contextOf, element } from "./elements.js";

/**
 * @typedef {[number, number, number]} Square left, top and size
 * @typedef {[number, number]} Point
 */

const COLORS = 6;
const SWATCH = 16;
// Two patterns that share a colour are as different as can be.
const PATTERNS = [
  "slash",
  "cross",
  "dot",
  "bar",
  "pole",
  "ring",
  "triangle",
  "square",
  "backslash",
  "diamond",
  "chevron",
  "plus",
  "dots",
];
const SYMBOLS = "■╱✕•━┃○△□╲◇∨+∴";

/** The sign that the rarer reasons share. */
export const OTHERS = PATTERNS.length;

/**
 * The sign of each reason, by its number: 0 for the nodes that fit, then the most frequent reason first.
 * @param {import("admin-port").Reason[]} reasons
 */
export function signsOf(reasons) {
  /** @type {number[]} */
  const signs = new Array(reasons.length).fill(0);
  const ranked = [...reasons.keys()]
    .slice(1)
    .sort((one, other) => reasons[other].nodes - reasons[one].nodes || one - other);
  ranked.forEach((number, rank) => {
    signs[number] = Math.min(rank + 1, OTHERS);
  });
  return signs;
}

/**
 * A sign as a character.
 * @param {number} sign
 */
export const symbol = (sign) => SYMBOLS[sign];

/** The colours that the style has at the moment. */
export class Palette {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    /** @param {string} name of a pair of colours, light-dark(#…, #…) */
    const read = (name) => (style.getPropertyValue(name).match(/#\w+/g) ?? [])[Number(dark)];
    this.text = read("--text");
    this.muted = read("--muted");
    this.surface = read("--surface");
    this.line = read("--line");
    this.low = numbers(read("--fit-low"));
    this.high = numbers(read("--fit-high"));
    this.empty = numbers(read("--use-low"));
    this.full = numbers(read("--use-high"));
    this.classes = PATTERNS.map((_, place) =>
      place + 1 === OTHERS ? this.text : read(`--class-${(place % COLORS) + 1}`),
    );
  }

  /**
   * Black or white, whichever is told apart better from a colour.
   * @param {number[]} rgb
   */
  over(rgb) {
    const [red, green, blue] = rgb.map((part) => ((part / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
  }
}

/**
 * Draw one node.
 * @param {CanvasRenderingContext2D} context
 * @param {Palette} palette
 * @param {number} sign
 * @param {{ text: string, share: number }} score of a node that fits: as text, and between the lowest and the highest
 * @param {Square} square
 */
export function drawNode(context, palette, sign, { text, share }, [x, y, size]) {
  if (!sign) {
    const rgb = between(palette.low, palette.high, share);
    context.fillStyle = `rgb(${rgb.join(" ")})`;
    context.fillRect(x, y, size, size);
    if (size >= 19) write(context, palette.over(rgb), text, [x, y, size]);
    return;
  }
  context.drawImage(stampOf(palette.classes[sign - 1], sign, size, context.getTransform().a), x, y, size, size);
}

/**
 * Draw one node by the share that is requested of what it offers; null: it offers nothing.
 * @param {CanvasRenderingContext2D} context
 * @param {Palette} palette
 * @param {number | null} share
 * @param {Square} square
 */
export function drawUse(context, palette, share, [x, y, size]) {
  context.lineWidth = 1;
  if (share === null) {
    context.strokeStyle = palette.line;
    context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    return;
  }
  const rgb = between(palette.empty, palette.full, share);
  context.fillStyle = `rgb(${rgb.join(" ")})`;
  context.fillRect(x, y, size, size);
  if (share > 1) {
    context.strokeStyle = palette.over(rgb);
    context.lineWidth = Math.max(1, size / 9);
    pattern(context, "cross", x, y, size);
  } else if (size >= 19) {
    write(context, palette.over(rgb), String(Math.floor(share * 100)), [x, y, size]);
  }
}

/**
 * A sign of the legend, as it looks on the map.
 * @param {(context: CanvasRenderingContext2D, palette: Palette, square: Square) => void} draw
 */
export function swatchOf(draw, title = "") {
  const ratio = window.devicePixelRatio || 1;
  const side = SWATCH * ratio;
  const made = element("canvas", { class: "swatch", width: side, height: side, "aria-hidden": "true", title });
  const context = contextOf(made);
  context.scale(ratio, ratio);
  draw(context, new Palette(), [0, 0, SWATCH]);
  return made;
}

/**
 * A line of the legend.
 * @param {HTMLElement} swatch
 * @param {number} nodes
 * @param {string | HTMLElement} text
 */
export const legendItem = (swatch, nodes, text) =>
  element("li", {}, swatch, element("strong", { text: nodes.toLocaleString("en") }), element("span", {}, text));

/** @type {Map<string, HTMLCanvasElement>} */
const stamps = new Map();
const MAX_STAMPS = 100;

/**
 * A sign drawn once: thousands of nodes share it, and to copy it takes a tenth of the time.
 * @param {string} color
 * @param {number} sign
 * @param {number} size
 * @param {number} ratio pixels of the canvas for one of the page
 */
function stampOf(color, sign, size, ratio) {
  const key = [color, sign, size, ratio].join();
  const known = stamps.get(key);
  if (known) return known;
  if (stamps.size >= MAX_STAMPS) stamps.clear();
  const made = document.createElement("canvas");
  made.width = Math.max(1, Math.round(size * ratio));
  made.height = made.width;
  const context = contextOf(made);
  context.scale(ratio, ratio);
  context.fillStyle = color;
  context.strokeStyle = color;
  context.globalAlpha = 0.22;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 1;
  context.lineWidth = Math.max(1, size / 9);
  context.strokeRect(0, 0, size, size);
  pattern(context, PATTERNS[sign - 1], 0, 0, size);
  stamps.set(key, made);
  return made;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} color
 * @param {string} text
 * @param {Square} square
 */
function write(context, color, text, [x, y, size]) {
  context.fillStyle = color;
  context.font = `${Math.min(12, size * 0.45)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, x + size / 2, y + size / 2 + 0.5);
}

/**
 * Lines through points of a square.
 * @type {Record<string, Point[][]>}
 */
// prettier-ignore
const LINES = {
  slash: [[[0, 1], [1, 0]]],
  backslash: [[[0, 0], [1, 1]]],
  cross: [[[0, 1], [1, 0]], [[0, 0], [1, 1]]],
  bar: [[[0, 0.5], [1, 0.5]]],
  pole: [[[0.5, 0], [0.5, 1]]],
  plus: [[[0, 0.5], [1, 0.5]], [[0.5, 0], [0.5, 1]]],
  triangle: [[[0, 0.9], [0.5, 0], [1, 0.9], [0, 0.9], [0.5, 0]]],
  square: [[[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.1], [0.9, 0.1]]],
  diamond: [[[0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5], [0.5, 0], [1, 0.5]]],
  chevron: [[[0, 0.2], [0.5, 0.8], [1, 0.2]]],
};
/**
 * Circles: where, how large, and whether they are filled.
 * @type {Record<string, [number, number, number, boolean][]>}
 */
// prettier-ignore
const CIRCLES = {
  dot: [[0.5, 0.5, 0.32, true]],
  ring: [[0.5, 0.5, 0.43, false]],
  dots: [[0.5, 0.1, 0.17, true], [0.05, 0.9, 0.17, true], [0.95, 0.9, 0.17, true]],
};

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
function pattern(context, kind, x, y, size) {
  const [inset, room] = [size * 0.22, size * 0.56];
  /**
   * @param {Point} point
   * @returns {Point}
   */
  const point = ([across, down]) => [x + inset + across * room, y + inset + down * room];
  for (const line of LINES[kind] ?? []) {
    context.beginPath();
    for (const each of line) context.lineTo(...point(each));
    context.stroke();
  }
  for (const [across, down, radius, filled] of CIRCLES[kind] ?? []) {
    context.beginPath();
    context.arc(...point([across, down]), radius * room, 0, 2 * Math.PI);
    if (filled) context.fill();
    else context.stroke();
  }
}

/**
 * Red, green and blue of #rrggbb.
 * @param {string} color
 */
function numbers(color) {
  return [1, 3, 5].map((from) => Number.parseInt(color.slice(from, from + 2), 16));
}

/**
 * @param {number[]} low
 * @param {number[]} high
 * @param {number} share
 */
function between(low, high, share) {
  const within = Math.min(Math.max(share, 0), 1);
  return low.map((from, part) => Math.round(from + (high[part] - from) * within));
}
