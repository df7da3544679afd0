// The page: what z is, which graph that gives, and who has to draw it.

const MOST_CHOSEN = 6;
const MANY = 45; // nodes beyond which the heatmap has no names, and the network takes the width of two pictures
const FLAT = 0.1; // curves are drawn at least from minus this to this
const SAME = 1e-4; // a measure of graphs that differs by less does not move
const END = 0.9995; // what is shown as 1.000: estimates are cut off there
const CUT_OFF = "\u00b11.000 is the end of the scale, where estimates are cut off: not to be taken literally.";

class Page {
  constructor(data, buffer) {
    this.data = data;
    this.names = data.nodes;
    this.p = data.nodes.length;
    this.groups = data.groups;
    this.groupNames = data.groups ? [...new Set(data.order.map((i) => data.groups[i]))] : [];
    this.limit = data.limit;
    this.pairs = withArrays(data.pairs, buffer);
    this.tests = data.tests && withArrays(data.tests, buffer); // of every pair, where there were any
    this.banded = Boolean(this.tests && Object.keys(this.tests.curves).length);
    this.field = new GraphField(withArrays(data.program, buffer), this.p);
    this.z = Object.fromEntries(data.covariates.map((c) => [c.name, c.start]));
    this.cut = data.threshold.value;
    this.never = new Set(data.threshold.never); // pairs that are no edge at any z, at the threshold of the fit
    this.always = new Set(data.threshold.always); // and those that are edges of any strength
    this.pinned = null;
    this.chosen = data.chosen;
    this.plainOrder = this.names.map((_, i) => i);
    this.controls = new Controls(this);
    for (const c of data.covariates) this.controls.put(c.name, c.start);
    byId("explorer").classList.toggle("many", this.p > MANY);
    this.heatmap = new Heatmap(this);
    this.network = new Network(this);
    this.multiples = new Multiples(this);
    this.table = new EdgeTable(this);
    this.theme();
    this.evaluate();
    this.show(true);
    this.connectivity();
    this.training();
    byId("curve-kind").addEventListener("change", () => this.curves());
    window.addEventListener("beforeprint", () => document.querySelectorAll(".first details").forEach((one) => { one.open = true; }));
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      this.resized();
    });
  }

  // Dark where the system is, or where the button says so; paper is white.
  theme() {
    const button = byId("theme"), dark = window.matchMedia("(prefers-color-scheme: dark)");
    const put = (name) => {
      if (name === tones.name) return;
      setTheme(name);
      button.textContent = name === "dark" ? "Light" : "Dark";
      this.resized();
    };
    button.hidden = false;
    button.textContent = tones.name === "dark" ? "Light" : "Dark";
    button.addEventListener("click", () => put(tones.name === "dark" ? "light" : "dark"));
    dark.addEventListener("change", () => put(dark.matches ? "dark" : "light"));
    let before = tones.name;
    window.addEventListener("beforeprint", () => { before = tones.name; put("light"); });
    window.addEventListener("afterprint", () => put(before));
  }

  resized() {
    this.heatmap.layout();
    this.network.layout();
    this.show(true);
    this.connectivity();
    this.training();
  }

  order() { return byId("order").checked ? this.data.order : this.plainOrder; }
  grouped() { return this.groups && byId("order").checked; }
  colour(node) { return GROUPS[this.groupNames.indexOf(this.groups[node]) % GROUPS.length]; }
  // A threshold that was moved by hand holds for all pairs.
  byFit() { return this.cut === this.data.threshold.value; }
  mayBe() { return this.tests ? "pass their tests" : "stand clear of their noise"; }
  isEdge(graph, i, pair = i) { return graph.weaker[i] > this.cutOf(pair); }
  cutOf(pair) { return !this.byFit() ? this.cut : this.never.has(pair) ? Infinity : this.always.has(pair) ? 0 : this.cut; }
  atEnd(i) { return Math.max(Math.abs(this.now.partial[i]), -this.pairs.least[i], this.pairs.most[i]) >= END; }
  // An edge of a node with more than two levels without an order has a size alone.
  signless(i) { return Boolean(this.data.signless && (this.data.signless[this.field.first[i]] || this.data.signless[this.field.second[i]])); }
  strength(i, value, digits = 2) { return this.signless(i) ? Math.abs(value).toFixed(digits) : signed(value, digits); }
  pairName(i) { return `${this.names[this.field.first[i]]} \u2013 ${this.names[this.field.second[i]]}`; }

  // The graph at z or, where movement is not to be shown, the average over the rows, as tests find it where there are
  // any. One that is the same everywhere is that at any z.
  evaluate() { this.now = this.moves || (this.data.opening === "one" && !this.tests) ? this.field.graphAt(this.z) : this.average(); }
  average() { return { partial: this.pairs.average, weaker: this.pairs.average.map(Math.abs) }; }

  // z has changed: at most one evaluation per frame of the screen.
  changed() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.evaluate(); this.show(); });
  }

  view() { return this.pinned ? byId("views").querySelector("input:checked").value : "now"; }

  show(atOnce) {
    const view = this.view(), before = this.pinned && this.pinned.graph, graph = view === "pinned" ? before : this.now;
    const n = this.field.pairs, values = new Float32Array(n), edges = new Uint8Array(n), visible = new Uint8Array(n), weak = byId("weak").checked;
    for (let i = 0; i < n; i++) {
      values[i] = view === "difference" ? this.now.partial[i] - before.partial[i] : graph.partial[i];
      edges[i] = this.isEdge(graph, i) || (view === "difference" && this.isEdge(before, i)) ? 1 : 0;
      visible[i] = weak || edges[i] ? 1 : 0;
    }
    this.shown = { view, values, edges, visible, limit: view === "difference" ? roundUp(values, edges) : this.limit };
    this.legend();
    this.heatmap.draw();
    this.network.draw();
    this.describe();
    clearTimeout(this.later);
    const rest = () => { this.network.settle(); this.multiples.draw(); this.table.draw(); this.curves(); byId("announce").textContent = byId("state").textContent; };
    if (atOnce) rest();
    else this.later = setTimeout(rest, 150);
  }

  words(z = this.z) {
    if (this.data.opening === "one") return "";
    if (!this.moves) return "the average over the rows";
    return this.moving().map((c) => `${c.name} = ${told(c, z[c.name])}`).join(", ");
  }

  // Where the pinned graph was, in what is different now.
  changes() {
    const moved = this.moving().filter((c) => this.pinned.z[c.name] !== this.z[c.name]);
    return moved.map((c) => `${c.name} = ${told(c, this.pinned.z[c.name])}`).join(", ");
  }

  count(graph) {
    let edges = 0;
    for (let i = 0; i < this.field.pairs; i++) if (this.isEdge(graph, i)) edges++;
    return { edges, density: edges / this.field.pairs };
  }

  describe() {
    const tell = (graph) => {
      const c = this.count(graph), n = this.field.pairs;
      return `${c.edges.toLocaleString("en")} ${c.edges === 1 ? "edge" : "edges"} of ${n.toLocaleString("en")} ${n === 1 ? "pair" : "pairs"} (${percent(c.density)})`;
    };
    const { view } = this.shown, now = this.words();
    const by = `: above ${this.cut.toFixed(3)}${this.byFit() ? `, of pairs that ${this.mayBe()}` : ""}`;
    let what = tell(this.now), where = by + (now ? `, ${this.moves ? "at" : "in"} ${now}.` : ".");
    if (view === "pinned") [what, where] = [`Pinned: ${tell(this.pinned.graph)}`, by + (now ? `, at ${this.pinned.words}.` : ".")];
    if (view === "difference") where += ` Shown: this graph minus the pinned one (${this.changes() || "the same covariates"}; ${tell(this.pinned.graph)}).`;
    byId("state").replaceChildren(el("strong", {}, what), where + this.lonely(view === "pinned" ? this.pinned.z : this.z));
  }

  // Two covariates near whose values hardly any row is, by the rule of analysis/near_rows.py on the rows of the page.
  lonely(z) {
    const rule = this.data.near;
    if (!rule || !this.moves) return "";
    const { rows } = this.data.connectivity, reach = (c) => (c.kind === "category" ? 0 : rule.near * (c.most - c.least));
    const sides = this.moving().map((c) => ({ c, near: rows[c.name].map((v) => v === z[c.name] || Math.abs(v - z[c.name]) <= reach(c)) }));
    let found = null;
    const size = (near) => near.reduce((n, is) => n + is, 0);
    sides.forEach((one, i) => sides.slice(i + 1).forEach((other) => {
      const expected = (size(one.near) * size(other.near)) / one.near.length;
      if (expected < (found ? found.expected : rule.few)) return;
      const both = one.near.reduce((n, is, row) => n + (is && other.near[row]), 0);
      if (both < rule.few && poisson(both, expected) <= Math.exp(-rule.few)) found = { one: one.c, other: other.c, both, expected };
    }));
    if (!found) return "";
    const at = (c) => `${c.name} = ${told(c, z[c.name])}`, some = found.both ? `Only ${found.both}` : "None";
    return ` ${some} of the ${rows[found.one.name].length} rows shown ${found.both > 1 ? "are" : "is"} near ${at(found.one)} together with ${at(found.other)}: the graph there is extrapolated.`;
  }

  says(i) {
    const now = this.now.partial[i], edge = this.isEdge(this.now, i) ? "edge" : "no edge";
    let text = `${this.pairName(i)}: ${this.strength(i, now, 3)} (${edge}${this.signless(i) ? ", no sign" : ""})`;
    if (this.pinned) text += `, pinned ${this.strength(i, this.pinned.graph.partial[i], 3)}, difference ${signed(now - this.pinned.graph.partial[i], 3)}`;
    const range = this.moves ? ` Over the rows ${this.strength(i, this.pairs.least[i])} to ${this.strength(i, this.pairs.most[i])}.` : "";
    return `${text}.${range}${this.tested(i)}${this.atEnd(i) ? ` ${CUT_OFF}` : ""}`;
  }

  // Covariates with which a pair moves given the others, and the q-values of that.
  withOne(i) { return this.tests.with_one[i] || []; }
  tested(i) {
    if (!this.tests) return "";
    if (Number.isNaN(this.tests.q_value[i])) return " Not tested.";
    const one = this.withOne(i).map(([name, q]) => `, ${rate(q)} that it does with ${name} given the others`).join("");
    return ` Tested: q = ${rate(this.tests.q_value[i])} for an edge, ${rate(this.tests.q_varies[i])} that it moves${one}.`;
  }

  toggle(i) {
    if (i === undefined || !this.draws()) return;
    if (this.chosen.includes(i)) this.chosen = this.chosen.filter((other) => other !== i);
    else this.chosen = [...this.chosen, i].slice(-MOST_CHOSEN);
    this.heatmap.draw();
    this.network.draw();
    this.table.draw();
    this.curves();
    byId("announce").textContent = `${this.pairName(i)} ${this.chosen.includes(i) ? "drawn below" : "removed"}.`;
  }

  // Pairs whose curves are drawn; those of a graph that stands still say nothing.
  drawn() { return this.draws() ? this.chosen : []; }
  draws() { return this.moves || this.banded; }
  // Curves with bands where there are any, unless those of the model are asked for.
  showsTested() { return this.banded && (!this.moves || byId("curve-kind").querySelector("input:checked").value === "tested"); }
  moving() { return this.data.covariates.filter((c) => !c.idle); }

  curves() {
    if (!this.draws()) return;
    const tested = this.showsTested();
    byId("curve-model").hidden = tested;
    byId("curve-tested").hidden = !tested;
    const chips = this.chosen.map((i, n) => {
      const button = el("button", { type: "button", "aria-label": `Remove ${this.pairName(i)}` }, "\u00d7");
      button.addEventListener("click", () => this.toggle(i));
      return el("span", { class: "chip" }, sampleLine(n), `${n + 1}  ${this.pairName(i)}: ${this.strength(i, this.now.partial[i], 3)}${this.isEdge(this.now, i) ? (tested ? this.byTests(i) : "") : this.noEdge(i)}${tested && !this.tests.curves[i] ? " (not among the clearest: no band)" : ""}`, button);
    });
    byId("chosen").replaceChildren(...(chips.length ? chips : [el("p", { class: "small" }, `${this.count(this.now).edges ? "No edge is chosen" : "There is no edge to draw at this threshold"}: click a cell of the heatmap for the curve of a pair.`)]));
    const covariates = tested ? this.data.covariates.filter((c) => this.tests.values[c.name]) : this.moving().filter((c) => !c.fixed), panels = byId("curve-panels");
    if (!this.chosen.length || !covariates.length) {
      panels.replaceChildren(...(covariates.length ? [] : [el("p", { class: "small" }, "There is no covariate to move.")]));
      return;
    }
    const found = covariates.map((c) => (tested ? this.testedCurve(c) : this.curve(c))), all = found.flatMap((f) => f.flatMap(({ points }) => points.flatMap((q) => q.slice(1))));
    const low = Math.min(-FLAT, ...all), high = Math.max(FLAT, ...all), room = 0.08 * (high - low);
    const boxes = this.panels(panels, covariates);
    covariates.forEach((c, n) => boxes[n].replaceChildren(chart(boxes[n], {
      title: `${c.name}${tested && !this.chosen.some((i) => this.tests.along[c.name].includes(i)) ? " (movement not clear)" : ""}`, x: c, y: [low - room, high + room], cut: tested ? 0 : this.cut, at: tested ? undefined : this.z[c.name], bars: c.counts,
      lines: found[n].map(({ points, edges }, s) => ({ points, edges, colour: LINES[s], dash: DASHES[s], label: this.chosen.length > 1 ? String(s + 1) : "" })),
      says: `Partial correlation along ${c.name}: ` + this.chosen.flatMap((i, s) => this.ends(i, found[n][s].points)).join("; "),
    })));
  }

  // From what to what a curve goes, as far as it is known.
  ends(i, points) {
    const known = points.filter((q) => q[1] !== null);
    return known.length ? [`${this.pairName(i)} from ${this.strength(i, known[0][1])} to ${this.strength(i, known.at(-1)[1])}`] : [];
  }

  // A pair that is no edge now may be one at other covariates, by the fit, or by the tests.
  noEdge(i) {
    const share = this.pairs.present[i], never = this.data.threshold.never.includes(i);
    if (share > 0 && this.moves) return ` (no edge here; one in ${percent(share)} of the rows)`;
    return this.tests?.estimate.length && !never ? ` (no edge in the model; by the tests ${this.strength(i, this.tests.estimate[i])} on average)` : " (no edge)";
  }

  // Beside a curve of the tests, what they say of an edge on average: its strength is the model's.
  byTests(i) {
    if (!this.moves) return ` ${this.testedInterval(i)}`;
    return this.tests.estimate.length ? ` in the model, ${this.strength(i, this.tests.estimate[i])} ${this.testedInterval(i)} by the tests on average`.replace("  ", " ") : "";
  }

  testedInterval(i) { return typeof this.tests.low[i] === "number" ? `[${signed(this.tests.low[i], 2)}, ${signed(this.tests.high[i], 2)}]` : ""; }

  // A box for each chart against one of these; names of many levels take the whole width.
  panels(box, xs) {
    while (box.children.length > xs.length) box.lastChild.remove();
    while (box.children.length < xs.length) box.append(el("div", {}));
    xs.forEach((x, n) => { box.children[n].className = x.levels?.length > NARROW ? "wide" : ""; });
    return [...box.children];
  }

  curve(c) {
    const values = c.kind === "number" ? Array.from({ length: 49 }, (_, i) => c.low + ((c.high - c.low) * i) / 48) : c.levels;
    return this.alongValues(c, values);
  }

  // Per chosen pair, at each value whether it is an edge, and points: value, partial correlation and, where the
  // members tell, the ends of its interval.
  alongValues(c, values) {
    const at = values.map((v) => ({ ...this.z, [c.name]: v }));
    const along = at.map((z) => this.field.edgesAt(z, this.chosen));
    const reach = this.data.reach && at.map((z) => this.field.spreadAt(z, this.chosen).map((s) => this.data.reach * s));
    return this.chosen.map((pair, s) => ({
      edges: along.map((graph) => this.isEdge(graph, s, pair)),
      points: values.map((v, i) => {
        const y = along[i].partial[s];
        return reach ? [v, y, Math.max(-1, y - reach[i][s]), Math.min(1, y + reach[i][s])] : [v, y];
      }),
    }));
  }

  // The same of the tests, which know some pairs: an edge is where the band of the whole curve leaves out zero.
  testedCurve(c) {
    const places = this.tests.values[c.name].map((v) => (c.levels ? nearest(c.levels, v) : Math.max(c.low, Math.min(c.high, v))));
    return this.chosen.map((pair) => {
      const points = (this.tests.curves[pair]?.[c.name] || []).map((numbers, i) => [places[i], ...numbers]);
      return { edges: points.map((q) => q[4] > 0 || q[5] < 0), points };
    });
  }

  connectivity() {
    const { measures, rows, crossing } = this.data.connectivity, menu = byId("measure"), box = byId("connect-panels");
    if (!menu.options.length) {
      // Where a sentence says which edges come and go, shares of edges say no more.
      measures.forEach((m, i) => { if (!(crossing && m.share)) menu.append(el("option", { value: i }, m.name)); });
      menu.addEventListener("change", () => this.connectivity());
    }
    if (!this.moves) return;
    const { name, share, values } = measures[Number(menu.value) || 0], low = Math.min(...values), high = Math.max(...values);
    if (high - low < SAME) { box.replaceChildren(el("div", {}, `The same in all rows: ${share ? percent(low) : plain(low, 3)}.`)); return; }
    const covariates = this.moving(), boxes = this.panels(box, covariates);
    covariates.forEach((c, n) => {
      const x = rows[c.name], level = c.kind === "category";
      const dots = values.map((v, i) => [level ? x[i] : Math.max(c.low, Math.min(c.high, x[i])), v, level ? (((i * 0.618) % 1) - 0.5) * 0.5 : 0]);
      boxes[n].replaceChildren(chart(boxes[n], { title: c.name, share, x: c, y: [0, 1.06 * high], dots, lines: [{ points: level ? levelMeans(x, values, c.levels) : bandMeans(x, values, c), colour: tones.plus }], says: `${name} against ${c.name}` }));
    });
  }

  training() {
    const t = this.data.training, box = byId("training-panel");
    if (!t) return;
    const [panel] = this.panels(box, [{}]), points = t.lines.flatMap((l) => l.points), xs = points.map((q) => q[0]), ys = points.map((q) => q[1]);
    const lines = t.lines.map((line, i) => ({ points: line.points, colour: LINES[i], dash: DASHES[i], label: String(i + 1) }));
    const low = Math.min(...ys), high = Math.max(...ys), room = 0.05 * (high - low) || 0.01;
    const drawing = chart(panel, { xlabel: "gradient steps", x: { low: Math.min(...xs), high: Math.max(...xs) }, y: [low - room, high + 3 * room], lines, marks: t.marks, says: "Loss while training: " + t.lines.map((l) => `${l.name} from ${l.points[0][1].toFixed(3)} to ${l.points.at(-1)[1].toFixed(3)}`).join("; ") });
    panel.replaceChildren(drawing, el("div", { class: "chips" }, ...t.lines.map((line, i) => el("span", { class: "chip" }, sampleLine(i), `${i + 1}  ${line.name}\u00a0`))));
  }

  legend() {
    const { limit, view } = this.shown, weak = byId("weak").checked, key = `${limit} ${view} ${weak} ${tones.name}`;
    if (this.keyed === key) return;
    this.keyed = key;
    const digits = limit < 0.1 ? 2 : 1, what = view === "difference" ? "difference of partial correlations" : "partial correlation";
    const width = 220, bar = svg("svg", { width, height: 30, role: "img", "aria-label": `Colours of a ${what}: from blue, minus ${limit}, over ${blank()}, zero, to red, plus ${limit}` });
    for (let i = 0; i < 55; i++) bar.append(svg("rect", { x: 4 * i, y: 0, width: 4.2, height: 12, fill: `rgb(${shade(i / 27 - 1, 1)})` }));
    bar.append(svg("text", { x: 0, y: 26 }, `\u2264 ${signed(-limit, digits)}`), svg("text", { x: width / 2, y: 26, "text-anchor": "middle" }, "0"), svg("text", { x: width, y: 26, "text-anchor": "end" }, `\u2265 ${signed(limit, digits)}`));
    const sample = (colour, dash, text) => el("span", { class: "group-key" }, svg("svg", { width: 40, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 40, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash })), text);
    const parts = [sample(tones.plus, "none", "positive"), sample(tones.minus, "6 4", "negative")], neutral = this.data.signless?.some(Boolean) && view !== "difference";
    if (neutral) parts.push(sample(tones.neutral, "none", "no sign (a node has levels without an order)"));
    parts.push(el("span", {}, "wider: stronger"));
    const square = (colour, text) => el("span", { class: "group-key" }, el("i", { style: `background:${colour};border-radius:0` }), text);
    byId("heat-legend").replaceChildren(el("div", {}, el("div", {}, what), bar), square(tones.paper, weak ? `${blank()}: zero` : `${blank()}: no edge${view === "difference" ? " in either graph" : ""}`), square(tones.self, "grey: a node and itself"), ...(neutral ? [square(tones.neutral, "shades of grey: no sign")] : []));
    this.groupNames.forEach((name, i) => parts.push(el("span", { class: "group-key" }, el("i", { style: `background:${GROUPS[i % GROUPS.length]}` }), name)));
    byId("legend").replaceChildren(...parts);
  }
}

