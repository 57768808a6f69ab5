// What is said in a sentence: of the cluster, of an answer, of what is supposed.

import { DIRECTIONS, RULES } from "./details.js";
import { duration, percent, shareOf } from "./amounts.js";
import { capped, counted, element, shortened } from "./elements.js";
import { measuredInCluster } from "./measured.js";
import { unitNotes } from "./units.js";

const RESOURCES_SAID = 3;
const VICTIMS_SAID = 3;
const MEASURES_SAID = 12;
const REMEDIES_SHOWN = 3;

/** @import { Explanation } from "admin-port" */
/**
 * @typedef {Explanation["summary"]} Summary
 */

/**
 * How large the cluster is, and how full.
 * @param {import("./cluster.js").Cluster} cluster
 * @param {import("./use_layer.js").Use} use
 */
export function clusterText(cluster, use) {
  const size = `${counted(cluster.size, "node")} in ${counted(cluster.zones.length, "zone")}.`;
  const shares = use
    .sums(cluster.columns.names)
    .slice(0, RESOURCES_SAID)
    .map(({ use: { resource }, requested, allocatable }) => `${resource} ${percent(shareOf(requested, allocatable))}`);
  return shares.length ? `${size} Requested: ${shares.join(", ")}.` : size;
}

/**
 * An explanation in sentences, by the element of the page that has them.
 * @param {Explanation} told
 * @param {boolean} sure whether every rule was judged
 * @param {string} remark
 * @returns {Record<string, import("./elements.js").Child[]>}
 */
export const sentences = (told, sure, remark) => ({
  answer: headline(told.summary, sure),
  helps: remedies(told.summary),
  supposition: [[supposition(told.supposed), remark].filter(Boolean).join(" ")],
  notes: notes(told).map((each) => element("li", {}, each)),
  scored: scoreNotes(told.summary).map((each) => element("p", { class: "hint" }, each)),
  class: [classText(told.equivalence)],
});

/**
 * What matters of an answer, and then the reasons, of which there may be many.
 * @param {Summary} summary
 * @param {boolean} sure whether every rule was judged
 */
function headline({ pod, message, fit }, sure) {
  const text = `${pod}: ${message}`;
  const [, matters, reasons] = /^(.*? available)(.*)$/s.exec(text) ?? [text, text, ""];
  const may = sure || !fit ? "" : " It may fit: not every rule was judged.";
  return [element("strong", { text: matters }), element("span", { class: "reasons", text: `${reasons}${may}` })];
}

/**
 * What would help, or that nothing does.
 * @param {Summary} summary
 */
function remedies({ helps, fit, nodes, never_tried: never }) {
  if (!helps.length) {
    return fit || never || !nodes ? [] : [element("h3", { text: "No change that was tried would help" })];
  }
  const items = helps.map(({ text }) => element("li", { text: `${text}.` }));
  const after = new Set(helps.map(({ then }) => then).filter(Boolean));
  return [
    element("h3", { text: "Changes that would help, each by itself" }),
    ...shortened(items, REMEDIES_SHOWN, "more change"),
    ...[...after].map((text) => element("p", { class: "hint", text: `After a change of the pod, ${text}.` })),
  ];
}

/**
 * What is to be known beside that, such as what was not judged, and what the pod waits for.
 * @param {Explanation} told
 * @returns {(string | HTMLElement)[]}
 */
function notes({ summary, unit, waits_for: victims = [], manifest = null, names_hidden: hidden = "" }) {
  const { answered_fit: answered, fit, nodes, scheduler, waiting } = summary;
  const gates = waiting?.gates ?? [];
  const waits = victims.map((each) => `It ${victimText(each)}.`);
  return [
    summary.never_tried ? `The pod is not tried: ${summary.never_tried}.` : "",
    manifest?.completed.length ? `Added to the manifest: ${manifest.completed.join("; ")}.` : "",
    ...(manifest?.unknown ?? []).map((each) => `Not judged: ${each}.`),
    ...leftOut("Not judged", summary.not_judged),
    scheduler ? schedulerText(scheduler, fit) : "",
    answered === fit
      ? ""
      : `Kindred's own filter passes ${answered} of ${nodes}: the other rules are kube-scheduler's.`,
    gates.length ? `Scheduling gates: ${gates.join(", ")}. kube-scheduler does not try it until they are removed.` : "",
    waiting?.message ? `Last attempt: ${waiting.message}` : "",
    ...(unit ? unitNotes(unit) : []),
    ...capped(waits, VICTIMS_SAID, "more victim"),
    ...capped([...measuredInCluster(summary.amounts, nodes), ...termNotes(summary)], MEASURES_SAID, "more fact"),
    hidden,
  ].filter(Boolean);
}

/**
 * The required terms, if one of them keeps the pod off a node; pods of one owner have the same one.
 * @param {Summary} summary
 */
