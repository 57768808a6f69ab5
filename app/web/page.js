// Puts the parts of the page together: a question, its answer, and what is chosen of it.

import { get, post } from "./api.js";
import { Cluster } from "./cluster.js";
import { domainDetail, nodeDetail, podsOfNode } from "./details.js";
import { byId, complain, element } from "./elements.js";
import { showLegend } from "./legend.js";
import { ClusterMap } from "./map.js";
import { QuestionForm } from "./question.js";
import { showClasses, showMirror, showRecent } from "./service.js";
import { Tree } from "./tree.js";

const STATE_EVERY = 10_000; // ms
const PODS_SHOWN = 5;

const form = new QuestionForm(byId("question"), () => ask());
const map = new ClusterMap(byId("map"), { choose, place });
const tree = new Tree(byId("tree-scroll"), { choose, place });
let answer = null; // {text, cluster}
let selection = null;
let asked = 0; // an answer that another question has overtaken is not shown
let looked = 0;

async function ask() {
  const number = (asked += 1);
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
  const rack = byId("rack-key").value.trim();
  return new URLSearchParams({ ...(form.scoreAll ? { score: "all" } : {}), ...(rack ? { rack } : {}) });
}

function complainOf(error) {
  const input = byId("rack-key");
  if (error.field !== "rack") return form.complain(error);
  complain(input, byId("rack-key-error"), error.message);
  input.focus();
}

function show(text, cluster, told) {
  const chosen = selection && nameOf(selection);
  answer = { text, cluster };
  form.rackKey = cluster.columns.rack_key;
  for (const id of ["racks", "map-frame", "tree-frame"]) byId(id).hidden = false;
  byId("rack-key").placeholder = cluster.columns.rack_key;
  byId("answer").replaceChildren(...headline(`${told.summary.pod}: ${told.summary.message}`));
  byId("supposition").textContent = supposition(told.supposed);
  showMirror(told.mirror);
  showLegend(byId("legend"), cluster);
  selection = chosen ? found(chosen) : null;
  tree.chosen = selection;
  map.chosen = selection;
  map.show(cluster);
  tree.show(cluster);
  if (selection) choose(selection);
  else byId("detail-body").replaceChildren(element("p", { class: "hint", text: "Choose a domain or a node for the counts, and for the pods behind them." }));
}

/** What matters, and then the reasons, of which there may be many. */
function headline(text) {
  const [, matters, reasons] = /^(.*? available)(.*)$/s.exec(text) ?? [text, text, ""];
  return [element("strong", { text: matters }), element("span", { class: "reasons", text: reasons })];
}

function supposition({ added_nodes: nodes, removed, assumed }) {
  const parts = [
    nodes.length ? `more nodes: ${nodes.join(", ")}` : "",
    removed.length ? `gone: ${removed.join(", ")}` : "",
    assumed.length ? `placed: ${assumed.join(", ")}` : "",
  ].filter(Boolean);
  return parts.length ? `Supposed: ${parts.join("; ")}.` : "";
}

// Places of nodes and domains are of one answer; names are of all.
function nameOf({ node, domain }) {
  const { cluster } = answer;
  if (node !== undefined) return { node: cluster.columns.names[node] };
  const zone = cluster.zones.find((each) => each.id === domain || each.racks.some((rack) => rack.id === domain));
  return { zone: zone.value, rack: zone.racks.find((rack) => rack.id === domain)?.value };
}

function found({ node, zone, rack }) {
  const { cluster } = answer;
  if (node !== undefined) return cluster.places.has(node) ? { node: cluster.places.get(node) } : null;
  const within = cluster.zones.find((each) => each.value === zone);
  const domain = rack === undefined ? within : within?.racks.find((each) => each.value === rack);
  return domain ? { domain: domain.id } : null;
}

async function choose(chosen) {
  selection = chosen;
  map.choose(chosen);
  tree.choose(chosen);
  const number = (looked += 1);
  const body = byId("detail-body");
  const { cluster, text } = answer;
  const domain = chosen.domain === undefined ? null : cluster.domains.get(chosen.domain);
  const name = cluster.columns.names[domain ? domain.nodes[0] : chosen.node];
  try {
    const told = (await explained(name, text)).nodes[0];
    if (number !== looked) return;
    const pods = podsOfNode(() => podsOf(name), suppose);
    body.replaceChildren(...(domain ? domainDetail(cluster, domain, told, suppose) : nodeDetail(cluster, told, suppose, pods)));
  } catch (error) {
    if (number === looked) body.replaceChildren(element("p", { class: "error", role: "alert", text: error.message }));
  }
}

function explained(node, text) {
  const score = form.scoreAll ? "&score=all" : "";
  return post(`explain?limit=${PODS_SHOWN}&node=${encodeURIComponent(node)}${score}`, text);
}

async function podsOf(node) {
  const { nodes } = await get(`debug/mirror?node=${encodeURIComponent(node)}`);
  return nodes.flatMap((each) => each.pods);
}

function suppose(kind, pod) {
  form.suppose(kind, pod);
  if (kind === "remove") ask();
}

function place(pod, onto) {
  form.place(pod, onto);
  ask();
}

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
  const [input, slot] = [byId("show-node"), byId("show-node-error")];
  complain(input, slot, "");
  const name = input.value.trim();
  const node = answer.cluster.places.get(name);
  if (node !== undefined) {
    await choose({ node });
    byId("details-heading").focus();
    return;
  }
  // The service says best what is wrong with it.
  const error = await explained(name, answer.text).then(() => null, (problem) => problem);
  complain(input, slot, error?.message ?? "not among those that are asked about");
});

async function look() {
  try {
    const state = await get("explain/state");
    showMirror(state.mirror);
    showRecent(state.recent_pods, askAbout);
    await showClasses(askAbout);
  } catch (error) {
    byId("mirror").textContent = error.message;
  }
}

setInterval(() => document.hidden || byId("classes").contains(document.activeElement) || byId("lately").contains(document.activeElement) || look(), STATE_EVERY);
look();
