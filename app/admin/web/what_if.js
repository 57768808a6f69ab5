// The forms of questions about many pods: which nodes go, what is lost, how many more of a pod fit.

import { Problem, post } from "./api.js";
import { byId, byIdAs, complain, inputById, messageOf, takeBack } from "./elements.js";
import { capacityOutcome, drainOutcome, lossOutcome, removalOutcome } from "./outcomes.js";
import { Mistake } from "./suppositions.js";

/** @import { Ask, Asked } from "./address.js" */
/** @import { Cluster, Domain, Selection } from "./cluster.js" */
/** @import { Outcome } from "./outcomes.js" */

/** @typedef {(lost: string, choose: (value: string) => void) => Outcome} Render what an answer says, with a loss that is drawn */

/** @type {Record<string, string>} */
const FIELDS = { nodes: "drain-nodes", selector: "drain-labels", by: "loss-by", replicas: "replicas" };

/** Labels with values, as kubectl takes them. */
const SELECTOR = /^[\w./-]+=[\w.-]+(,[\w./-]+=[\w.-]+)*$/;

export class WhatIf {
  /**
   * @param {(ask: Ask) => void} ask
   * @param {() => void} changed is called when other nodes are chosen
   */
  constructor(ask, changed) {
    this.card = byIdAs("what-if", HTMLDetailsElement);
    this.nodes = byIdAs("drain-nodes", HTMLTextAreaElement);
    this.orders = byIdAs("orders", HTMLSelectElement);
    this.changed = changed;
    for (const kind of /** @type {Ask[]} */ (["drain", "loss", "capacity"])) {
      byId(kind).addEventListener("submit", (event) => {
        event.preventDefault();
        ask(kind);
      });
    }
    byId("removal").addEventListener("click", () => ask("removal"));
    this.nodes.addEventListener("input", changed);
  }

  /**
   * What the forms have for a question.
   * @param {Ask} ask
   * @returns {Omit<Asked, "pod" | "manifest" | "supposed" | "scoreAll">}
   */
  asked(ask) {
    const goes = ask === "drain" || ask === "removal";
    const text = (/** @type {string} */ id) => inputById(id).value.trim();
    return {
      ask,
      nodes: goes ? this.#words.join(" ") : "",
      labels: goes ? text("drain-labels") : "",
      by: ask === "loss" ? text("loss-by") : "",
      replicas: ask === "capacity" ? text("replicas") : "",
      orders: this.orders.value,
    };
  }

  /** @param {Asked} asked */
  restore({ ask, nodes, labels, by, replicas, orders }) {
    takeBack(this.card);
    this.orders.value = orders;
    this.nodes.value = nodes;
    this.card.open ||= ask !== "";
    for (const [id, text] of [
      ["drain-labels", labels],
      ["loss-by", by],
      ["replicas", replicas],
    ]) {
      inputById(id).value = text;
    }
  }