function termNotes({ reasons, terms }) {
  if (reasons.every(({ plugin }) => plugin !== "InterPodAffinity")) return [];
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const { direction, rule, topology_key: key, selects, pods, domains, shown } of terms) {
    const text = `${RULES[rule]} by ${key} selects ${selects}`;
    const some = shown.map((each) => `${each.value} (${each.pods})`).join(", ");
    const where = `in ${counted(domains, "domain")}: ${some}${domains > shown.length ? ", …" : ""}`;
    const said = `Of ${DIRECTIONS[direction]} rules: ${text}: ${pods ? `${counted(pods, "placed pod")} ${where}` : "no placed pod"}.`;
    if (rule.startsWith("required") && !found.has(text)) found.set(text, said);
  }
  return [...found.values()];
}

/**
 * Rules or scores that are left out, by the reason, with the commands that get what is missing.
 * @param {string} what
 * @param {Pick<Summary["not_judged"][number], "plugin" | "why" | "command">[]} rules
 */
export function leftOut(what, rules) {
  const reasons = new Set(rules.map(({ why }) => why));
  const commands = new Set(rules.map(({ command }) => command ?? "").filter(Boolean));
  return [
    ...[...reasons].map((why) => {
      const plugins = rules.filter((each) => each.why === why).map(({ plugin }) => plugin);
      return `${[what, plugins.filter(Boolean).join(", "), why].filter(Boolean).join(": ")}.`;
    }),
    ...[...commands].map((text) => element("span", { text: "To add it: " }, element("code", { text }))),
  ];
}

/**
 * Pods that are counted and not named, and why.
 * @param {number} pods
 * @param {string} why
 */
export const hiddenText = (pods, why) => `${counted(pods, "pod")} of other namespaces left out: ${why}`;

/**
 * The profile that an explanation is by.
 * @param {Summary} summary
 */
export const profileText = ({ scheduler }) =>
  scheduler?.has_profile ? `scheduler's profile ${scheduler.name}` : "profile full";

/**
 * What the scores are made of, and what is not in them.
 * @param {Summary} summary
 */
function scoreNotes(summary) {
  const { best, scores, not_scored: missing = [], scheduler } = summary;
  if (!best.length) return [];
  const parts = scores.filter(({ raw }) => raw).map(({ plugin, weight }) => `${plugin} ${weight}`);
  const off = scheduler?.scores_off ?? [];
  const kindred = scheduler?.extender ? `its extender ${scheduler.extender}` : "not its extender";
  return [
    `Best score ${best[0].score}, on ${best[0].node}. Scores by the ${profileText(summary)}, with weights: ${parts.join(", ") || "none"}.`,
    scheduler?.has_profile ? `Kindred is ${kindred}.` : "",
    off.length ? `Not in the profile: ${off.join(", ")}.` : "",
    ...leftOut("Not in these scores", [...missing, ...(scheduler?.not_scored ?? [])]),
  ].filter(Boolean);
}

/**
 * The equivalence class of a pod, and what it was good for.
 * @param {Explanation["equivalence"]} use
 */
function classText(use) {
  if (!use) return "Equivalence class: none, as the pod has none, or the cache is off.";
  const { hash, kept, first_pod: first, questions, hits, misses } = use;
  const asked = kept ? `first pod ${first}; requests: ${questions}, hits: ${hits}, misses: ${misses}` : "not cached";
  return `Equivalence class: ${hash}, ${asked}.`;
}

/** @param {import("admin-port").AwaitedVictim} victim */
export const victimText = ({ name, node, waiting }) =>
  `waits for ${name} on ${node} to end, since ${duration(waiting)}`;

/**
 * What the scheduler's configuration says about the pod.
 * @param {NonNullable<import("admin-port").Explanation["summary"]["scheduler"]>} scheduler
 * @param {number} fit
 */
export function schedulerText(scheduler, fit) {
  const { name, filters_off: off, nodes_to_score: sample, percentage_of_nodes_to_score: percentage } = scheduler;
  if (!scheduler.has_profile) {
    return `No profile of the configuration has schedulerName ${name}: this kube-scheduler does not schedule this pod.`;
  }
  const parts = [
    off.length ? `Not in the scheduler's profile ${name}, nor judged by Kindred: ${off.join(", ")}.` : "",
    sample < fit
      ? `kube-scheduler scores ${sample} of the nodes that fit (percentageOfNodesToScore: ${percentage || "by the size of the cluster"}).`
      : "",
  ];
  return parts.filter(Boolean).join(" ");
}

/** @param {import("admin-port").Supposed} supposed */
function supposition({ added_nodes: nodes, added_slices: slices, removed, assumed }) {
  const parts = [
    nodes.length ? `more nodes: ${nodes.join(", ")}` : "",
    slices.length ? `more devices: ${slices.join(", ")}` : "",
    removed.length ? `gone: ${removed.join(", ")}` : "",
    assumed.length ? `placed: ${assumed.join(", ")}` : "",
  ].filter(Boolean);
  return parts.length ? `Supposed: ${parts.join("; ")}.` : "";
}
