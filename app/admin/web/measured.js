// What the plugins measured, as sentences: what a node lacks for the pod, and what is lacking everywhere.

import { amountText, unitOf } from "./amounts.js";
import { counted } from "./elements.js";

/**
 * @typedef {import("admin-port").NodeDecision["amounts"]} NodeAmounts
 * @typedef {import("admin-port").Explanation["summary"]["amounts"]} ClusterAmounts
 * @typedef {NodeAmounts["requirements"][number]} Unmet
 */

/**
 * @param {NodeAmounts} amounts
 * @returns {string[]}
 */
export function measuredOnNode(amounts) {
  const { requirements, missing_features: features } = amounts;
  return [
    ...amounts.resources.filter((each) => each.missing).map(resourceOnNode),
    ...amounts.taints.map((each) => `taint ${taintText(each)} is not tolerated`),
    amounts.cordoned ? "cordoned" : "",
    requirements.length ? `lacks ${requirements.map(unmetText).join(", ")}` : "",
    ...amounts.ports.map((each) => `host port ${portText(each)} is held by ${each.pods.join(", ") || "pods"}`),
    ...amounts.spread.map(spreadOnNode),
    ...amounts.bound_elsewhere.map(
      (each) => `claim ${each.claim}: volume ${each.volume} needs ${each.needs}; the node has ${each.has}`,
    ),
    ...amounts.drivers.map(driverOnNode),
    ...amounts.disks.map((each) => `disk ${each.name} is in use by ${each.pods.join(", ") || "pods"}`),
    features.length ? `does not declare ${features.join(", ")}` : "",
    amounts.usage ? usageText(amounts.usage) : "",
    ...amounts.facts,
  ].filter(Boolean);
}

/** @param {NonNullable<NodeAmounts["usage"]>} usage */
function usageText({ measured_at: at, too_old: tooOld, resources, pods_not_covered: pods }) {
  if (at === null) return "usage: not measured, so the plugins that follow it pass the node over";
  const time = new Date(at * 1000).toISOString();
  if (tooOld) return `usage: measured at ${time}, too long ago, so the plugins that follow it pass the node over`;
  const parts = resources.map(
    ({ resource, average, capacity }) =>
      `${resource} ${amountText(average, unitOf(resource))} of ${amountText(capacity, unitOf(resource))}`,
  );
  return `usage at ${time}: ${parts.join(", ")}${pods ? `; not measured yet: ${counted(pods, "pod")}` : ""}`;
}

/** @param {{ nodes: number, has: string }} found @returns {string} how many nodes, and what they have instead */
const nodesWith = ({ nodes, has }) =>
  `${counted(nodes, "node")}${has ? `, which ${nodes === 1 ? "has" : "have"} ${has}` : ""}`;

/**
 * @param {ClusterAmounts} amounts
 * @param {number} nodes that were asked about
 * @returns {string[]}
 */
export function measuredInCluster(amounts, nodes) {
  const { cordoned, nearest } = amounts;
  return [
    amounts.exclusion ? sentence(amounts.exclusion) : "",
    ...amounts.facts.map(sentence),
    ...amounts.resources.filter((each) => each.nodes < nodes).map(resourceInCluster),
    ...amounts.resizes.map((each) => `${each.pod} on ${each.node} holds more ${each.resource} until it is resized.`),
    ...amounts.overflows.map((each) => `The request of ${each}.`),
    ...amounts.taints.map((each) => `Taint ${taintText(each)}: on ${counted(each.nodes, "node")}.`),
    cordoned ? `Cordoned: ${counted(cordoned.nodes, "node")}.` : "",
    ...amounts.requirements.map((each) => `Requires ${askedText(each.asked)}: not met by ${nodesWith(each)}.`),
    ...amounts.impossible.map((each) => `Required node affinity that no node can match, whatever its labels: ${each}.`),
    nearest ? `Nearest by labels: ${nearest.node}, which lacks ${nearest.unmet.map(unmetText).join(", ")}.` : "",
    ...amounts.ports.map((each) => `Host port ${portText(each)}: in use on ${counted(each.nodes, "node")}.`),
    ...amounts.spread.filter((each) => each.nodes_refused || each.nodes_without_key).map(spreadInCluster),
    ...amounts.bound_elsewhere.map(
      (each) => `Claim ${each.claim}: volume ${each.volume} needs ${each.needs}; out of reach of ${nodesWith(each)}.`,
    ),
    ...amounts.claims.map((each) => `Claim ${each.claim}: ${each.why}.`),
    ...amounts.drivers.map(
      ({ driver, added, most_free: most, limit, most_free_node: node }) =>
        `Volumes of ${driver}: needs ${added}; most free on any node: ${most} of a limit of ${limit}, on ${node}.`,
    ),
    ...amounts.claims_in_use.map(
      ({ name, pods }) => `ReadWriteOncePod claim ${name}: in use by ${pods.join(", ") || "other pods"}.`,
    ),
    amounts.node_name
      ? `spec.nodeName: only ${amounts.node_name}${amounts.node_is_known ? "" : ", which does not exist"}.`
      : "",
    ...amounts.missing_features.map(
      ({ feature, nodes: lacking }) => `Needs the feature ${feature}: not declared by ${counted(lacking, "node")}.`,
    ),
    amounts.usage && amounts.usage.too_old + amounts.usage.not_measured
      ? `Usage: not measured, or too long ago, on ${counted(amounts.usage.too_old + amounts.usage.not_measured, "node")}.`
      : "",
  ].filter(Boolean);
}

