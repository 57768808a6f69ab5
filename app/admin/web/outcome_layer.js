// The nodes by what becomes of them when nodes go: those that go, those that get pods, and those that stay as they are.

import { domainName } from "./cluster.js";
import { counted, element } from "./elements.js";
import { drawNode, drawUse, legendItem, swatchOf, symbol } from "./signs.js";

/** @import { Cluster, Domain, Selection } from "./cluster.js" */
/** @import { Layer } from "./layers.js" */

/**
 * What becomes of a node. With sign 0 it is filled, by its share or else the fuller the more is counted on it; without a
 * sign it is empty.
 * @typedef {{ text: string, sign: number | null, share?: number }} Kind
 */

/** @implements {Layer} */
export class OutcomeLayer {
  /**
   * @param {Cluster} cluster
   * @param {string} name
   * @param {string} counts what is counted on the nodes
   * @param {Kind[]} kinds in the order of the legend; the last is that of a node of which nothing is said
   */
  constructor(cluster, name, counts, kinds) {
    this.cluster = cluster;
    this.name = name;
    this.counts = counts;
    this.kinds = kinds;
    this.heads = ["Nodes", `${counts[0].toUpperCase()}${counts.slice(1)}`];
    this.words = "What becomes of it";
    this.of = cluster.columns.names.map(() => kinds.length - 1);
    this.figures = cluster.columns.names.map(() => 0);
    /** @type {Map<number, string>} */
    this.more = new Map();
    this.most = 1;
  }

  /**
   * Say what becomes of a node.
   * @param {string} name
   * @param {number} kind
   */
  set(name, kind, more = "") {
    const place = this.cluster.places.get(name);
    if (place === undefined) return;
    this.of[place] = kind;
    if (more) this.more.set(place, more);
  }

  /**
   * Count one on a node; it is of the first kind if nothing was said of it.
   * @param {string} name
   */
  add(name) {
    const place = this.cluster.places.get(name);
    if (place === undefined) return;
    this.figures[place] += 1;
    this.most = Math.max(this.most, this.figures[place]);
    if (this.of[place] === this.kinds.length - 1) this.of[place] = 0;
  }

  get summary() {
    const texts = this.kinds.map(({ text }, kind) => (this.#number(kind) ? `${this.#number(kind)} ${text}` : ""));
    return `Map of ${counted(this.cluster.size, "node")} in ${counted(this.cluster.zones.length, "zone")}: ${texts.filter(Boolean).join(", ")}`;
  }

  /** @param {Domain} domain */
  headOf(domain) {
    return `${this.#sum(domain.nodes).toLocaleString("en")} ${this.counts}`;
  }

  /** @param {Selection} selection */
  told({ node, domain }) {
    if (node !== undefined) return `${this.cluster.columns.names[node]}: ${this.#text(node)}`;
    const found = this.cluster.domain(domain);
    return `${domainName(found)}: ${this.headOf(found)}`;
  }

  /** @param {Selection} selection */
  cellsOf({ node, domain }) {
    if (node !== undefined) return ["", this.#pods(node) || ""];
    const { nodes } = this.cluster.domain(domain);
    return [nodes.length, this.#sum(nodes) || ""];
  }

  /** @param {Selection} selection */
  wordsOf({ node }) {
    if (node === undefined) return [];
    const { sign } = this.kinds[this.of[node]];
    const words = element("span", { class: "words", text: this.#text(node) });
    return [sign === null ? "" : `${symbol(sign)} `, words];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./signs.js").Palette} palette
   * @param {number} node
   * @param {import("./signs.js").Square} square
   */
  draw(context, palette, node, square) {
    const figure = this.#pods(node);
    drawKind(context, palette, this.kinds[this.of[node]], figure, figure / this.most, square);
  }

  /** @param {HTMLElement} list */
  showLegend(list) {
    const items = this.kinds.flatMap((kind, place) => {
      const nodes = this.#number(place);
      const swatch = swatchOf((context, palette, square) => drawKind(context, palette, kind, 0, 1, square));
      return nodes ? [legendItem(swatch, nodes, kind.text)] : [];
    });
    list.replaceChildren(...items);
  }

  /**
   * How many pods come to a node.
   * @param {number} node
   */
  #pods(node) {
    return this.name === "moves" ? this.figures[node] : 0;
  }

  /** @param {number} kind */
  #number(kind) {
    return this.of.filter((each) => each === kind).length;
  }

  /** @param {number} node */
  #text(node) {
    const figure = this.#pods(node);
    if (figure) return `${counted(figure, "pod")} ${figure === 1 ? "comes" : "come"}`;
    return `${this.kinds[this.of[node]].text}${this.more.get(node) ?? ""}`;
  }

  /** @param {number[]} nodes */
  #sum(nodes) {
    return nodes.reduce((sum, node) => sum + this.figures[node], 0);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import("./signs.js").Palette} palette
 * @param {Kind} kind
 * @param {number} figure
 * @param {number} share
 * @param {import("./signs.js").Square} square
 */
function drawKind(context, palette, { sign, share: own }, figure, share, square) {
  if (sign === null) drawUse(context, palette, null, square);
  else drawNode(context, palette, sign, { text: String(figure || ""), share: own ?? share }, square);
}
