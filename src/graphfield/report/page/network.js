// The network: nodes stay where they are while covariates move, lines come and go.

const MOST_LINES = 600;
const CROWDED = 200; // nodes from which labels without a free place wait for the pointer
const FEW_LETTERS = 110; // of a list that is shown whole

// Outlines of size one, and what they stand for; numbers are circles.
const SHAPES = {
  gaussian: ["M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z", "number"],
  binary: ["M-.9-.9H.9V.9H-.9Z", "yes or no"],
  categorical: ["M0-1.25L1.25 0L0 1.25L-1.25 0Z", "levels without an order"],
  ordinal: ["M0-1.15L1.1-.35L.7.95H-.7L-1.1-.35Z", "levels in order"],
  count: ["M0-1.2L1.2.9H-1.2Z", "count"],
};

class Network {
  constructor(page) {
    this.page = page;
    this.root = byId("net");
    this.lines = svg("g");
    this.dots = svg("g");
    this.halos = svg("g");
    this.root.append(this.halos, this.lines, this.dots);
    this.used = new Map(); // pair to its line
    this.active = page.order()[0] || 0;
    this.lit = null;
    this.nodes = page.names.map((name, i) => this.node(name, i));
    const kinds = Object.keys(SHAPES).filter((kind) => page.data.kinds?.includes(kind));
    byId("net-shapes").replaceChildren(...kinds.map((kind) => this.shapeKey(...SHAPES[kind])));
    this.layout();
  }

  shapeKey(outline, text) {
    const shape = svg("path", { class: "node", d: outline, transform: "translate(7.5 7.5) scale(5)", "vector-effect": "non-scaling-stroke" });
    return el("span", { class: "group-key" }, svg("svg", { width: 15, height: 15, "aria-hidden": "true" }, shape), text);
  }

  node(name, i) {
    const { page } = this, kind = page.data.kinds?.[i], outline = kind === "gaussian" ? undefined : SHAPES[kind]?.[0];
    const told = outline ? `${name} (${SHAPES[kind][1]})` : name;
    const shape = outline ? svg("path", { class: "node", d: outline, "vector-effect": "non-scaling-stroke" }) : svg("circle", { class: "node" });
    const group = svg("g", { class: "node", tabindex: i === this.active ? 0 : -1, role: "img", "aria-label": told }, svg("title", {}, told), shape, svg("text", {}));
    group.addEventListener("pointerenter", () => this.light(i));
    group.addEventListener("pointerleave", () => this.light(null));
    group.addEventListener("focus", () => this.light(i));
    group.addEventListener("blur", () => this.light(null));
    group.addEventListener("keydown", (e) => this.key(e, i));
    group.addEventListener("click", () => group.focus());
    if (page.groups) shape.style.fill = page.colour(i);
    this.dots.append(group);
    return { group, shape, text: group.querySelector("text") };
  }

  // Nodes that have an edge in some row, or now, share the picture; the others stand in a row below it.
  layout() {
    const { page } = this, f = page.field, width = this.root.parentElement.clientWidth || 400, shown = page.shown?.edges;
    const linked = [];
    for (let i = 0; i < f.pairs; i++) if (page.pairs.present[i] > 0 || shown?.[i]) linked.push(i);
    this.placed = new Uint8Array(page.p);
    for (const i of linked) this.placed[f.first[i]] = this.placed[f.second[i]] = 1;
    const core = page.data.order.filter((i) => this.placed[i]), at = new Map(core.map((node, i) => [node, i]));
    const edges = this.springs(linked).map(([i, weight]) => [at.get(f.first[i]), at.get(f.second[i]), weight]);
    this.start = commonStart(page.names);
    const plan = labelPlan(core.map((i) => page.names[i]), this.start, width);
    this.shortened = plan.texts.some((text, i) => text !== page.names[core[i]]);
    this.x = new Float64Array(page.p);
    this.y = new Float64Array(page.p);
    this.root.style.setProperty("--label", `${plan.font}px`);
    if (!(page.groups && this.circle(core, plan, width))) this.spring(core, edges, plan, width);
    [this.width, this.height] = [width, plan.height];
    this.aside(width, plan.height);
    this.nodes.forEach(({ group, shape }, i) => {
      group.setAttribute("transform", `translate(${this.x[i].toFixed(1)} ${this.y[i].toFixed(1)})`);
      const radius = this.placed[i] ? plan.radius : 3;
      if (shape.tagName === "circle") shape.setAttribute("r", radius);
      else shape.setAttribute("transform", `scale(${radius})`);
    });
    for (const [pair, line] of this.used) this.place(line, pair);
  }

  // Pairs that pull, with weights up to 1: those of the average graph, and those of now that it does not have.
  springs(linked) {
    const { page } = this, { present, mean } = page.pairs, shown = page.shown;
    const size = (i) => Math.max(Math.abs(mean[i]) * Math.min(1, 2 * present[i]), present[i] > 0 ? 0 : 0.5 * Math.abs(shown.values[i]));
    const ranked = linked.map((i) => [i, size(i)]).sort((a, b) => b[1] - a[1]).slice(0, MOST_LINES), most = ranked[0]?.[1] || 1;
    return ranked.map(([i, weight]) => [i, weight / most]);
  }