  /**
   * The nodes that are chosen by their names and domains, as places.
   * @param {Cluster} cluster
   */
  places(cluster) {
    const domains = domainsByWord(cluster);
    return new Set(this.#words.flatMap((word) => placesOf(cluster, domains, word) ?? []));
  }

  /**
   * Choose a node or a domain of the map, or take it back if it is chosen already.
   * @param {Cluster} cluster
   * @param {Selection} selection
   */
  toggle(cluster, selection) {
    const word = wordOf(cluster, selection);
    const others = this.#words.filter((each) => each !== word);
    this.nodes.value = [...others, ...(others.length === this.#words.length ? [word] : [])].join(" ");
    complain(this.nodes, byId("drain-nodes-error"), "");
    this.card.open = true;
    this.changed();
  }

  /**
   * @param {Cluster} cluster
   * @param {Selection} selection
   */
  has(cluster, selection) {
    return this.#words.includes(wordOf(cluster, selection));
  }

  /**
   * Ask the service. Throws a Mistake or a Problem.
   * @param {Asked} asked
   * @param {Cluster} cluster
   * @param {() => Promise<unknown>} pod of the card "Question"
   * @param {string} key of the question
   * @param {AbortSignal} signal
   * @returns {Promise<Render>}
   */
  async answer(asked, cluster, pod, key, signal) {
    const text = (/** @type {object} */ members) =>
      JSON.stringify({ ...members, orders: Number(asked.orders) || undefined });
    if (asked.ask === "capacity") {
      const members = { ...membersOf(await pod()), ...replicasOf(asked.replicas) };
      const told = await post(`what-if/capacity?key=${key}`, text(members), signal);
      return () => capacityOutcome(told, asked.supposed.length > 0);
    }
    if (asked.ask === "loss") {
      const told = await post(`what-if/loss?key=${key}`, text({ by: asked.by || "zone" }), signal);
      return (lost, choose) => lossOutcome(cluster, told, lost, choose);
    }
    const members = this.#chosen(cluster, asked);
    if (asked.ask === "removal") {
      const told = await post(`what-if/removal?key=${key}`, text(members), signal);
      return () => removalOutcome(cluster, told);
    }
    if (!asked.nodes && !asked.labels) throw new Mistake(this.nodes, "Choose nodes on the map, or say which.");
    const told = await post(`what-if/drain?key=${key}`, text(members), signal);
    return () => drainOutcome(cluster, told);
  }

  /**
   * Say what is wrong, where it is wrong.
   * @param {unknown} error
   */
  complain(error) {
    const id =
      error instanceof Mistake
        ? error.input.id
        : error instanceof Problem
          ? FIELDS[error.field.replace(/\W.*/, "")]
          : "";
    if (!id) {
      byId("what-if-error").textContent = messageOf(error);
      return;
    }
    complain(byId(id), byId(`${id}-error`), messageOf(error));
    byId(id).focus();
  }

  get #words() {
    return wordsOf(this.nodes.value);
  }

  /**
   * The chosen nodes as the service takes them. A zone or rack alone is a selector, which the command then has, too.
   * Throws a Mistake.
   * @param {Cluster} cluster
   * @param {Asked} asked
   */
  #chosen(cluster, { nodes, labels }) {
    const [word = "", ...others] = wordsOf(nodes);
    const alone = !labels && !others.length && SELECTOR.test(word) && domainsByWord(cluster).has(word);
    return alone ? { selector: word } : { nodes: this.#names(cluster, nodes), selector: labels };
  }

  /**
   * The names of the nodes that a text chooses. Throws a Mistake.
   * @param {Cluster} cluster
   * @param {string} text
   */
  #names(cluster, text) {
    const domains = domainsByWord(cluster);
    const places = wordsOf(text).flatMap((word) => {
      const found = placesOf(cluster, domains, word);
      if (!found) throw new Mistake(this.nodes, `${word}: neither a node, nor a zone or rack of the map`);
      return found;
    });
    return [...new Set(places)].map((place) => cluster.columns.names[place]);
  }
}

/** @param {string} text */
const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

/**
 * A number of replicas, or as many as fit. Throws a Mistake.
 * @param {string} text
 */
function replicasOf(text) {
  if (!text) return {};
  if (!/^[1-9]\d*$/.test(text)) throw new Mistake(inputById("replicas"), "Give a number, or leave it empty.");
  return { replicas: Number(text) };
}

/**
 * A pod as the service takes it, by name or as a manifest.
 * @param {unknown} pod
 */
const membersOf = (pod) => (typeof pod === "string" ? { of: [pod] } : { manifests: [pod] });

/**
 * A domain as a label selector.
 * @param {Domain} domain
 */
const labelOf = ({ key, value }) => (value ? `${key}=${value}` : `!${key}`);

/**
 * The zones and racks of the map, by the words that stand for them.
 * @param {Cluster} cluster
 * @returns {Map<string, Domain>}
 */
function domainsByWord({ zones }) {
  return new Map(
    zones.flatMap((zone) => [
      [labelOf(zone), zone],
      ...(zone.divided
        ? zone.racks.map((rack) => /** @type {[string, Domain]} */ ([`${labelOf(zone)},${labelOf(rack)}`, rack]))
        : []),
    ]),
  );
}

/**
 * @param {Cluster} cluster
 * @param {Map<string, Domain>} domains
 * @param {string} word
 */
function placesOf(cluster, domains, word) {
  const place = cluster.places.get(word.replace(/^node\//, ""));
  return place === undefined ? domains.get(word)?.nodes : [place];
}

/**
 * @param {Cluster} cluster
 * @param {Selection} selection
 */
function wordOf(cluster, { node, domain }) {
  if (node !== undefined) return cluster.columns.names[node];
  for (const [word, { id }] of domainsByWord(cluster)) if (id === domain) return word;
  return labelOf(cluster.domain(domain));
}
