// Where everything is on the map: zones beside each other, in them racks, in them nodes.

/** @import { Cluster, Domain, Zone } from "./cluster.js" */

/**
 * @typedef {object} Box
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 */

/**
 * A rack: its nodes stand in rows of `across`, below the `head` for its name.
 * @typedef {Box & { domain: Domain, across: number, head: number }} RackBox
 * @typedef {Box & { domain: Zone, racks: RackBox[] }} ZoneBox
 * @typedef {{ width: number, height: number, cell: number, zones: ZoneBox[], boxes: Map<string, ZoneBox | RackBox> }} Layout
 */

const LARGEST = 30;
const SMALLEST = 4;
const GAP = 8;
const HEAD = 20;
const NARROWEST_ZONE = 230;

/**
 * Return zones with their racks as boxes, and the place of each node; cells as large as the height allows.
 * @param {Cluster} cluster
 * @param {number} width
 * @param {number} height
 * @returns {Layout}
 */
export function layOut(cluster, width, height) {
  for (let cell = LARGEST; cell > SMALLEST; cell -= 1) {
    const found = attempt(cluster, width, cell);
    if (found.height <= height) return found;
  }
  return attempt(cluster, width, SMALLEST);
}

/**
 * @param {Cluster} cluster
 * @param {number} width
 * @param {number} cell
 * @returns {Layout}
 */
function attempt(cluster, width, cell) {
  const columns = Math.max(1, Math.min(cluster.zones.length, Math.floor(width / NARROWEST_ZONE)));
  const zoneWidth = Math.floor((width - GAP * (columns - 1)) / columns);
  /** @type {ZoneBox[]} */
  const zones = [];
  let top = 0;
  for (let first = 0; first < cluster.zones.length; first += columns) {
    const row = cluster.zones.slice(first, first + columns);
    const boxes = row.map((domain, place) => zoneBox(domain, place * (zoneWidth + GAP), top, zoneWidth, cell));
    const tallest = Math.max(...boxes.map((box) => box.height));
    for (const box of boxes) box.height = tallest;
    zones.push(...boxes);
    top += tallest + GAP;
  }
  return { width, height: Math.max(top - GAP, 1), cell, zones, boxes: boxesById(zones) };
}

/**
 * @param {Zone} domain
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} cell
 * @returns {ZoneBox}
 */
function zoneBox(domain, x, y, width, cell) {
  /** @type {RackBox[]} */
  const racks = [];
  const head = domain.divided ? 18 : 0; // the outline of a chosen node leaves the name alone
  let [left, top, tallest] = [GAP, HEAD + 6, 0];
  for (const rack of domain.racks) {
    const across = rackColumns(rack.nodes.length, cell, width - 2 * GAP, domain.divided);
    const box = {
      domain: rack,
      across,
      head,
      width: across * cell + 1,
      height: Math.ceil(rack.nodes.length / across) * cell + head,
    };
    if (left > GAP && left + box.width > width - GAP) [left, top, tallest] = [GAP, top + tallest + GAP, 0];
    racks.push({ ...box, x: x + left, y: y + top });
    left += Math.max(box.width, domain.divided ? 44 : 0) + GAP;
    tallest = Math.max(tallest, box.height);
  }
  return { domain, racks, x, y, width, height: top + tallest + GAP };
}

/**
 * @param {number} nodes
 * @param {number} cell
 * @param {number} width
 * @param {boolean} divided
 */
function rackColumns(nodes, cell, width, divided) {
  const most = Math.max(1, Math.floor(width / cell));
  return Math.min(most, divided ? Math.max(Math.ceil(44 / cell), Math.ceil(Math.sqrt(nodes * 1.5))) : most);
}

/**
 * @param {ZoneBox[]} zones
 * @returns {Layout["boxes"]}
 */
function boxesById(zones) {
  /** @type {(ZoneBox | RackBox)[]} */
  const boxes = zones.flatMap((zone) => [zone, ...zone.racks]);
  return new Map(boxes.map((box) => [box.domain.id, box]));
}

/**
 * @param {Layout} layout
 * @param {RackBox} rack
 * @param {number} place
 * @returns {import("./signs.js").Square}
 */
export function cellOf(layout, rack, place) {
  const { cell } = layout;
  return [rack.x + (place % rack.across) * cell, rack.y + rack.head + Math.floor(place / rack.across) * cell, cell - 1];
}

/**
 * What is at a point, if anything is.
 * @param {Layout} layout
 * @param {number} x
 * @param {number} y
 * @returns {import("./cluster.js").Selection | null}
 */
export function at(layout, x, y) {
  /** @param {Box} box */
  const inside = (box) => x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height;
  const zone = layout.zones.find(inside);
  const rack = zone?.racks.find(inside);
  if (!zone) return null;
  if (!rack) return { domain: zone.domain.id };
  const [column, row] = [Math.floor((x - rack.x) / layout.cell), Math.floor((y - rack.y - rack.head) / layout.cell)];
  const node = row >= 0 && column < rack.across ? rack.domain.nodes[row * rack.across + column] : undefined;
  if (node !== undefined) return { node };
  return { domain: zone.domain.divided ? rack.domain.id : zone.domain.id };
}
