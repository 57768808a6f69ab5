// Manifests that somebody wrote: JSON, or YAML, which the service reads for us.

import { Problem, post } from "./api.js";
import { messageOf } from "./elements.js";

/**
 * @typedef {HTMLInputElement | HTMLTextAreaElement} Field
 */

/**
 * An object of JSON that somebody wrote.
 * @typedef {Record<string, unknown>} Written
 */

/** A mistake that needs no server to be found; `input` is where. */
export class Mistake extends Error {
  /**
   * @param {Field} input
   * @param {string} message
   */
  constructor(input, message) {
    super(message);
    this.input = input;
  }
}

/**
 * The object of a text. Throws a Mistake or a Problem.
 * @param {Field} input
 * @returns {Promise<Written>}
 */
export async function parsed(input) {
  const text = input.value.trim();
  if (text[0] !== "{") {
    try {
      return await post("explain/manifest", text);
    } catch (error) {
      const refused = error instanceof Problem && error.status >= 400 && error.status < 500;
      throw refused ? new Mistake(input, error.message) : error;
    }
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Mistake(input, `No JSON: ${messageOf(error)}`);
  }
}
