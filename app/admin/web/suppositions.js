// What is supposed, line by line: pods that are placed or gone, and nodes that there are not.

import { get, Problem, post } from "./api.js";
import { byId, element, messageOf } from "./elements.js";

/** @import { MirrorNode } from "admin-port" */
/**
 * @typedef {"assume" | "remove" | "add_nodes"} Kind
 */

/**
 * What the form has for each kind of supposition: the inputs in the order in which they are read.
 * @typedef {{ title: string, hint?: string, inputs: [string, string][] }} KindOfForm
 */

const HOST = "kubernetes.io/hostname";
const ZONE = "topology.kubernetes.io/zone";
/** @type {Record<Kind, KindOfForm>} */
const KINDS = {
  assume: {
    title: "Place a pod",
    inputs: [
      ["pod", "Pod (or its manifest)"],
      ["node", "On node"],
    ],
  },
  remove: { title: "Remove a pod", inputs: [["pod", "Pod"]] },
  add_nodes: {
    title: "Add a node",
    hint: "Like that node, without its pods, its devices, and the volume limits of its CSINode.",
    inputs: [
      ["like", "Like node"],
      ["name", "Its name"],
      ["zone", "In zone (default: of that node)"],
      ["rack", "In rack (default: of that node)"],
    ],
  },
};
/** @type {Kind[]} */
const KIND_NAMES = ["assume", "remove", "add_nodes"];

/**
 * @param {string | undefined} name
 * @returns {name is Kind}
 */
export const isKind = (name) => KIND_NAMES.some((kind) => kind === name);

export class Suppositions {
  /**
   * @param {HTMLElement} rows
   * @param {() => void} removed is called when a line has been taken away
   */
  constructor(rows, removed) {
    this.rows = rows;
    this.removed = removed;
    this.made = 0;
    this.rackKey = "";
  }

  /**
   * Add a line.
   * @param {Kind} kind
   * @param {string[]} texts of its inputs
   * @returns {HTMLInputElement[]} its inputs
   */
  add(kind, texts = []) {
    this.made += 1;
    const row = supposedRow(kind, texts, `supposed-${this.made}`, () => {
      row.remove();
      byId("supposed-hint").focus();
      this.removed();
    });
    this.rows.append(row);
    return this.#inputs(row);
  }

  /**
   * Suppose that a pod is gone; to be on another node, it leaves the one where it is.
   * @type {import("./details.js").Suppose}
   */
  suppose(kind, { pod, node }) {
    if (node && !this.#find("remove", pod)) this.add("remove", [pod]);
    if (kind === "remove") return;
    const row = this.#find("assume", pod);
    (row ? this.#inputs(row) : this.add("assume", [pod]))[1].focus();
  }

  /** @returns {[Kind, string[]][]} */
  get texts() {
    return this.#all().map(({ kind, row }) => [kind, this.#inputs(row).map((input) => input.value.trim())]);
  }

  /** @param {[Kind, string[]][]} texts */
  set texts(texts) {
    this.rows.replaceChildren();
    for (const [kind, values] of texts) this.add(kind, values);
  }

  /** The members of a question. Throws a Mistake or a Problem. */
  async members() {
    /** @type {Record<Kind, unknown[]>} */
    const supposed = { add_nodes: [], remove: [], assume: [] };
    for (const { kind, row } of this.#all()) supposed[kind].push(await this.#supposed(kind, row));
    return Object.fromEntries(Object.entries(supposed).filter(([, all]) => all.length));
  }

  /**
   * The input that a field of a question is from; null where it is not from here.
   * @param {string} field
   */
  inputOf(field) {
    const supposed = /^(assume|remove|add_nodes)(?:\[(\d+)\](?:\.(\w+))?)?/.exec(field);
    const [, kind, place, member] = supposed ?? [];
    if (!isKind(kind)) return null;
    const row = this.#of(kind)[Number(place ?? 0)];
    if (!row) return null;
    const inputs = this.#inputs(row);
    if (kind === "add_nodes") return inputs[1];
    return kind === "assume" && member !== "pod" ? inputs[1] : inputs[0];
  }

  /**
   * @param {Kind} kind
   * @param {HTMLElement} row
   */
  async #supposed(kind, row) {
    const inputs = this.#inputs(row);
    const [first, second] = inputs.map((input) => input.value.trim());
    if (!first) throw new Mistake(inputs[0], "Say which one.");
    if (kind === "remove") return first;
    if (!second) throw new Mistake(inputs[1], kind === "assume" ? "Say which node." : "Give it a name.");
    if (kind === "assume") return { pod: first.startsWith("{") ? await parsed(inputs[0]) : first, node: second };
    return this.#nodeLike(inputs);
  }

  /**
   * A node that is like another one in all that the mirror holds of a Node.
   * @param {HTMLInputElement[]} inputs
   */
  async #nodeLike(inputs) {
    const [like, name, zone, rack] = inputs.map((input) => input.value.trim());
    /** @type {MirrorNode | undefined} */
    let found;
    try {
      found = (await get(`debug/mirror?node=${encodeURIComponent(like)}`)).nodes[0];
    } catch (error) {
      if (error instanceof Problem && error.status === 404) throw new Mistake(inputs[0], error.message);
      throw error;
    }
    if (!found) throw new Mistake(inputs[0], `node ${like}: not known, only named by pods`);
    /** @type {Record<string, string>} */
    const labels = { ...found.labels, ...(HOST in found.labels ? { [HOST]: name } : {}) };
    if (zone) labels[ZONE] = zone;
    if (rack && !this.rackKey) throw new Mistake(inputs[3], "No node has a label for racks.");
    if (rack) labels[this.rackKey] = rack;
    return {
      metadata: { name, labels },
      spec: { taints: found.taints, unschedulable: found.unschedulable },
      status: statusOf(found),
    };
  }

  #all() {
    return [...this.rows.querySelectorAll("li")].flatMap((row) => {
      const { kind } = row.dataset;
      return isKind(kind) ? [{ kind, row }] : [];
    });
  }

