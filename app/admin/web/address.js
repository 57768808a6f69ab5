// What the page shows, as the fragment of its address: whoever opens a link sees the same, and going back is going back.

/** @import { Kind } from "./suppositions.js" */

/** @typedef {"capacity" | "drain" | "loss" | "removal"} Ask a question about many pods */
/**
 * A question. `ask` is empty for one about a pod with what is supposed: `pod` is a name, `manifest` a text, and one of
 * them is empty. Of the others, `capacity` has a pod, too, with a number of `replicas`; `nodes` and `labels` choose the
 * nodes that go, and `by` is what is lost. In how many `orders` pods arrive is empty for the service's own number.
 * @typedef {object} Asked
 * @property {Ask | ""} ask
 * @property {string} pod
 * @property {string} manifest
 * @property {[Kind, string[]][]} supposed a kind of supposition, with the texts of its fields
 * @property {boolean} scoreAll
 * @property {string} replicas
 * @property {string} nodes
 * @property {string} labels
 * @property {string} by
 * @property {string} orders
 */

/**
 * What is chosen by its names, which outlive an answer.
 * @typedef {{ node: string } | { zone: string, rack?: string }} Chosen
 */

/**
 * What is shown: `layer` is empty for the usual one, `rackKey` for the label that is guessed, `lost` for the worst loss.
 * @typedef {Asked & { chosen: Chosen | null, layer: string, rackKey: string, lost: string }} Shown
 */

/** @type {Asked} */
export const NOTHING = {
  ask: "",
  pod: "",
  manifest: "",
  supposed: [],
  scoreAll: false,
  replicas: "",
  nodes: "",
  labels: "",
  by: "",
  orders: "",
};
/** @type {Ask[]} */
const ASKS = ["capacity", "drain", "loss", "removal"];
/** @type {("replicas" | "nodes" | "labels" | "by" | "orders" | "lost")[]} */
const TEXTS = ["replicas", "nodes", "labels", "by", "orders", "lost"];
const ORDERS = ["1", "10"]; // as index.html has them

const LONGEST_MANIFEST = 60_000; // characters; some browsers take no address that is much longer
/** @type {Record<Kind, number>} */
const FIELDS = { assume: 2, remove: 1, add_nodes: 4 };

/**
 * Whether the manifest fits into an address.
 * @param {Asked} asked
 */
const fits = ({ manifest }) => manifest.length <= LONGEST_MANIFEST;

/**
 * What a link will not have of a question; empty if it has all.
 * @param {Asked | null} asked
 */
export const linkNote = (asked) =>
  !asked || fits(asked) ? "" : "The manifest is too long for the address, so a link does not have it.";

/**
 * The fragment of what is shown, without its `#`; a manifest that is too long is left out.
 * @param {Shown} shown
 */
export function fragmentOf(shown) {
  const { pod, supposed, scoreAll, chosen, layer, rackKey } = shown;
  const manifest = fits(shown) ? shown.manifest : "";
  /** @type {[string, string | undefined][]} */
  const all = [
    ["ask", shown.ask],
    ["pod", pod],
    ["manifest", manifest],
    // The fields of a supposition are read from the right: only the first, a manifest, can have an @ in it.
    ...supposed.map(([kind, texts]) => /** @type {[string, string]} */ ([kind, texts.join("@")])),
    ["score", scoreAll ? "all" : ""],
    ["layer", layer],
    ["racks", rackKey],
    ...TEXTS.map((key) => /** @type {[string, string]} */ ([key, shown[key]])),
  ];
  if (chosen && "node" in chosen) all.push(["node", chosen.node]);
  const given = all.filter((each) => each[1]).map(([key, value]) => [key, value ?? ""]);
  if (chosen && "zone" in chosen) {
    given.push(["zone", chosen.zone]); // empty: the nodes that are in none
    if (chosen.rack !== undefined) given.push(["rack", chosen.rack]);
  }
  // A slash and a colon mean nothing in a fragment, and names are easier to read with them.
  return new URLSearchParams(given).toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%40", "@");
}

/**
 * What a fragment stands for; whatever is not known of it is left out.
 * @param {string} fragment with or without its `#`
 * @returns {Shown}
 */
export function shownBy(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = (/** @type {string} */ key) => given.get(key) ?? "";
  /** @type {Shown["supposed"]} */
  const supposed = [];
  for (const [key, value] of given) {
    if (key === "assume" || key === "remove" || key === "add_nodes") supposed.push([key, fields(value, FIELDS[key])]);
  }
  return {
    ask: ASKS.find((each) => each === text("ask")) ?? "",
    pod: text("pod"),
    manifest: given.has("pod") ? "" : text("manifest"),
    supposed,
    scoreAll: text("score") === "all",
    layer: text("layer"),
    rackKey: text("racks"),
    replicas: text("replicas"),
    nodes: text("nodes"),
    labels: text("labels"),
    by: text("by"),
    orders: ORDERS.find((each) => each === text("orders")) ?? "",
    lost: text("lost"),
    chosen: chosenBy(given),
  };
}

/**
 * @param {URLSearchParams} given
 * @returns {Chosen | null}
 */
function chosenBy(given) {
  const [node, zone, rack] = [given.get("node"), given.get("zone"), given.get("rack")];
  if (node) return { node };
  return zone === null ? null : { zone, ...(rack === null ? {} : { rack }) };
}

/**
 * As many texts as there are fields; what is too much belongs to the first.
 * @param {string} value
 * @param {number} count
 */
function fields(value, count) {
  const parts = value.split("@");
  const surplus = Math.max(parts.length - count, 0);
  const texts = [parts.slice(0, surplus + 1).join("@"), ...parts.slice(surplus + 1)];
  return [...texts, ...new Array(count - texts.length).fill("")];
}
