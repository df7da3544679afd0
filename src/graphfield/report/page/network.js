// The network: nodes stay where they are, lines come and go.

const MOST_LINES = 600;

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
    this.layout();
  }

  node(name, i) {
    const { page } = this;
    const group = svg("g", { class: "node", tabindex: i === this.active ? 0 : -1, role: "img" }, svg("circle", { class: "node" }), svg("text", {}, short(name, 18)));
    group.addEventListener("pointerenter", () => this.light(i));
    group.addEventListener("pointerleave", () => this.light(null));
    group.addEventListener("focus", () => this.light(i));
    group.addEventListener("blur", () => this.light(null));
    group.addEventListener("keydown", (e) => this.key(e, i));
    group.addEventListener("click", () => group.focus());
    group.querySelector("circle").setAttribute("fill", page.groups ? page.colour(i) : "#39424e");
    this.dots.append(group);
    return group;
  }

  layout() {
    const { page } = this, p = page.p, width = this.root.parentElement.clientWidth || 400;
    const few = p <= 60, circle = few && page.groups, wide = Math.min(18, Math.max(...page.names.map((n) => n.length))) * 6;
    const mx = circle ? Math.min(wide + 14, width * 0.27) : few ? Math.min(70, width * 0.15) : 14, my = few ? 18 : 20;
    this.size = width;
    this.root.setAttribute("viewBox", `0 0 ${width} ${width}`);
    this.x = page.data.layout.x.map((v) => mx + v * (width - 2 * mx));
    this.y = page.data.layout.y.map((v) => my + v * (width - 2 * my));
    const radius = (p <= 30 ? 6 : p <= 100 ? 4.5 : 3.2) * Math.min(1, width / 420 + 0.2);
    this.nodes.forEach((group, i) => {
      group.setAttribute("transform", `translate(${this.x[i].toFixed(1)} ${this.y[i].toFixed(1)})`);
      group.querySelector("circle").setAttribute("r", radius);
      const text = group.querySelector("text"), side = Math.sign(page.data.layout.x[i] - 0.5);
      if (few && !circle) return;
      const inward = !few && Math.abs(this.x[i] / width - 0.5) > 0.3;
      text.setAttribute("text-anchor", circle ? (side < 0 ? "end" : "start") : inward ? (side < 0 ? "start" : "end") : "middle");
      text.setAttribute("y", circle ? 4 : -radius - 4);
      text.setAttribute("x", circle ? side * (radius + 4) : 0);
      text.style.display = few ? "" : "none";
    });
    if (few && !circle) this.beside(radius);
    for (const [pair, line] of this.used) this.place(line, pair);
  }

  // Labels stand where they cross the fewest edges of the average graph, other labels and nodes.
  beside(radius) {
    const { page } = this, f = page.field, edges = [], taken = [];
    for (let i = 0; i < f.pairs; i++) if (page.pairs.present[i] >= 0.2) edges.push(i);
    this.nodes.forEach((group, i) => {
      const text = group.querySelector("text"), wide = text.getComputedTextLength() || 6 * text.textContent.length, away = radius + 4;
      const places = [["middle", 0, -away], ["middle", 0, away + 9], ["start", away, 4], ["end", -away, 4], ["start", away - 2, -away + 2], ["end", -away + 2, -away + 2], ["start", away - 2, away + 6], ["end", -away + 2, away + 6]];
      const tried = places.map(([anchor, dx, dy], n) => {
        const left = this.x[i] + dx - (anchor === "middle" ? wide / 2 : anchor === "end" ? wide : 0), top = this.y[i] + dy - 10;
        const box = [left - 1, top, left + wide + 1, top + 13];
        let cost = 0.01 * n;
        for (const e of edges) if (crosses(box, this.x[f.first[e]], this.y[f.first[e]], this.x[f.second[e]], this.y[f.second[e]])) cost += 0.5 + Math.abs(page.pairs.mean[e]);
        for (const other of taken) if (box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]) cost += 3;
        this.x.forEach((x, k) => { if (k !== i && x > box[0] - radius && x < box[2] + radius && this.y[k] > box[1] - radius && this.y[k] < box[3] + radius) cost += 2; });
        if (box[0] < 0 || box[1] < 0 || box[2] > this.size || box[3] > this.size) cost += 20;
        return { cost, box, anchor, dx, dy };
      });
      const best = tried.reduce((a, b) => (b.cost < a.cost ? b : a));
      taken.push(best.box);
      text.setAttribute("text-anchor", best.anchor);
      text.setAttribute("x", best.dx);
      text.setAttribute("y", best.dy);
      text.style.display = "";
    });
  }

  draw() {
    const { page } = this, { values, visible, edges } = page.shown, kept = [];
    for (let i = 0; i < values.length; i++) if (visible[i] && edges[i] && values[i] !== 0) kept.push(i);
    kept.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
    const drawn = kept.slice(0, MOST_LINES), wanted = new Set(drawn);
    byId("net-note").textContent = kept.length > MOST_LINES ? `the ${MOST_LINES} strongest of ${kept.length.toLocaleString("en")} edges` : drawn.length ? "point at a line or a node; click a line to draw its curve" : "no edge here: no pair is above the threshold";
    const free = [];
    for (const [pair, line] of this.used) if (!wanted.has(pair)) { free.push(line); this.used.delete(pair); }
    const crowd = Math.min(1, 120 / Math.max(drawn.length, 1)) * 0.45, widest = page.p > 100 ? 3.4 : 5.4;
    for (const pair of drawn) {
      let line = this.used.get(pair);
      if (!line) {
        line = free.pop() || this.line();
        this.place(line, pair);
        this.used.set(pair, line);
      }
      const value = values[pair], size = Math.min(1, Math.abs(value) / page.shown.limit);
      const near = this.lit === null || page.field.first[pair] === this.lit || page.field.second[pair] === this.lit;
      set(line, "stroke", value > 0 ? "#b2182b" : "#2166ac");
      set(line, "stroke-width", (0.6 + widest * size).toFixed(1));
      set(line, "stroke-opacity", near ? Math.min(1, 0.2 + crowd + 0.6 * size).toFixed(2) : "0.06");
      set(line, "stroke-dasharray", value < 0 ? `${(4 + 3 * size).toFixed(0)} ${(3 + 2 * size).toFixed(0)}` : "none");
    }
    for (const line of free) line.remove();
    this.halos.replaceChildren(...page.chosen.filter((i) => wanted.has(i)).map((i) => {
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
    line.addEventListener("pointerleave", () => { byId("net-says").textContent = "\u00a0"; });
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

  light(node) {
    const { page } = this;
    this.lit = node;
    const near = node === null ? [] : this.neighbours(node), close = new Set(near.slice(0, 12).map(([other]) => other));
    this.nodes.forEach((group, i) => {
      group.classList.toggle("lit", i === node);
      if (page.p > 60) group.querySelector("text").style.display = i === node || close.has(i) ? "" : "none";
    });
    this.draw();
    byId("net-says").textContent = node === null ? "\u00a0" : this.told(node, near);
  }

  told(node, near) {
    const { page } = this, group = page.groups ? ` (${page.groups[node]})` : "";
    const list = near.slice(0, 6).map(([other, value]) => `${page.names[other]} ${signed(value)}`).join(", ");
    const what = page.shown.view === "difference" ? "now or pinned. Differences" : "";
    return `${page.names[node]}${group}: ${near.length} ${near.length === 1 ? "edge" : "edges"}${what ? " " + what : ""}${list ? ": " + list : ""}${near.length > 6 ? ", \u2026" : ""}`;
  }

  key(event, i) {
    const { page } = this, order = page.order(), at = order.indexOf(i);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      this.nodes[i].setAttribute("tabindex", -1);
      this.active = order[(at + by + page.p) % page.p];
      this.nodes[this.active].setAttribute("tabindex", 0);
      this.nodes[this.active].focus();
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      const [strongest] = this.neighbours(i);
      if (strongest) page.toggle(page.field.pair(i, strongest[0]));
      event.preventDefault();
    }
  }
}

// Whether a line passes through a box [left, top, right, bottom].
function crosses([left, top, right, bottom], x1, y1, x2, y2) {
  let from = 0, to = 1;
  for (const [start, move, low, high] of [[x1, x2 - x1, left, right], [y1, y2 - y1, top, bottom]]) {
    if (move === 0) { if (start < low || start > high) return false; continue; }
    const a = (low - start) / move, b = (high - start) / move;
    from = Math.max(from, Math.min(a, b));
    to = Math.min(to, Math.max(a, b));
  }
  return from <= to;
}

// Writing an attribute costs even where it has not changed.
function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}
