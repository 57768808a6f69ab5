// The groups of pods that are placed together: how far each is, why it waits, and how close to each other the members are
// placed. Groups of kube-scheduler have conditions in place of a packing.

import { get, passes } from "./api.js";
import { duration } from "./amounts.js";
import { byId, counted, element, messageOf } from "./elements.js";
import { released } from "./live.js";

/** @import { UnitStatus, PackingStatus } from "admin-port" */

const SHOWN = 50;

/**
 * Show the units that wait, the ones that were asked about first before the others, and those that are placed folded.
 * False: there was no answer, and the list is of the past.
 */
export async function showUnits() {
  try {
    const { units } = await get("units");
    await released();
    const waiting = units.filter(({ status }) => status !== "scheduled");
    const placed = units.filter(({ status }) => status === "scheduled");
    waiting.sort((one, other) => (other.asked ?? 0) - (one.asked ?? 0));
    byId("units").hidden = !units.length;
    byId("units-count").textContent = String(units.length);
    byId("units-note").textContent = "";
    fill("units-waiting", waiting);
    fill("units-placed", placed);
    byId("units-folded").hidden = !placed.length;
    byId("units-sum").textContent = `${counted(placed.length, "unit")} scheduled`;
  } catch (error) {
    byId("units-note").textContent = messageOf(error);
    return !passes(error);
  }
  return true;
}

/**
 * The lists stay, and so does what is unfolded or has the focus; the units in them are text.
 * @param {string} id
 * @param {UnitStatus[]} units
 */
function fill(id, units) {
  const left = units.length - SHOWN;
  byId(id).replaceChildren(
    ...units.slice(0, SHOWN).map(unitItem),
    ...(left > 0 ? [element("li", { class: "hint", text: `and ${left.toLocaleString("en")} more` })] : []),
  );
}

/** @param {UnitStatus} unit */
function unitItem(unit) {
  const waits = unit.status !== "scheduled" && unit.asked !== null;
  const facts = [countsText(unit), waits ? `waits ${duration(unit.asked ?? 0)}` : ""];
  return element(
    "li",
    {},
    element("strong", { text: unit.unit }),
    element("span", { text: ` ${unit.status}${placedBy(unit)}` }),
    unit.reason ? element("p", { text: unit.reason }) : null,
    element("p", { class: "hint", text: facts.filter(Boolean).join(" · ") }),
    ...lastFacts(unit).map((text) => element("p", { class: "hint", text })),
  );
}

/**
 * A unit of which a pod is a member, as notes beside an answer.
 * @param {UnitStatus} unit
 */
export function unitNotes(unit) {
  const why = unit.reason ? `: ${unit.reason}` : "";
  return [
    `Placed together with its group${placedBy(unit)}: ${unit.unit} is ${unit.status}${why}. Of ${counted(unit.members, "member")}, ${countsText(unit)}.`,
    ...lastFacts(unit).map((text) => `${text}.`),
  ];
}

/** @param {UnitStatus} unit */
const placedBy = ({ placed_by: by }) => (by === "kube-scheduler" ? `, by ${by}` : "");

/**
 * The packing of a unit, or the conditions of one that kube-scheduler places.
 * @param {UnitStatus} unit
 */
const lastFacts = ({ packing, conditions = [] }) => [
  ...(packing ? [packingText(packing)] : []),
  ...conditions.map(
    ({ type, status, reason = "", message = "", since = "" }) =>
      `Condition: ${type}=${status}${reason && ` (${reason})`}${since && `, since ${since}`}${message && `: ${message}`}`,
  ),
];

/** @param {UnitStatus} unit */
const countsText = ({ bound, assumed, minimum, reserved, pending, terminating }) =>
  [
    `${bound + assumed} of ${minimum || "?"} scheduled`,
    reserved ? `${reserved} reserved` : "",
    pending ? `${pending} pending` : "",
    terminating ? `${terminating} terminating` : "",
  ]
    .filter(Boolean)
    .join(", ");

/**
 * How close to each other the members are placed, and what has come of it.
 * @param {PackingStatus} packing
 */
function packingText({ way, topology_key: key, problem, nodes, domains }) {
  const result = domains === null ? "" : `${counted(domains, "domain")}, `;
  const asked = `Packing: ${way}${key ? ` ${key}` : ""}, on ${result}${counted(nodes, "node")}`;
  return problem ? `${asked}; placed as spread: ${problem}` : asked;
}
