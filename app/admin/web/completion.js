// Fields that complete the names of nodes and pods: the browser's own list, which is looked up as somebody types.

import { get } from "./api.js";
import { element } from "./elements.js";

const PAUSE = 120; // ms after a key before anything is looked up
const LIMIT = 12;

/**
 * @param {HTMLInputElement} input with a list
 * @param {("pod" | "node")[]} kinds what is offered
 */
export function complete(input, kinds) {
  const { list } = input;
  let [timer, looked] = [0, 0];

  async function look() {
    looked += 1;
    const number = looked;
    const text = input.value.trim();
    const path = `names?${new URLSearchParams({ text, limit: String(LIMIT) })}`;
    // The field takes any text, so it works without a list, too.
    const found = await get(/** @type {"names"} */ (path)).catch(() => null);
    if (number !== looked || !list || !found) return;
    const nodes = kinds.includes("node") ? found.nodes.map((name) => ({ name, hint: "node" })) : [];
    const pods = found.pods.map(({ pod, node }) => ({ name: pod, hint: node ? `on ${node}` : "on no node" }));
    list.replaceChildren(
      ...[...nodes, ...pods].map(({ name, hint }) => element("option", { value: name, label: `${name}, ${hint}` })),
    );
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
}
