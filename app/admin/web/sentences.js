// What is said in a sentence: of the cluster, of an answer, of what is supposed.

import { duration, percent, shareOf } from "./amounts.js";
import { counted, element } from "./elements.js";
import { measuredInCluster } from "./measured.js";
import { unitNotes } from "./units.js";

const RESOURCES_SAID = 3;
const VICTIMS_SAID = 3;
const MEASURES_SAID = 5;

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
 * What matters of an answer, and then the reasons, of which there may be many.
 * @param {import("admin-port").Explanation["summary"]} summary
 */
export function headline({ pod, message }) {
  const text = `${pod}: ${message}`;
  const [, matters, reasons] = /^(.*? available)(.*)$/s.exec(text) ?? [text, text, ""];
  return [element("strong", { text: matters }), element("span", { class: "reasons", text: reasons })];
}

/**
 * What is to be known beside the headline, such as what was not judged, what the pod waits for, and what would help.
 * @param {import("admin-port").Explanation} told
 */
export function notes({ summary, unit, waits_for: victims = [], manifest = null, names_hidden: hidden = "" }) {
  const { answered_fit: answered, fit, nodes, not_judged: unjudged, scheduler, waiting } = summary;
  const gates = waiting?.gates ?? [];
  return [
    summary.never_tried ? `The pod is not tried: ${summary.never_tried}.` : "",
    manifest?.completed.length ? `Added to the manifest: ${manifest.completed.join("; ")}.` : "",
    ...(manifest?.unknown ?? []).map((each) => `Not judged: ${each}.`),
    ...unjudged.map(({ plugin, why }) => `Not judged${plugin ? `: ${plugin}` : ""}: ${why}.`),
    scheduler ? schedulerText(scheduler, fit) : "",
    answered === fit
      ? ""
      : `Kindred's own filter passes ${answered} of ${nodes}: the other rules are kube-scheduler's.`,
    gates.length ? `Scheduling gates: ${gates.join(", ")}. kube-scheduler does not try it until they are removed.` : "",
    waiting?.message ? `Last attempt: ${waiting.message}` : "",
    ...(unit ? unitNotes(unit) : []),
    ...victims.slice(0, VICTIMS_SAID).map((each) => `It ${victimText(each)}.`),
    victims.length > VICTIMS_SAID ? `It waits for ${counted(victims.length - VICTIMS_SAID, "more victim")}.` : "",
    ...measuredInCluster(summary.amounts, nodes).slice(0, MEASURES_SAID),
    ...summary.helps.map(({ text }) => `Would help: ${text}.`),
    hidden,
  ].filter(Boolean);
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
export function supposition({ added_nodes: nodes, removed, assumed }) {
  const parts = [
    nodes.length ? `more nodes: ${nodes.join(", ")}` : "",
    removed.length ? `gone: ${removed.join(", ")}` : "",
    assumed.length ? `placed: ${assumed.join(", ")}` : "",
  ].filter(Boolean);
  return parts.length ? `Supposed: ${parts.join("; ")}.` : "";
}
