// Fields that complete the names of nodes and pods: an ARIA combobox, whose list is looked up as somebody types.

import { get } from "./api.js";
import { element } from "./elements.js";

/**
 * @typedef {{ kind: "pod" | "node", name: string, hint: string }} Option
 * @typedef {import("admin-port").FoundNames} FoundNames
 */

const PAUSE = 120; // ms after a key before anything is looked up
const LIMIT = 12;

export class Completion {
  /**
   * @param {HTMLInputElement} input
   * @param {HTMLElement} list
   * @param {("pod" | "node")[]} kinds what is offered
   * @param {(option: Option) => void} pick
   */
  constructor(input, list, kinds, pick) {
    this.input = input;
    this.list = list;
    this.kinds = kinds;
    this.pick = pick;
    /** @type {Option[]} */
    this.options = [];
    this.active = -1;
    this.timer = 0;
    this.looked = 0;
    list.setAttribute("role", "listbox");
    for (const [name, value] of [
      ["role", "combobox"],
      ["aria-autocomplete", "list"],
      ["aria-controls", list.id],
      ["aria-expanded", "false"],
    ]) {
      input.setAttribute(name, value);
    }
    input.addEventListener("input", () => this.#later());
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("blur", () => this.close());
    // Before the field loses the focus, which would take the list away.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  close() {
    clearTimeout(this.timer);
    this.looked += 1;
    this.#show([], false);
  }

  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#look(), PAUSE);
  }

  async #look() {
    this.looked += 1;
    const number = this.looked;
    const text = this.input.value.trim();
    if (!text) {
      this.#show([], false);
      return;
    }
    try {
      const found = await get(`names?text=${encodeURIComponent(text)}&limit=${LIMIT}`);
      if (number === this.looked) this.#show(this.#optionsOf(found), found.more);
    } catch {
      // It is a help alone: what is wrong is said when somebody asks.
      if (number === this.looked) this.#show([], false);
    }
  }

  /**
   * @param {FoundNames} found
   * @returns {Option[]}
   */
  #optionsOf({ nodes, pods }) {
    /** @type {Option[]} */
    const all = [
      ...nodes.map((name) => /** @type {Option} */ ({ kind: "node", name, hint: "node" })),
      ...pods.map(({ pod, node }) => /** @type {Option} */ ({ kind: "pod", name: pod, hint: node || "on no node" })),
    ];
    const wanted = all.filter((each) => this.kinds.includes(each.kind));
    // What is there in full already needs no completion.
    return wanted.length === 1 && wanted[0].name === this.input.value.trim() && this.kinds.length === 1 ? [] : wanted;
  }

  /**
   * @param {Option[]} options
   * @param {boolean} more
   */
  #show(options, more) {
    this.options = options;
    this.active = -1;
    const open = Boolean(options.length);
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    this.input.removeAttribute("aria-activedescendant");
    const items = options.map((option, place) =>
      element(
        "li",
        {
          role: "option",
          id: `${this.list.id}-${place}`,
          "aria-selected": "false",
          on: { click: () => this.#take(option) },
        },
        element("span", { text: option.name }),
        element("span", { class: "hint", text: option.hint }),
      ),
    );
    if (more) items.push(element("li", { class: "hint", role: "presentation", text: "and more: type on" }));
    this.list.replaceChildren(...items);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!this.options.length) this.#look();
      else this.#activate(this.active + moves[event.key]);
    } else if (event.key === "Enter") {
      if (this.active < 0) {
        this.close(); // and the form takes what was typed
        return;
      }
      this.#take(this.options[this.active]);
    } else if (event.key === "Escape" && this.options.length) this.close();
    else return;
    event.preventDefault();
  }

  /** @param {number} to */
  #activate(to) {
    const size = this.options.length;
    this.active = (to + size) % size;
    for (const [place, item] of [...this.list.children].slice(0, size).entries()) {
      item.setAttribute("aria-selected", String(place === this.active));
      if (place === this.active) item.scrollIntoView({ block: "nearest" });
    }
    this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
  }

  /** @param {Option} option */
  #take(option) {
    this.input.value = option.name;
    this.close();
    this.pick(option);
  }
}
