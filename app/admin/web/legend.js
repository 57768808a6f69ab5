// What the signs on the map stand for, with how many nodes each stands on.

import { counted, element } from "./elements.js";
import { drawNode, OTHERS, swatchOf, symbol } from "./signs.js";

/** @typedef {import("admin-port").Reason} Reason */

const SCORE = 60; // of the node in the legend that fits

/**
 * @param {HTMLElement} list
 * @param {import("./cluster.js").JudgedCluster} cluster
 */
export function showLegend(list, { judged, signs, passes }) {
  const { reasons } = judged;
  const items = [
    item(0, reasons[0].nodes, element("span", { text: `${passes}: the fuller the colour, the higher the score` })),
  ];
  for (let sign = 1; sign < OTHERS; sign += 1) {
    const each = reasons[signs.indexOf(sign)];
    if (each) items.push(item(sign, each.nodes, element("span", { text: told(each) })));
  }
  const others = reasons.filter((_, number) => signs[number] === OTHERS);
  if (others.length) items.push(item(OTHERS, sum(others), details(others)));
  list.replaceChildren(...items);
}

/** @param {Reason} reason */
const told = ({ reason, plugin, judged_by: judge }) => `${reason}${plugin ? ` (${plugin}${byScheduler(judge)})` : ""}`;

/**
 * Whether Kindred's own `filter` leaves a rule to the scheduler.
 * @param {Reason["judged_by"]} judge
 */
const byScheduler = (judge) => (judge === "kube-scheduler" ? ", judged by kube-scheduler itself" : "");
/** @param {Reason[]} reasons */
const sum = (reasons) => reasons.reduce((nodes, each) => nodes + each.nodes, 0);

/**
 * @param {number} sign
 * @param {number} nodes
 * @param {HTMLElement} text
 */
function item(sign, nodes, text) {
  return element("li", {}, swatch(sign), element("strong", { text: nodes.toLocaleString("en") }), text);
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
 * @param {number} sign
 */
const swatch = (sign) =>
  swatchOf((context, palette, square) => drawNode(context, palette, sign, SCORE, square), symbol(sign));
