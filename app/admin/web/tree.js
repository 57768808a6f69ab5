// The same cluster as a treegrid: zones, racks and nodes, for the keyboard and for screen readers.

import { domainName } from "./cluster.js";
import { around, element } from "./elements.js";

/** @import { Cluster, Domain, Selection } from "./cluster.js" */

/**
 * What a row stands for: a domain, a node, or the nodes that are not shown yet.
 * @typedef {{ key: string, domain: Domain, node?: undefined, more?: undefined }} DomainRow
 * @typedef {{ key: string, node: number, domain?: undefined, more?: undefined }} NodeRow
 * @typedef {{ key: string, more: Domain, left: number, node?: undefined, domain?: undefined }} MoreRow
 * @typedef {(DomainRow | NodeRow | MoreRow) & { level: number, place: number, of: number }} Row
 * @typedef {(level: number, place: number, of: number, made: DomainRow | NodeRow | MoreRow) => void} AddRow
 */

const SHOWN_AT_ONCE = 100;

export class Tree {
  /**
   * @param {HTMLElement} frame
   * @param {import("./map.js").Choose} choose
   */
  constructor(frame, choose) {
    this.frame = frame;
    this.choosing = choose;
    this.body = element("tbody");
    this.head = element("thead");
    /** @type {Cluster | null} */
    this.cluster = null;
    /** @type {import("./layers.js").Layer | null} */
    this.layer = null;
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Map<string, number>} */
    this.shown = new Map(); // domain id -> how many of its nodes
    /** @type {Row[]} */
    this.rows = [];
    /** @type {string | undefined} */
    this.current = undefined;
    /** @type {Set<number>} */
    this.marked = new Set();
    /** @type {Selection | null} */
    this.chosen = null;
    const grid = element(
      "table",
      { role: "treegrid", class: "tree", "aria-labelledby": "domains-heading" },
      this.head,
      this.body,
    );
    frame.append(grid);
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => this.#click(event));
  }

  /** @param {import("./layers.js").Layer} layer */
  show(layer) {
    const { cluster } = layer;
    this.cluster = cluster;
    this.layer = layer;
    const heads = ["Domain or node", ...layer.heads].map((text) => element("th", { scope: "col", text }));
    heads.push(element("th", { scope: "col" }, element("span", { class: "words", text: layer.words })));
    this.head.replaceChildren(element("tr", {}, ...heads));
    for (const id of [...this.open]) if (!cluster.domains.has(id)) this.open.delete(id);
    this.#render();
  }

  /** @param {Selection | null} selection */
  choose(selection) {
    this.chosen = selection;
    if (selection?.node !== undefined) this.#reveal(selection.node);
    this.current = this.#keyOf(selection) ?? this.current;
    this.#render();
    this.#scrollTo(this.body.querySelector("tr[aria-selected=true]"));
  }

  /**
   * Scroll the list alone: the page would jump away from the map.
   * @param {HTMLElement | null} line
   */
  #scrollTo(line) {
    if (!line) return;
    const { scrollTop, clientHeight } = this.frame;
    const head = this.head.offsetHeight;
    const [top, bottom] = [line.offsetTop - head, line.offsetTop + line.offsetHeight];
    if (top >= scrollTop && bottom <= scrollTop + clientHeight) return;
    const wanted = top < scrollTop ? top - line.offsetHeight : bottom - clientHeight / 2;
    // A whole line comes first, and no half of one under the head.
    const first = [...this.body.rows].find((row) => row.offsetTop - head >= wanted) ?? line;
    this.frame.scrollTop = first.offsetTop - head;
  }

  /** @param {number} node */
  #reveal(node) {
    if (!this.cluster) return;
    const ids = this.cluster.domainsOf(node);
    for (const id of ids) this.open.add(id);
    const domain = this.cluster.domain(ids[1]);
    const needed = domain.nodes.indexOf(node) + 1;
    if (needed > (this.shown.get(domain.id) ?? SHOWN_AT_ONCE)) this.shown.set(domain.id, needed);
  }

  #rows() {
    /** @type {Row[]} */
    const rows = [];
    /** @type {AddRow} */
    const add = (level, place, of, made) => {
      rows.push({ ...made, level, place, of });
    };
    this.cluster?.zones.forEach((zone, place, all) => {
      add(1, place + 1, all.length, { key: zone.id, domain: zone });
      if (!this.open.has(zone.id)) return;
      if (!zone.divided) this.#addNodes(add, 2, zone.racks[0]);
      else {
        zone.racks.forEach((rack, at) => {
          add(2, at + 1, zone.racks.length, { key: rack.id, domain: rack });
          if (this.open.has(rack.id)) this.#addNodes(add, 3, rack);
        });
      }
    });
    return rows;
  }

  /**
   * @param {AddRow} add
   * @param {number} level
   * @param {Domain} domain
   */
  #addNodes(add, level, domain) {
    const shown = this.shown.get(domain.id) ?? SHOWN_AT_ONCE;
    const { nodes } = domain;
    for (const [at, node] of nodes.slice(0, shown).entries()) {
      add(level, at + 1, nodes.length, { key: this.#keyOf({ node }) ?? "", node });
    }
    if (nodes.length > shown) {
      add(level, shown + 1, nodes.length, { key: `more:${domain.id}`, more: domain, left: nodes.length - shown });
    }
  }

  #render() {
    const focused = this.body.contains(document.activeElement);
    const at = Math.max(
      this.rows.findIndex((row) => row.key === this.current),
      0,
    );
    this.rows = this.#rows();
    if (!this.rows.some((row) => row.key === this.current)) this.current = (this.rows[at] ?? this.rows.at(-1))?.key;
    this.body.replaceChildren(...this.rows.map((row) => this.#row(row)));
    // Not into view: somebody may look at others meanwhile.
    if (focused) [...this.body.rows].find((line) => line.tabIndex === 0)?.focus({ preventScroll: true });
  }

  /** @param {Row} row */
  #row(row) {
    const opened = row.domain && this.open.has(row.domain.id);
    const given = {
      role: "row",
      "aria-level": row.level,
      "aria-posinset": row.place,
      "aria-setsize": row.of,
      "aria-selected": String(this.#keyOf(this.chosen) === row.key),
      tabindex: row.key === this.current ? 0 : -1,
      data: { key: row.key },
      "aria-expanded": opened === undefined ? undefined : String(opened),
    };
    /** @param {number} place */
    const kind = (place) => (place ? "short" : `level-${row.level}`);
    const cells = this.#cells(row).map((text, place) => element("td", { role: "gridcell", class: kind(place), text }));
    cells.push(element("td", { role: "gridcell" }, ...this.#words(row)));
    if (row.domain) {
      cells[0].prepend(element("span", { class: "twist", "aria-hidden": "true", text: opened ? "▾" : "▸" }));
    }
    return element("tr", given, ...cells);
  }

  /**
   * @param {Row} row
   * @returns {(string | number)[]}
   */
  #cells(row) {
    const { cluster, layer } = this;
    if (!cluster || !layer) return [];
    if (row.more) return [`${row.left} more…`, ...layer.heads.map(() => "")];
    const selection = selectionOf(row);
    const of = row.domain ? domainName(row.domain) : cluster.columns.names[row.node];
    const name = this.#isMarked(row) ? `${of}, chosen` : of;
    return [name, ...layer.cellsOf(selection)];
  }

  /** @param {DomainRow | NodeRow} row */
  #isMarked(row) {
    return (row.domain?.nodes ?? [row.node]).every((node) => node !== undefined && this.marked.has(node));
  }

  /** @param {Row} row */
  #words(row) {
    return this.layer && !row.more ? this.layer.wordsOf(selectionOf(row)) : [];
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const line = around(event, "tr");
    const row = this.rows.find((each) => each.key === line?.dataset.key);
    if (!row) return;
    this.current = row.key;
    if (row.domain && around(event, ".twist")) this.#toggle(row, !this.open.has(row.domain.id));
    else this.#take(row, event.shiftKey);
    this.#focus(this.current);
  }

  /**
   * @param {Row} row
   * @param {boolean} more
   */
  #take(row, more) {
    if (row.more) {
      const shown = row.more.nodes.length - row.left;
      this.shown.set(row.more.id, shown + SHOWN_AT_ONCE);
      this.current = this.#keyOf({ node: row.more.nodes[shown] }) ?? this.current; // the first that was not there
      this.#render();
    } else if (row.domain) {
      if (!more) this.open.add(row.domain.id);
      this.choosing({ domain: row.domain.id }, more);
    } else this.choosing({ node: row.node }, more);
  }

  /**
   * @param {DomainRow} row
   * @param {boolean} open
   */
  #toggle(row, open) {
    if (open) this.open.add(row.domain.id);
    else this.open.delete(row.domain.id);
    this.#render();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = this.rows.findIndex((row) => row.key === this.current);
    const row = this.rows[at];
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return; // of the browser, such as to go back
    const parent = () => this.rows.slice(0, at).findLastIndex((each) => each.level < row.level);
    const opened = row.domain && this.open.has(row.domain.id);
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: this.rows.length - 1,
      PageDown: at + 10,
      PageUp: at - 10,
    };
    if (event.key in moves) this.#move(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#take(row, event.shiftKey);
    else if (event.key === "ArrowRight") {
      if (row.domain && !opened) this.#toggle(row, true);
      else if (opened) this.#move(at + 1);
    } else if (event.key === "ArrowLeft") {
      if (row.domain && opened) this.#toggle(row, false);
      else if (row.level > 1) this.#move(parent());
    } else return;
    event.preventDefault();
  }

  /** @param {number} to */
  #move(to) {
    this.current = this.rows[Math.min(Math.max(to, 0), this.rows.length - 1)].key;
    this.#focus(this.current);
  }

  /**
   * The row of what is chosen: by its name, because places are of one cluster alone.
   * @param {Selection | null} selection
   */
  #keyOf(selection) {
    if (!selection) return undefined;
    const { node, domain } = selection;
    return node === undefined ? domain : `node:${this.cluster?.columns.names[node]}`;
  }

  /** @param {string} key */
  #focus(key) {
    for (const line of this.body.rows) {
      line.tabIndex = line.dataset.key === key ? 0 : -1;
      if (line.dataset.key === key) {
        line.focus({ preventScroll: true });
        this.#scrollTo(line);
      }
    }
  }
}

/**
 * @param {DomainRow | NodeRow} row
 * @returns {Selection}
 */
const selectionOf = (row) => (row.domain ? { domain: row.domain.id } : { node: row.node });
