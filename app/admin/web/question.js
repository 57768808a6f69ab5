// The form: a pod, what is to be supposed, and what is wrong with either, beside the field that it is about.

import { get, Problem, post } from "./api.js";
import { byId, byIdAs, complain, element, inputById, messageOf } from "./elements.js";

/**
 * @typedef {import("./details.js").PlacedPod} PlacedPod
 * @typedef {import("admin-port").MirrorNode} MirrorNode
 * @typedef {"assume" | "remove" | "add_nodes"} Kind
 * @typedef {HTMLInputElement | HTMLTextAreaElement} Field
 */

/**
 * What the form has for each kind of supposition: the inputs in the order in which they are read.
 * @typedef {{ title: string, hint?: string, inputs: [string, string][] }} KindOfForm
 */

/**
 * An object of JSON that somebody wrote.
 * @typedef {Record<string, unknown>} Written
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
    hint: "As that one is, without its pods and the volume limits of its CSINode.",
    inputs: [
      ["like", "Like node"],
      ["name", "Its name"],
      ["zone", "In zone (as that one)"],
      ["rack", "In rack (as that one)"],
    ],
  },
};
/** @type {Kind[]} */
const KIND_NAMES = ["assume", "remove", "add_nodes"];

/**
 * @param {string | undefined} name
 * @returns {name is Kind}
 */
const isKind = (name) => KIND_NAMES.some((kind) => kind === name);

/** A mistake that needs no server to be found; `input` is where. */
class Mistake extends Error {
  /**
   * @param {Field} input
   * @param {string} message
   */
  constructor(input, message) {
    super(message);
    this.input = input;
  }
}

