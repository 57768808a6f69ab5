// What an answer about many pods says, in the words of the commands: a drain, a loss, a removal, or how many more fit.

import { amountText, percent, shareOf, unitOf } from "./amounts.js";
import { counted, element, folded, shortened, table } from "./elements.js";
import { OutcomeLayer } from "./outcome_layer.js";
import { hiddenText, leftOut } from "./sentences.js";

/** @import { Assumptions, Capacity, Drain, DrainedPod, Loss, Removal, Rejected, Workload } from "admin-port" */
/** @import { Cluster, Selection } from "./cluster.js" */
/** @import { Cell, Child } from "./elements.js" */

/**
 * An answer: what matters of it in a sentence, remarks, tables, and what is told of a place of the map.
 * @typedef {object} Outcome
 * @property {string} headline
 * @property {(string | HTMLElement)[]} notes
 * @property {Child[]} top what is read before the map
 * @property {Child[]} pods what is read below it
 * @property {Assumptions} assumed
 * @property {OutcomeLayer | null} layer
 * @property {(selection: Selection) => Child[]} detail
 */

/**
 * A pod that leaves its node, and what becomes of it: it is placed elsewhere for sure, it is lost, it never leaves, or
 * none of these.
 * @typedef {{ move: DrainedPod["move"], round: number, text: string, fate: "placed" | "lost" | "blocked" | "away" }} Going
 */

const NAMES_SHOWN = 3;
const GROUPS_SHOWN = 5;
const ROWS_OPEN = 10;
const ROWS_SHOWN = 200;
const REASONS_SHOWN = 3;
const PLACES_SHOWN = 2;
const FILL_SHOWN = ["cpu", "memory", "pods"];
const STATES = { out: "do not answer", removed: "are removed" };

/**
 * @param {Cluster} cluster
 * @param {Drain} told
 * @returns {Outcome}
 */
export function drainOutcome(cluster, { ends, nodes, pods, rounds, rejections, together, command, assumed }) {
  const goings = pods.map(goingOf);
  const placed = goings.filter(({ fate }) => fate === "placed").length;
  const coming = pods.filter(({ stays, blocked, move }) => !stays && !blocked && !move.stays_away).length;
  const endings = {
    always: ` ends${rounds > 1 ? ` in ${rounds} rounds` : ""}`,
    sometimes: " ends in some orders only",
  };
  const ending = ends === "never" ? " does not end" : endings[ends];
  const of = nodes.length === 1 ? nodes[0] : counted(nodes.length, "node");
  return {
    headline: `The drain of ${of}${assumed.left_out ? ", of whose pods you see some" : ending}; ${placed} of ${counted(coming, "pod")} ${coming === 1 ? "finds" : "find"} a place.`,
    notes: [
      ...together.map((owner) => `Warning: all replicas of ${owner} end on one node.`),
      ...rejections.map(
        (each) =>
          `Without more flags, kubectl refuses: ${[each.message, listed(each.pods)].filter(Boolean).join(": ")}.`,
      ),
      element("span", { text: "The command: " }, element("code", { text: command })),
    ],
    top: lostText(goings),
    pods: podsText(goings),
    assumed,
    ...onMap(cluster, nodes, "drained", goings),
  };
}

/**
 * @param {Cluster} cluster
 * @param {Loss} told
 * @param {string} wanted the domain whose loss is drawn; else the worst
 * @param {(value: string) => void} choose
 * @returns {Outcome}
 */
export function lossOutcome(cluster, told, wanted, choose) {
  const { domains, topology_key: key, assumed } = told;
  const lost = domains.filter(({ survived }) => !survived);
  const of = `${counted(domains.length, "domain")} of ${key}`;
  const unknown = lost.some((each) => each.unknown) ? ", or it is not known" : "";
  const drawn = domains.find((each) => nameOf(each) === wanted) ?? domains[0];
  const goings = drawn.moves.map((move) => goingOf({ move }));
  const rows = domains.map((each) => [
    element("button", {
      type: "button",
      class: "small",
      text: nameOf(each),
      "aria-pressed": String(each === drawn),
      data: { lost: nameOf(each) },
      on: { click: () => choose(nameOf(each)) },
    }),
    each.nodes.length.toLocaleString("en"),
    each.coming.toLocaleString("en"),
    each.without_place.toLocaleString("en"),
    each.workloads.length ? keptText(each.workloads[0]) : "",
  ]);
  const fewer = drawn.workloads.filter((each) => keptOf(each) < each.replicas).map(keptText);
  return {
    headline: lost.length
      ? `The cluster does not survive the loss of ${lost.length.toLocaleString("en")} of ${of}, each by itself: pods find no place${unknown}.`
      : `The cluster survives the loss of any one of ${of}.`,
    notes: told.nodes_without_key ? [`${counted(told.nodes_without_key, "node")} without ${key}: not lost.`] : [],
    top: longTable(
      "Each loss by itself",
      ["Lost", "Nodes", "Pods", "No place", "Keeps least"],
      rows,
      "domain",
      "losses",
    ),
    pods: [
      element("h3", { text: `Without ${nameOf(drawn)}, whose nodes ${STATES[drawn.state]}` }),
      ...lostText(goings),
      ...podsText(goings),
      ...bullets("Keep fewer replicas", fewer, "workload"),
      element("p", { class: "hint", text: `Left out: ${told.left_out.join("; ")}.` }),
    ],
    assumed,
    ...onMap(cluster, drawn.nodes, "lost", goings),
  };
}

