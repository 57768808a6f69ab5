// Elements of the page. Whatever comes from the cluster gets in as text, never as markup.

/** Make an element: `on` has listeners, `data` the dataset, a `class` and `text`; all else are attributes. */
export function element(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else if (key === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (key === "data") Object.assign(made.dataset, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** A table with a header row; cells are texts or elements. */
export function table(caption, heads, rows, kind = "") {
  const cell = (content) => element("td", typeof content === "object" ? {} : { text: content }, ...(typeof content === "object" && content ? [content] : []));
  return element(
    "table",
    { class: kind },
    element("caption", { text: caption }),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col", text: head })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell)))),
  );
}

/** A name in CamelCase that may be broken before its capitals, where there is no room. */
export function breakable(name) {
  return element("span", {}, ...name.split(/(?=[A-Z])/).flatMap((part, place) => (place ? [element("wbr"), part] : [part])));
}

/** Say something wrong of an input, beside it; an empty text takes it back. */
export function complain(input, slot, text) {
  slot.textContent = text;
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
