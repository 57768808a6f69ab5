// The nodes of an answer by verdict and score: what the map, the list and the legend show of them.

import { domainName } from "./cluster.js";
import { counted, element } from "./elements.js";
import { showLegend } from "./legend.js";
import { drawNode, symbol } from "./signs.js";

/**
 * @typedef {import("./cluster.js").Domain} Domain
 * @typedef {import("./cluster.js").JudgedCluster} JudgedCluster
 * @typedef {import("./cluster.js").Selection} Selection
 */

/**
 * What is shown of each node. `heads` are those of the list, beside the names; `cells` are as many texts, and `words`
 * what a narrow window has no room for.
 * @typedef {object} Layer
 * @property {string} name as addresses have it
 * @property {import("./cluster.js").Cluster} cluster
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

export const VERDICT = "verdict";

/** @implements {Layer} */
export class VerdictLayer {
  /** @param {JudgedCluster} cluster */
  constructor(cluster) {
    this.cluster = cluster;
    this.name = VERDICT;
    this.heads = ["Nodes", cluster.judged.not_judged.length ? "Pass" : "Fit", "Score"];
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
    drawNode(context, palette, this.cluster.signOf(node), this.cluster.judged.score[node], square);
  }

  /** @param {HTMLElement} list */
  showLegend(list) {
    showLegend(list, this.cluster);
  }
}
