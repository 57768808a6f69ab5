// What there is to be told of a domain or a node: counts, and the pods behind them, which can be supposed elsewhere.

import { get, post } from "./api.js";
import { amountText, percent, shareOf } from "./amounts.js";
import { domainName } from "./cluster.js";
import { breakable, counted, element, folded, messageOf, table } from "./elements.js";
import { measuredOnNode } from "./measured.js";
import { symbol } from "./signs.js";

/** @import { Cluster, Domain, JudgedCluster } from "./cluster.js" */
/** @import { Overview } from "./layers.js" */
/** @import { ExplainedNode, NodeDecision, Term } from "admin-port" */
/**
 * A pod by name, and the node that it is on: empty where it is on none.
 * @typedef {{ pod: string, node: string }} PlacedPod
 * @typedef {"assume" | "remove"} PodSupposition
 * @typedef {(kind: PodSupposition, pod: PlacedPod) => void} Suppose
 * @typedef {{ plugin: string, judged_by: import("admin-port").Reason["judged_by"] }} Rule
 */

const OF_SCHEDULER = "judged by kube-scheduler itself: Kindred's own filter and prioritize leave it out";
export const DIRECTIONS = { incoming: "this pod's", existing: "placed pods'" };
export const RULES = {
  requiredAffinity: "required affinity",
  requiredAntiAffinity: "required anti-affinity",
  preferredAffinity: "preferred affinity",
  preferredAntiAffinity: "preferred anti-affinity",
};
const EFFECTS = {
  none: "no effect here",
  blocks: "blocks",
  satisfied: "satisfied",
  firstPod: "satisfied: the first pod of its kind",
  scores: "scores",
};

/**
 * A pod by name that can be put into the form.
 * @param {string} pod
 * @param {string} node
 * @param {Suppose} suppose
 */
function podChip(pod, node, suppose) {
  /**
   * @param {PodSupposition} kind
   * @param {string} text
   * @param {string} label
   */
  const button = (kind, text, label) =>
    element("button", {
      type: "button",
      class: "small",
      "aria-label": label,
      text,
      on: { click: () => suppose(kind, { pod, node }) },
    });
  // A name that is hidden from who looks on is text: nothing can be asked about it.
  if (!pod.includes("/")) return element("li", { class: "chip" }, element("span", { text: pod }));
  return element(
    "li",
    { class: "chip", data: { pod } },
    element(
      "span",
      { class: "who" },
      element("span", { class: "pod", text: pod }),
      node ? element("span", { class: "hint", text: ` on ${node}` }) : null,
    ),
    node ? button("remove", "gone", `What if ${pod} did not exist`) : null,
    button("assume", "move", `What if ${pod} were on another node`),
  );
}

/**
 * A domain or a node of the cluster as it is: where it is, and what is requested of what it offers.
 * @param {Cluster} cluster
 * @param {import("./cluster.js").Selection} selection
 * @param {Overview | null} overview
 */
export function placeDetail(cluster, { node, domain }, overview) {
  if (node !== undefined) {
    return [
      element("h3", { text: cluster.columns.names[node] }),
      element("p", { class: "hint", text: whereabouts(cluster, node) }),
      ...useOf(cluster, [node], overview),
    ];
  }
  const found = cluster.domain(domain);
  return [
    element("h3", { text: domainName(found) }),
    element("p", { class: "hint", text: found.key }),
    element("p", { class: "verdict", text: counted(found.nodes.length, "node") }),
    ...useOf(cluster, found.nodes, overview),
  ];
}

/**
 * What is requested of what some nodes offer, resource by resource.
 * @param {Cluster} cluster
 * @param {number[]} nodes
 * @param {Overview | null} overview
 */
function useOf(cluster, nodes, overview) {
  if (!overview) return [];
  const rows = overview.use
    .sums(nodes.map((node) => cluster.columns.names[node]))
    .map(({ use: { resource, unit }, requested, allocatable }) => [
      resource,
      amountText(requested, unit),
      amountText(allocatable, unit),
      percent(shareOf(requested, allocatable)),
    ]);
  if (!rows.length) return [element("p", { class: "hint", text: "The mirror does not have its resources." })];
  return [table("Requested by the pods there", ["Resource", "Requested", "Allocatable", "Use"], rows, "figures")];
}

/**
 * @param {Cluster} cluster
 * @param {number} place
 */
