// What the signs on the map stand for, with how many nodes each stands on.

import { element } from "./elements.js";
import { Palette, drawNode, symbol } from "./signs.js";

const SIZE = 16;

export function showLegend(list, columns) {
  const palette = new Palette();
  const items = columns.reasons.map((each, number) => {
    const text = number ? each.reason : "fits: the fuller the colour, the higher the score";
    const plugin = each.plugin ? ` (${each.plugin})` : "";
    return element(
      "li",
      {},
      swatch(palette, number),
      element("strong", { text: each.nodes.toLocaleString("en") }),
      element("span", { text: `${text}${plugin}` }),
    );
  });
  list.replaceChildren(...items.filter((_, number) => !number || columns.reasons[number].nodes));
}

/** A node as it looks on the map. */
export function swatch(palette, number, score = 60) {
  const ratio = window.devicePixelRatio || 1;
  const made = element("canvas", { class: "swatch", width: SIZE * ratio, height: SIZE * ratio, "aria-hidden": "true", title: symbol(number) });
  const context = made.getContext("2d");
  context.scale(ratio, ratio);
  drawNode(context, palette, number, score, [0, 0, SIZE]);
  return made;
}
