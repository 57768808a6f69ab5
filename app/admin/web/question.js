// The form: a pod, what is to be supposed, and what is wrong with either, beside the field that it is about.

import { NOTHING } from "./address.js";
import { Problem } from "./api.js";
import { byId, byIdAs, complain, inputById, messageOf, takeBack } from "./elements.js";
import { isKind, Mistake, parsed, Suppositions } from "./suppositions.js";

export class QuestionForm {
  /**
   * @param {HTMLFormElement} form
   * @param {(stays?: boolean) => void} ask is called when somebody wants an answer, and maybe goes on with the form
   */
  constructor(form, ask) {
    this.form = form;
    this.forms = [...form.querySelectorAll("input")].filter((input) => input.name === "form");
    this.supposed = new Suppositions(byId("supposed"), () => {
      if (this.started) ask(true);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask();
    });
    for (const radio of this.forms) radio.addEventListener("change", () => this.#showForm());
    for (const button of form.querySelectorAll("button")) {
      const kind = button.dataset.add;
      if (isKind(kind)) button.addEventListener("click", () => this.supposed.add(kind)[0].focus());
    }
    byId("score-all").addEventListener("change", () => {
      if (this.started) ask(true);
    });
  }

  get scoreAll() {
    return inputById("score-all").checked;
  }

  get started() {
    return Boolean(this.#podInput().value.trim());
  }

  /**
   * What the form has, as an address keeps it.
   * @returns {import("./address.js").Asked}
   */
  get asked() {
    const text = this.#podInput().value.trim();
    const [pod, manifest] = this.#asksByName() ? [text, ""] : ["", text];
    return { ...NOTHING, pod, manifest, supposed: this.supposed.texts, scoreAll: this.scoreAll };
  }

  /** @param {import("./address.js").Asked} asked */
  set asked({ pod, manifest, supposed, scoreAll }) {
    takeBack(this.form);
    if (manifest) this.manifest(manifest);
    else this.name(pod);
    this.supposed.texts = supposed;
    inputById("score-all").checked = scoreAll;
  }

  /**
   * Ask about a pod by its name.
   * @param {string} pod
   */
  name(pod) {
    this.#choose("name");
    inputById("pod-name").value = pod;
  }

  /**
   * Ask about a pod by its manifest.
   * @param {string} text
   */
  manifest(text) {
    this.#choose("manifest");
    byIdAs("pod-manifest", HTMLTextAreaElement).value = text;
  }

  /** The members of the question. Throws a Mistake or a Problem. */
  async members() {
    return this.#pod(await this.supposed.members());
  }

  /** The pod alone, by name or as a manifest. Throws a Mistake or a Problem. */
  async pod() {
    return (await this.#pod({})).pod;
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
    if (!(error instanceof Problem) || !error.status || error.status >= 500 || error.status === 422) return null;
    return /^(assume|remove|add_nodes)\b/.test(error.field) ? this.supposed.inputOf(error.field) : this.#podInput();
  }

  /**
   * @param {Record<string, unknown[]>} supposed
   * @returns {Promise<Record<string, unknown>>}
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
      throw new Mistake(input, "What if needs NodeNames in place of whole Nodes.");
    }
    return given;
  }

  #podInput() {
    return this.#asksByName() ? inputById("pod-name") : byIdAs("pod-manifest", HTMLTextAreaElement);
  }

  #asksByName() {
    return this.forms.some((radio) => radio.checked && radio.value === "name");
  }

  /** @param {"name" | "manifest"} value */
  #choose(value) {
    for (const radio of this.forms) radio.checked = radio.value === value;
    this.#showForm();
  }

  #showForm() {
    const byName = this.#asksByName();
    byId("by-name").hidden = !byName;
    byId("by-manifest").hidden = byName;
  }
}
