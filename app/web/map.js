// The cluster on a canvas. The picture is drawn once for an answer; what follows the pointer is drawn over it.

import { byId, counted } from "./elements.js";
import { domainName } from "./cluster.js";
import { at, cellOf, layOut } from "./map_layout.js";
import { Palette, drawNode } from "./signs.js";
import { draggedPod } from "./details.js";

const TALLEST = 560;
const MOST_PIXELS = 16_000; // high; browsers draw nothing on a canvas that is much higher

export class ClusterMap {
  /** `choose({node} or {domain})`, and `place(pod, node)` for what is dropped. */
  constructor(canvas, { choose, place }) {
    this.canvas = canvas;
    this.picture = document.createElement("canvas");
    this.cluster = this.layout = this.chosen = this.pointed = null;
    this.#listen(choose, place);
    new ResizeObserver(() => this.#redraw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#redraw(true));
  }

  show(cluster) {
    this.cluster = cluster;
    this.pointed = null;
    this.#redraw(true);
    const fit = cluster.columns.reasons[0].nodes;
    const told = `Map of ${counted(cluster.size, "node")} in ${counted(cluster.zones.length, "zone")}, ${fit} fit`;
    this.canvas.setAttribute("aria-label", `${told}. The list of domains and nodes has the same.`);
  }

  choose(selection) {
    this.chosen = selection;
    this.#paint();
  }

  #listen(choose, place) {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this.#point(this.#at(event), event));
    canvas.addEventListener("pointerleave", () => this.#point(null));
    canvas.addEventListener("click", (event) => {
      const found = this.#at(event);
      if (found) choose(found);
    });
    canvas.addEventListener("dragover", (event) => {
      const found = this.#at(event);
      this.#point(found, event);
      if (found?.node !== undefined) event.preventDefault();
    });
    canvas.addEventListener("dragleave", () => this.#point(null));
    canvas.addEventListener("drop", (event) => {
      event.preventDefault();
      const [pod, found] = [draggedPod(event), this.#at(event)];
      if (pod && found?.node !== undefined) place(pod, this.cluster.columns.names[found.node]);
    });
  }

  #at(event) {
    return this.layout && at(this.layout, event.offsetX, event.offsetY);
  }

  #point(found, event) {
    const tip = byId("tip");
    tip.hidden = !found;
    if (found) {
      tip.textContent = this.#told(found);
      const frame = this.canvas.parentElement.getBoundingClientRect();
      const left = Math.min(event.clientX - frame.left + 14, frame.width - tip.offsetWidth - 4);
      tip.style.left = `${Math.max(left, 0)}px`;
      tip.style.top = `${event.clientY - frame.top + 16}px`;
    }
    if (found?.node === this.pointed?.node && found?.domain === this.pointed?.domain) return;
    this.pointed = found;
    this.#paint();
  }

  #told({ node, domain }) {
    const { cluster } = this;
    if (node !== undefined) return `${cluster.columns.names[node]}: ${cluster.told(node)}`;
    const found = cluster.domains.get(domain);
    return `${domainName(found)}: ${found.counts[0]} of ${counted(found.nodes.length, "node")} fit`;
  }

  #redraw(always = false) {
    if (!this.cluster) return;
    const width = Math.floor(this.canvas.parentElement.clientWidth);
    if (!width || (!always && width === this.layout?.width)) return;
    this.layout = layOut(this.cluster, width, TALLEST);
    const ratio = (this.ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXELS / this.layout.height));
    for (const each of [this.canvas, this.picture]) {
      each.width = width * ratio;
      each.height = Math.ceil(this.layout.height * ratio);
    }
    this.canvas.style.height = `${this.layout.height}px`;
    const context = this.picture.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.palette = new Palette();
    for (const zone of this.layout.zones) this.#drawZone(context, zone);
    this.#paint();
  }

  #drawZone(context, zone) {
    const { palette, cluster, layout } = this;
    const { score } = cluster.columns;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.strokeRect(zone.x + 0.5, zone.y + 0.5, zone.width - 1, zone.height - 1);
    const { counts, nodes } = zone.domain;
    write(context, `${domainName(zone.domain)}  ${counts[0]} of ${nodes.length} fit`, zone.x + 8, zone.y + 17, zone.width - 16, palette.text, 13);
    for (const rack of zone.racks) {
      if (rack.head) write(context, domainName(rack.domain), rack.x, rack.y + 10, Math.max(rack.width, 44), palette.muted, 11);
      rack.domain.nodes.forEach((node, place) => {
        drawNode(context, palette, cluster.signOf(node), score[node], cellOf(layout, rack, place));
      });
    }
  }

  #paint() {
    if (this.waiting || !this.layout) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const context = this.canvas.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.canvas.width, this.canvas.height);
      context.drawImage(this.picture, 0, 0);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.#outline(context, this.pointed, 1.5);
      this.#outline(context, this.chosen, 3);
    });
  }

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

  #box({ node, domain }) {
    if (node === undefined) {
      const box = this.layout.boxes.get(domain);
      return box && [box.x + 1, box.y + 1, box.width - 2, box.height - 2];
    }
    const rack = this.layout.boxes.get(this.cluster.domainsOf(node)[1]);
    const [x, y, size] = cellOf(this.layout, rack, rack.domain.nodes.indexOf(node));
    return [x - 2, y - 2, size + 4, size + 4];
  }
}

function write(context, text, x, y, room, color, size) {
  context.font = `${size}px system-ui, sans-serif`;
  context.fillStyle = color;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
  context.fillText(shown, x, y);
}
