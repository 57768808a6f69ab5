// Puts the parts of the page together: a question, its answer, and what is chosen of it.

import { get, Problem, post } from "./api.js";
import { Cluster } from "./cluster.js";
import { domainDetail, nodeDetail, podsOfNode } from "./details.js";
import { byId, byIdAs, complain, element, inputById, messageOf } from "./elements.js";
import { showLegend } from "./legend.js";
import { ClusterMap } from "./map.js";
import { QuestionForm } from "./question.js";
import { showClasses, showMirror, showRecent } from "./service.js";
import { Tree } from "./tree.js";

/**
 * @typedef {import("./cluster.js").Selection} Selection
 * @typedef {import("./details.js").PlacedPod} PlacedPod
 */

/**
 * What is chosen by its names, which outlive an answer.
 * @typedef {{ node: string } | { zone: string, rack?: string }} Chosen
 */

const STATE_EVERY = 10_000; // ms
const PODS_SHOWN = 5;

const form = new QuestionForm(byIdAs("question", HTMLFormElement), () => ask());
const map = new ClusterMap(byIdAs("map", HTMLCanvasElement), byId("map-frame"), { choose, place });
const tree = new Tree(byId("tree-scroll"), { choose, place });
/** @type {{ text: string, cluster: Cluster } | null} */
let answer = null;
/** @type {Selection | null} */
let selection = null;
let asked = 0; // an answer that another question has overtaken is not shown
let looked = 0;

async function ask() {
  asked += 1;
  const number = asked;
  const button = byId("ask");
  button.setAttribute("aria-busy", "true");
  complain(byId("rack-key"), byId("rack-key-error"), "");
  try {
    const text = await form.text();
    const cluster = new Cluster(await post(`explain/nodes?${drawing()}`, text));
    const told = await post("explain?limit=3", text);
    if (number === asked) show(text, cluster, told);
  } catch (error) {
    if (number === asked) complainOf(error);
  } finally {
    if (number === asked) button.removeAttribute("aria-busy");
  }
  look();
}

/** What is told of all nodes, beside their verdicts. */
function drawing() {
  const rack = inputById("rack-key").value.trim();
  return new URLSearchParams({ ...(form.scoreAll ? { score: "all" } : {}), ...(rack ? { rack } : {}) });
}

/** @param {unknown} error */
function complainOf(error) {
  const input = inputById("rack-key");
  if (!(error instanceof Problem) || error.field !== "rack") {
    form.complain(error);
    return;
  }
  complain(input, byId("rack-key-error"), error.message);
  input.focus();
}

/**
 * @param {string} text
 * @param {Cluster} cluster
 * @param {import("admin-port").Explanation} told
 */
function show(text, cluster, told) {
  const chosen = answer && selection && nameOf(answer.cluster, selection);
  answer = { text, cluster };
  form.rackKey = cluster.columns.rack_key;
  for (const id of ["racks", "map-frame", "tree-frame"]) byId(id).hidden = false;
  inputById("rack-key").placeholder = cluster.columns.rack_key;
  byId("answer").replaceChildren(...headline(`${told.summary.pod}: ${told.summary.message}`));
  byId("supposition").textContent = supposition(told.supposed);
  showMirror(told.mirror);
  showLegend(byId("legend"), cluster);
  selection = chosen && found(cluster, chosen);
  tree.chosen = selection;
  map.chosen = selection;
  map.show(cluster);
  tree.show(cluster);
  if (selection) choose(selection);
  else {
    byId("detail-body").replaceChildren(
      element("p", { class: "hint", text: "Choose a domain or a node for the counts, and for the pods behind them." }),
    );
  }
}

/**
 * What matters, and then the reasons, of which there may be many.
 * @param {string} text
 */
function headline(text) {
  const [, matters, reasons] = /^(.*? available)(.*)$/s.exec(text) ?? [text, text, ""];
  return [element("strong", { text: matters }), element("span", { class: "reasons", text: reasons })];
}

