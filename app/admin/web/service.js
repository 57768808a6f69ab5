// The state of the service: how far the mirror can be trusted, and what the equivalence cache does; what it offers.

import { get } from "./api.js";
import { byId, byIdAs, counted, element, messageOf, table } from "./elements.js";
import { layerText } from "./layers.js";

/** @typedef {import("admin-port").CacheState} CacheState */

const SHOWN = 50;
/** @type {Record<string, string>} */
const MARKS = { fresh: "●", stale: "▲", "not synced": "■" };

/** @param {import("admin-port").MirrorState} mirror */
export function showMirror(mirror) {
  const line = byId("mirror");
  const standing = element("strong", {
    class: mirror.standing.replace(" ", "-"),
    text: `${MARKS[mirror.standing] ?? "?"} ${mirror.standing}`,
  });
  const size = ` mirror: ${counted(mirror.nodes, "node")}, ${counted(mirror.pods, "pod")}, generation ${mirror.generation.toLocaleString("en")}`;
  const told = element(
    "span",
    {},
    standing,
    element("span", { text: size }),
    ...mirror.problems.map((text) => element("span", { class: "problem", text })),
  );
  // Screen readers read it again whenever it is put in again.
  if (line.textContent !== told.textContent) line.replaceChildren(told);
}

/**
 * @param {string[]} pods
 * @param {(pod: string) => void} choose
 */
export function showRecent(pods, choose) {
  const buttons = pods
    .slice(0, 5)
    .map((pod) =>
      element(
        "li",
        {},
        element("button", { type: "button", class: "small", text: pod, on: { click: () => choose(pod) } }),
      ),
    );
  byId("lately").replaceChildren(
    ...(pods.length
      ? [element("p", { class: "hint", text: "Recent requests:" }), element("ul", { class: "chips" }, ...buttons)]
      : []),
  );
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
  if (problem) byId("mirror").replaceChildren(element("strong", { class: "stale", text: "■ not live" }));
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

/** @param {(pod: string) => void} choose */
export async function showClasses(choose) {
  const place = byId("classes");
  try {
    const state = /** @type {CacheState} */ (await get("debug/equivalence"));
    place.replaceChildren(...classes(state, choose));
  } catch (error) {
    place.replaceChildren(element("p", { class: "hint", text: messageOf(error) }));
  }
}

/** @param {number | null} share */
const rate = (share) => (share === null ? "no cell needed yet" : `${(100 * share).toFixed(1)} %`);

/**
 * @param {CacheState} state
 * @param {(pod: string) => void} choose
 */
function classes({ totals, classes: all }, choose) {
  const size = `${counted(totals.classes, "class").replace("classs", "classes")}, ${(totals.bytes / 2 ** 20).toFixed(1)} of ${(totals.max_bytes / 2 ** 20).toFixed(0)} MiB`;
  const head = element("p", { text: `${size}; hit rate ${rate(totals.hit_rate)}` });
  if (!all.length) {
    return [
      head,
      element("p", { class: "hint", text: "No scheduler has sent a request yet. Explanations do not count." }),
    ];
  }
  const rows = all.slice(0, SHOWN).map((each) => [
    element(
      "span",
      { class: "class" },
      element("button", {
        type: "button",
        class: "small",
        "aria-label": `Ask about ${each.first_pod}`,
        text: each.first_pod,
        on: { click: () => choose(each.first_pod) },
      }),
      element("code", { text: each.hash }),
    ),
    each.questions.toLocaleString("en"),
    element(
      "span",
      { class: "rate" },
      element("meter", { value: each.hit_rate ?? 0, "aria-hidden": "true" }),
      element("span", { text: rate(each.hit_rate) }),
    ),
    `${Math.round(each.seconds_since_last_question).toLocaleString("en")} s ago`,
  ]);
  const left = all.length - rows.length;
  return [
    head,
    table(
      "Classes, the last requested first",
      ["First pod, and hash", "Requests", "Hit rate", "Last request"],
      rows,
      "classes",
    ),
    left ? element("p", { class: "hint", text: `and ${left} more` }) : "",
  ];
}
