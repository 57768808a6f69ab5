// The layers of the map, and that of an explanation: its nodes by verdict and score.

import { domainName } from "./cluster.js";
import { counted, element, folded } from "./elements.js";
import { drawNode, legendItem, OTHERS, swatchOf, symbol } from "./signs.js";
import { UseLayer } from "./use_layer.js";

/** @import { Reason } from "admin-port" */
/** @import { Cluster, Domain, JudgedCluster, Selection } from "./cluster.js" */

/**
 * The cluster as it is.
 * @typedef {{ cluster: Cluster, use: import("./use_layer.js").Use }} Overview
 */

/**
 * What is shown of each node. `heads` are those of the list, beside the names; `cells` are as many texts, and `words`
 * what a narrow window has no room for.
 * @typedef {object} Layer
 * @property {string} name as addresses have it
 * @property {Cluster} cluster
 * @property {string[]} heads
 * @property {string} words
 * @property {string} summary
 * @property {(domain: Domain) => string} headOf
 * @property {(selection: Selection) => string} told
 * @property {(selection: Selection) => (string | number)[]} cellsOf
 * @property {(selection: Selection) => import("./elements.js").Child[]} wordsOf
 * @property {(context: CanvasRenderingContext2D, palette: import("./signs.js").Palette, node: number, square: import("./signs.js").Square) => void} draw
 * @property {(list: HTMLElement) => void} showLegend
 */

/** @implements {Layer} */
export class VerdictLayer {
  /** @param {JudgedCluster} cluster */
  constructor(cluster) {
    this.cluster = cluster;
    this.name = "verdict";
    this.heads = ["Nodes", cluster.sure ? "Fit" : "Pass", "Score"];
    this.words = "Verdict";
    const fit = cluster.judged.reasons[0].nodes;
    this.summary = `Map of ${counted(cluster.size, "node")} in ${counted(cluster.zones.length, "zone")}, ${fit} ${cluster.pass}`;
  }

  /** @param {Domain} domain */
  headOf(domain) {
    return `${this.cluster.figuresOf(domain).counts[0]} of ${domain.nodes.length} ${this.cluster.pass}`;
  }

  /** @param {Selection} selection */
  told({ node, domain }) {
    if (node !== undefined) return `${this.cluster.columns.names[node]}: ${this.cluster.told(node)}`;
    const found = this.cluster.domain(domain);
    const fit = this.cluster.figuresOf(found).counts[0];
    return `${domainName(found)}: ${fit} of ${counted(found.nodes.length, "node")} ${this.cluster.pass}`;
  }

  /** @param {Selection} selection */
  cellsOf({ node, domain }) {
    const { judged } = this.cluster;
    if (node !== undefined) return ["", judged.verdict[node] ? "no" : "yes", judged.score[node] ?? ""];
    const found = this.cluster.domain(domain);
    const { counts, best } = this.cluster.figuresOf(found);
    return [found.nodes.length, counts[0], best ?? ""];
  }

  /**
   * In a narrow window the words are for screen readers alone, and the legend has them for the eye.
   * @param {Selection} selection
   */
  wordsOf({ node }) {
    if (node === undefined) return [];
    const words = element("span", { class: "words", text: this.cluster.verdictOf(node) });
    return [`${symbol(this.cluster.signOf(node))} `, words];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./signs.js").Palette} palette
   * @param {number} node
   * @param {import("./signs.js").Square} square
   */
  draw(context, palette, node, square) {
    drawNode(context, palette, this.cluster.signOf(node), this.cluster.scoreOf(node), square);
  }

  /** @param {HTMLElement} list */
  showLegend(list) {
    showLegend(list, this.cluster);
  }
}

/**
 * @param {HTMLElement} list
 * @param {JudgedCluster} cluster
 */
function showLegend(list, { judged, signs, passes, scores }) {
  const { reasons } = judged;
  const [low, high] = scores ?? [];
  const range = low === high ? low : `${low} to ${high}, the fuller the colour, the higher`;
  const fitting = legendItem(swatch(0, 1), reasons[0].nodes, scores ? `${passes}: score ${range}` : passes);
  if (low !== high) fitting.prepend(swatch(0, 0));
  const items = [fitting];
  for (let sign = 1; sign < OTHERS; sign += 1) {
    const each = reasons[signs.indexOf(sign)];
    if (each) items.push(legendItem(swatch(sign, 1), each.nodes, told(each)));
  }
  const others = reasons.filter((_, number) => signs[number] === OTHERS);
  const number = others.reduce((nodes, each) => nodes + each.nodes, 0);
  if (number) items.push(legendItem(swatch(OTHERS, 1), number, details(others)));
  list.replaceChildren(...items);
}

/** @param {Reason} reason with whether Kindred's own `filter` leaves the rule to the scheduler */
function told({ reason, plugin, judged_by: judge }) {
  const by = judge === "kube-scheduler" ? ", judged by kube-scheduler itself" : "";
  return `${reason}${plugin ? ` (${plugin}${by})` : ""}`;
}

/**
 * The reasons that share a sign, the most frequent first.
 * @param {Reason[]} reasons
 */
function details(reasons) {
  const ranked = [...reasons].sort((one, other) => other.nodes - one.nodes);
  const items = ranked.map((each) => element("li", { text: `${each.nodes.toLocaleString("en")} ${told(each)}` }));
  return folded(counted(reasons.length, "other reason"), {}, element("ul", {}, ...items));
}

/**
 * A node as it looks on the map.
 * @param {number} sign
 * @param {number} share of the way from the lowest score to the highest
 */
const swatch = (sign, share) =>
  swatchOf((context, palette, square) => drawNode(context, palette, sign, { text: "", share }, square), symbol(sign));

const USUAL_RESOURCE = "cpu";

/**
 * The layer that is drawn while nobody wants another.
 * @param {Layer | null} own of the answer, if it has one
 */
export const usualLayer = (own) => own?.name ?? USUAL_RESOURCE;

/**
 * The names of all layers.
 * @param {Layer | null} own
 * @param {Overview | null} overview
 */
export function layerNames(own, overview) {
  const resources = (overview?.use.view.resources ?? []).map((each) => each.resource);
  return [...(own ? [own.name] : []), ...resources];
}

/** @type {Record<string, string>} */
const TEXTS = { verdict: "verdict and score", moves: "pods that move", removal: "nodes that could go" };

/**
 * A layer as people choose it.
 * @param {string} name
 */
export const layerText = (name) => TEXTS[name] ?? name;

/**
 * The layer that is wanted, or else the usual one; null while there is nothing to draw.
 * @param {{ cluster: Cluster, layer: Layer | null } | null} answer
 * @param {Overview | null} overview
 * @param {string} wanted empty: the usual one
 * @returns {Layer | null}
 */
export function layerOf(answer, overview, wanted) {
  const cluster = answer?.cluster ?? overview?.cluster;
  if (!cluster) return null;
  const own = answer?.layer ?? null;
  const resource = overview?.use.of(wanted || usualLayer(own)) ?? (own ? undefined : overview?.use.of(USUAL_RESOURCE));
  if (overview && resource) return new UseLayer(cluster, overview.use, resource);
  return own;
}
