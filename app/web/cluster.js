// The nodes of an answer as topology domains: zone > rack > node.

import { signsOf } from "./signs.js";

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** An answer of /explain/nodes with its domains. A node is its place in the columns. */
export class Cluster {
  constructor(columns) {
    this.columns = columns;
    this.size = columns.names.length;
    this.signs = signsOf(columns.reasons);
    this.places = new Map(columns.names.map((name, place) => [name, place]));
    this.zones = grouped(columns, [...columns.names.keys()], "zone").map((zone) => this.#withRacks(zone));
    this.domains = new Map(this.zones.flatMap((zone) => [zone, ...zone.racks]).map((each) => [each.id, each]));
  }

  #withRacks(zone) {
    const racks = this.columns.rack_key ? grouped(this.columns, zone.nodes, "rack", zone.id) : [{ ...zone, id: `${zone.id}/`, kind: "rack", value: "" }];
    return { ...zone, racks, divided: Boolean(this.columns.rack_key) };
  }

  /** What a node is, in a few words. */
  told(place) {
    const score = this.columns.score[place];
    return this.verdictOf(place) + (score === null ? "" : `, score ${score}`);
  }

  /** How a node looks. */
  signOf(place) {
    return this.signs[this.columns.verdict[place]];
  }

  /** Whether it fits, or why not. */
  verdictOf(place) {
    const number = this.columns.verdict[place];
    return number ? this.columns.reasons[number].reason : "fits";
  }

  zoneOf(place) {
    return this.columns.zones[this.columns.zone[place]];
  }

  rackOf(place) {
    return this.columns.racks[this.columns.rack[place]];
  }

  /** The ids of the domains that a node is in. */
  domainsOf(place) {
    const zone = `zone:${this.columns.zone[place]}`;
    return [zone, this.columns.rack_key ? `${zone}/rack:${this.columns.rack[place]}` : `${zone}/`];
  }
}

/** The nodes by the values of a column, with how many there are of each class, and the best score. */
function grouped(columns, places, kind, within = "") {
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

function figures(columns, nodes) {
  const counts = new Array(columns.reasons.length).fill(0);
  let best = null;
  for (const place of nodes) {
    counts[columns.verdict[place]] += 1;
    const score = columns.verdict[place] ? null : columns.score[place];
    if (score !== null && (best === null || score > best)) best = score;
  }
  return { counts, best };
}

/** The value of its label; without one it says so by the last part of the key. */
export const domainName = (domain) => domain.value || `no ${domain.key.split("/").pop()}`;
