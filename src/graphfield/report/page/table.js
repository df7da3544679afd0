// The table of edges: sorted, searched, saved as CSV.

const ROWS_AT_ONCE = 50;

const known = (value) => (Number.isNaN(value) ? 2 : value); // what cannot be told comes last

// A long name is broken behind a mark between its words rather than within one.
const breakable = (name) => name.split(/(?<=[_.\-/:])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

class EdgeTable {
  constructor(page) {
    this.page = page;
    this.rows = ROWS_AT_ONCE;
    this.sort = { by: "size", down: true };
    byId("find").addEventListener("input", () => { this.rows = ROWS_AT_ONCE; this.draw(); });
    byId("only").addEventListener("change", () => { this.rows = ROWS_AT_ONCE; this.draw(); });
    byId("more").addEventListener("click", () => { this.rows += ROWS_AT_ONCE; this.draw(); });
    byId("csv").addEventListener("click", () => this.save());
  }

  // Of a graph that does not move there is nothing to say over rows; that a pair is an edge, where all are.
  // What tests find on average is the graph itself where it does not move; elsewhere it is in the file, and beside
  // the name of a pair that is drawn: the table is full.
  columns() {
    const left = new Set(["tested", ...(byId("only").checked ? ["edge"] : []), ...(this.page.moves ? ["interval"] : ["mean", "spread", "least", "most", "present"])]);
    return this.allColumns().filter((c) => !left.has(c.id));
  }

  allColumns() {
    const { page } = this, f = page.field, now = page.now, pairs = page.pairs;
    const found = [
      { id: "source", label: "Source", text: true, value: (i) => page.names[f.first[i]] },
      { id: "target", label: "Target", text: true, value: (i) => page.names[f.second[i]] },
      { id: "size", label: "Partial correlation", value: (i) => now.partial[i], order: (i) => Math.abs(now.partial[i]) },
      { id: "edge", label: "Edge", text: true, value: (i) => (page.isEdge(now, i) ? "yes" : "no") },
    ];
    if (page.pinned) found.push({ id: "change", label: "Now minus pinned", value: (i) => now.partial[i] - page.pinned.graph.partial[i], told: (v) => signed(v, 3), order: (i) => Math.abs(now.partial[i] - page.pinned.graph.partial[i]) });
    if (page.tests) found.push(
      { id: "q_value", label: "q: edge", title: "Test that the pair has an edge at any covariates: the share of false ones among pairs as clear as this", value: (i) => page.tests.q_value[i], order: (i) => known(page.tests.q_value[i]), told: rate, up: true },
      { id: "q_varies", label: "q: moves", title: "Test that the edge moves with the covariates: the share of those that do not among pairs as clear as this", value: (i) => page.tests.q_varies[i], order: (i) => known(page.tests.q_varies[i]), told: rate, up: true },
    );
    if (page.tests?.low.length) found.push(
      { id: "tested", value: (i) => page.tests.estimate[i] ?? NaN },
      { id: "interval", label: "90 % interval", text: true, whole: true, value: (i) => page.testedInterval(i) },
    );
    if (page.tests && Object.keys(page.tests.with_one).length) found.push(
      { id: "with_one", label: "q: moves with one", title: "Test that the edge moves with one covariate given the others, where that is at most 0.1", text: true, rates: true, value: (i) => page.withOne(i).map(([name, q]) => `${name} ${rate(q)}`).join(", "), order: (i) => Math.min(2, ...page.withOne(i).map(([, q]) => q)) },
    );
    found.push(
      { id: "mean", label: "Mean over rows", value: (i) => pairs.mean[i] },
      { id: "spread", label: "SD over rows", title: "Standard deviation of the partial correlation over the rows", value: (i) => pairs.spread[i], told: (v) => v.toFixed(3) },
      { id: "least", label: "Least", value: (i) => pairs.least[i] },
      { id: "most", label: "Most", value: (i) => pairs.most[i] },
      { id: "present", label: "Share of rows", title: "Share of the rows in which the pair is an edge", value: (i) => pairs.present[i], told: percent },
    );
    return found;
  }

  matching(columns) {
    const { page } = this, f = page.field, words = byId("find").value.trim().toLowerCase(), only = byId("only").checked;
    const hit = page.names.map((n) => n.toLowerCase().includes(words)), found = [];
    for (let i = 0; i < f.pairs; i++)
      if ((!only || page.isEdge(page.now, i)) && (!words || hit[f.first[i]] || hit[f.second[i]])) found.push(i);
    const column = columns.find((c) => c.id === this.sort.by) || columns[2], key = column.order || column.value;
    const keys = new Map(found.map((i) => [i, key(i)])), way = this.sort.down ? -1 : 1;
    return found.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      return way * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y) || a - b;
    });
  }

  draw() {
    const { page } = this, columns = this.columns(), found = this.matching(columns), shown = found.slice(0, this.rows);
    const head = el("tr", {}, ...(page.draws() ? [el("th", { scope: "col", class: "draw" }, "Curve")] : []));
    for (const c of columns) {
      const button = el("button", { type: "button", title: c.title }, c.label);
      button.addEventListener("click", () => {
        this.sort = { by: c.id, down: this.sort.by === c.id ? !this.sort.down : !c.text && !c.up };
        this.draw();
        byId("table").querySelector(`th[data-id="${c.id}"] button`).focus();
      });
      const sorted = this.sort.by === c.id ? (this.sort.down ? "descending" : "ascending") : "none";
      head.append(el("th", { scope: "col", "data-id": c.id, "aria-sort": sorted, class: c.text ? undefined : "number" }, button));
    }
    byId("table").tHead.replaceChildren(head);
    byId("table").tBodies[0].replaceChildren(...shown.map((i) => this.row(i, columns)));
    byId("more").hidden = found.length <= shown.length;
    byId("table-note").textContent = `${found.length.toLocaleString("en")} of ${page.field.pairs.toLocaleString("en")} pairs${found.length > shown.length ? `, the first ${shown.length} are shown` : ""}.${found.length || byId("find").value ? "" : " No pair is an edge here: lower the threshold, or look at all pairs."}`;
  }

  row(i, columns) {
    const { page } = this, on = page.chosen.includes(i);
    const button = el("button", { type: "button", "aria-pressed": String(on), "aria-label": `Curve of ${page.pairName(i)}` }, on ? "drawn" : "draw");
    button.addEventListener("click", () => page.toggle(i));
    const cells = columns.map((c) => {
      const value = c.value(i);
      if (c.rates) return el("td", { class: "rates" }, value.replace(/ (<|\d)/g, "\u00a0$1")); // no break within a rate
      if (c.whole) return el("td", { class: "whole" }, value);
      return el("td", { class: c.text ? undefined : "number" }, ...(c.text ? breakable(value) : [c.told ? c.told(value) : page.strength(i, value, 3)]));
    });
    return el("tr", {}, ...(page.draws() ? [el("td", { class: "draw" }, button)] : []), ...cells);
  }

  // Comma separated, with everything the table has; text that a spreadsheet would run as a formula is quoted away.
  csv() {
    const columns = this.allColumns(), quoted = (v) => `"${String(v).replace(/"/g, '""')}"`;
    const names = { source: "source", target: "target", size: "partial_correlation", edge: "present", q_value: "q_value", q_varies: "q_varies", tested: "tested_average", interval: "tested_interval", with_one: "moves_with", change: "now_minus_pinned", mean: "mean_over_rows", spread: "standard_deviation_over_rows", least: "least", most: "most", present: "share_of_rows" };
    const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text);
    const lines = [columns.map((c) => names[c.id]).join(",")];
    for (const i of this.matching(columns)) lines.push(columns.map((c) => (c.text ? quoted(safe(c.value(i))) : Number.isNaN(c.value(i)) ? "" : Number(c.value(i).toPrecision(7)))).join(","));
    return lines.join("\r\n") + "\r\n";
  }

  save() {
    const link = el("a", { href: URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" })), download: "edges.csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
