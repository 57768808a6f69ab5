// Puts the parts of the page together: the cluster as it is, or a question with its answer, and what is chosen of it.

import { fragmentOf, linkNote, shownBy } from "./address.js";
import { get, Problem, post } from "./api.js";
import { Cluster, JudgedCluster } from "./cluster.js";
import { complete } from "./completion.js";
import { judgedDetail, placeDetail, podsOf, podsOfNode, waitsDetail } from "./details.js";
import { byId, byIdAs, complain, element, inputById, messageOf, reveal } from "./elements.js";
import { layerNames, layerOf, usualLayer } from "./layers.js";
import { follow, paced } from "./live.js";
import { ClusterMap } from "./map.js";
import { showPending, waitsOn } from "./pending.js";
import { QuestionForm } from "./question.js";
import { showLayers, showLost, showMirror, showSamples } from "./service.js";
import { clusterText, profileText, sentences } from "./sentences.js";
import { Tree } from "./tree.js";
import { showUnits } from "./units.js";
import { Use } from "./use_layer.js";

/** @import { Asked, Chosen } from "./address.js" */
/** @import { Selection } from "./cluster.js" */

const form = new QuestionForm(byIdAs("question", HTMLFormElement), askNow);
const map = new ClusterMap(byIdAs("map", HTMLCanvasElement), byId("map-frame"), async (selection) => {
  await choose(selection);
  reveal(byId("details"));
});
const tree = new Tree(byId("tree-scroll"), choose);
/** @type {import("./details.js").Answer | null} */
let answer = null;
/** @type {import("./layers.js").Overview | null} */
let overview = null;
/** @type {Asked | null} */
let question = null; // what the answer is to; null: the cluster as it is
/** @type {Chosen | null} */
let chosen = null;
let layer = ""; // empty: the usual one
let asked = 0; // an answer that another question has overtaken is not shown
let looked = 0;
let generation = -1; // of the mirror, as the service last said
let surveyed = 0;

const shown = () => answer?.cluster ?? overview?.cluster ?? null;
const rackKey = () => inputById("rack-key").value.trim();

// A question and its answer.

/**
 * Ask what the form says, as somebody wants it now.
 * @param {boolean} stays whether the focus does
 */
function askNow(stays = false) {
  if (!answer) layer = "";
  return ask("push", stays);
}

/**
 * @param {"push" | "replace"} how the address takes it
 * @param {boolean} stays
 */
async function ask(how = "push", stays = false) {
  const { activeElement } = document;
  asked += 1;
  const number = asked;
  const button = byId("ask");
  button.setAttribute("aria-busy", "true");
  complain(byId("rack-key"), byId("rack-key-error"), "");
  question = form.asked;
  remember(how);
  try {
    const text = await form.text();
    const nodes = await post(`explain/nodes?${drawing()}`, text);
    const told = await post("explain?limit=3", text);
    if (number !== asked) return;
    showAnswer(text, nodes, told);
    // Not from under somebody who has gone on meanwhile.
    if (!stays && [activeElement, document.body].includes(document.activeElement)) {
      byId("cluster-heading").focus({ preventScroll: true });
      reveal(byId("cluster"));
    }
  } catch (error) {
    if (number === asked) {
      withdraw("No answer.");
      complainOf(error);
    }
  } finally {
    if (number === asked) button.removeAttribute("aria-busy");
  }
}

/** What is told of all nodes, beside their verdicts. */
const drawing = () =>
  new URLSearchParams({ ...(form.scoreAll ? { score: "all" } : {}), ...(rackKey() ? { rack: rackKey() } : {}) });

/** @param {unknown} error */
function complainOf(error) {
  const input = inputById("rack-key");
  if (!(error instanceof Problem) || error.field !== "rack") {
    form.complain(error);
    return;
  }
  complain(input, byId("rack-key-error"), error.message);
  byIdAs("advanced", HTMLDetailsElement).open = true;
  input.focus();
}

