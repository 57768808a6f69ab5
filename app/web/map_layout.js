// Where everything is on the map: zones beside each other, in them racks, in them nodes.

const LARGEST = 30;
const SMALLEST = 4;
const GAP = 8;
const HEAD = 20;
const NARROWEST_ZONE = 230;

/** Return zones with their racks as boxes, and the place of each node; cells as large as the height allows. */
export function layOut(cluster, width, height) {
  let found = null;
  for (let cell = LARGEST; cell >= SMALLEST; cell -= 1) {
    found = attempt(cluster, width, cell);
    if (found.height <= height) break;
  }
  return found;
}

function attempt(cluster, width, cell) {
  const columns = Math.max(1, Math.min(cluster.zones.length, Math.floor(width / NARROWEST_ZONE)));
  const zoneWidth = Math.floor((width - GAP * (columns - 1)) / columns);
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

function zoneBox(domain, x, y, width, cell) {
  const racks = [];
  const head = domain.divided ? 18 : 0; // the outline of a chosen node leaves the name alone
  let [left, top, tallest] = [GAP, HEAD + 6, 0];
  for (const rack of domain.racks) {
    const across = rackColumns(rack.nodes.length, cell, width - 2 * GAP, domain.divided);
    const box = { domain: rack, across, head, width: across * cell + 1, height: Math.ceil(rack.nodes.length / across) * cell + head };
    if (left > GAP && left + box.width > width - GAP) [left, top, tallest] = [GAP, top + tallest + GAP, 0];
    racks.push({ ...box, x: x + left, y: y + top });
    left += Math.max(box.width, domain.divided ? 44 : 0) + GAP;
    tallest = Math.max(tallest, box.height);
  }
  return { domain, racks, x, y, width, height: top + tallest + GAP };
}

function rackColumns(nodes, cell, width, divided) {
  const most = Math.max(1, Math.floor(width / cell));
  return Math.min(most, divided ? Math.max(Math.ceil(44 / cell), Math.ceil(Math.sqrt(nodes * 1.5))) : most);
}

function boxesById(zones) {
  return new Map(zones.flatMap((zone) => [zone, ...zone.racks]).map((box) => [box.domain.id, box]));
}

export function cellOf(layout, rack, place) {
  const { cell } = layout;
  return [rack.x + (place % rack.across) * cell, rack.y + rack.head + Math.floor(place / rack.across) * cell, cell - 1];
}

/** What is at a point: {node} or {domain}, or nothing. */
export function at(layout, x, y) {
  const inside = (box) => x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height;
  const zone = layout.zones.find(inside);
  const rack = zone?.racks.find(inside);
  if (!rack) return zone ? { domain: zone.domain.id } : null;
  const [column, row] = [Math.floor((x - rack.x) / layout.cell), Math.floor((y - rack.y - rack.head) / layout.cell)];
  const node = row >= 0 && column < rack.across ? rack.domain.nodes[row * rack.across + column] : undefined;
  if (node !== undefined) return { node };
  return { domain: zone.domain.divided ? rack.domain.id : zone.domain.id };
}