/**
 * @param {Cluster} cluster
 * @param {Removal} told
 * @returns {Outcome}
 */
export function removalOutcome(cluster, { nodes, together, saved, assumed }) {
  const layer = new OutcomeLayer(cluster, "removal", "could go", [
    { text: "could all go", sign: 0, share: 1 },
    { text: "could go by itself", sign: 0, share: 0 },
    { text: "stays", sign: 1 },
    { text: "not tried", sign: null },
  ]);
  const all = new Set(together);
  const rows = [];
  for (const { node, goes, pod, why, rejected, state } of nodes) {
    const can = goes === "always";
    const removed = state === "removed" ? " once the node is removed" : "";
    const text = rejected ? `${chanceText(rejected, goes)}${removed}: ${rejectedText(rejected)}` : why;
    layer.set(node, can ? Number(!all.has(node)) : 2, can ? "" : `: ${pod}: ${text}`);
    if (can) layer.add(node);
    else rows.push([node, pod, text]);
  }
  const offers = Object.entries(saved).map(([name, amount]) => `${name} ${amountText(amount, unitOf(name))}`);
  return {
    headline: `${(nodes.length - rows.length).toLocaleString("en")} of ${counted(nodes.length, "node")} could go, each by itself.`,
    notes: all.size
      ? [`${counted(all.size, "node")} could all go, which saves ${offers.join(" and ")}: ${listed(together)}.`]
      : [],
    pods: [],
    top: [
      foldedTable("that cannot go", "The one pod and rule in the way", ["Stays", "For pod", "Because"], rows, "node"),
    ],
    assumed,
    layer,
    detail: () => [],
  };
}

/**
 * @param {Capacity} told
 * @param {boolean} supposes whether the form has suppositions, which are of its own question
 * @returns {Outcome}
 */
export function capacityOutcome({ of, requested, capacity, assumed }, supposes) {
  const { least, most, rejected, quota, pending_placed: before, pending_unplaced: unplaced } = capacity;
  const number = [...new Set([least, most])].map((each) => each.toLocaleString("en")).join(" to ");
  const wanted = requested === null ? " more" : ` of the ${requested.toLocaleString("en")} that are asked for`;
  const has = rejected?.fate === "unknown" ? "may have a place" : "has no place";
  const next = rejected ? `${has}: ${rejectedText(rejected)}` : quota && `is not allowed: ${quota}`;
  const pending = before + unplaced.length + assumed.left_out;
  const fill = Object.entries(capacity.fill).filter(([name, each]) => FILL_SHOWN.includes(name) && each.allocatable);
  /** @param {Record<string, number>} counts */
  const rows = (counts) => Object.entries(counts).map(([name, pods]) => [name || "none", pods.toLocaleString("en")]);
  return {
    headline: `${number}${wanted} fit: ${of.join(" and ")}.`,
    notes: [
      next && `The next one ${next}.`,
      pending ? `Before them, ${before} of ${counted(pending, "pending pod")} find a place.` : "",
      supposes ? 'What is supposed in "Question" does not count here: the cluster is taken as it is.' : "",
    ].filter(Boolean),
    pods: [],
    top: [
      ...longTable("By zone", ["Zone", "Pods"], rows(capacity.by_zone), "zone", "figures"),
      ...longTable("By node pool", ["Node pool", "Pods"], rows(capacity.by_pool), "pool", "figures"),
      ...longTable(
        "Then requested",
        ["Resource", "Requested", "Allocatable", "Use"],
        fill.map(([name, { requested: used, allocatable }]) => [
          name,
          amountText(used, unitOf(name)),
          amountText(allocatable, unitOf(name)),
          percent(shareOf(used, allocatable)),
        ]),
        "resource",
        "figures",
      ),
    ],
    assumed,
    layer: null,
    detail: () => [],
  };
}

