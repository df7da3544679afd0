// Small pictures of the graph along one covariate, the nodes where the large one has them, and a walk through its values.

const PICTURES = 5; // along a number
const MOST_LEVELS = 8;
const MOST_THIN = 200; // lines of a small picture
const WALK = 5000; // milliseconds from the lowest value to the highest

class Multiples {
  constructor(page) {
    this.page = page;
    this.menu = byId("along");
    this.walking = null;
    this.button = byId("walk");
    for (const c of this.covariates()) this.menu.append(el("option", { value: c.name }, c.name));
    this.menu.addEventListener("change", () => { this.stop(); this.draw(); });
    this.button.addEventListener("click", () => (this.walking ? this.stop() : this.walk()));
  }

  covariates() { return this.page.moving().filter((c) => !c.fixed); }
  along() { return this.covariates().find((c) => c.name === this.menu.value); }

  values(c) {
    if (c.kind === "category") return c.levels.slice(0, MOST_LEVELS);
    return Array.from({ length: PICTURES }, (_, i) => Number((c.low + ((c.high - c.low) * i) / (PICTURES - 1)).toFixed(c.decimals)));
  }

  draw() {
    const { page } = this, c = this.along(), shown = Boolean(page.moves && c);
    byId("multiples").hidden = !shown;
    if (!shown || this.walking) return;
    const more = c.kind === "category" && c.levels.length > MOST_LEVELS ? ` The first ${MOST_LEVELS} of ${c.levels.length} levels.` : "";
    byId("along-note").textContent = `Other covariates stay where the controls have them.${more} A click on a picture puts its value into the controls.`;
    byId("small-graphs").replaceChildren(...this.values(c).map((value) => this.picture(c, value)));
  }

  picture(c, value) {
    const { page } = this, { network, field } = page, graph = field.graphAt({ ...page.z, [c.name]: value }), edges = [];
    for (let i = 0; i < field.pairs; i++) if (page.isEdge(graph, i)) edges.push(i);
    const n = edges.length, drawn = edges.sort((a, b) => Math.abs(graph.partial[b]) - Math.abs(graph.partial[a])).slice(0, MOST_THIN);
    const unit = network.width / 220, root = svg("svg", { viewBox: `0 0 ${network.width} ${network.height}`, "aria-hidden": "true" });
    for (const i of drawn) {
      const j = field.first[i], k = field.second[i], v = graph.partial[i], size = Math.min(1, Math.abs(v) / page.limit);
      root.append(svg("line", { x1: network.x[j].toFixed(1), y1: network.y[j].toFixed(1), x2: network.x[k].toFixed(1), y2: network.y[k].toFixed(1), stroke: page.signless(i) ? tones.neutral : v > 0 ? tones.plus : tones.minus, "stroke-width": (unit * (0.5 + 3 * size)).toFixed(1), "stroke-opacity": (0.3 + 0.6 * size).toFixed(2), "stroke-dasharray": v < 0 ? `${4 * unit} ${3 * unit}` : undefined }));
    }
    for (let i = 0; i < page.p; i++) if (network.placed[i]) root.append(svg("circle", { cx: network.x[i].toFixed(1), cy: network.y[i].toFixed(1), r: 2.2 * unit, fill: page.groups ? page.colour(i) : tones.ink }));
    const button = el("button", { type: "button", class: "small-graph" }, root, el("span", {}, el("strong", {}, `${c.name} = ${told(c, value)}`), `, ${n.toLocaleString("en")} ${n === 1 ? "edge" : "edges"}`));
    button.addEventListener("click", () => { page.controls.put(c.name, value); page.changed(); byId("explore").scrollIntoView({ behavior: "smooth" }); });
    return button;
  }

  // From the lowest value to the highest, or through the levels, in the large picture.
  walk() {
    const { page } = this, c = this.along(), began = performance.now(), levels = c.levels;
    byId("explore").scrollIntoView({ behavior: "smooth" });
    this.button.textContent = "Stop";
    const step = (now) => {
      const share = Math.min(1, (now - began) / WALK);
      const value = levels ? levels[Math.min(levels.length - 1, Math.floor(share * levels.length))] : Number((c.low + share * (c.high - c.low)).toFixed(c.decimals));
      if (page.z[c.name] !== value) { page.controls.put(c.name, value); page.changed(); }
      if (share < 1) this.walking = requestAnimationFrame(step);
      else this.stop();
    };
    this.walking = requestAnimationFrame(step);
  }

  stop() {
    if (!this.walking) return;
    cancelAnimationFrame(this.walking);
    this.walking = null;
    this.button.textContent = "Play";
    this.page.show();
  }
}
