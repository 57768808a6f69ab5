// The service as it is now: it sends its state when that changes (`GET /events`). While the page is hidden nobody listens.

import { NO_ANSWER, Problem, stream } from "./api.js";
import { messageOf } from "./elements.js";

/** @import { FollowedState } from "admin-port" */

const SOONEST = 500; // ms until the next attempt, twice as many after each that fails
const LATEST = 8_000;
const REST = 3_000; // ms between two looks at what may change all the time
const SHARE = 10; // times as long as the last look took: a page must not keep the service busy
const LONGEST_REST = 60_000; // ms; a look may have waited for a token or for a release
const LONGEST_SILENCE = 40_000; // ms; the service says something every 15 s
const LONGEST_PRESS = 10_000; // ms for which the page waits for a release

/**
 * @typedef {object} Listener
 * @property {(state: FollowedState) => void} changed
 * @property {(problem: string) => void} lost is called for each attempt that fails
 */

/**
 * Follow the service for as long as the page is shown.
 * @param {Listener} listener
 */
export function follow(listener) {
  /** @type {AbortController | null} */
  let following = null;
  const begin = () => {
    following?.abort();
    following = document.hidden ? null : new AbortController();
    if (following) keepOn(listener, following.signal);
  };
  document.addEventListener("visibilitychange", begin);
  begin();
}

/**
 * A look that can be begun at any time, and is taken as often as is fair. To begin one waits for its end, unless another
 * one is under way.
 * @param {() => Promise<unknown>} look false: it is to be taken again
 */
export function paced(look) {
  let [busy, wanted] = [false, false];
  const begin = async () => {
    wanted = busy;
    if (busy) return;
    busy = true;
    const began = performance.now();
    const isVain = (await look()) === false;
    const rest = Math.min(Math.max(REST, SHARE * (performance.now() - began)), LONGEST_REST);
    setTimeout(() => {
      busy = false;
      if (wanted || isVain) begin();
    }, rest);
  };
  return begin;
}

/** @param {number} pause in ms */
const sleep = (pause) => new Promise((done) => setTimeout(done, pause));

/**
 * @param {Listener} listener
 * @param {AbortSignal} over
 */
async function keepOn(listener, over) {
  let pause = SOONEST;
  while (!over.aborted) {
    let problem = NO_ANSWER;
    try {
      await listen(over, (state) => {
        pause = SOONEST;
        listener.changed(state);
      });
    } catch (error) {
      if (error instanceof Problem) problem = messageOf(error);
    }
    if (over.aborted) return;
    listener.lost(problem);
    await sleep(pause);
    pause = Math.min(2 * pause, LATEST);
  }
}

/**
 * Hand on what comes, until the stream ends, or says nothing for too long.
 * @param {AbortSignal} over
 * @param {(state: FollowedState) => void} changed
 */
async function listen(over, changed) {
  const silent = new AbortController();
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), LONGEST_SILENCE);
  };
  try {
    // Not before there is an answer: somebody may have to enter a token first.
    const reader = (await stream("events", AbortSignal.any([over, silent.signal]))).getReader();
    wait();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      wait();
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) if (event.startsWith("data: ")) changed(JSON.parse(event.slice(6)));
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @type {Promise<unknown>} */
let pressed = Promise.resolve();

/** @param {...string} ends of the press, of which none may come: a menu of the system takes the release */
function press(...ends) {
  const over = AbortSignal.timeout(LONGEST_PRESS);
  const ended = new Promise((done) => {
    // Its click comes within the same task.
    for (const end of ends) addEventListener(end, () => setTimeout(done), { once: true, signal: over });
    over.addEventListener("abort", done);
  });
  pressed = pressed.then(() => ended); // and whatever else is pressed: what waits goes on in its order
}

addEventListener("pointerdown", ({ button }) => !button && press("pointerup", "pointercancel"), true);
addEventListener("keydown", ({ key, repeat }) => key === " " && !repeat && press("keyup"), true);

/** Wait until no button is pressed: what is replaced, or moves, between its press and its release gets no click. */
export const released = () => pressed;