/**
 * What is not judged, and what is not shown.
 * @param {Assumptions} assumed
 */
export function lackNotes({ lacks, names_hidden: hidden, left_out: number }) {
  const unjudged = lacks.map((each) => ({ ...each, plugin: "" }));
  return [...(hidden ? [hiddenText(number, hidden)] : []), ...leftOut("Not judged", unjudged)];
}

/**
 * What an answer assumes, folded: it is the same for most of them.
 * @param {Assumptions} assumed
 */
export function assumptions({ kubernetes, profiles, percentage_of_nodes_to_score: percentage, orders, uncertainties }) {
  const reasons = new Set(uncertainties.map(({ why }) => why));
  const unsure = [...reasons].map((why) => {
    const alike = uncertainties.filter((each) => each.why === why);
    const pods = alike.reduce((sum, each) => sum + each.pods, 0);
    return `${counted(pods, "pod")} of ${listed(alike.map(({ owner }) => owner))}: ${why}`;
  });
  const texts = [
    kubernetes,
    `Rules of ${profiles.join(", ")}, with ${percentage} % of the nodes scored`,
    `${counted(orders, "order")} in which pods arrive and ties are broken`,
    ...unsure,
  ];
  return folded("What is assumed", {}, element("ul", {}, ...texts.map((text) => element("li", { text }))));
}

// Pods that leave their nodes.

/**
 * @param {Pick<DrainedPod, "move"> & Partial<DrainedPod>} pod
 * @returns {Going}
 */
function goingOf({ move, round = 0, stays = false, evicted, blocked = "", budgets = [] }) {
  const often = evicted === "sometimes" ? "not evicted in some orders" : "never evicted";
  if (blocked) return { move, round, fate: "blocked", text: `${often}: ${blocked} (${budgets.join(", ")})` };
  if (stays) return { move, round, fate: "away", text: "stays on its node" };
  if (move.stays_away) return { move, round, fate: "away", text: `does not come again: ${move.stays_away}` };
  if (move.rejected || move.returns) return { move, round, fate: "lost", text: unplacedText(move) };
  const zones = move.zones ? `, stays in ${move.zones.join(" or ")} with its volumes` : "";
  const nodes = listed(Object.keys(move.nodes), PLACES_SHOWN, " or ");
  return { move, round, fate: "placed", text: `${nodes}${zones}` };
}

/** @param {DrainedPod["move"]} move */
function unplacedText({ rejected, placed }) {
  if (!rejected) return "back to a node that is out: it tolerates the taints there";
  return `${chanceText(rejected, placed)}: ${rejectedText(rejected)}`;
}

/**
 * In how many orders there is a place, in a few words.
 * @param {Rejected} rejected
 * @param {DrainedPod["move"]["placed"]} placed
 */
function chanceText({ fate }, placed) {
  if (placed !== "never") return "a place in some orders";
  /** @type {Record<string, string>} */
  const fates = { unknown: "not known", denied: "not made again", byPreemption: "a place only by preemption" };
  return fates[fate] ?? "no place";
}

/** @param {Rejected} rejected */
function rejectedText({ fate, nodes, reasons, victims, node, why }) {
  if (fate === "gated") return "it has scheduling gates";
  if (why || !nodes) return why || "no nodes available to schedule pods"; // ErrNoNodesAvailable
  const texts = Object.entries(reasons).map(([reason, number]) => `${number} ${reason}`);
  const preempts = victims.length ? `; it may preempt ${victims.join(", ")} on ${node}` : "";
  return `0/${nodes} nodes are available: ${listed(texts, REASONS_SHOWN)}${preempts}`;
}

/** @param {Going[]} goings */
function lostText(goings) {
  const of = (/** @type {Going["fate"]} */ wanted) => grouped(goings.filter(({ fate }) => fate === wanted));
  return [
    ...bullets("Why the drain does not end", of("blocked"), "group"),
    ...bullets("Without a place", of("lost"), "group"),
  ];
}

/**
 * The pods that move, then those that stay or do not come again.
 * @param {Going[]} goings
 */
function podsText(goings) {
  const moving = goings.filter(({ fate }) => fate === "placed");
  const rounds = moving.some(({ round }) => round > 1);
  const rows = moving.map(({ move, round, text }) => [move.from_node, move.pod, ...(rounds ? [round] : []), text]);
  const heads = ["From", "Pod", ...(rounds ? ["Round"] : []), "Goes to"];
  const away = grouped(goings.filter(({ fate }) => fate === "away"));
  return [
    foldedTable("with another place", "Where they would go", heads, rows, "pod"),
    ...bullets("Not placed again", away, "group"),
  ];
}