// The probability of so many or fewer.
function poisson(found, expected) {
  let term = Math.exp(-expected), sum = term;
  for (let k = 1; k <= found; k++) { term *= expected / k; sum += term; }
  return sum;
}

// Where the colours of a difference end: the largest, to one or two digits.
function roundUp(values, edges) {
  let most = 0;
  for (let i = 0; i < values.length; i++) if (edges[i]) most = Math.max(most, Math.abs(values[i]));
  return Math.max(0.02, most > 0.1 ? Math.ceil(10 * most) / 10 : Math.ceil(50 * most) / 50);
}

// A level itself; of levels that are numbers, the one that is meant.
function nearest(levels, value) {
  return typeof value === "number" ? levels.reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a)) : value;
}

function bandMeans(x, values, c) {
  const distinct = [...new Set(x)];
  if (distinct.length <= 12) return levelMeans(x, values, distinct.sort((a, b) => a - b)).filter(([v]) => v >= c.low && v <= c.high);
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b]), bands = Math.max(1, Math.min(12, Math.floor(order.length / 12))), points = [];
  const mean = (list, of) => list.reduce((total, i) => total + of[i], 0) / list.length;
  for (let b = 0; b < bands; b++) {
    const own = order.slice(Math.floor((b * order.length) / bands), Math.floor(((b + 1) * order.length) / bands));
    if (own.length) points.push([Math.max(c.low, Math.min(c.high, mean(own, x))), mean(own, values)]);
  }
  return points;
}

function levelMeans(x, values, levels) {
  return levels.flatMap((level) => {
    const own = values.filter((_, i) => x[i] === level);
    return own.length ? [[level, own.reduce((a, b) => a + b, 0) / own.length]] : [];
  });
}

setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const page = new Page(JSON.parse(byId("page-data").textContent), decodeBytes(byId("page-arrays").textContent));
byId("page-arrays").textContent = "";

// For tests and for the curious: the graph at any z, and what is on the screen.
window.graphfield = {
  evaluate(z) {
    const graph = page.field.graphAt(z), { value } = page.data.threshold;
    const cut = (i) => (page.never.has(i) ? Infinity : page.always.has(i) ? 0 : value);
    return { partial: Array.from(graph.partial), present: Array.from(graph.weaker, (v, i) => v > cut(i)) };
  },
  state: () => ({ moves: page.moves, z: { ...page.z }, cut: page.cut, chosen: page.chosen.slice(), view: page.view() }),
  shown: () => Array.from(page.now.partial),
  csv: () => page.table.csv(),
  along: (name, values) => page.alongValues(page.data.covariates.find((c) => c.name === name), values),
};
