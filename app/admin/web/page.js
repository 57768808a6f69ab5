// Puts the parts of the page together: the cluster as it is, or a question with its answer, and what is chosen of it.

import { fragmentOf, linkNote, NOTHING, shownBy } from "./address.js";
import { get, offerCaller, passes, Problem, post } from "./api.js";
import { Cluster, JudgedCluster } from "./cluster.js";
import { complete } from "./completion.js";
import { judgedDetail, placeDetail, podsOf, podsOfNode, waitsDetail } from "./details.js";
import { byId, byIdAs, complain, element, inputById, messageOf, reveal, takeBack } from "./elements.js";
import { layerNames, layerOf, usualLayer, VerdictLayer } from "./layers.js";
import { follow, paced, released } from "./live.js";
import { ClusterMap } from "./map.js";
import { assumptions, lackNotes } from "./outcomes.js";
import { showPending, waitsOn } from "./pending.js";
import { QuestionForm } from "./question.js";
import { Running } from "./running.js";
import { showLayers, showLost, showMirror, showSamples } from "./service.js";
import { clusterText, profileText, sentences } from "./sentences.js";
import { Mistake } from "./suppositions.js";
import { Tree } from "./tree.js";
import { showUnits } from "./units.js";
import { Use } from "./use_layer.js";
import { WhatIf } from "./what_if.js";

/** @import { Ask, Asked, Chosen } from "./address.js" */
/** @import { Selection } from "./cluster.js" */
/**
 * What is shown in place of the cluster as it is: its nodes, as the map has them and `detail` tells of them.
 * @typedef {object} Answer
 * @property {Cluster} cluster
 * @property {import("./layers.js").Layer | null} layer its own; null: it has none
 * @property {number} generation of the mirror
 * @property {(selection: Selection) => import("./elements.js").Child[] | Promise<import("./elements.js").Child[]>} detail
 */

const form = new QuestionForm(byIdAs("question", HTMLFormElement), askNow);
const whatIf = new WhatIf(askMany, draw);
const map = new ClusterMap(byIdAs("map", HTMLCanvasElement), byId("map-frame"), async (selection, more) => {
  await choose(selection, more);
  if (!more) reveal(byId("details"));
});
const tree = new Tree(byId("tree-scroll"), choose);
const running = new Running(() => {
  withdraw("Cancelled.");
  byId("cluster-heading").focus();
});
/** @type {Answer | null} */
let answer = null;
/** @type {import("./layers.js").Overview | null} */
let overview = null;
/** @type {Asked | null} */
let question = null; // what the answer is to; null: the cluster as it is
/** @type {Chosen | null} */
let chosen = null;
let layer = ""; // empty: the usual one
let rackKey = ""; // the label of racks that is wanted; empty: the guessed one
let lost = ""; // the loss that is drawn; empty: the worst
let looked = 0;
let generation = -1; // of the mirror, as the service last said
let pendingChanges = -1; // of the pods that wait, likewise
let surveyed = 0;
const MOST_KEPT = 2; // the present one, and the one before: the loss of zones of 50,000 pods is 42 MB of JSON
/** @type {Map<string, () => void>} */
const kept = new Map(); // questions about many pods -> what shows their answers again, the last one last

/** @type {Record<Ask | "", string>} */
const RUNNING = {
  "": "Kindred judges all nodes for the pod.",
  capacity: "Kindred places one more pod after the other.",
  drain: "Kindred tries the drain.",
  loss: "Kindred tries each loss.",
  removal: "Kindred tries each node.",
};

const shown = () => answer?.cluster ?? overview?.cluster ?? null;

// A question and its answer.

/**
 * Ask what the form says, as somebody wants it now.
 * @param {boolean} stays whether the focus does
 */
function askNow(stays = false) {
  if (!answer) layer = "";
  lost = "";
  return ask(form.asked, "push", stays);
}

/** @param {Ask} kind */
function askMany(kind) {
  layer = "";
  lost = "";
  return ask({ ...NOTHING, ...(kind === "capacity" ? form.asked : {}), ...whatIf.asked(kind) });
}

/** Ask what is asked already, as the forms have it now. */
const again = () => (question?.ask ? askMany(question.ask) : ask(form.asked));

/**
 * @param {Asked} wanted
 * @param {"push" | "replace"} how the address takes it
 * @param {boolean} stays
 */
