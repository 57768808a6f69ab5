// The pods that wait: by what keeps them off the nodes, then by class, the ones that wait longest first.

import { get, offerCaller, passes } from "./api.js";
import { duration } from "./amounts.js";
import { byId, capped, counted, element, folded, messageOf } from "./elements.js";
import { released } from "./live.js";
import { hiddenText, schedulerText, victimText } from "./sentences.js";

/** @import { Pending, UnitStatus } from "admin-port" */
/**
 * @typedef {Pending["pods"][number]} PendingPod
 * @typedef {Pending["classes"][number]} PendingClass
 * @typedef {(pod: string) => void} Ask
 */

/**
 * Classes that wait for the same reason, each with its pods.
 * @typedef {{ of: PendingClass, pods: PendingPod[], units: UnitStatus[] }} Waiting
 * @typedef {{ title: string, pods: number, classes: Waiting[] }} Cause
 */

const ALL_OPEN = 4; // classes of which nothing is folded
const CLASSES_SHOWN = 3; // of each cause, before somebody wants all
const MOST_CLASSES = 50;
const PODS_SHOWN = 30;
const VICTIMS_SHOWN = 3; // of each class
const UNITS_SHOWN = 3; // of each class
/** @type {Record<string, string>} */
const STATES = {
  fits: "fit now, and wait for their scheduler",
  gated: "scheduling gates",
  "not judged": "pass what was judged, but not all rules were",
};

/** @type {PendingPod[]} */
let pods = []; // as they were shown last

/**
 * The pods that wait for victims of preemption on a node to end, as sentences.
 * @param {string} node
 */
export const waitsOn = (node) =>
  pods.flatMap(({ pod, waits_for: victims = [] }) =>
    victims.filter((each) => each.node === node).map((each) => `${pod} ${victimText(each)}`),
  );

/**
 * False: there was no answer, and the list is of the past.
 * @param {Ask} ask
 */
export async function showPending(ask) {
  const place = byId("pending-causes");
  try {
    const pending = await get("pending");
    await released();
    ({ pods } = pending);
    byId("pending-note").textContent = "";
    byId("pending-count").textContent = String(pending.pods.length || "");
    const folds = new Map([...place.querySelectorAll("details")].map((each) => [each.id, each.open]));
    const { activeElement } = document;
    const focused = activeElement instanceof HTMLElement && place.contains(activeElement) ? activeElement : null;
    const fold = focused?.parentElement?.id;
    place.replaceChildren(...causesOf(pending, ask), ...leftOut(pending));
    offerCaller(pending.names_hidden ?? "");
    for (const each of place.querySelectorAll("details")) each.open = folds.get(each.id) ?? each.open;
    const again = [...place.querySelectorAll("button")].find((each) => each.dataset.pod === focused?.dataset.pod);
    if (focused && again) {
      again.replaceWith(focused); // from another one an answer would tell that somebody has gone on
      focused.focus({ preventScroll: true });
    }
    for (const each of place.querySelectorAll("summary")) {
      if (focused?.localName === "summary" && each.parentElement?.id === fold) each.focus({ preventScroll: true });
    }
    // What had it is there no more.
    if (focused && !place.contains(document.activeElement)) byId("pending-heading").focus({ preventScroll: true });
  } catch (error) {
    byId("pending-note").textContent = messageOf(error);
    return !passes(error);
  }
  return true;
}

/**
 * What is not shown, and why.
 * @param {Pending} pending
 */
function leftOut({ left_out: number = 0, names_hidden: why = "" }) {
  return number ? [element("p", { class: "hint", text: hiddenText(number, why) })] : [];
}

/**
 * @param {Pending} pending
 * @param {Ask} ask
 */
function causesOf({ pods: all, classes, units = [], left_out: hidden = 0 }, ask) {
  if (!all.length) return hidden ? [] : [element("p", { class: "hint", text: "No pod waits for a node." })];
  /** @type {PendingPod[][]} */
  const members = classes.map(() => []);
  for (const pod of all) if (pod.class !== null) members[pod.class].push(pod);
  /** @type {Map<string, Cause>} */
  const causes = new Map();
  for (const [place, of] of classes.entries()) {
    const title = titleOf(of, members[place]);
    const cause = causes.get(title) ?? { title, pods: 0, classes: [] };
    cause.pods += of.pods;
    const groups = new Set(members[place].map(({ unit }) => unit));
    cause.classes.push({ of, pods: members[place], units: units.filter((_, index) => groups.has(index)) });
    causes.set(title, cause);
  }
  const unasked = all.filter((pod) => pod.class === null).length;
  const left = unasked ? `and ${counted(unasked, "pod")} of more kinds than are judged` : "";
  return [
    ...[...causes.values()]
      .sort((one, other) => other.pods - one.pods)
      .map((cause) => causeSection(cause, ask, classes.length <= ALL_OPEN)),
    element("p", { class: "hint", text: left }),
  ];
}

