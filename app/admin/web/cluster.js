// Nodes as topology domains: zone > rack > node.

import { signsOf } from "./signs.js";

/** @import { NodeMap, ClusterView } from "admin-port" */
/** @import { Chosen } from "./address.js" */

/**
 * Where nodes are, whatever else is known of them. A node is its place in the columns.
 * @typedef {Pick<ClusterView, "generation" | "names" | "zone_key" | "zones" | "zone" | "rack_key" | "racks" | "rack">} Placed
 */

/**
 * The nodes that share a value of a label.
 * @typedef {object} Domain
 * @property {string} id
 * @property {"zone" | "rack"} kind
 * @property {string} key the label
 * @property {string} value
 * @property {number[]} nodes
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

/** Nodes with their domains. */
export class Cluster {
  /** @param {Placed} columns */
  constructor(columns) {
    this.columns = columns;
    this.size = columns.names.length;
    this.places = new Map(columns.names.map((name, place) => [name, place]));
    this.zones = grouped(columns, inOrder(columns.names), "zone").map((zone) => this.#withRacks(zone));
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
    const zone = `zone:${this.zoneOf(place)}`;
    return [zone, this.columns.rack_key ? `${zone}/rack:${this.rackOf(place)}` : `${zone}/`];
  }

  /**
   * What is chosen, by names: places are of this cluster alone.
   * @param {Selection} selection
   * @returns {Chosen | null}
   */
  nameOf({ node, domain }) {
    if (node !== undefined) return { node: this.columns.names[node] };
    const zone = this.zones.find((each) => each.id === domain || each.racks.some((rack) => rack.id === domain));
    const rack = zone?.racks.find((each) => each.id === domain)?.value;
    return zone ? { zone: zone.value, ...(rack === undefined ? {} : { rack }) } : null;
  }

  /**
   * What these names stand for here; null where there is no such node or domain.
   * @param {Chosen | null} chosen
   * @returns {Selection | null}
   */
  find(chosen) {
    if (!chosen) return null;
    if ("node" in chosen) {
      const node = this.places.get(chosen.node);
      return node === undefined ? null : { node };
    }
    const within = this.zones.find((each) => each.value === chosen.zone);
    const domain = chosen.rack === undefined ? within : within?.racks.find((each) => each.value === chosen.rack);
    return domain ? { domain: domain.id } : null;
  }
}

/** The nodes of an answer of /explain/nodes, with their verdicts and scores. */
export class JudgedCluster extends Cluster {
  /**
   * @param {NodeMap} columns
   * @param {boolean} sure where a rule could not be judged, nobody knows whether the pod fits
   * @param {string} profile that the scores are by
   */
  constructor(columns, sure, profile) {
    super(columns);
    this.judged = columns;
    this.sure = sure;
    this.profile = profile;
    this.signs = signsOf(columns.reasons);
    this.passes = sure ? "fits" : "passes what was judged";
    this.pass = sure ? "fit" : "pass what was judged";
    const scores = columns.score.flatMap((score, node) => (score === null || columns.verdict[node] ? [] : score));
    this.scores = scores.length ? [Math.min(...scores), Math.max(...scores)] : null; // of the nodes that fit
  }

  /**
   * What a node is, in a few words.
   * @param {number} place
   */
  told(place) {
    const score = this.judged.score[place];
    return this.verdictOf(place) + (score === null ? "" : `, score ${score}`);
  }

  /**
   * How a node looks.
   * @param {number} place
   */
  signOf(place) {
    return this.signs[this.judged.verdict[place]];
  }

  /**
   * The score of a node, and where it is between the lowest and the highest of the nodes that fit.
   * @param {number} place
   */
  scoreOf(place) {
    const score = this.judged.score[place];
    const [low, high] = this.scores ?? [0, 0];
    return { text: String(score ?? ""), share: score === null || low === high ? 0.5 : (score - low) / (high - low) };
  }

  /**
   * Whether it fits, or why not.
   * @param {number} place
   */
  verdictOf(place) {
    const number = this.judged.verdict[place];
    return number ? this.judged.reasons[number].reason : this.passes;
  }

  /**
   * How many nodes of a domain there are of each reason, and the best score.
   * @param {Domain} domain
   */
  figuresOf(domain) {
    return figures(this.judged, domain.nodes);
  }
}

/**
 * The places of names in their order, in which 9 is before 10.
 * @param {string[]} names
 */
function inOrder(names) {
  const places = [...names.keys()];
  // Most clusters have them in order already, and to compare 15,000 of them pair by pair takes a fifth of a second.
  if (names.every((name, place) => !place || byName(names[place - 1], name) <= 0)) return places;
  return places.sort((one, other) => byName(names[one], names[other]));
}

/**
 * The nodes by the values of a column, each group in the order of `places`.
 * @param {Placed} columns
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
    id: `${within ? `${within}/` : ""}${kind}:${texts[number]}`, // the same in the next answer
    kind,
    key: columns[`${kind}_key`],
    value: texts[number],
    nodes,
  }));
  return domains.sort((one, other) => byName(one.value, other.value));
}

/**
 * How many nodes there are of each reason, by its number, and the best score of those that fit.
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