export class QuestionForm {
  /**
   * @param {HTMLFormElement} form
   * @param {() => void} ask is called when somebody wants an answer
   */
  constructor(form, ask) {
    this.form = form;
    this.ask = ask;
    this.rows = byId("supposed");
    this.forms = [...form.querySelectorAll("input")].filter((input) => input.name === "form");
    this.made = 0;
    this.rackKey = "";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask();
    });
    for (const radio of this.forms) radio.addEventListener("change", () => this.#showForm());
    for (const button of form.querySelectorAll("button")) {
      const kind = button.dataset.add;
      if (isKind(kind)) button.addEventListener("click", () => this.#inputs(this.add(kind))[0].focus());
    }
    byId("score-all").addEventListener("change", () => {
      if (this.started) ask();
    });
    this.#takeFiles(byIdAs("pod-manifest", HTMLTextAreaElement));
  }

  get scoreAll() {
    return inputById("score-all").checked;
  }

  get started() {
    return Boolean(this.#podInput().value.trim());
  }

  /**
   * Ask about a pod by its name.
   * @param {string} pod
   */
  name(pod) {
    inputById("pod-name").value = pod;
    for (const radio of this.forms) radio.checked = radio.value === "name";
    this.#showForm();
  }

  /**
   * Add a line of what is supposed.
   * @param {Kind} kind
   * @param {Record<string, string>} values
   */
  add(kind, values = {}) {
    this.made += 1;
    const row = supposedRow(kind, values, `supposed-${this.made}`, () => {
      row.remove();
      byId("supposed-hint").focus();
      if (this.started) this.ask();
    });
    this.rows.append(row);
    return row;
  }

  /**
   * Suppose a pod on a node: it leaves where it is, and a second time it moves on.
   * @param {PlacedPod} pod
   * @param {string} onto
   */
  place({ pod, node }, onto) {
    if (node && !this.#find("remove", pod)) this.add("remove", { pod });
    const before = this.#find("assume", pod);
    if (before) this.#inputs(before)[1].value = onto;
    else this.add("assume", { pod, node: onto });
  }

  /** @type {import("./details.js").Suppose} */
  suppose(kind, { pod, node }) {
    if (kind === "remove") {
      if (!this.#find("remove", pod)) this.add("remove", { pod });
      return;
    }
    if (!this.#find("assume", pod)) this.place({ pod, node }, "");
    const row = this.#find("assume", pod);
    if (row) this.#inputs(row)[1].focus();
  }

  /** The text of the question. Throws a Mistake or a Problem. */
  async text() {
    this.clear();
    /** @type {Record<Kind, unknown[]>} */
    const supposed = { add_nodes: [], remove: [], assume: [] };
    for (const row of this.rows.querySelectorAll("li")) {
      const { kind } = row.dataset;
      if (isKind(kind)) supposed[kind].push(await this.#supposed(kind, row));
    }
    const given = Object.entries(supposed).filter(([, all]) => all.length);
    return JSON.stringify(await this.#pod(Object.fromEntries(given)));
  }

  clear() {
    for (const slot of this.form.querySelectorAll(".error")) slot.textContent = "";
    for (const input of this.form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  }

  /**
   * Say what is wrong, where it is wrong.
   * @param {unknown} error
   */
  complain(error) {
    const input = this.#whereItIs(error);
    if (!input) {
      byId("question-error").textContent = messageOf(error);
      return;
    }
    complain(input, byId(`${input.id}-error`), messageOf(error));
    input.focus();
  }

  /** @param {unknown} error */
  #whereItIs(error) {
    if (error instanceof Mistake) return error.input;
    return error instanceof Problem ? this.#inputOf(error.field, error.status) : null;
  }

  /**
   * @param {string} field
   * @param {number} status
   */
  #inputOf(field, status) {
    if (!status || status >= 500 || status === 422) return null;
    const supposed = /^(assume|remove|add_nodes)(?:\[(\d+)\](?:\.(\w+))?)?/.exec(field);
    if (!supposed) return this.#podInput();
    const [, kind, place, member] = supposed;
    if (!isKind(kind)) return null;
    const row = this.#of(kind)[Number(place ?? 0)];
    if (!row) return null;
    const inputs = this.#inputs(row);
    if (kind === "add_nodes") return inputs[1];
    if (kind === "assume" && member === "node") return inputs[1];
    return kind === "assume" && !member ? inputs[1] : inputs[0];
  }

  /**
   * @param {Record<string, unknown[]>} supposed
   * @returns {Promise<Written>}
   */
  async #pod(supposed) {
    const input = this.#podInput();
    const text = input.value.trim();
    if (!text) throw new Mistake(input, "Say which pod.");
    if (input.id === "pod-name") return { pod: text, ...supposed };
    const given = await parsed(input);
    if (given.pod !== undefined) return { ...given, ...supposed };
    const members = new Map(Object.entries(given).map(([key, value]) => [key.toLowerCase(), value]));
    if (members.get("nodenames")) return { pod: members.get("pod"), node_names: members.get("nodenames"), ...supposed };
    if (!members.has("nodes") || given.kind) return { pod: given, ...supposed };
    if (Object.keys(supposed).length) {
      throw new Mistake(input, "Nothing can be supposed beside whole Nodes; give NodeNames.");
    }
    return given;
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
    if (rack && !this.rackKey) throw new Mistake(inputs[3], "No node has a label of racks.");
    if (rack) labels[this.rackKey] = rack;
    return {
      metadata: { name, labels },
      spec: { taints: found.taints, unschedulable: found.unschedulable },
      status: statusOf(found),
    };
  }

  #podInput() {
    return this.#asksByName() ? inputById("pod-name") : byIdAs("pod-manifest", HTMLTextAreaElement);
  }

  #asksByName() {
    return this.forms.some((radio) => radio.checked && radio.value === "name");
  }

  #showForm() {
    const byName = this.#asksByName();
    byId("by-name").hidden = !byName;
    byId("by-manifest").hidden = byName;
  }

  /** @param {Kind} kind */
  #of(kind) {
    return [...this.rows.querySelectorAll("li")].filter((row) => row.dataset.kind === kind);
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

  /** @param {HTMLTextAreaElement} area */
  #takeFiles(area) {
    area.addEventListener("drop", async (event) => {
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      area.value = await file.text();
    });
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
 * @param {Record<string, string>} values
 * @param {string} id
 * @param {() => void} remove
 */
function supposedRow(kind, values, id, remove) {
  const { title, hint, inputs } = KINDS[kind];
  const parts = inputs.flatMap(([name, label]) => {
    const own = `${id}-${name}`;
    const input = element("input", {
      id: own,
      data: { field: name },
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": `${own}-error`,
    });
    input.value = values[name] ?? "";
    return [
      element("label", { for: own, text: label }),
      input,
      element("p", { class: "error", id: `${own}-error`, role: "alert" }),
    ];
  });
  const button = element("button", {
    type: "button",
    class: "small",
    "aria-label": `Do not: ${title.toLowerCase()}`,
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

/**
 * The object of a text that is JSON, or YAML, which the service reads for us.
 * @param {Field} input
 * @returns {Promise<Written>}
 */
async function parsed(input) {
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