async function ask(wanted, how = "push", stays = false) {
  const { activeElement } = document;
  const choice = chosen;
  const signal = running.begin(RUNNING[wanted.ask]);
  complain(byId("rack-key"), byId("rack-key-error"), "");
  takeBack(byId("side"));
  question = wanted;
  remember(how);
  try {
    const present = wanted.ask ? await outcomeOf(wanted, signal) : await explanationOf(signal);
    if (signal.aborted) return; // another question has overtaken it
    present();
    running.end();
    await opened; // until then, what comes above it would move it out of view
    // Not from under somebody who has gone on meanwhile.
    if (
      question === wanted &&
      chosen === choice &&
      !stays &&
      [activeElement, document.body].includes(document.activeElement)
    ) {
      byId("cluster-heading").focus({ preventScroll: true });
      reveal(byId("cluster"));
    }
  } catch (error) {
    if (!signal.aborted) {
      withdraw("No answer.");
      complainOf(error);
    }
  } finally {
    if (!signal.aborted) running.end();
  }
}

/**
 * Whether a problem is with the pod of a question.
 * @param {unknown} error
 */
const isOfPod = (error) =>
  error instanceof Mistake
    ? form.form.contains(error.input)
    : error instanceof Problem && /^(of|manifests)\b/.test(error.field);

/**
 * @param {AbortSignal} signal
 * @returns {Promise<() => void>} shows it
 */
async function explanationOf(signal) {
  const text = JSON.stringify(await form.members());
  const nodes = await post(`explain/nodes?${drawing()}`, text, signal);
  const told = await post("explain?limit=3", text, signal);
  return () => showAnswer(text, nodes, told);
}

/** The nodes as they are, with the racks that are wanted. */
async function placed() {
  if (overview && (!rackKey || overview.cluster.columns.rack_key === rackKey)) return overview.cluster;
  return new Cluster(await get(clusterPath()));
}

/**
 * @param {Asked} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<() => void>} shows it
 */
async function outcomeOf(wanted, signal) {
  const cluster = await placed();
  const render = await whatIf.answer(wanted, cluster, () => form.pod(), running.key, signal);
  const present = () => showOutcome(cluster, render);
  keep(wanted, present);
  return present;
}

/**
 * Keep an answer, so that to go back to its question does not ask it again: that may take a minute. The oldest goes.
 * @param {Asked} asked
 * @param {() => void} present
 */
function keep(asked, present) {
  if (linkNote(asked)) return; // another question has the same address
  const key = keyOf(asked);
  kept.delete(key);
  kept.set(key, present);
  if (kept.size > MOST_KEPT) kept.delete([...kept.keys()][0]);
}

/**
 * What is the same for questions with one answer.
 * @param {Asked} asked
 */
const keyOf = (asked) => fragmentOf({ ...asked, chosen: null, layer: "", rackKey, lost: "" });

/**
 * Show a question about many pods that somebody has gone back to: with its answer, or with a button that asks.
 * @param {Asked} asked
 */
function showAgain(asked) {
  running.end();
  question = asked;
  const present = kept.get(keyOf(asked));
  if (present) {
    present();
    return;
  }
  const button = element("button", { type: "button", text: "Ask", on: { click: () => ask(asked, "replace") } });
  show(null, { answer: ["This question was not asked again."], helps: [button] });
}

/** What is told of all nodes, beside their verdicts. */
const drawing = () =>
  new URLSearchParams({ ...(form.scoreAll ? { score: "all" } : {}), ...(rackKey ? { rack: rackKey } : {}) });

