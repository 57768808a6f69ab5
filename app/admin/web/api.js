// The admin port's routes. A token is asked for, and kept for the tab, only where the server wants one.

import { byId, complain, inputById } from "./elements.js";

const KEPT_AS = "kindred-admin-token";
const CALLER_KEPT_AS = "kindred-caller-token";
const CALLER_HEADER = "Kindred-Caller-Token";
export const NO_ANSWER = "the service does not answer";
const LONGEST = 60_000; // ms for an answer: whoever looks again and again would wait for ever, and show the past

/** What the server says is wrong; `field` is where in the question. */
export class Problem extends Error {
  /**
   * @param {number} status 0 where there was no answer
   * @param {string} detail
   * @param {string} field
   */
  constructor(status, detail, field) {
    super(detail);
    this.status = status;
    this.field = field;
  }
}

/**
 * Whether a look that had this problem is to be taken again, because the problem is not with what was asked.
 * @param {unknown} error
 */
export const passes = (error) => !(error instanceof Problem) || error.status === 0 || error.status >= 500;

/**
 * @template {import("admin-port").GetPath} Path
 * @param {Path} path
 * @returns {Promise<import("admin-port").Answer<"get", Path>>}
 */
export const get = async (path) => (await exchanged(path, {}, "whole")).json();

/**
 * @template {import("admin-port").PostPath} Path
 * @param {Path} path
 * @param {string} text
 * @param {AbortSignal} [signal] that ends it
 * @returns {Promise<import("admin-port").Answer<"post", Path>>}
 */
export async function post(path, text, signal) {
  const sent = { method: "POST", body: text, headers: { "content-type": "application/json" }, signal };
  return (await exchanged(path, sent)).json();
}

/**
 * The answer of a path as its bytes come in, until `signal` ends it.
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {Promise<ReadableStream<Uint8Array>>}
 */
export async function stream(path, signal) {
  const { body } = await exchanged(path, { signal }, "head");
  if (!body) throw new Problem(0, NO_ANSWER, "");
  return body;
}

/**
 * A response with a status of success; its body is not read yet.
 * @param {string} path
 * @param {{ method?: string, body?: string, headers?: Record<string, string>, signal?: AbortSignal }} options
 * @param {"whole" | "head"} [limited] what of the answer has to come in time, without that to enter a token; else nothing
 * @returns {Promise<Response>}
 */
async function exchanged(path, options, limited) {
  for (;;) {
    const token = sessionStorage.getItem(KEPT_AS);
    const caller = sessionStorage.getItem(CALLER_KEPT_AS);
    const headers = {
      ...options.headers,
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(caller ? { [CALLER_HEADER]: caller } : {}),
    };
    const late = new AbortController();
    const timer = limited && setTimeout(() => late.abort(), LONGEST);
    const signal = AbortSignal.any([late.signal, ...(options.signal ? [options.signal] : [])]);
    let answer;
    try {
      answer = await fetch(path, { ...options, headers, signal, cache: "no-store", credentials: "same-origin" });
    } catch {
      throw new Problem(0, NO_ANSWER, "");
    } finally {
      if (limited === "head") clearTimeout(timer);
    }
    if (answer.status === 401) {
      // Another question may have got a better token meanwhile.
      if (sessionStorage.getItem(KEPT_AS) === token) {
        sessionStorage.removeItem(KEPT_AS);
        await entered(token ? "The service does not take this token." : "");
      }
      continue;
    }
    if (answer.ok) return answer;
    throw problem(answer.status, await answer.json().catch(() => null));
  }
}

/**
 * The problem of an answer: `detail` is a text of the service, or what FastAPI has to say of each parameter.
 * @param {number} status
 * @param {{ detail?: string | { msg: string, loc?: (string | number)[] }[], field?: string } | null} told
 */
function problem(status, told) {
  const detail = told?.detail;
  if (Array.isArray(detail)) {
    return new Problem(status, detail.map((each) => each.msg).join("; "), String(detail[0]?.loc?.[1] ?? ""));
  }
  return new Problem(status, detail ?? `the service answers with status ${status}`, told?.field ?? "");
}

/** @type {Promise<void> | null} */
let waiting = null;

/**
 * Wait until somebody has entered a token, however many questions wait for it.
 * @param {string} complaint
 */
function entered(complaint) {
  const form = byId("access");
  const input = inputById("token");
  // Of several questions that wait, one may have brought the wrong token, and the next asks without any.
  if (complaint || waiting === null) complain(input, byId("token-error"), complaint);
  waiting ??= new Promise((resolve) => {
    form.hidden = false;
    input.focus();
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        sessionStorage.setItem(KEPT_AS, input.value.trim());
        input.value = "";
        form.hidden = true;
        waiting = null;
        resolve();
      },
      { once: true },
    );
  });
  return waiting;
}

/**
 * Offer to enter the token that says who looks at the page, where the service hides names for want of one.
 * @param {string} why as the service says it
 */
export function offerCaller(why) {
  const form = byId("caller");
  if (!form.hidden || !why.includes(CALLER_HEADER)) return;
  const refused = sessionStorage.getItem(CALLER_KEPT_AS) !== null;
  if (refused) complain(inputById("caller-token"), byId("caller-error"), "The API server does not take this token.");
  form.hidden = false;
  form.addEventListener(
    "submit",
    (event) => {
      event.preventDefault();
      sessionStorage.setItem(CALLER_KEPT_AS, inputById("caller-token").value.trim());
      location.reload(); // all that is shown was shown to nobody
    },
    { once: true },
  );
}
