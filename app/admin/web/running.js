// The question that is waited for: for how long, and how it ends before there is an answer.

import { duration } from "./amounts.js";
import { byId } from "./elements.js";

const PATIENCE = 1; // s until it is said that an answer is on its way
const TICK = 250; // ms

export class Running {
  /** @param {() => void} cancelled is called when somebody does not want the answer any more */
  constructor(cancelled) {
    this.over = new AbortController();
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
    const began = performance.now();
    const timer = setInterval(() => {
      const seconds = (performance.now() - began) / 1000;
      if (seconds < PATIENCE) return;
      byId("running-time").textContent = duration(seconds);
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
