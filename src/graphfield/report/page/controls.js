// Sliders, drop-downs, threshold, pinning.

class Controls {
  constructor(page) {
    this.page = page;
    this.fields = {};
    const box = byId("covariates"), idle = page.data.covariates.filter((c) => c.idle).map((c) => c.name);
    page.data.covariates.forEach((c, i) => { const field = c.kind === "number" ? this.slider(c, i) : this.menu(c, i); if (!c.idle) box.append(field); });
    if (idle.length) box.append(el("p", { class: "small" }, `Without effect in this model: ${idle.join(", ")}.`));
    this.movement();
    byId("reset").addEventListener("click", () => { for (const c of page.data.covariates) this.put(c.name, c.start); page.changed(); });
    byId("controls").addEventListener("submit", (e) => e.preventDefault());
    this.threshold();
    byId("weak").addEventListener("change", () => page.show());
    byId("order").addEventListener("change", () => page.show());
    if (page.groups) byId("order-label").querySelector("span").textContent = "Nodes of one group beside each other";
    byId("pin").addEventListener("click", () => this.pin());
    byId("unpin").addEventListener("click", () => this.unpin());
    byId("views").addEventListener("change", () => page.show());
    if (window.matchMedia("(max-width: 700px)").matches) byId("drawer").open = false; // the graph comes first
  }

  // Movement that held-out rows do not support is shown to those who ask for it.
  movement() {
    const { page } = this, box = byId("movement");
    const headings = [byId("h-explore"), byId("h-edges")].map((heading) => [heading, heading.textContent]);
    const put = () => {
      page.moves = page.data.opening === "moving" || box.checked;
      document.body.classList.toggle("still", !page.moves);
      for (const [heading, opening] of headings) heading.textContent = box.checked ? heading.dataset.moving : opening;
    };
    box.addEventListener("change", () => {
      put();
      if (!page.moves) this.unpin();
      page.evaluate();
      page.show(true);
      page.connectivity();
    });
    put();
  }

  slider(c, i) {
    const step = 10 ** -c.decimals, id = `z${i}`;
    const range = el("input", { type: "range", id, min: c.low, max: c.high, step, disabled: c.fixed });
    const number = el("input", { type: c.date ? "date" : "number", step: c.date ? undefined : "any", "aria-label": `${c.name} as a ${c.date ? "date" : "number"}`, disabled: c.fixed });
    const read = () => (c.date ? number.valueAsNumber / 864e5 : number.valueAsNumber);
    const write = (value) => { number.value = c.date ? dateText(value) : value; };
    range.addEventListener("input", () => { write(range.value); this.page.z[c.name] = Number(range.value); this.page.changed(); });
    number.addEventListener("input", () => {
      if (number.value === "" || !Number.isFinite(read())) return;
      range.value = read();
      this.page.z[c.name] = read();
      this.page.changed();
    });
    this.fields[c.name] = (value) => { range.value = value; write(value); };
    const note = el("p", { class: "small" }, c.fixed ? "stays at this value: see the note at the heatmap" : "");
    const outside = () => { if (!c.fixed) note.textContent = this.outside(c); };
    range.addEventListener("input", outside);
    number.addEventListener("input", outside);
    return el("div", { class: "control" }, el("label", { for: id }, c.name), el("div", { class: "row" }, range, number), note);
  }

  outside(c) {
    const value = this.page.z[c.name], margin = 0.1 * (c.most - c.least);
    if (value >= c.least && value <= c.most) return "";
    const last = Math.max(c.least - margin, Math.min(c.most + margin, value));
    const edge = last === value ? "" : `; the graph at ${told(c, last)} is shown`;
    return `outside what the model has seen (${told(c, c.least)} to ${told(c, c.most)})${edge}`;
  }

  menu(c, i) {
    const select = el("select", { id: `z${i}`, disabled: c.fixed });
    for (const level of c.levels) select.append(el("option", { value: level }, level));
    select.addEventListener("input", () => { this.page.z[c.name] = c.levels[select.selectedIndex]; this.page.changed(); });
    const note = el("p", { class: "small" }), few = () => {
      const rows = (c.rare || {})[select.value];
      note.textContent = rows === undefined ? "" : `${rows} training ${rows === 1 ? "row has" : "rows have"} this level: its graph leans on the others`;
    };
    select.addEventListener("input", few);
    this.fields[c.name] = (value) => { select.value = value; few(); };
    return el("div", { class: "control" }, el("label", { for: `z${i}` }, c.name), el("div", { class: "row" }, select), note);
  }

  put(name, value) {
    this.page.z[name] = value;
    this.fields[name](value);
  }

  threshold() {
    const { page } = this, range = byId("cut"), number = byId("cut-value"), found = page.data.threshold;
    range.max = Math.min(1, Math.max(page.limit, Math.ceil(found.value * 20) / 10, 0.1));
    const put = (value) => { page.cut = value; page.show(); };
    range.addEventListener("input", () => { number.value = range.value; put(Number(range.value)); });
    number.addEventListener("input", () => { if (number.value !== "" && number.valueAsNumber >= 0) { range.value = number.value; put(number.valueAsNumber); } });
    byId("cut-reset").addEventListener("click", () => { range.value = found.value; number.value = found.value.toFixed(3); put(found.value); });
    range.value = found.value;
    number.value = found.value.toFixed(3);
    const none = page.tests ? "By the tests, no pair has an edge" : "By the fit, no pair stands clear of its noise";
    const chosen = page.never.size < page.field.pairs ? `${page.tests ? "By default" : "Chosen in the fit"}: ${found.value.toFixed(3)}, for pairs that ${page.mayBe()}` : none;
    byId("cut-note").replaceChildren(`${chosen} (`, el("a", { href: "#model" }, "why"), "). Another number holds for all pairs.");
  }

  pin() {
    const { page } = this;
    page.pinned = { z: { ...page.z }, graph: page.now, words: page.words() };
    byId("pinned").textContent = `Pinned: ${page.pinned.words}.`;
    byId("views").hidden = byId("unpin").hidden = false;
    byId("views").querySelector("[value=difference]").checked = true;
    page.show();
  }

  unpin() {
    this.page.pinned = null;
    byId("pinned").textContent = "";
    byId("views").hidden = byId("unpin").hidden = true;
    byId("views").querySelector("[value=now]").checked = true;
    if (this.page.moves) byId("pin").focus();
    this.page.show();
  }
}
