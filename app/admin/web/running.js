// The question that is waited for: for how long, how far it is, and how it ends before there is an answer.

import { duration } from "./amounts.js";
import { get } from "./api.js";
import { byId, byIdAs } from "./elements.js";
import { paced } from "./live.js";

const PATIENCE = 1; // s until it is said that an answer is on its way
const TICK = 250; // ms

export class Running {
  /** @param {() => void} cancelled is called when somebody does not want the answer any more */
  constructor(cancelled) {
    this.over = new AbortController();
    this.key = ""; // by which the service says how far the question is, and says it to nobody else
    this.share = byIdAs("running-share", HTMLProgressElement);
    byId("cancel").addEventListener("click", () => {
      this.end();
      cancelled();
    });
  }

  /**
   * Begin to wait for an answer, and for no other.
   * @param {string} text what the service does
   * @returns {AbortSignal} that this is over
   */
  begin(text) {
    this.end();
    this.over = new AbortController();
    const { signal } = this.over;
    byId("ask").setAttribute("aria-busy", "true");
    this.key = crypto.getRandomValues(new Uint32Array(4)).join("-");
    this.share.removeAttribute("value"); // not known
    const look = paced(async () => {
      const { done } = await get(`what-if/progress?key=${this.key}`).catch(() => ({ done: null }));
      if (done !== null && !signal.aborted) this.share.value = done;
    });
    const began = performance.now();
    const timer = setInterval(() => {
      const seconds = (performance.now() - began) / 1000;
      if (seconds < PATIENCE) return;
      byId("running-time").textContent = duration(seconds);
      look();
      if (!byId("running").hidden) return;
      byId("running").hidden = false;
      byId("running-what").textContent = text;
    }, TICK);
    signal.addEventListener("abort", () => clearInterval(timer));
    return signal;
  }

  /** Wait no more: the service ends the work for a caller that goes. */
  end() {
    this.over.abort();
    byId("running").hidden = true;
    byId("running-what").textContent = "";
    byId("ask").removeAttribute("aria-busy");
  }
}
