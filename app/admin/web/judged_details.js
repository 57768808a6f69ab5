// Details that the service is asked for: of a node or a domain of an answer, and the pods on a node.

import { get, post } from "./api.js";
import { domainDetail, nodeDetail, useOf, useOfNodes } from "./details.js";

/**
 * The question as it was sent, and the nodes of its answer.
 * @typedef {{ text: string, cluster: import("./cluster.js").JudgedCluster, scoreAll: boolean }} Answer
 */

const PODS_SHOWN = 5;

/**
 * @param {Answer} answer
 * @param {import("./cluster.js").Selection} selection
 * @param {import("./layers.js").Overview | null} overview
 * @param {import("./details.js").Suppose} suppose
 */
export async function judgedDetail(answer, { node, domain }, overview, suppose) {
  const { cluster } = answer;
  if (node !== undefined) {
    const name = cluster.columns.names[node];
    const told = (await explained(name, answer)).nodes[0];
    return [...nodeDetail(cluster, told, suppose), ...(overview ? useOfNodes(overview, [name]) : [])];
  }
  const found = cluster.domain(domain);
  const told = (await explained(cluster.columns.names[found.nodes[0]], answer)).nodes[0];
  return [...domainDetail(cluster, found, told, suppose), ...(overview ? useOf(cluster, found, overview) : [])];
}

/**
 * @param {string} node
 * @param {Answer} answer
 */
function explained(node, { text, scoreAll }) {
  const score = scoreAll ? "&score=all" : "";
  return post(`explain?limit=${PODS_SHOWN}&node=${encodeURIComponent(node)}${score}`, text);
}

/** @param {string} node */
export async function podsOf(node) {
  const { nodes } = await get(`debug/mirror?node=${encodeURIComponent(node)}`);
  return nodes.flatMap((each) => each.pods);
}