/**
 * @param {string} text
 * @param {import("admin-port").NodeMap} nodes
 * @param {import("admin-port").Explanation} told
 */
function showAnswer(text, nodes, told) {
  const sure = !nodes.not_judged.length && !told.manifest?.unknown.length;
  const cluster = new JudgedCluster(nodes, sure, profileText(told.summary));
  answer = { text, cluster, scoreAll: form.scoreAll };
  byId("cluster-heading").textContent = "Answer";
  const said = Object.entries(sentences(told, sure, linkNote(question)));
  for (const [id, parts] of said) byId(id).replaceChildren(...parts);
  showMirror(told.mirror);
  generation = told.mirror.generation;
  draw();
  if (chosen && cluster.find(chosen)) tree.choose(cluster.find(chosen));
  detail();
}

/**
 * Show the cluster as it is: a map that is no answer to what was asked last would be taken for one.
 * @param {string} text
 */
function withdraw(text) {
  answer = null;
  byId("cluster-heading").textContent = "Cluster";
  for (const id of ["helps", "notes", "scored", "supposition", "class"]) byId(id).replaceChildren();
  byId("answer").textContent = [text, overviewText()].filter(Boolean).join(" ");
  draw();
  detail();
}

const overviewText = () => (overview ? clusterText(overview.cluster, overview.use) : "");

// The cluster as it is.

async function refresh() {
  surveyed += 1;
  const number = surveyed;
  try {
    const rack = !answer && rackKey() ? `?${new URLSearchParams({ rack: rackKey() })}` : "";
    const view = await get(/** @type {"cluster"} */ (`cluster${rack}`));
    if (number !== surveyed) return;
    overview = { cluster: new Cluster(view), use: new Use(view) };
    if (!question) complain(byId("rack-key"), byId("rack-key-error"), "");
    if (!question && byId("answer").textContent !== overviewText()) byId("answer").textContent = overviewText();
    if (!answer || layer) draw();
    refreshDetail();
  } catch (error) {
    if (!overview) byId("answer").textContent = messageOf(error);
    if (error instanceof Problem && error.field === "rack") complainOf(error);
  }
}

/** Draw what is shown by the layer that is wanted, as far as there is something of either. */
function draw() {
  const judged = answer?.cluster ?? null;
  const drawn = layerOf(judged, overview, layer);
  for (const id of ["racks", "layers", "map-frame", "tree-frame"]) byId(id).hidden = !drawn;
  byId("back").hidden = !question;
  noticeChange();
  if (!drawn) return;
  const { cluster } = drawn;
  form.supposed.rackKey = cluster.columns.rack_key;
  inputById("rack-key").placeholder = cluster.columns.rack_key;
  showLayers(layerNames(judged, overview), drawn.name);
  map.chosen = cluster.find(chosen);
  tree.chosen = map.chosen;
  map.show(drawn);
  tree.show(drawn);
  drawn.showLegend(byId("legend"));
  performance.mark("map drawn");
}

/** An answer is of one moment: when the cluster has changed since, that is said, and can be mended. */
function noticeChange() {
  byId("changed").hidden = !answer || answer.cluster.columns.generation === generation;
}

// What is chosen.

/** @param {Selection} selection */
function choose(selection) {
  chosen = shown()?.nameOf(selection) ?? null;
  map.choose(selection);
  tree.choose(selection);
  remember();
  return detail();
}

/** What is told of a place of the cluster as it is follows it, unless somebody reads on there. */
function refreshDetail() {
  if (!answer && !byId("detail-body").querySelector("details[open]")) detail();
}

