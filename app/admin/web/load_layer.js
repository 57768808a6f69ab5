// The nodes by how much of a resource they use, as it was measured: darker, or brighter in the dark, is busier.

import { amountText, duration, percent, shareOf } from "./amounts.js";
import { domainName } from "./cluster.js";
import { counted, element, table } from "./elements.js";
import { ofShare, showScale } from "./scale.js";
import { drawTooOld, drawUse } from "./signs.js";

/**
 * @typedef {import("admin-port").MeasuredUse} MeasuredUse
 * @typedef {import("./cluster.js").Cluster} Cluster
 * @typedef {import("./cluster.js").Domain} Domain
 * @typedef {import("./cluster.js").Selection} Selection
 * @typedef {import("./verdict_layer.js").Layer} Layer
 */

/**
 * What some nodes use, of those that are measured, and how many are not; ages are in seconds.
 * @typedef {object} Sum
 * @property {number} used
 * @property {number} capacity
 * @property {number} measured nodes
 * @property {number} age of the oldest measurement that counts
 * @property {number} tooOld nodes
 * @property {number} oldest age of their oldest measurement
 * @property {number} missing nodes
 */

/** Before the name of a resource: the layer of its measured usage. */
export const LOAD = "load:";

/** The measured usage of nodes. */
export class Load {
  /**
   * @param {string[]} names
   * @param {import("admin-port").LoadView} view
   */
  constructor(names, view) {
    this.view = view;
    this.places = new Map(names.map((name, place) => [name, place]));
    this.received = performance.now();
    this.layers = view.resources.map(({ resource }) => `${LOAD}${resource}`);
  }

  /**
   * The resource that a layer shows.
   * @param {string} layer
   * @returns {MeasuredUse | undefined}
   */
  of(layer) {
    return this.view.resources.find(({ resource }) => `${LOAD}${resource}` === layer);
  }

  /**
   * Sum up some nodes by place; undefined: a node that is not known, as it is supposed.
   * @param {MeasuredUse} resource
   * @param {Iterable<number | undefined>} places
   * @returns {Sum}
   */
  sum(resource, places) {
    const found = { used: 0, capacity: 0, measured: 0, age: 0, tooOld: 0, oldest: 0, missing: 0 };
    for (const place of places) {
      const used = place === undefined ? null : resource.used[place];
      if (place !== undefined && used !== null && resource.capacity[place]) {
        found.used += used;
        found.capacity += resource.capacity[place];
        found.measured += 1;
        found.age = Math.max(found.age, this.#age(place));
      } else if (place !== undefined && this.view.too_old[place]) {
        found.tooOld += 1;
        found.oldest = Math.max(found.oldest, this.#age(place));
      } else {
        found.missing += 1;
      }
    }
    return found;
  }

  /**
   * Seconds since a node was measured; it ages here, too.
   * @param {number} place
   */
  #age(place) {
    return (this.view.age[place] ?? 0) + (performance.now() - this.received) / 1000;
  }
}

/** @implements {Layer} */
export class LoadLayer {
  /**
   * @param {Cluster} cluster
   * @param {Load} load
   * @param {MeasuredUse} resource
   */
  constructor(cluster, load, resource) {
    this.cluster = cluster;
    this.load = load;
    this.resource = resource;
    this.name = `${LOAD}${resource.resource}`;
    this.heads = ["Nodes", "Load"];
    this.words = "Used, of capacity";
    // Node of the cluster -> its place in the columns of the resource.
    this.places = cluster.columns.names.map((name) => load.places.get(name));
    const all = load.sum(resource, this.places);
    const inUse = `${shareText(all)} of ${resource.resource} in use on ${counted(all.measured, "measured node")}`;
    this.summary = `Map of ${counted(cluster.size, "node")} in ${counted(cluster.zones.length, "zone")}, ${all.measured ? inUse : `${resource.resource} measured on none`}`;
  }

  /** @param {Domain} domain */
  headOf(domain) {
    return `${this.resource.resource} load ${shareText(this.#of({ domain: domain.id }))}`;
  }

