// The nodes by how much of a resource is requested of what they offer: darker, or brighter in the dark, is fuller.

import { amountText, percent, shareOf } from "./amounts.js";
import { domainName } from "./cluster.js";
import { counted, element } from "./elements.js";
import { drawUse, legendItem, swatchOf } from "./signs.js";

/** @import { ResourceUse } from "admin-port" */
/** @import { Cluster, Domain, Selection } from "./cluster.js" */
/** @import { Layer } from "./layers.js" */

/** Where each step ends; the last one, of what is over-committed, has a sign of its own. */
const STEPS = [0.2, 0.4, 0.6, 0.8, 1];
const STEP_TEXTS = ["below 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %", "more than there is"];

/** The requested and the allocatable amounts of nodes. */
export class Use {
  /** @param {import("admin-port").ClusterView} view */
  constructor(view) {
    this.view = view;
    this.places = new Map(view.names.map((name, place) => [name, place]));
  }

  /**
   * @param {string} resource
   * @returns {ResourceUse | undefined}
   */
  of(resource) {
    return this.view.resources.find((each) => each.resource === resource);
  }

  /**
   * The sums of some nodes by name, resource by resource; nodes that are not known, as they are supposed, count nothing.
   * @param {string[]} names
   */
  sums(names) {
    const places = names.map((name) => this.places.get(name));
    return this.view.resources.map((use) => ({ use, ...sum(use, places) })).filter((each) => each.allocatable);
  }
}

/**
 * @param {ResourceUse} use
 * @param {(number | undefined)[]} places undefined counts nothing
 */
function sum(use, places) {
  let [requested, allocatable] = [0, 0];
  for (const place of places) {
    if (place === undefined) continue;
    requested += use.requested[place];
    allocatable += use.allocatable[place];
  }
  return { requested, allocatable };
}

/** @implements {Layer} */
export class UseLayer {
  /**
   * @param {Cluster} cluster
   * @param {Use} use
   * @param {ResourceUse} resource
   */
  constructor(cluster, use, resource) {
    this.cluster = cluster;
    this.resource = resource;
    this.name = resource.resource;
    this.heads = ["Nodes", "Use"];
    this.words = "Requested, of allocatable";
    // Node of the cluster -> its place in the columns of the resource.
    this.places = cluster.columns.names.map((name) => use.places.get(name));
    const all = this.#sum([...cluster.columns.names.keys()]);
    this.summary = `Map of ${counted(cluster.size, "node")} in ${counted(cluster.zones.length, "zone")}, ${this.#share(all)} of ${resource.resource} requested`;
  }

  /** @param {Domain} domain */
  headOf(domain) {
    return `${this.resource.resource} ${this.#share(this.#sum(domain.nodes))}`;
  }

  /** @param {Selection} selection */
  told(selection) {
    const { node, domain } = selection;
    const name = node === undefined ? domainName(this.cluster.domain(domain)) : this.cluster.columns.names[node];
    const found = this.#of(selection);
    return `${name}: ${this.resource.resource} ${this.#share(found)}${this.#amounts(found, ", ")}`;
  }

  /** @param {Selection} selection */
  cellsOf(selection) {
    const { domain } = selection;
    return [domain === undefined ? "" : this.cluster.domain(domain).nodes.length, this.#share(this.#of(selection))];
  }

  /** @param {Selection} selection */
  wordsOf(selection) {
    return [element("span", { class: "words", text: this.#amounts(this.#of(selection), "") })];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./signs.js").Palette} palette
   * @param {number} node
   * @param {import("./signs.js").Square} square
   */
  draw(context, palette, node, square) {
    const { requested, allocatable } = this.#of({ node });
    drawUse(context, palette, shareOf(requested, allocatable), square);
  }

  /** @param {HTMLElement} list */
  showLegend(list) {
    const texts = [...STEP_TEXTS, `no ${this.name}`];
    const counts = texts.map(() => 0);
    /** @param {number | null} share */
    const swatch = (share) => swatchOf((context, palette, square) => drawUse(context, palette, share, square));
    for (const node of this.places.keys()) {
      const { requested, allocatable } = this.#of({ node });
      counts[stepOf(shareOf(requested, allocatable))] += 1;
    }
    const items = texts.flatMap((text, step) =>
      // What is usual is always there, so that the scale can be read; the odd ones are where there are such nodes.
      step < STEPS.length || counts[step]
        ? [legendItem(swatch(step > STEPS.length ? null : step / STEPS.length + 0.1), counts[step], text)]
        : [],
    );
    list.replaceChildren(...items);
  }

  /**
   * @param {Selection} selection
   * @returns {{ requested: number, allocatable: number }}
   */
  #of({ node, domain }) {
    return this.#sum(node === undefined ? this.cluster.domain(domain).nodes : [node]);
  }

  /** @param {number[]} nodes */
  #sum(nodes) {
    return sum(
      this.resource,
      nodes.map((node) => this.places[node]),
    );
  }

  /** @param {{ requested: number, allocatable: number }} amounts */
  #share({ requested, allocatable }) {
    return percent(shareOf(requested, allocatable));
  }

  /**
   * @param {{ requested: number, allocatable: number }} amounts
   * @param {string} before
   */
  #amounts({ requested, allocatable }, before) {
    const { unit } = this.resource;
    if (!allocatable && !requested) return "";
    return `${before}${amountText(requested, unit)} of ${amountText(allocatable, unit)}`;
  }
}

/** @param {number | null} share null: the node has none of the resource */
function stepOf(share) {
  if (share === null) return STEPS.length + 1;
  const step = STEPS.findIndex((end) => (end < 1 ? share < end : share <= end));
  return step < 0 ? STEPS.length : step;
}