  spring(core, edges, plan, width) {
    if (!core.length) return;
    const { x, y } = springLayout([...core.keys()], edges);
    const inset = 0.25 / Math.sqrt(core.length); // a few nodes do not stand in the corners
    for (let i = 0; i < x.length; i++) { x[i] = width * (inset + (1 - 2 * inset) * x[i]); y[i] = plan.height * (inset + (1 - 2 * inset) * y[i]); }
    const strong = edges.slice(0, 300);
    separate(x, y, plan.boxes, strong, plan.radius + 3, width, plan.height);
    const spots = placeLabels(plan, x, y, strong, width, plan.height);
    core.forEach((node, i) => {
      this.x[node] = x[i];
      this.y[node] = y[i];
      this.label(node, plan.texts[i], { "text-anchor": spots[i].anchor, x: spots[i].dx, y: spots[i].dy }, !spots[i].free);
    });
  }

  // Groups beside each other around a circle, with names along its radii; false where these do not fit.
  circle(core, plan, width) {
    const { page } = this, longest = Math.max(...plan.texts.map((text) => textWidth(text, plan.font)), 0);
    const rim = longest + plan.radius + 8, most = Math.min(width, 900) / 2 - rim, wanted = (1.9 * core.length * plan.font) / (2 * Math.PI);
    const radius = Math.min(most, Math.max(150, wanted)), size = 2 * (radius + rim);
    if (2 * Math.PI * radius < core.length * plan.font) return false;
    plan.height = size;
    const { angle, x, y } = circleLayout(core.map((i) => page.groups[i]), radius, width / 2, size / 2);
    core.forEach((node, i) => {
      this.x[node] = x[i];
      this.y[node] = y[i];
      const left = angle[i] > Math.PI && angle[i] < 2 * Math.PI, turn = (angle[i] * 180) / Math.PI + (left ? 90 : -90), away = plan.radius + 4;
      this.label(node, plan.texts[i], { "text-anchor": left ? "end" : "start", x: left ? -away : away, y: plan.font * 0.35, transform: `rotate(${turn.toFixed(1)})` });
    });
    return true;
  }

  label(node, text, attributes, crowded = false) {
    const own = this.nodes[node];
    own.text.replaceChildren(text);
    own.text.removeAttribute("transform");
    filled(own.text, attributes, []);
    own.group.classList.toggle("crowded", crowded && this.page.p > CROWDED);
  }

  aside(width, height) {
    const { page } = this, others = page.order().filter((i) => !this.placed[i]), step = 11, columns = Math.floor((width - step) / step);
    others.forEach((node, i) => {
      this.x[node] = step + step * (i % columns);
      this.y[node] = height + 12 + step * Math.floor(i / columns);
      this.label(node, short(page.names[node], LONGEST), { "text-anchor": this.x[node] < width / 2 ? "start" : "end", x: 0, y: -7 });
    });
    const rows = Math.ceil(others.length / columns);
    this.root.setAttribute("viewBox", `0 0 ${width} ${height + (rows ? 8 + step * rows : 0)}`);
  }

  draw() {
    const { page } = this, { values, visible, edges } = page.shown, kept = [];
    for (let i = 0; i < values.length; i++) if (visible[i] && edges[i] && values[i] !== 0) kept.push(i);
    kept.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
    const drawn = kept.slice(0, MOST_LINES), wanted = new Set(drawn);
    this.note(kept.length);
    const free = [];
    for (const [pair, line] of this.used) if (!wanted.has(pair)) { free.push(line); this.used.delete(pair); }
    const crowd = Math.min(1, 120 / Math.max(drawn.length, 1)) * 0.45, widest = page.p > MANY ? 3.4 : 5.4;
    for (const pair of drawn) {
      let line = this.used.get(pair);
      if (!line) {
        line = free.pop() || this.line();
        this.place(line, pair);
        this.used.set(pair, line);
      }
      const value = values[pair], size = Math.min(1, Math.abs(value) / page.shown.limit);
      const near = this.lit === null || page.field.first[pair] === this.lit || page.field.second[pair] === this.lit;
      set(line, "stroke", page.signless(pair) && page.shown.view !== "difference" ? tones.neutral : value > 0 ? tones.plus : tones.minus);
      set(line, "stroke-width", (0.6 + widest * size).toFixed(1));
      set(line, "stroke-opacity", near ? Math.min(1, 0.2 + crowd + 0.6 * size).toFixed(2) : "0.06");
      set(line, "stroke-dasharray", value < 0 ? `${(4 + 3 * size).toFixed(0)} ${(3 + 2 * size).toFixed(0)}` : "none");
    }
    for (const line of free) line.remove();
    this.isolate();
    this.halos.replaceChildren(...page.drawn().filter((i) => wanted.has(i)).map((i) => {
      const halo = svg("line", { class: "halo", "stroke-width": 7 + widest * Math.min(1, Math.abs(values[i]) / page.shown.limit) });
      this.place(halo, i);
      return halo;
    }));
  }