/** @param {string} text */
const sentence = (text) => `${text[0]?.toUpperCase()}${text.slice(1)}.`;

/** @param {NodeAmounts["resources"][number]} found */
function resourceOnNode({ resource, requested, free, in_use: inUse, allocatable, missing }) {
  const text = (/** @type {number} */ amount) => amountText(amount, unitOf(resource));
  return `needs ${resource} ${text(requested)}; free ${text(free)} (${text(inUse)} of ${text(allocatable)} in use): ${text(missing)} too little`;
}

/** @param {ClusterAmounts["resources"][number]} found */
function resourceInCluster({ resource, requested, origin, most_free: most, most_free_node: node, nodes }) {
  const text = (/** @type {number} */ amount) => amountText(amount, unitOf(resource));
  const enough = nodes ? `enough on ${counted(nodes, "node")}` : "enough on no node";
  const asked = `${text(requested)}${origin ? ` (${origin})` : ""}`;
  if (!node) return `Needs ${resource} ${asked}; no node offers it.`;
  return `Needs ${resource} ${asked}; most free on any node: ${text(most)}, on ${node}; ${enough}.`;
}

/** @param {NodeAmounts["spread"][number]} found */
function spreadOnNode({ topology_key: key, domain, pods, fewest, skew, max_skew: most }) {
  if (domain === null) return `spread by ${key}: no such label`;
  return `spread by ${key}: ${domain} has ${counted(pods, "pod")}, the fewest ${fewest}: skew ${skew} of at most ${most}`;
}

/** @param {ClusterAmounts["spread"][number]} found */
function spreadInCluster(found) {
  const { topology_key: key, domains, min_domains: wanted, holding = [], domains_holding: held = 0 } = found;
  const shown = found.shown.map(({ value, pods, skew }) => `${value} ${pods} (skew ${skew})`).join(", ");
  const parts = [
    `Spread by ${key}, maxSkew ${found.max_skew}: ${shown || "no domain"}`,
    `too uneven on ${counted(found.nodes_refused, "node")}, no such label on ${found.nodes_without_key}`,
    domains < wanted ? `minDomains ${wanted}, and there are ${domains}: the minimum counts as 0` : "",
    held
      ? `${counted(held, "domain")} with nodes that only refuse the pod hold the minimum at ${found.fewest}, such as ${holding.join(", ")}`
      : "",
  ];
  return `${parts.filter(Boolean).join("; ")}.`;
}

/** @param {NodeAmounts["drivers"][number]} found */
function driverOnNode({ driver, limit, attached, added }) {
  return `volumes of ${driver}: ${attached} attached, ${added} more, ${limit === null ? "no limit" : `limit ${limit}`}`;
}

/** @param {{ key: string, value: string, effect: string }} taint */
const taintText = ({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`;

/** @param {{ ip: string, port: number, protocol: string }} held */
const portText = ({ ip, port, protocol }) => `${ip}:${port}/${protocol}`;

/** @param {Unmet} found */
const unmetText = ({ asked, has }) => `${askedText(asked)} (${has === null ? "no such label" : `has ${has || "''"}`})`;

/**
 * A requirement as kubectl takes selectors.
 * @param {Unmet["asked"]} asked
 */
function askedText({ key, operator, values }) {
  if (operator === "Exists") return key;
  if (operator === "DoesNotExist") return `!${key}`;
  if (operator === "In") return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(", ")})`;
  if (operator === "NotIn") return `${key} notin (${values.join(", ")})`;
  return `${key} ${operator} ${values.join(", ")}`;
}