const whereabouts = (cluster, place) => [cluster.zoneOf(place), cluster.rackOf(place)].filter(Boolean).join(", ");

/**
 * A domain: its nodes by verdict, and the terms of its topology key, as one of its nodes has them.
 * @param {JudgedCluster} cluster
 * @param {Domain} domain
 * @param {ExplainedNode | undefined} told
 * @param {Suppose} suppose
 */
function domainDetail(cluster, domain, told, suppose) {
  const { judged, signs } = cluster;
  const { counts, best } = cluster.figuresOf(domain);
  /** @param {number} number */
  const verdict = (number) => `${symbol(signs[number])} ${judged.reasons[number].reason || cluster.passes}`;
  const rows = counts.map((nodes, number) => [verdict(number), nodes]).filter(([, nodes]) => nodes);
  const terms = (told?.decision.terms ?? []).filter((term) => term.topology_key === domain.key);
  const elsewhere = (told?.decision.terms ?? []).length - terms.length;
  return [
    element("h3", { text: domainName(domain) }),
    element("p", { class: "hint", text: domain.key ? `${domain.key}` : "" }),
    element("p", {
      class: "verdict",
      text: `${counts[0]} of ${counted(domain.nodes.length, "node")} ${cluster.pass}${best === null ? "" : `, best score ${best}`}`,
    }),
    table("Nodes by verdict", ["Verdict", "Nodes"], rows, "figures"),
    element("h4", { text: "Terms that count in this domain" }),
    ...(terms.length
      ? terms.map((term) => termDetail(term, suppose))
      : [element("p", { class: "hint", text: "None." })]),
    elsewhere
      ? element("p", { class: "hint", text: `${counted(elsewhere, "term")} of other topology keys: choose a node.` })
      : null,
  ].filter((part) => part !== null);
}

/**
 * A node: verdict, predicates, terms with the pods they count, the score's parts.
 * @param {JudgedCluster} cluster
 * @param {ExplainedNode} told
 * @param {Suppose} suppose
 */
function nodeDetail(cluster, told, suppose) {
  const { decision } = told;
  const place = cluster.placeOf(decision.node);
  const measured = measuredOnNode(decision.amounts);
  const fits = `${cluster.passes}${decision.score === null ? "" : `, score ${decision.score}`}`;
  const verdict = decision.fits ? fits : decision.reasons.join(", ") || decision.code;
  return [
    element("h3", { text: decision.node }),
    element("p", { class: "hint", text: whereabouts(cluster, place) }),
    element("p", { class: "verdict", text: `${symbol(cluster.signOf(place))} ${verdict}` }),
    decision.nominated.length ? nominatedText(decision) : null,
    measured.length ? element("ul", { class: "measured" }, ...measured.map((text) => element("li", { text }))) : null,
    table(
      "Predicates",
      ["Predicate", "Verdict"],
      // Those that keep the pod off first: a dozen others may let it pass.
      [...decision.predicates]
        .sort((one, other) => Number(other.reasons.length > 0) - Number(one.reasons.length > 0))
        .map((each) => [ruleName(each), each.reasons.join(", ") || each.code]),
      "plugins",
    ),
    markText([...decision.predicates, ...decision.score_parts]),
    element("h4", { text: "Inter-pod affinity terms" }),
    ...(decision.terms.length
      ? byWeight(decision.terms).map((term) => termDetail(term, suppose))
      : [element("p", { class: "hint", text: "No term has an effect here." })]),
    decision.score_parts.length ? scoreTable(decision, cluster.profile) : null,
  ].filter((part) => part !== null);
}

/**
 * The pods that wait for victims of preemption on a node.
 * @param {string[]} waits as sentences
 */
export const waitsDetail = (waits) =>
  waits.length
    ? [
        element("h4", { text: "Preemption on this node" }),
        element("ul", { class: "measured" }, ...waits.map((text) => element("li", { text }))),
      ]
    : [];

/**
 * The pods of a node, looked up when somebody opens it.
 * @param {() => Promise<import("admin-port").MirrorPod[]>} load
 * @param {Suppose} suppose
 */
export function podsOfNode(load, suppose) {
  const body = element("div");
  const list = folded("Pods on this node, as the mirror has them", {}, body);
  list.addEventListener("toggle", async () => {
    if (!list.open || body.childElementCount) return;
    body.replaceChildren(element("p", { class: "hint", text: "…" }));
    try {
      const pods = await load();
      body.replaceChildren(
        element("ul", { class: "chips" }, ...pods.map((each) => podChip(each.name, each.node, suppose))),
      );
    } catch (error) {
      body.replaceChildren(element("p", { class: "error", text: messageOf(error) }));
    }
  });
  return list;
}