  place(line, pair) {
    const j = this.page.field.first[pair], k = this.page.field.second[pair];
    line.pair = pair;
    line.setAttribute("x1", this.x[j].toFixed(1));
    line.setAttribute("y1", this.y[j].toFixed(1));
    line.setAttribute("x2", this.x[k].toFixed(1));
    line.setAttribute("y2", this.y[k].toFixed(1));
    if (!line.isConnected && line.classList.contains("edge")) this.lines.append(line);
  }

  line() {
    const line = svg("line", { class: "edge" });
    line.addEventListener("pointerenter", () => { byId("net-says").textContent = this.page.says(line.pair); });
    line.addEventListener("pointerleave", () => { byId("net-says").textContent = ""; });
    line.addEventListener("click", () => {
      this.page.toggle(line.pair);
      byId("net-says").textContent = this.page.says(line.pair);
    });
    return line;
  }

  neighbours(node) {
    const { page } = this, found = [];
    for (let other = 0; other < page.p; other++) {
      if (other === node) continue;
      const pair = page.field.pair(node, other);
      if (page.shown.edges[pair]) found.push([other, page.shown.values[pair]]);
    }
    return found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  }

  note(edges) {
    const { page } = this, words = [edges ? `Point at a line or a node${page.draws() ? "; click a line to draw its curve" : ""}.` : "No edge here: no pair is above the threshold."];
    if (edges > MOST_LINES) words.push(`Drawn: the ${MOST_LINES} strongest of ${edges.toLocaleString("en")} edges.`);
    if (this.shortened) words.push(`Names are shortened${this.start ? ` (all begin with \u201c${this.start}\u201d)` : ""}: point at a node for the whole.`);
    byId("net-note").textContent = words.join(" ");
  }

  // Nodes without an edge now are pale and without a name; they are counted and listed below the picture.
  isolate() {
    const { page } = this, { edges, view } = page.shown, f = page.field, linked = new Uint8Array(page.p);
    for (let i = 0; i < f.pairs; i++) if (edges[i]) linked[f.first[i]] = linked[f.second[i]] = 1;
    this.nodes.forEach(({ group }, i) => { if (group.classList.contains("lonely") === Boolean(linked[i])) group.classList.toggle("lonely", !linked[i]); });
    this.strays = linked.some((on, i) => on && !this.placed[i]);
    const names = page.order().filter((i) => !linked[i]).map((i) => page.names[i]), where = view === "difference" ? " in either graph" : page.moves && page.words() ? " at these covariates" : "";
    byId("isolated").hidden = !names.length;
    const told = `${names.length.toLocaleString("en")} ${names.length === 1 ? "node" : "nodes"} without an edge${where}: `, all = names.join(", ");
    const few = told.length + all.length <= FEW_LETTERS;
    byId("isolated-few").textContent = few && names.length ? `${told}${all}.` : "";
    byId("isolated-many").hidden = few;
    if (few) return;
    let first = 0;
    while (told.length + names.slice(0, first + 1).join(", ").length < FEW_LETTERS - 20) first++;
    byId("isolated-short").textContent = `${told}${names.slice(0, first).join(", ")}${first ? ", " : ""}\u2026`;
    byId("isolated-all").textContent = all;
  }

  // Make room for nodes that were set aside and have an edge now.
  settle() {
    if (!this.strays) return;
    this.layout();
    this.draw();
  }

  light(node) {
    const near = node === null ? [] : this.neighbours(node), close = new Set(near.map(([other]) => other));
    this.lit = node;
    this.root.classList.toggle("looking", node !== null);
    this.nodes.forEach(({ group }, i) => {
      group.classList.toggle("lit", i === node);
      group.classList.toggle("near", close.has(i));
    });
    this.draw();
    byId("net-says").textContent = node === null ? "" : this.told(node, near);
  }

  told(node, near) {
    const { page } = this, group = page.groups ? ` (${page.groups[node]})` : "";
    const told = (other, value) => (page.shown.view === "difference" ? signed(value) : page.strength(page.field.pair(node, other), value));
    const list = near.slice(0, 6).map(([other, value]) => `${page.names[other]} ${told(other, value)}`).join(", ");
    const what = page.shown.view === "difference" ? "now or pinned. Differences" : "";
    return `${page.names[node]}${group}: ${near.length} ${near.length === 1 ? "edge" : "edges"}${what ? " " + what : ""}${list ? ": " + list : ""}${near.length > 6 ? ", \u2026" : ""}`;
  }

  key(event, i) {
    const { page } = this, order = page.order(), at = order.indexOf(i);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      this.nodes[i].group.setAttribute("tabindex", -1);
      this.active = order[(at + by + page.p) % page.p];
      this.nodes[this.active].group.setAttribute("tabindex", 0);
      this.nodes[this.active].group.focus();
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      const [strongest] = this.neighbours(i);
      if (strongest) page.toggle(page.field.pair(i, strongest[0]));
      event.preventDefault();
    }
  }
}

// Writing an attribute costs even where it has not changed.
function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}
