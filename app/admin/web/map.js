// The cluster on a canvas. The picture is drawn once for a layer; what follows the pointer is drawn over it.

import { domainName } from "./cluster.js";
import { byId, contextOf } from "./elements.js";
import { at, cellOf, layOut } from "./map_layout.js";
import { Palette } from "./signs.js";

/** @import { Cluster, Selection } from "./cluster.js" */

/** @typedef {(selection: Selection, more: boolean) => unknown} Choose is called with what is chosen; `more`: with Shift */

const TALLEST = 560;
const SMALL = 12; // pixels of a node
const MAX_PIXELS = 16_000; // high; browsers draw nothing on a canvas that is much higher

export class ClusterMap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} frame around it
   * @param {Choose} choose
   */
  constructor(canvas, frame, choose) {
    this.canvas = canvas;
    this.frame = frame;
    this.picture = document.createElement("canvas");
    this.palette = new Palette();
    this.ratio = 1;
    this.waiting = 0;
    /** @type {Cluster | null} */
    this.cluster = null;
    /** @type {import("./layers.js").Layer | null} */
    this.layer = null;
    /** @type {import("./map_layout.js").Layout | null} */
    this.layout = null;
    /** @type {Set<number>} */
    this.marked = new Set(); // nodes that are outlined, whatever the layer is
    /** @type {Selection | null} */
    this.chosen = null;
    /** @type {Selection | null} */
    this.pointed = null;
    this.#listen(choose);
    new ResizeObserver(() => this.#redraw()).observe(frame);
  }

  /** @param {import("./layers.js").Layer} layer */
  show(layer) {
    this.layer = layer;
    this.cluster = layer.cluster;
    this.pointed = null;
    this.#redraw(true);
    this.canvas.setAttribute("aria-label", `${layer.summary}. The list of domains and nodes has the same.`);
  }

  /** @param {Selection | null} selection */
  choose(selection) {
    this.chosen = selection;
    this.#paint();
  }

  /** @param {Choose} choose */
  #listen(choose) {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this.#point(this.#at(event), event));
    canvas.addEventListener("pointerleave", () => this.#leave());
    canvas.addEventListener("click", (event) => {
      const found = this.#at(event);
      if (found) choose(found, event.shiftKey);
    });
  }

  /** @param {MouseEvent} event */
  #at(event) {
    return this.layout && at(this.layout, event.offsetX, event.offsetY);
  }

  #leave() {
    byId("tip").hidden = true;
    this.#highlight(null);
  }

  /**
   * @param {Selection | null} found
   * @param {MouseEvent} event
   */
  #point(found, event) {
    const tip = byId("tip");
    tip.hidden = !found;
    if (found) {
      tip.textContent = this.layer?.told(found) ?? "";
      const frame = this.frame.getBoundingClientRect();
      const left = Math.min(event.clientX - frame.left + 14, frame.width - tip.offsetWidth - 4);
      tip.style.left = `${Math.max(left, 0)}px`;
      tip.style.top = `${event.clientY - frame.top + 16}px`;
    }
    this.#highlight(found);
  }

  /** @param {Selection | null} found */
  #highlight(found) {
    if (found?.node === this.pointed?.node && found?.domain === this.pointed?.domain) return;
    this.pointed = found;
    this.#paint();
  }

  #redraw(always = false) {
    const { layer } = this;
    if (!layer) return;
    const width = Math.floor(this.frame.clientWidth);
    if (!width || (!always && width === this.layout?.width)) return;
    this.layout = layOut(layer.cluster, width, TALLEST);
    const ratio = Math.min(window.devicePixelRatio || 1, MAX_PIXELS / this.layout.height);
    this.ratio = ratio;
    for (const each of [this.canvas, this.picture]) {
      each.width = width * ratio;
      each.height = Math.ceil(this.layout.height * ratio);
    }
    this.canvas.style.height = `${this.layout.height}px`;
    const context = contextOf(this.picture);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.palette = new Palette();
    for (const zone of this.layout.zones) this.#drawZone(context, layer, this.layout, zone);
    this.#paint();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./layers.js").Layer} layer
   * @param {import("./map_layout.js").Layout} layout
   * @param {import("./map_layout.js").ZoneBox} zone
   */
  #drawZone(context, layer, layout, zone) {
    const { palette } = this;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.strokeRect(zone.x + 0.5, zone.y + 0.5, zone.width - 1, zone.height - 1);
    const head = `${domainName(zone.domain)}  ${layer.headOf(zone.domain)}`;
    write(context, head, zone.x + 8, zone.y + 17, zone.width - 16, palette.text, 13);
    for (const rack of zone.racks) {
      if (rack.head) {
        write(context, domainName(rack.domain), rack.x, rack.y + 10, Math.max(rack.width, 44), palette.muted, 11);
      }
      rack.domain.nodes.forEach((node, place) => {
        const square = cellOf(layout, rack, place);
        layer.draw(context, palette, node, square);
        if (this.marked.has(node)) mark(context, palette, square);
      });
    }
  }

  #paint() {
    if (this.waiting || !this.layout) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const context = contextOf(this.canvas);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.canvas.width, this.canvas.height);
      context.drawImage(this.picture, 0, 0);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.#outline(context, this.pointed, 1.5);
      this.#outline(context, this.chosen, 3);
    });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Selection | null} selection
   * @param {number} width
   */
  #outline(context, selection, width) {
    const box = selection && this.#box(selection);
    if (!box) return;
    // Two lines, of which one is told apart from whatever is beside it.
    context.strokeStyle = this.palette.surface;
    context.lineWidth = width + 3;
    context.strokeRect(...box);
    context.strokeStyle = this.palette.text;
    context.lineWidth = width;
    context.strokeRect(...box);
  }

  /**
   * @param {Selection} selection
   * @returns {[number, number, number, number] | null}
   */
  #box({ node, domain }) {
    const { cluster, layout } = this;
    if (!cluster || !layout) return null;
    if (node === undefined) {
      const box = layout.boxes.get(domain);
      return box ? [box.x + 1, box.y + 1, box.width - 2, box.height - 2] : null;
    }
    const rack = layout.boxes.get(cluster.domainsOf(node)[1]);
    if (!rack || !("across" in rack)) return null;
    const [x, y, size] = cellOf(layout, rack, rack.domain.nodes.indexOf(node));
    return [x - 2, y - 2, size + 4, size + 4];
  }
}

/**
 * Frame a node; where there is room in two colours, of which one is told apart from the node's own.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./signs.js").Palette} palette
 * @param {import("./signs.js").Square} square
 */
function mark(context, palette, [x, y, size]) {
  const width = size < SMALL ? 1 : 3;
  context.lineWidth = width;
  context.strokeStyle = palette.text;
  context.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
  if (size < SMALL) return;
  context.lineWidth = 1;
  context.strokeStyle = palette.surface;
  context.strokeRect(x + width + 0.5, y + width + 0.5, size - 2 * width - 1, size - 2 * width - 1);
}

/**
 * Write a text, shortened to the room that it has.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} room
 * @param {string} color
 * @param {number} size
 */
function write(context, text, x, y, room, color, size) {
  context.font = `${size}px system-ui, sans-serif`;
  context.fillStyle = color;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
  context.fillText(shown, x, y);
}