/**
 * A plugin, with a mark where the scheduler judges by it and Kindred's answers do not.
 * @param {Rule} rule
 */
const ruleName = ({ plugin, judged_by: judge }) =>
  judge === "kube-scheduler"
    ? element("span", { title: OF_SCHEDULER }, breakable(plugin), element("span", { class: "hint", text: "\u00a0*" }))
    : breakable(plugin);

/**
 * What the mark stands for, where there is one.
 * @param {Rule[]} rules
 */
const markText = (rules) =>
  element("p", {
    class: "hint",
    text: rules.some((each) => each.judged_by === "kube-scheduler") ? `* ${OF_SCHEDULER}` : "",
  });

/** @type {Record<Term["effect"], number>} */
const WEIGHT = { blocks: 0, firstPod: 1, satisfied: 1, scores: 2, none: 3 };
/** @param {Term[]} terms */
const byWeight = (terms) => [...terms].sort((one, other) => WEIGHT[one.effect] - WEIGHT[other.effect]);

/**
 * @param {Term} term
 * @param {Suppose} suppose
 */
function termDetail(term, suppose) {
  const adds = term.effect === "scores" ? ` ${term.adds > 0 ? "+" : ""}${term.adds}` : "";
  const where = term.domain === null ? `the node has no ${term.topology_key}` : `${term.topology_key} = ${term.domain}`;
  const left = term.pods - term.named.length;
  return element(
    "section",
    { class: `term ${term.effect}` },
    element(
      "p",
      {},
      element("strong", { text: `${EFFECTS[term.effect]}${adds}` }),
      element("span", { text: ` ${DIRECTIONS[term.direction]} ${RULES[term.rule]}` }),
    ),
    element("p", { class: "hint", text: `${counted(term.pods, "pod")} in ${where}` }),
    element("p", { class: "hint", text: term.selects }),
    term.named.length
      ? element("ul", { class: "chips" }, ...term.named.map((each) => podChip(each.pod, each.node, suppose)))
      : null,
    left > 0 ? element("p", { class: "hint", text: `and ${left} more` }) : null,
  );
}

/** @param {NodeDecision} decision */
function nominatedText(decision) {
  const pods = decision.nominated.map((each) => `${each.pod} (priority ${each.priority})`).join(", ");
  const effect = decision.refused_beside_nominated ? "with them the pod does not fit" : "they are not in the way";
  return element("p", { text: `Nominated for this node, and counted: ${pods}; ${effect}.` });
}

/**
 * @param {NodeDecision} decision
 * @param {string} profile
 */
function scoreTable(decision, profile) {
  const rows = decision.score_parts.map((part) => [ruleName(part), part.weight, part.raw ?? "none", part.normalized]);
  return table(
    `Score ${decision.score}, by the ${profile}`,
    ["Plugin", "Weight", "Raw", "Normalised"],
    rows,
    "plugins figures",
  );
}

/**
 * The question as it was sent, and the nodes of its answer.
 * @typedef {{ text: string, cluster: JudgedCluster, scoreAll: boolean }} Answer
 */

const PODS_SHOWN = 5;

/**
 * @param {Answer} answer
 * @param {import("./cluster.js").Selection} selection
 * @param {Overview | null} overview
 * @param {Suppose} suppose
 */
export async function judgedDetail({ text, cluster, scoreAll }, { node, domain }, overview, suppose) {
  const found = node === undefined ? cluster.domain(domain) : null;
  const nodes = node === undefined ? cluster.domain(domain).nodes : [node];
  const asked = new URLSearchParams({ limit: `${PODS_SHOWN}`, node: cluster.columns.names[nodes[0]] });
  if (scoreAll) asked.set("score", "all");
  const [told] = (await post(`explain?${asked}`, text)).nodes;
  const detail = found ? domainDetail(cluster, found, told, suppose) : nodeDetail(cluster, told, suppose);
  return [...detail, ...useOf(cluster, nodes, overview)];
}

/** @param {string} node */
export async function podsOf(node) {
  const { nodes } = await get(`debug/mirror?node=${encodeURIComponent(node)}`);
  return nodes.flatMap((each) => each.pods);
}
