// The nodes of an answer as topology domains: zone > rack > node.

import { signsOf } from "./signs.js";

/** @typedef {import("admin-port").NodeMap} NodeMap */

/**
 * The nodes that share a value of a label. A node is its place in the columns.
 * @typedef {object} Domain
 * @property {string} id
 * @property {"zone" | "rack"} kind
 * @property {string} key the label
 * @property {string} value
 * @property {number[]} nodes
 * @property {number[]} counts how many nodes there are of each reason
 * @property {number | null} best score
 */

/**
 * A zone; where it is not divided, all its nodes are in one rack that stands for none.
 * @typedef {Domain & { racks: Domain[], divided: boolean }} Zone
 */

/**
 * What is chosen on the map or in the tree.
 * @typedef {{ node: number, domain?: undefined } | { domain: string, node?: undefined }} Selection
 */

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** An answer of /explain/nodes with its domains. A node is its place in the columns. */
export class Cluster {
  /** @param {NodeMap} columns */
  constructor(columns) {
    this.columns = columns;
    this.size = columns.names.length;
    this.signs = signsOf(columns.reasons);
    this.places = new Map(columns.names.map((name, place) => [name, place]));
    this.zones = grouped(columns, [...columns.names.keys()], "zone").map((zone) => this.#withRacks(zone));
    /** @type {Map<string, Domain>} */
    this.domains = new Map(this.zones.flatMap((zone) => [zone, ...zone.racks]).map((each) => [each.id, each]));
  }

  /**
   * @param {Domain} zone
   * @returns {Zone}
   */
  #withRacks(zone) {
    const divided = Boolean(this.columns.rack_key);
    if (divided) return { ...zone, racks: grouped(this.columns, zone.nodes, "rack", zone.id), divided };
    return { ...zone, racks: [{ ...zone, id: `${zone.id}/`, kind: "rack", value: "" }], divided };
  }

  /**
   * The domain with this id.
   * @param {string} id
   * @returns {Domain}
   */
  domain(id) {
    const found = this.domains.get(id);
    if (!found) throw new Error(`no domain ${id}`);
    return found;
  }

  /**
   * The place of the node with this name.
   * @param {string} name
   * @returns {number}
   */
  placeOf(name) {
    const found = this.places.get(name);
    if (found === undefined) throw new Error(`no node ${name}`);
    return found;
  }

  /**
   * What a node is, in a few words.
   * @param {number} place
   */
  told(place) {
    const score = this.columns.score[place];
    return this.verdictOf(place) + (score === null ? "" : `, score ${score}`);
  }

  /**
   * How a node looks.
   * @param {number} place
   */
  signOf(place) {
    return this.signs[this.columns.verdict[place]];
  }

  /**
   * Whether it fits, or why not.
   * @param {number} place
   */
  verdictOf(place) {
    const number = this.columns.verdict[place];
    return number ? this.columns.reasons[number].reason : "fits";
  }

  /** @param {number} place */
  zoneOf(place) {
    return this.columns.zones[this.columns.zone[place]];
  }

  /** @param {number} place */
  rackOf(place) {
    return this.columns.racks[this.columns.rack[place]];
  }

  /**
   * The ids of the domains that a node is in: its zone, and its rack.
   * @param {number} place
   * @returns {[string, string]}
   */
  domainsOf(place) {
    const zone = `zone:${this.columns.zone[place]}`;
    return [zone, this.columns.rack_key ? `${zone}/rack:${this.columns.rack[place]}` : `${zone}/`];
  }
}

/**
 * The nodes by the values of a column, with how many there are of each class, and the best score.
 * @param {NodeMap} columns
 * @param {number[]} places
 * @param {"zone" | "rack"} kind
 * @returns {Domain[]}
 */
function grouped(columns, places, kind, within = "") {
  /** @type {Map<number, number[]>} */
  const found = new Map();
  for (const place of places) {
    const number = columns[kind][place];
    const nodes = found.get(number);
    if (nodes) nodes.push(place);
    else found.set(number, [place]);
  }
  const texts = columns[`${kind}s`];
  const domains = [...found].map(([number, nodes]) => ({
    id: `${within ? `${within}/` : ""}${kind}:${number}`,
    kind,
    key: columns[`${kind}_key`],
    value: texts[number],
    nodes: nodes.sort((one, other) => byName(columns.names[one], columns.names[other])),
    ...figures(columns, nodes),
  }));
  return domains.sort((one, other) => byName(one.value, other.value));
}

/**
 * @param {NodeMap} columns
 * @param {number[]} nodes
 */
function figures(columns, nodes) {
  /** @type {number[]} */
  const counts = new Array(columns.reasons.length).fill(0);
  /** @type {number | null} */
  let best = null;
  for (const place of nodes) {
    counts[columns.verdict[place]] += 1;
    const score = columns.verdict[place] ? null : columns.score[place];
    if (score !== null && (best === null || score > best)) best = score;
  }
  return { counts, best };
}

/**
 * The value of its label; without one it says so by the last part of the key.
 * @param {Domain} domain
 */
export const domainName = (domain) => domain.value || `no ${domain.key.split("/").pop()}`;
