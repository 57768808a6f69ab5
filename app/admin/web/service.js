// The state of the service: how far the mirror can be trusted, and what the service offers.

import { get } from "./api.js";
import { byId, byIdAs, counted, element } from "./elements.js";
import { layerText } from "./layers.js";

/** @type {Record<string, string>} */
const MARKS = { fresh: "●", stale: "▲", "not synced": "■" };

/** @param {import("admin-port").MirrorState} mirror */
export function showMirror(mirror) {
  const standing = element("strong", {
    class: mirror.standing.replace(" ", "-"),
    text: `${MARKS[mirror.standing] ?? "?"} ${mirror.standing}`,
  });
  say("standing", standing);
  byId("size").textContent = ` mirror: ${counted(mirror.nodes, "node")}, ${counted(mirror.pods, "pod")}`;
  say("problems", ...mirror.problems.map((text) => element("span", { class: "problem", text })));
  byId("generation").textContent = `Generation of the mirror: ${mirror.generation.toLocaleString("en")}.`;
}

/**
 * Put something in that is not there yet: screen readers read it whenever it is put in.
 * @param {string} id
 * @param {...HTMLElement} parts
 */
function say(id, ...parts) {
  const line = byId(id);
  if (line.textContent !== parts.map((each) => each.textContent).join("")) line.replaceChildren(...parts);
}

/**
 * Say that the service cannot be followed, and why; an empty text takes it back.
 * @param {string} problem
 */
export function showLost(problem) {
  const line = byId("lost");
  if (!problem) line.textContent = "";
  // Once: screen readers would read it again at each attempt.
  else if (!line.textContent) {
    const since = new Date().toLocaleTimeString("en-GB");
    line.textContent = `Not live since ${since}: ${problem}. What is shown is as it was then. Trying again.`;
  }
  if (!problem) return;
  say("standing", element("strong", { class: "stale", text: "■ not live" }));
  byId("size").textContent = "";
  say("problems");
}

/**
 * Offer the layers of the map.
 * @param {string[]} names
 * @param {string} current
 */
export function showLayers(names, current) {
  const select = byIdAs("layer", HTMLSelectElement);
  const offered = [...select.options].map((each) => each.value);
  if (offered.join() !== names.join()) {
    select.replaceChildren(...names.map((name) => element("option", { value: name, text: layerText(name) })));
  }
  select.value = current;
}

/**
 * Offer the pods that a demo brings with it.
 * @param {(manifest: string) => void} ask
 */
export async function showSamples(ask) {
  try {
    const { samples } = await get("samples");
    byId("samples").hidden = !samples.length;
    byId("sample-list").replaceChildren(
      ...samples.map(({ name, pod }) =>
        element(
          "li",
          {},
          element("button", {
            type: "button",
            class: "small",
            text: name.replaceAll("-", " "),
            data: { sample: name },
            on: { click: () => ask(JSON.stringify(pod, null, 2)) },
          }),
        ),
      ),
    );
  } catch {
    byId("samples").hidden = true; // who has nothing to offer need not say why
  }
}