/**
 * @param {PendingClass} found
 * @param {PendingPod[]} members of the class
 */
function titleOf({ state, first_reason: reason, plugin }, members) {
  if (members.length && members.every((each) => each.state === "gated")) return STATES.gated;
  if (state in STATES) return STATES[state];
  return `${reason}${plugin ? ` (${plugin})` : ""}`;
}

/**
 * A cause, folded where there are many: all of them are to be seen.
 * @param {Cause} cause
 * @param {Ask} ask
 * @param {boolean} open
 */
function causeSection({ title, pods: number, classes }, ask, open) {
  const items = classes.slice(0, MOST_CLASSES).map((each) => classItem(each, ask));
  return element(
    "details",
    { class: "cause", id: `cause-${title}`, open },
    element(
      "summary",
      {},
      element("strong", { text: counted(number, "pod") }),
      element("span", { text: `: ${title}` }),
    ),
    element("ul", { class: "waiting" }, ...items.slice(0, CLASSES_SHOWN)),
    classes.length > CLASSES_SHOWN ? moreClasses(title, classes.length, items.slice(CLASSES_SHOWN)) : null,
  );
}

/**
 * The other classes of a cause, folded.
 * @param {string} title
 * @param {number} classes
 * @param {HTMLElement[]} items
 */
function moreClasses(title, classes, items) {
  const left = classes - CLASSES_SHOWN - items.length;
  return folded(
    `${counted(classes - CLASSES_SHOWN, "other kind")} of pods`,
    { id: `more-${title}` },
    element("ul", { class: "waiting" }, ...items),
    left ? element("p", { class: "hint", text: `and ${left.toLocaleString("en")} more` }) : null,
  );
}

/**
 * @param {Waiting} waiting
 * @param {Ask} ask
 */
function classItem({ of: found, pods: members, units }, ask) {
  const oldest = Math.max(...members.map((each) => each.seconds ?? 0), 0);
  const facts = [
    `${found.fit} of ${counted(found.nodes, "node")} fit`,
    oldest ? `waits ${duration(oldest)}` : "",
    found.not_judged.length ? `not judged: ${found.not_judged.map((each) => each.plugin).join(", ")}` : "",
    found.scheduler ? schedulerText(found.scheduler, 0) : "",
  ];
  const groups = units.map(({ unit, status, reason }) => `Group ${unit} is ${status}${reason && `: ${reason}`}`);
  const victims = members.flatMap(({ pod, waits_for: all = [] }) => all.map((each) => `${pod} ${victimText(each)}`));
  return element(
    "li",
    {},
    podButton(found.first_pod, ask),
    element("p", { class: "hint", text: facts.filter(Boolean).join(" · ") }),
    found.helps.length ? element("p", { class: "hint", text: `Would help: ${found.helps[0]}` }) : null,
    ...[...capped(groups, UNITS_SHOWN, "more group"), ...capped(victims, VICTIMS_SHOWN, "more victim")].map((text) =>
      element("p", { class: "hint", text }),
    ),
    members.length > 1 ? alike(members, found, ask) : null,
  );
}

/**
 * The other pods of a class, folded.
 * @param {PendingPod[]} members
 * @param {PendingClass} found
 * @param {Ask} ask
 */
function alike(members, found, ask) {
  const others = members.filter((each) => each.pod !== found.first_pod);
  const left = others.length - PODS_SHOWN;
  const items = others.slice(0, PODS_SHOWN).map((each) => element("li", {}, podButton(each.pod, ask)));
  return folded(
    `${counted(others.length, "pod")} like it`,
    { id: `alike-${found.first_pod}` },
    element("ul", { class: "chips" }, ...items),
    left > 0 ? element("p", { class: "hint", text: `and ${left.toLocaleString("en")} more` }) : null,
  );
}

/**
 * @param {string} pod
 * @param {Ask} ask
 */
const podButton = (pod, ask) =>
  element("button", { type: "button", class: "small", text: pod, data: { pod }, on: { click: () => ask(pod) } });