  /** @param {Kind} kind */
  #of(kind) {
    return this.#all().flatMap((each) => (each.kind === kind ? [each.row] : []));
  }

  /**
   * @param {Kind} kind
   * @param {string} pod
   */
  #find(kind, pod) {
    return this.#of(kind).find((row) => this.#inputs(row)[0].value.trim() === pod);
  }

  /** @param {HTMLElement} row */
  #inputs(row) {
    return [...row.querySelectorAll("input")];
  }
}

/**
 * The status of a v1.Node, of what the mirror holds.
 * @param {MirrorNode} node
 */
function statusOf({ figures, conditions, images }) {
  const offers = Object.entries(figures.guaranteed_allocatable);
  return {
    allocatable: Object.fromEntries(
      offers.map(([key, amount]) => [key, key === "cpu" ? `${amount}m` : String(amount)]),
    ),
    conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })),
    images: Object.entries(images).map(([name, sizeBytes]) => ({ names: [name], sizeBytes })),
  };
}

/**
 * @param {Kind} kind
 * @param {string[]} texts
 * @param {string} id
 * @param {() => void} remove
 */
function supposedRow(kind, texts, id, remove) {
  const { title, hint, inputs } = KINDS[kind];
  const parts = inputs.flatMap(([name, label], place) => {
    const own = `${id}-${name}`;
    const input = element("input", {
      id: own,
      data: { field: name },
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `${own}-error`,
    });
    input.value = texts[place] ?? "";
    return [
      element("label", { for: own, text: label }),
      input,
      element("p", { class: "error", id: `${own}-error`, role: "alert" }),
    ];
  });
  const button = element("button", {
    type: "button",
    class: "small",
    "aria-label": `Cancel: ${title.toLowerCase()}`,
    text: "×",
    on: { click: remove },
  });
  return element(
    "li",
    { class: "supposed", data: { kind } },
    element(
      "fieldset",
      {},
      element("legend", { text: title }),
      button,
      ...parts,
      hint ? element("p", { class: "hint", text: hint }) : null,
    ),
  );
}

/** A mistake that needs no server to be found; `input` is where. */
export class Mistake extends Error {
  /**
   * @param {HTMLInputElement | HTMLTextAreaElement} input
   * @param {string} message
   */
  constructor(input, message) {
    super(message);
    this.input = input;
  }
}

/**
 * The object of a text. Throws a Mistake or a Problem.
 * @param {HTMLInputElement | HTMLTextAreaElement} input
 * @returns {Promise<Record<string, unknown>>}
 */
export async function parsed(input) {
  const text = input.value.trim();
  if (text[0] !== "{") {
    try {
      return await post("explain/manifest", text);
    } catch (error) {
      const refused = error instanceof Problem && error.status >= 400 && error.status < 500;
      throw refused ? new Mistake(input, error.message) : error;
    }
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Mistake(input, `No JSON: ${messageOf(error)}`);
  }
}