async function detail() {
  looked += 1;
  const number = looked;
  const body = byId("detail-body");
  const cluster = shown();
  const selection = cluster?.find(chosen);
  byId("details").hidden = !selection;
  if (!cluster || !selection) {
    body.replaceChildren();
    return;
  }
  const { node } = selection;
  const name = node === undefined ? "" : cluster.columns.names[node];
  const pods = name ? [...waitsDetail(waitsOn(name)), podsOfNode(() => podsOf(name), suppose)] : [];
  if (!answer) {
    if (overview) body.replaceChildren(...placeDetail(cluster, selection, overview), ...pods);
    return;
  }
  try {
    const told = await judgedDetail(answer, selection, overview, suppose);
    if (number === looked) body.replaceChildren(...told, ...pods);
  } catch (error) {
    if (number === looked) {
      body.replaceChildren(element("p", { class: "error", role: "alert", text: messageOf(error) }));
    }
  }
}

/** @type {import("./details.js").Suppose} */
function suppose(kind, pod) {
  form.supposed.suppose(kind, pod);
  if (kind === "remove" && form.started) askNow();
}

/** @param {string} pod */
function askAbout(pod) {
  form.name(pod);
  askNow();
}

/** @param {string} text */
function askWithManifest(text) {
  form.manifest(text);
  askNow();
}

// The address.

/** @param {"push" | "replace"} how */
function remember(how = "push") {
  const nothing = { pod: "", manifest: "", supposed: [], scoreAll: false };
  const fragment = fragmentOf({ ...(question ?? nothing), chosen, layer, rackKey: rackKey() });
  if (location.hash.replace(/^#/, "") === fragment) return;
  const address = fragment ? `#${fragment}` : location.pathname + location.search;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** Show what the address says. */
function restore() {
  const wanted = shownBy(location.hash);
  ({ chosen, layer } = wanted);
  const other = rackKey() !== wanted.rackKey;
  inputById("rack-key").value = wanted.rackKey;
  byIdAs("advanced", HTMLDetailsElement).open ||= Boolean(wanted.rackKey);
  form.asked = wanted;
  if (wanted.pod || wanted.manifest) {
    ask("replace");
    return;
  }
  asked += 1;
  question = null;
  byId("ask").removeAttribute("aria-busy");
  withdraw("");
  if (other) refresh();
}

// What is there to be clicked.

byId("back").addEventListener("click", () => {
  history.pushState(null, "", location.pathname + location.search);
  restore();
  byId("cluster-heading").focus();
});

byId("changed-again").addEventListener("click", () => ask());

byIdAs("layer", HTMLSelectElement).addEventListener("change", (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  layer = value === usualLayer(answer !== null) ? "" : value;
  remember();
  draw();
});

byId("racks").addEventListener("submit", (event) => {
  event.preventDefault();
  if (question) {
    ask();
    return;
  }
  remember();
  refresh();
});

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  find(inputById("find").value.trim());
});

/**
 * A node if there is one of that name, else a pod.
 * @param {string} name
 */
async function find(name) {
  const node = shown()?.places.get(name);
  const elsewhere = node === undefined && overview?.cluster.places.has(name);
  const wrong = elsewhere ? `node ${name}: not among the nodes of the request` : "";
  complain(byId("find"), byId("find-error"), name ? wrong : "Say which pod or node.");
  if (node !== undefined) {
    await choose({ node });
    byId("details-heading").focus();
  } else if (name && !elsewhere) askAbout(name);
}

complete(inputById("find"), ["node", "pod"]);
complete(inputById("pod-name"), ["pod"]);

// The service.

const refreshers = [refresh, () => showPending(askAbout).then(refreshDetail), showUnits].map(paced);

/** @param {import("admin-port").MirrorState} state */
function changed(state) {
  const wasLost = byId("lost").textContent !== "";
  showLost("");
  showMirror(state);
  generation = state.generation;
  noticeChange();
  if (!wasLost && overview?.cluster.columns.generation === generation) return;
  for (const begin of refreshers) begin();
}

addEventListener("popstate", restore);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw); // the legend has colours, too
restore();
for (const begin of refreshers) begin();
showSamples(askWithManifest);
follow({ changed, lost: showLost });
