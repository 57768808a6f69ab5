// The layers of the map: which there are, and the one that is drawn.

import { UseLayer } from "./use_layer.js";
import { VERDICT, VerdictLayer } from "./verdict_layer.js";

/** @import { Cluster, JudgedCluster } from "./cluster.js" */
/** @import { Layer } from "./verdict_layer.js" */
/**
 * The cluster as it is.
 * @typedef {{ cluster: Cluster, use: import("./use_layer.js").Use }} Overview
 */

const USUAL_RESOURCE = "cpu";

/**
 * The layer that is drawn while nobody wants another.
 * @param {boolean} answered
 */
export const usualLayer = (answered) => (answered ? VERDICT : USUAL_RESOURCE);

/**
 * The names of all layers.
 * @param {JudgedCluster | null} judged
 * @param {Overview | null} overview
 */
export function layerNames(judged, overview) {
  const resources = (overview?.use.view.resources ?? []).map((each) => each.resource);
  return [...(judged ? [VERDICT] : []), ...resources];
}

/**
 * A layer as people choose it.
 * @param {string} name
 */
export const layerText = (name) => (name === VERDICT ? "verdict and score" : name);

/**
 * The layer that is wanted, or else the usual one; null while there is nothing to draw.
 * @param {JudgedCluster | null} judged the answer, if there is one
 * @param {Overview | null} overview
 * @param {string} wanted empty: the usual one
 * @returns {Layer | null}
 */
export function layerOf(judged, overview, wanted) {
  const cluster = judged ?? overview?.cluster;
  if (!cluster) return null;
  const usual = usualLayer(judged !== null);
  const resource = overview?.use.of(wanted || usual) ?? (judged ? undefined : overview?.use.of(usual));
  if (overview && resource) return new UseLayer(cluster, overview.use, resource);
  return judged && new VerdictLayer(judged);
}
