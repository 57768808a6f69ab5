// Elements of the page. Whatever comes from the cluster gets in as text, never as markup.

/**
 * @typedef {Node | string | null | undefined} Child
 * @typedef {Node | string | number | null} Cell
 * @typedef {{ [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void }} Listeners
 */

/**
 * What an element is given: `on` has listeners, `data` the dataset, a `class` and `text`; all else are attributes.
 * @typedef {object} Given
 * @property {string | number} [text]
 * @property {string} [class]
 * @property {Listeners} [on]
 * @property {Record<string, string | number>} [data]
 */

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Given & Record<string, unknown>} given
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, given = {}, ...children) {
  const { text, class: kind, on = {}, data = {}, ...attributes } = given;
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = String(text);
  if (kind !== undefined) made.className = kind;
  for (const [event, listener] of Object.entries(on)) {
    made.addEventListener(event, /** @type {EventListener} */ (listener));
  }
  for (const [key, value] of Object.entries(data)) made.dataset[key] = String(value);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * The element of the page with this id, which is of this kind.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byIdAs(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`the page has no ${kind.name} #${id}`);
  return found;
}

/** @param {string} id */
export const byId = (id) => byIdAs(id, HTMLElement);

/** @param {string} id */
export const inputById = (id) => byIdAs(id, HTMLInputElement);

/**
 * What an event happened to: the nearest element around that matches.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function around(event, selector) {
  return event.target instanceof Element ? event.target.closest(selector) : null;
}

/**
 * The context that a canvas is drawn with.
 * @param {HTMLCanvasElement} canvas
 */
export function contextOf(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser has no canvas in two dimensions");
  return context;
}

/**
 * The message of whatever was thrown.
 * @param {unknown} error
 */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * A table with a header row; cells are texts or elements.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Cell[][]} rows
 */
export function table(caption, heads, rows, kind = "") {
  /** @param {Cell} content */
  const cell = (content) => {
    if (content === null) return element("td");
    return typeof content === "object" ? element("td", {}, content) : element("td", { text: content });
  };
  return element(
    "table",
    { class: kind },
    element("caption", { text: caption }),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col", text: head })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell)))),
  );
}

/**
 * A name in CamelCase that may be broken before its capitals, where there is no room.
 * @param {string} name
 */
export function breakable(name) {
  const parts = name.split(/(?=[A-Z])/);
  return element("span", {}, ...parts.flatMap((part, place) => (place ? [element("wbr"), part] : [part])));
}

/**
 * Say something wrong of an input, beside it; an empty text takes it back.
 * @param {HTMLElement} input
 * @param {HTMLElement} slot
 * @param {string} text
 */
export function complain(input, slot, text) {
  slot.textContent = text;
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/**
 * Take back whatever was said to be wrong in a part of the page.
 * @param {HTMLElement} part
 */
export function takeBack(part) {
  for (const slot of part.querySelectorAll(".error")) slot.textContent = "";
  for (const input of part.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/**
 * @param {number} number
 * @param {string} noun
 */
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/**
 * The first of some texts, and how many more there are.
 * @param {string[]} texts
 * @param {number} most
 * @param {string} noun of the others
 */
export const capped = (texts, most, noun) =>
  texts.length > most ? [...texts.slice(0, most), `and ${counted(texts.length - most, noun)}`] : texts;

/**
 * What is seen once somebody wants it.
 * @param {string} summary
 * @param {Given & Record<string, unknown>} given
 * @param {...Child} children
 */
export const folded = (summary, given, ...children) =>
  element("details", given, element("summary", { text: summary }), ...children);

/**
 * A list of which the first few are seen, and the others once somebody wants them.
 * @param {HTMLElement[]} items
 * @param {number} most
 * @param {string} noun of the others
 */
export const shortened = (items, most, noun) => [
  element("ul", {}, ...items.slice(0, most)),
  items.length > most ? folded(counted(items.length - most, noun), {}, element("ul", {}, ...items.slice(most))) : null,
];

/**
 * Scroll to an element, unless it begins in the upper half of the window already.
 * @param {HTMLElement} it
 */
export function reveal(it) {
  const { top } = it.getBoundingClientRect();
  if (top >= 0 && top < innerHeight / 2) return;
  it.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
}
