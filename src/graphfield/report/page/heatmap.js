// The heatmap: one canvas, a cell under the pointer or the keyboard, chosen pairs outlined.

class Heatmap {
  constructor(page) {
    this.page = page;
    this.canvas = byId("heat");
    this.cell = null;
    this.image = document.createElement("canvas");
    this.image.width = this.image.height = page.p;
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", (e) => { if (e.pointerType !== "touch") this.moveTo(null); });
    this.canvas.addEventListener("click", (e) => { this.point(e); this.choose(); });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.canvas.addEventListener("focus", () => { if (!this.cell) this.moveTo([0, Math.min(1, page.p - 1)]); });
    this.canvas.addEventListener("blur", () => this.moveTo(null));
  }

  layout() {
    const { page } = this, box = this.canvas.parentElement.clientWidth || 400, p = page.p;
    this.labelled = p <= MANY && box / p >= 9;
    const longest = Math.min(16, Math.max(...page.names.map((n) => n.length)));
    this.margin = this.labelled ? Math.min(box * 0.28, 10 + longest * 6.2) : page.groups ? 14 : 2;
    this.size = box;
    this.step = (box - this.margin - 2) / p;
    this.ratio = Math.max(2, Math.min(3, window.devicePixelRatio || 1)); // sharp in print, too
    this.canvas.width = this.canvas.height = Math.round(box * this.ratio);
  }

  draw() {
    if (!this.size) this.layout();
    const { page, step, margin } = this, p = page.p, order = page.order(), context = this.image.getContext("2d");
    const own = channels(tones.self), none = channels(tones.paper);
    const data = context.createImageData(p, p), values = page.shown.values, visible = page.shown.visible;
    for (let a = 0; a < p; a++)
      for (let b = 0; b < p; b++) {
        const at = 4 * (a * p + b);
        let colour = own;
        if (a !== b) {
          const pair = page.field.pair(order[a], order[b]);
          const neutral = page.signless(pair) && page.shown.view !== "difference";
          colour = visible[pair] ? (neutral ? neutralShade : shade)(values[pair], page.shown.limit) : none;
        }
        data.data[at] = colour[0]; data.data[at + 1] = colour[1]; data.data[at + 2] = colour[2]; data.data[at + 3] = 255;
      }
    context.putImageData(data, 0, 0);
    const c = this.canvas.getContext("2d");
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.size, this.size);
    c.imageSmoothingEnabled = false;
    c.drawImage(this.image, margin, margin, step * p, step * p);
    c.strokeStyle = tones.axis;
    c.lineWidth = 1;
    c.strokeRect(margin, margin, step * p, step * p);
    if (this.labelled) this.labels(c, order);
    if (page.groups) this.blocks(c, order);
    for (const pair of page.drawn()) this.outline(c, order, page.field.first[pair], page.field.second[pair], tones.ink, 1.5);
    if (this.cell) this.outline(c, order, order[this.cell[0]], order[this.cell[1]], tones.mark, 3, true);
  }

  labels(c, order) {
    const { page, step, margin } = this, font = Math.min(11.5, step);
    c.fillStyle = tones.ink;
    c.font = `${font}px system-ui, sans-serif`;
    c.textBaseline = "middle";
    order.forEach((node, i) => {
      const name = short(page.names[node], 16), at = margin + (i + 0.5) * step;
      c.textAlign = "right";
      c.fillText(name, margin - 4, at, margin - 6);
      c.save();
      c.translate(at, margin - 4);
      c.rotate(-Math.PI / 2);
      c.textAlign = "left";
      c.fillText(name, 0, 0, margin - 6);
      c.restore();
    });
  }

  blocks(c, order) {
    const { page, step, margin } = this, end = margin + step * page.p;
    if (!page.grouped()) return;
    for (let i = 0; i < page.p; i++) {
      c.fillStyle = page.colour(order[i]);
      if (!this.labelled) {
        c.fillRect(margin - 10, margin + i * step, 8, step + 0.5);
        c.fillRect(margin + i * step, margin - 10, step + 0.5, 8);
      }
      if (i && page.groups[order[i]] !== page.groups[order[i - 1]]) {
        const at = margin + i * step;
        c.strokeStyle = tones.axis;
        c.beginPath(); c.moveTo(margin, at); c.lineTo(end, at); c.moveTo(at, margin); c.lineTo(at, end); c.stroke();
      }
    }
  }

  outline(c, order, j, k, colour, width, once) {
    const a = order.indexOf(j), b = order.indexOf(k), { step, margin } = this, grow = step < 6 ? 2 : 0;
    c.strokeStyle = colour;
    c.lineWidth = width;
    for (const [row, column] of once ? [[a, b]] : [[a, b], [b, a]])
      c.strokeRect(margin + column * step - grow, margin + row * step - grow, step + 2 * grow, step + 2 * grow);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(), factor = this.size / box.width;
    const at = (v) => Math.floor((v * factor - this.margin) / this.step);
    const column = at(event.clientX - box.left), row = at(event.clientY - box.top);
    const inside = (v) => v >= 0 && v < this.page.p;
    this.moveTo(inside(row) && inside(column) ? [row, column] : null);
  }

  key(event) {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (by) {
      const clip = (v) => Math.max(0, Math.min(this.page.p - 1, v)), stride = event.shiftKey ? 10 : 1;
      const [row, column] = this.cell || [0, 0];
      this.moveTo([clip(row + by[0] * stride), clip(column + by[1] * stride)]);
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      this.choose();
      event.preventDefault();
    }
  }

  moveTo(cell) {
    if (String(cell) === String(this.cell)) return;
    this.cell = cell;
    this.draw();
    byId("heat-says").textContent = cell ? this.says() : "";
  }

  says() {
    const order = this.page.order(), j = order[this.cell[0]], k = order[this.cell[1]];
    return j === k ? this.page.names[j] : this.page.says(this.page.field.pair(j, k));
  }

  choose() {
    if (!this.cell || this.cell[0] === this.cell[1]) return;
    const order = this.page.order();
    this.page.toggle(this.page.field.pair(order[this.cell[0]], order[this.cell[1]]));
  }
}