  /** @param {Selection} selection */
  told(selection) {
    const { node, domain } = selection;
    const name = node === undefined ? domainName(this.cluster.domain(domain)) : this.cluster.columns.names[node];
    const found = this.#of(selection);
    const amounts = found.capacity ? `, ${this.#amounts(found)}` : "";
    return `${name}: ${this.resource.resource} load ${shareText(found)}${amounts}; ${standing(found)}`;
  }

  /** @param {Selection} selection */
  cellsOf(selection) {
    const { domain } = selection;
    return [domain === undefined ? "" : this.cluster.domain(domain).nodes.length, shareText(this.#of(selection))];
  }

  /** @param {Selection} selection */
  wordsOf(selection) {
    const found = this.#of(selection);
    const incomplete = found.tooOld || found.missing ? standing(found) : "";
    const amounts = found.capacity ? this.#amounts(found) : "";
    return [element("span", { class: "words", text: [amounts, incomplete].filter(Boolean).join("; ") })];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./signs.js").Palette} palette
   * @param {number} node
   * @param {import("./signs.js").Square} square
   */
  draw(context, palette, node, square) {
    const { used, capacity, tooOld } = this.#of({ node });
    if (tooOld) drawTooOld(context, palette, square);
    else drawUse(context, palette, shareOf(used, capacity), square);
  }

  /** @param {HTMLElement} list */
  showLegend(list) {
    const all = [...this.places.keys()].map((node) => this.#of({ node }));
    const shares = all.map(({ used, capacity }) => shareOf(used, capacity)).filter((share) => share !== null);
    const { tooOld, missing } = this.load.sum(this.resource, this.places);
    showScale(list, shares, [
      { text: "measured too long ago", nodes: tooOld, draw: drawTooOld },
      { text: "not measured", nodes: missing, draw: ofShare(null) },
    ]);
  }

  /** @param {Selection} selection */
  #of({ node, domain }) {
    const nodes = node === undefined ? this.cluster.domain(domain).nodes : [node];
    return this.load.sum(
      this.resource,
      nodes.map((each) => this.places[each]),
    );
  }

  /** @param {Sum} found */
  #amounts({ used, capacity }) {
    return `${amountText(used, this.resource.unit)} of ${amountText(capacity, this.resource.unit)}`;
  }
}

/**
 * What some nodes use, resource by resource, and how old that is.
 * @param {Load} load
 * @param {string[]} names
 */
export function loadDetail(load, names) {
  const places = names.map((name) => load.places.get(name));
  const sums = load.view.resources.map((use) => ({ use, ...load.sum(use, places) }));
  const rows = sums
    .filter(({ measured }) => measured)
    .map(({ use: { resource, unit }, used, capacity, ...found }) => [
      resource,
      amountText(used, unit),
      amountText(capacity, unit),
      shareText({ used, capacity, ...found }),
    ]);
  const best = sums.reduce((one, other) => (other.measured > one.measured ? other : one));
  return [
    rows.length ? table("Measured usage", ["Resource", "Used", "Capacity", "Load"], rows, "figures") : null,
    element("p", { class: "hint", text: `Usage: ${standing(best)}.` }),
  ].filter((part) => part !== null);
}

/** @param {Sum} found */
const shareText = ({ used, capacity }) => (capacity ? percent(shareOf(used, capacity)) : "unknown");

/**
 * How old the measurements are, and how many there are not.
 * @param {Sum} found
 */
function standing({ measured, age, tooOld, oldest, missing }) {
  if (measured + tooOld + missing === 1) {
    if (measured) return `measured ${duration(age)} ago`;
    return tooOld ? `measured ${duration(oldest)} ago, which is too old` : "not measured";
  }
  return [
    measured ? `${counted(measured, "node")} measured, ${measured > 1 ? "the oldest " : ""}${duration(age)} ago` : "",
    tooOld ? `${counted(tooOld, "node")} measured too long ago, up to ${duration(oldest)}` : "",
    missing ? `${counted(missing, "node")} not measured` : "",
  ]
    .filter(Boolean)
    .join("; ");
}
