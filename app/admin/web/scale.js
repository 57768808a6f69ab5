// The scale of the layers that show shares: its steps, and the legend with how many nodes are in each.

import { element } from "./elements.js";
import { drawUse, swatchOf } from "./signs.js";

/**
 * How a sign is drawn, as `swatchOf` takes it.
 * @typedef {Parameters<typeof swatchOf>[0]} Draw
 */

/** Where each step ends; the last one, of what is over-committed, has a sign of its own. */
const STEPS = [0.2, 0.4, 0.6, 0.8, 1];
const STEP_TEXTS = ["below 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %", "more than there is"];

/**
 * Show the legend of nodes by share.
 * @param {HTMLElement} list
 * @param {number[]} shares
 * @param {{ text: string, nodes: number, draw: Draw }[]} others nodes that have no share
 */
export function showScale(list, shares, others) {
  const counts = new Array(STEP_TEXTS.length).fill(0);
  for (const share of shares) counts[stepOf(share)] += 1;
  const steps = STEP_TEXTS.map((text, step) => ({
    text,
    nodes: counts[step],
    draw: ofShare(step / STEPS.length + 0.1),
  }));
  // What is usual is always there, so that the scale can be read; the odd ones are where there are such nodes.
  const shown = [...steps, ...others].filter((each, place) => place < STEPS.length || each.nodes);
  list.replaceChildren(...shown.map(legendItem));
}

/**
 * The sign of a share; null: there is none.
 * @param {number | null} share
 * @returns {Draw}
 */
export const ofShare = (share) => (context, palette, square) => drawUse(context, palette, share, square);

/** @param {number} share */
function stepOf(share) {
  const step = STEPS.findIndex((end) => (end < 1 ? share < end : share <= end));
  return step < 0 ? STEPS.length : step;
}

/** @param {{ text: string, nodes: number, draw: Draw }} item */
function legendItem({ text, nodes, draw }) {
  return element(
    "li",
    {},
    swatchOf(draw),
    element("strong", { text: nodes.toLocaleString("en") }),
    element("span", { text }),
  );
}