/**
 * Pods of one owner with one fate, together, most first.
 * @param {Going[]} goings
 */
function grouped(goings) {
  /** @type {Map<string, Going[]>} */
  const groups = new Map();
  for (const each of goings) {
    const key = `${each.move.owner}: ${each.text}`;
    const known = groups.get(key);
    if (known) known.push(each);
    else groups.set(key, [each]);
  }
  const ordered = [...groups.values()].sort((one, other) => other.length - one.length);
  return ordered.map((alike) => {
    const [{ move, text }] = alike;
    if (alike.length === 1) return `${move.pod}: ${text}`;
    const names = alike.map((each) => (move.owner ? each.move.pod.replace(/^.*\//, "") : each.move.pod));
    return `${move.owner && `${move.owner}: `}${counted(alike.length, "pod")} (${listed(names)}): ${text}`;
  });
}

/**
 * The nodes that go and those that get their pods, and what is told of each.
 * @param {Cluster} cluster
 * @param {string[]} nodes that go
 * @param {string} how they go
 * @param {Going[]} goings
 * @returns {Pick<Outcome, "layer" | "detail">}
 */
function onMap(cluster, nodes, how, goings) {
  const layer = new OutcomeLayer(cluster, "moves", "pods come", [
    { text: "with new pods", sign: 0 },
    { text: how, sign: 2 },
    { text: `${how}, with pods that find no place`, sign: 1 },
    { text: "never emptied", sign: 3 },
    { text: "unchanged", sign: null },
  ]);
  for (const node of nodes) layer.set(node, 1);
  for (const { move, fate } of goings) {
    if (fate === "lost") layer.set(move.from_node, 2);
    if (fate === "placed") layer.add(move.node);
  }
  for (const { move, fate } of goings) if (fate === "blocked") layer.set(move.from_node, 3); // whatever else is on it
  return {
    layer,
    detail({ node, domain }) {
      const places = node === undefined ? cluster.domain(domain).nodes : [node];
      const names = new Set(places.map((place) => cluster.columns.names[place]));
      const come = goings.filter(({ move, fate }) => fate === "placed" && names.has(move.node));
      const leave = goings.filter(({ move }) => names.has(move.from_node));
      const from = come.map(({ move }) => [move.pod, move.from_node]);
      const to = leave.map(({ move, text }) => [move.pod, text]);
      return [
        ...longTable("Pods that come", ["Pod", "From"], from, "pod"),
        ...longTable("Pods that are there", ["Pod", "What becomes of it"], to, "pod"),
      ];
    },
  };
}

/**
 * The name of what is lost, which an empty value of a label has, too.
 * @param {Loss["domains"][number]} domain
 */
const nameOf = ({ value }) => value || '""';

/** @param {Workload} workload */
const keptOf = ({ replicas, left, again }) => replicas - left + again;

/** @param {Workload} workload */
const keptText = (workload) =>
  `${keptOf(workload).toLocaleString("en")} of ${workload.replicas.toLocaleString("en")} of ${workload.owner}`;

/**
 * The first of some texts, and how many more there are.
 * @param {string[]} texts
 */
function listed(texts, most = NAMES_SHOWN, or = ", ") {
  const left = texts.length - most;
  return [...texts.slice(0, most), ...(left > 0 ? [`${left.toLocaleString("en")} more`] : [])].join(or);
}

/**
 * A heading with a list; nothing for no text.
 * @param {string} title
 * @param {string[]} texts
 * @param {string} noun
 */
function bullets(title, texts, noun) {
  const items = texts.slice(0, ROWS_SHOWN).map((text) => element("li", { text }));
  return texts.length ? [element("h4", { text: title }), ...shortened(items, GROUPS_SHOWN, `more ${noun}`)] : [];
}

/**
 * A table, and how many rows it leaves out; nothing for no row.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Cell[][]} rows
 * @param {string} noun
 */
function longTable(caption, heads, rows, noun, kind = "even") {
  const left = rows.length - ROWS_SHOWN;
  const more = left > 0 ? [element("p", { class: "hint", text: `and ${counted(left, `more ${noun}`)}` })] : [];
  return rows.length ? [table(caption, heads, rows.slice(0, ROWS_SHOWN), kind), ...more] : [];
}

/**
 * A table that is folded unless it is short; null for no row.
 * @param {string} which
 * @param {string} caption
 * @param {string[]} heads
 * @param {Cell[][]} rows
 * @param {string} noun
 */
const foldedTable = (which, caption, heads, rows, noun) =>
  rows.length
    ? folded(
        `${counted(rows.length, noun)} ${which}`,
        { open: rows.length <= ROWS_OPEN },
        ...longTable(caption, heads, rows, noun),
      )
    : null;