/** @param {unknown} error */
function complainOf(error) {
  const input = inputById("rack-key");
  if (!(error instanceof Problem) || error.field !== "rack") {
    (question?.ask && !isOfPod(error) ? whatIf : form).complain(error);
    offerCaller(messageOf(error));
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
  const { scoreAll } = form;
  // Else a newer state has come before. A service that has started anew begins with small generations.
  if (isLost() || told.mirror.generation >= generation) {
    showMirror(told.mirror);
    generation = told.mirror.generation;
  }
  show(
    {
      cluster,
      layer: new VerdictLayer(cluster),
      generation: nodes.generation,
      detail: (selection) => judgedDetail({ text, cluster, scoreAll }, selection, overview, suppose),
    },
    sentences(told, sure, linkNote(question)),
  );
}

/**
 * @param {Cluster} cluster
 * @param {import("./what_if.js").Render} render
 */
function showOutcome(cluster, render) {
  const told = render(lost, (value) => {
    lost = value;
    remember();
    showOutcome(cluster, render);
    for (const button of byId("outcome").querySelectorAll("button")) if (button.dataset.lost === value) button.focus();
  });
  offerCaller(told.assumed.names_hidden);
  show(
    {
      cluster,
      layer: told.layer,
      generation: cluster.columns.generation,
      detail: (selection) => [...placeDetail(cluster, selection, overview), ...told.detail(selection)],
    },
    {
      answer: [element("strong", { text: told.headline })],
      notes: [...told.notes, ...lackNotes(told.assumed)].map((each) => element("li", {}, each)),
      outcome: told.top,
      pods: [...told.pods, assumptions(told.assumed)],
    },
  );
}

/**
 * @param {Answer | null} shownNow
 * @param {Record<string, import("./elements.js").Child[]>} said by the elements that have it; the others are emptied
 */
function show(shownNow, said) {
  answer = shownNow;
  byId("answer").ariaLive = "polite";
  byId("cluster-heading").textContent = answer ? "Answer" : "Cluster";
  for (const id of ["answer", "helps", "notes", "outcome", "pods", "scored", "supposition", "class"]) {
    byId(id).replaceChildren(...(said[id] ?? []).filter((each) => each !== null && each !== undefined));
  }
  draw();
  const selection = answer?.cluster.find(chosen);
  if (selection) tree.choose(selection);
  detail();
}

/**
 * Show the cluster as it is: a map that is no answer to what was asked last would be taken for one.
 * @param {string} text
 */
function withdraw(text) {
  show(null, { answer: [[text, overviewText()].filter(Boolean).join(" ")] });
}

const overviewText = () => (overview ? clusterText(overview.cluster, overview.use) : "");

// The cluster as it is.

const clusterPath = () =>
  /** @type {"cluster"} */ (rackKey ? `cluster?${new URLSearchParams({ rack: rackKey })}` : "cluster");

/**
 * False: there was no answer, and what is shown may be of the past.
 * @param {boolean} asks whether somebody has just asked for it, and is to be led to what is wrong
 */
async function refresh(asks = false) {
  surveyed += 1;
  const number = surveyed;
  try {
    const view = await get(clusterPath());
    await released();
    if (number !== surveyed) return true;
    const live = overview ? "off" : "polite"; // screen readers would read the counts again and again
    overview = { cluster: new Cluster(view), use: new Use(view) };
    if (!question) complain(byId("rack-key"), byId("rack-key-error"), "");
    if (!question && byId("answer").textContent !== overviewText()) {
      byId("answer").ariaLive = live;
      byId("answer").textContent = overviewText();
    }
    if (!answer || layer) draw();
    refreshDetail();
  } catch (error) {
    if (number !== surveyed) return true;
    if (!overview) byId("answer").textContent = messageOf(error);
    if (passes(error)) return false;
    if (!(error instanceof Problem) || error.field !== "rack") return true;
    if (asks) complainOf(error);
    else if (byId("rack-key-error").textContent !== error.message) {
      complain(inputById("rack-key"), byId("rack-key-error"), error.message);
    }
  }
  return true;
}

/** Draw what is shown by the layer that is wanted, as far as there is something of either. */
function draw() {
  const drawn = layerOf(answer, overview, layer);
  for (const id of ["racks", "layers", "map-frame", "tree-frame"]) byId(id).hidden = !drawn;
  byId("back").hidden = !question;
  noticeChange();
  if (!drawn) return;
  const { cluster } = drawn;
  form.supposed.rackKey = cluster.columns.rack_key;
  inputById("rack-key").placeholder = cluster.columns.rack_key;
  showLayers(layerNames(answer?.layer ?? null, overview), drawn.name);
  map.chosen = cluster.find(chosen);
  map.marked = whatIf.places(cluster);
  const isFirst = !map.layer;
  tree.marked = map.marked;
  tree.chosen = map.chosen;
  map.show(drawn);
  tree.show(drawn);
  drawn.showLegend(byId("legend"));
  showChosen();
  if (isFirst) performance.mark("map drawn");
}

/** Show which nodes are chosen to go. */
function showChosen() {
  const cluster = shown();
  const selection = cluster?.find(chosen);
  const button = document.querySelector("#goes");
  if (!cluster || !selection || !button) return;
  button.textContent = whatIf.has(cluster, selection) ? "Not to be drained" : "Choose to be drained";
}

/** An answer is of one moment: when the cluster has changed since, that is said, and can be mended. */
function noticeChange() {
  byId("changed").hidden = !answer || answer.generation === generation;
}

// What is chosen.

/**
 * @param {Selection} selection
 * @param {boolean} more it is chosen to go, too, or no more
 */
function choose(selection, more = false) {
  const cluster = shown();
  if (more && cluster) {
    whatIf.toggle(cluster, selection);
    return null;
  }
  chosen = shown()?.nameOf(selection) ?? null;
  map.choose(selection);
  tree.choose(selection);
  remember();
  return detail();
}

/** What is told of a place of the cluster as it is follows it, unless somebody reads on there. */
function refreshDetail() {
  const body = byId("detail-body");
  if (answer || body.querySelector("details[open]")) return;
  const { activeElement } = document;
  const focused = body.contains(activeElement) ? activeElement?.localName : "";
  detail();
  for (const each of body.querySelectorAll("button, summary")) {
    if (each instanceof HTMLElement && each.localName === focused) each.focus({ preventScroll: true });
  }
}

async function detail() {
  looked += 1;
  const number = looked;
  const body = byId("detail-body");
  const cluster = shown();
  const selection = cluster?.find(chosen);
  const isFocused = byId("details").contains(document.activeElement); // before it is hidden
  byId("details").hidden = !selection;
  if (!cluster || !selection) {
    if (isFocused) byId("domains-heading").focus({ preventScroll: true });
    body.replaceChildren();
    return;
  }
  const { node } = selection;
  const name = node === undefined ? "" : cluster.columns.names[node];
  const pods = name ? [...waitsDetail(waitsOn(name)), podsOfNode(() => podsOf(name), suppose)] : [];
  const of = cluster.nameOf(selection); // places are of this cluster alone
  const toggle = () => {
    const found = shown()?.find(of);
    if (found) choose(found, true);
  };
  const goes = element("button", { type: "button", id: "goes", class: "small", on: { click: toggle } });
  try {
    const [heading, ...told] = answer ? await answer.detail(selection) : placeDetail(cluster, selection, overview);
    if (number !== looked) return;
    body.replaceChildren(...[heading, goes, ...told, ...pods].filter((each) => each !== null && each !== undefined));
    showChosen();
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

const SEEN = "seen"; // the state of each address that was shown: others are links that somebody opens

/** @param {"push" | "replace"} how */
function remember(how = "push") {
  const fragment = fragmentOf({ ...(question ?? NOTHING), chosen, layer, rackKey, lost });
  if (location.hash.replace(/^#/, "") === fragment) return;
  const address = fragment ? `#${fragment}` : location.pathname + location.search;
  if (how === "push") history.pushState(SEEN, "", address);
  else history.replaceState(SEEN, "", address);
}

/**
 * Show what the address says.
 * @param {boolean} isLink whether a question is to be asked, however long that takes
 */
function restore(isLink) {
  history.replaceState(SEEN, "");
  const wanted = shownBy(location.hash);
  ({ chosen, layer, lost } = wanted);
  const other = rackKey !== wanted.rackKey;
  ({ rackKey } = wanted);
  inputById("rack-key").value = rackKey;
  byIdAs("advanced", HTMLDetailsElement).open ||= Boolean(rackKey);
  form.asked = wanted;
  whatIf.restore(wanted);
  if (wanted.ask && !isLink) {
    showAgain(wanted);
    return;
  }
  if (wanted.ask || wanted.pod || wanted.manifest) {
    ask(wanted, "replace");
    return;
  }
  running.end();
  question = null;
  withdraw("");
  if (other) refresh(true);
}

// What is there to be clicked.

byId("back").addEventListener("click", () => {
  history.pushState(SEEN, "", location.pathname + location.search);
  restore(false);
  byId("cluster-heading").focus();
});

// Its address would be taken for one that asks nothing.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  byId("domains-heading").focus();
});

byId("changed-again").addEventListener("click", again);

byIdAs("layer", HTMLSelectElement).addEventListener("change", (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  layer = value === usualLayer(answer?.layer ?? null) ? "" : value;
  remember();
  draw();
});

byId("racks").addEventListener("submit", (event) => {
  event.preventDefault();
  rackKey = inputById("rack-key").value.trim();
  if (question) {
    again();
    return;
  }
  remember();
  refresh(true);
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
    const { activeElement } = document;
    await choose({ node });
    if (document.activeElement === activeElement) byId("details-heading").focus();
  } else if (name && !elsewhere) askAbout(name);
}

complete(inputById("find"), ["node", "pod"]);
complete(inputById("pod-name"), ["pod"]);

// The service.

const beginCluster = paced(() => refresh());
const beginLists = [showPendingPods, showUnits].map(paced);

async function showPendingPods() {
  const isShown = await showPending(askAbout);
  refreshDetail();
  return isShown;
}

const isLost = () => byId("lost").textContent !== "";

/** @param {import("admin-port").FollowedState} state */
async function changed(state) {
  await released(); // the header moves all below it
  const wasLost = isLost();
  showLost("");
  showMirror(state);
  generation = state.generation;
  noticeChange();
  const isOther = wasLost || overview?.cluster.columns.generation !== generation;
  if (isOther) beginCluster();
  if (isOther || pendingChanges !== state.pending_changes) for (const begin of beginLists) begin();
  pendingChanges = state.pending_changes;
}

addEventListener("popstate", ({ state }) => restore(state !== SEEN));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw); // the legend has colours, too
restore(true);
const opened = Promise.all([showSamples(askWithManifest), beginCluster(), ...beginLists.map((begin) => begin())]);
opened.then(() => performance.mark("opened"));
follow({ changed, lost: (problem) => released().then(() => showLost(problem)) });
