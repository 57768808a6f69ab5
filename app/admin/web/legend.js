// What the signs on the map stand for, with how many nodes each stands on.

import { contextOf, counted, element } from "./elements.js";
import { drawNode, OTHERS, Palette, symbol } from "./signs.js";

/** @typedef {import("admin-port").Reason} Reason */

const SIZE = 16;

/**
 * @param {HTMLElement} list
 * @param {import("./cluster.js").Cluster} cluster
 */
export function showLegend(list, { columns, signs }) {
  const palette = new Palette();
  const { reasons } = columns;
  const items = [
    item(palette, 0, reasons[0].nodes, element("span", { text: "fits: the fuller the colour, the higher the score" })),
  ];
  for (let sign = 1; sign < OTHERS; sign += 1) {
    const each = reasons[signs.indexOf(sign)];
    if (each) items.push(item(palette, sign, each.nodes, element("span", { text: told(each) })));
  }
  const others = reasons.filter((_, number) => signs[number] === OTHERS);
  if (others.length) items.push(item(palette, OTHERS, sum(others), details(others)));
  list.replaceChildren(...items);
}

/** @param {Reason} reason */
const told = ({ reason, plugin }) => `${reason}${plugin ? ` (${plugin})` : ""}`;
/** @param {Reason[]} reasons */
const sum = (reasons) => reasons.reduce((nodes, each) => nodes + each.nodes, 0);

/**
 * @param {Palette} palette
 * @param {number} sign
 * @param {number} nodes
 * @param {HTMLElement} text
 */
function item(palette, sign, nodes, text) {
  return element("li", {}, swatch(palette, sign), element("strong", { text: nodes.toLocaleString("en") }), text);
}

/**
 * The reasons that share a sign, the most frequent first.
 * @param {Reason[]} reasons
 */
function details(reasons) {
  const ranked = [...reasons].sort((one, other) => other.nodes - one.nodes);
  return element(
    "details",
    {},
    element("summary", { text: counted(reasons.length, "other reason") }),
    element(
      "ul",
      {},
      ...ranked.map((each) => element("li", { text: `${each.nodes.toLocaleString("en")} ${told(each)}` })),
    ),
  );
}

/**
 * A node as it looks on the map.
 * @param {Palette} palette
 * @param {number} sign
 */
function swatch(palette, sign, score = 60) {
  const ratio = window.devicePixelRatio || 1;
  const made = element("canvas", {
    class: "swatch",
    width: SIZE * ratio,
    height: SIZE * ratio,
    "aria-hidden": "true",
    title: symbol(sign),
  });
  const context = contextOf(made);
  context.scale(ratio, ratio);
  drawNode(context, palette, sign, score, [0, 0, SIZE]);
  return made;
}