/** @param {import("admin-port").Supposed} supposed */
function supposition({ added_nodes: nodes, removed, assumed }) {
  const parts = [
    nodes.length ? `more nodes: ${nodes.join(", ")}` : "",
    removed.length ? `gone: ${removed.join(", ")}` : "",
    assumed.length ? `placed: ${assumed.join(", ")}` : "",
  ].filter(Boolean);
  return parts.length ? `Supposed: ${parts.join("; ")}.` : "";
}

/**
 * Places of nodes and domains are of one answer; names are of all.
 * @param {Cluster} cluster
 * @param {Selection} selection
 * @returns {Chosen | null}
 */
function nameOf(cluster, { node, domain }) {
  if (node !== undefined) return { node: cluster.columns.names[node] };
  const zone = cluster.zones.find((each) => each.id === domain || each.racks.some((rack) => rack.id === domain));
  return zone ? { zone: zone.value, rack: zone.racks.find((rack) => rack.id === domain)?.value } : null;
}

/**
 * @param {Cluster} cluster
 * @param {Chosen} chosen
 * @returns {Selection | null}
 */
function found(cluster, chosen) {
  if ("node" in chosen) {
    const node = cluster.places.get(chosen.node);
    return node === undefined ? null : { node };
  }
  const within = cluster.zones.find((each) => each.value === chosen.zone);
  const domain = chosen.rack === undefined ? within : within?.racks.find((each) => each.value === chosen.rack);
  return domain ? { domain: domain.id } : null;
}

/** @param {Selection} chosen */
async function choose(chosen) {
  if (!answer) return;
  selection = chosen;
  map.choose(chosen);
  tree.choose(chosen);
  looked += 1;
  const number = looked;
  const body = byId("detail-body");
  const { cluster, text } = answer;
  const domain = chosen.domain === undefined ? null : cluster.domain(chosen.domain);
  const name = cluster.columns.names[chosen.node ?? cluster.domain(chosen.domain).nodes[0]];
  try {
    const told = (await explained(name, text)).nodes[0];
    if (number !== looked) return;
    const pods = podsOfNode(() => podsOf(name), suppose);
    body.replaceChildren(
      ...(domain ? domainDetail(cluster, domain, told, suppose) : nodeDetail(cluster, told, suppose, pods)),
    );
  } catch (error) {
    if (number === looked) {
      body.replaceChildren(element("p", { class: "error", role: "alert", text: messageOf(error) }));
    }
  }
}

/**
 * @param {string} node
 * @param {string} text
 */
function explained(node, text) {
  const score = form.scoreAll ? "&score=all" : "";
  return post(`explain?limit=${PODS_SHOWN}&node=${encodeURIComponent(node)}${score}`, text);
}

/** @param {string} node */
async function podsOf(node) {
  const { nodes } = await get(`debug/mirror?node=${encodeURIComponent(node)}`);
  return nodes.flatMap((each) => each.pods);
}

/** @type {import("./details.js").Suppose} */
function suppose(kind, pod) {
  form.suppose(kind, pod);
  if (kind === "remove") ask();
}

/**
 * @param {PlacedPod} pod
 * @param {string} onto
 */
function place(pod, onto) {
  form.place(pod, onto);
  ask();
}

/** @param {string} pod */
function askAbout(pod) {
  form.name(pod);
  ask();
}

byId("racks").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});

byId("show").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!answer) return;
  const [input, slot] = [inputById("show-node"), byId("show-node-error")];
  complain(input, slot, "");
  const name = input.value.trim();
  const node = answer.cluster.places.get(name);
  if (node !== undefined) {
    await choose({ node });
    byId("details-heading").focus();
    return;
  }
  // The service says best what is wrong with it.
  const wrong = await explained(name, answer.text).then(() => "not among those that are asked about", messageOf);
  complain(input, slot, wrong);
});

async function look() {
  try {
    const state = await get("explain/state");
    showMirror(state.mirror);
    showRecent(state.recent_pods, askAbout);
    await showClasses(askAbout);
  } catch (error) {
    byId("mirror").textContent = messageOf(error);
  }
}

/** Whether somebody is among the buttons that a look would put in anew. */
const isInUse = () => ["classes", "lately"].some((id) => byId(id).contains(document.activeElement));

setInterval(() => {
  if (!document.hidden && !isInUse()) look();
}, STATE_EVERY);
look();
