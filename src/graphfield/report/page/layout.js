// Where nodes stand: springs along edges, filled into a box of any shape, or a circle by groups. Nothing is random:
// the same page always looks the same.

const SPRING_WORK = 1.2e7; // pairs of nodes times rounds, so that a layout takes a bounded time
const GRAVITY = 1.5; // keeps parts without an edge between them in one picture
const PUSHES = 300;

// Places in the unit square; edges are [a, b, weight from 0 to 1], order is how nodes stand on a circle at first.
function springLayout(order, edges) {
  const n = order.length, x = new Float64Array(n), y = new Float64Array(n);
  order.forEach((node, i) => { x[node] = Math.sin((2 * Math.PI * i) / n); y[node] = -Math.cos((2 * Math.PI * i) / n); });
  const rounds = Math.round(Math.max(20, Math.min(250, SPRING_WORK / (n * n)))), length = 1.6 / Math.sqrt(n);
  for (let round = 0; round < rounds; round++) relax(x, y, edges, length, 0.2 * (1 - round / rounds) ** 1.5);
  return { x: filledOut(x), y: filledOut(y) };
}

// One round: all nodes push each other, edges pull; nobody moves further than `most`.
function relax(x, y, edges, length, most) {
  const n = x.length, fx = new Float64Array(n), fy = new Float64Array(n), push = length * length;
  for (let a = 0; a < n; a++) {
    for (let b = a + 1; b < n; b++) {
      const dx = x[a] - x[b], dy = y[a] - y[b], f = push / (dx * dx + dy * dy + 1e-6);
      fx[a] += f * dx; fy[a] += f * dy;
      fx[b] -= f * dx; fy[b] -= f * dy;
    }
    fx[a] -= GRAVITY * length * x[a];
    fy[a] -= GRAVITY * length * y[a];
  }
  for (const [a, b, weight] of edges) {
    const dx = x[a] - x[b], dy = y[a] - y[b], f = ((0.3 + 0.7 * weight) * Math.hypot(dx, dy)) / length;
    fx[a] -= f * dx; fy[a] -= f * dy;
    fx[b] += f * dx; fy[b] += f * dy;
  }
  for (let a = 0; a < n; a++) {
    const size = Math.hypot(fx[a], fy[a]) || 1, step = Math.min(size, most) / size;
    x[a] += fx[a] * step;
    y[a] += fy[a] * step;
  }
}

// From 0 to 1, half by value and half by rank: a far node must not press the others together.
function filledOut(values) {
  const order = Array.from(values.keys()).sort((a, b) => values[a] - values[b]), last = order.length - 1;
  const low = values[order[0]], span = values[order[last]] - low || 1, out = new Float64Array(values.length);
  order.forEach((node, rank) => { out[node] = last ? (rank / last + (values[node] - low) / span) / 2 : 0.5; });
  return out;
}

// Move boxes apart within width x height, and nodes off edges that are not theirs; boxes are [left, up, right, down]
// around each node.
function separate(x, y, boxes, edges, clearance, width, height) {
  const n = x.length;
  const inside = (a) => {
    x[a] = Math.max(boxes[a][0], Math.min(width - boxes[a][2], x[a]));
    y[a] = Math.max(boxes[a][1], Math.min(height - boxes[a][3], y[a]));
  };
  for (let a = 0; a < n; a++) inside(a);
  const order = boxes.map((_, a) => a), tall = Math.max(0, ...boxes.map((box) => box[1] + box[3]));
  const aside = Math.min(PUSHES / 2, SPRING_WORK / (n * n) / 2);
  for (let round = 0, moved = true; moved && round < PUSHES; round++) {
    moved = round < aside && stepAside(x, y, edges, clearance); // in the end names matter more
    order.sort((a, b) => y[a] - y[b]);
    for (let i = 0; i < n; i++)
      for (let k = i + 1; k < n && y[order[k]] - y[order[i]] < 2 * tall; k++) moved = pushApart(x, y, boxes, order[i], order[k]) || moved;
    for (let a = 0; a < n; a++) inside(a);
  }
}

// Nodes that stand on an edge of others look as if they ended it.
function stepAside(x, y, edges, clearance) {
  let moved = false;
  for (const [a, b] of edges) {
    const ex = x[b] - x[a], ey = y[b] - y[a], length = Math.hypot(ex, ey) || 1;
    for (let k = 0; k < x.length; k++) {
      if (k === a || k === b) continue;
      const along = ((x[k] - x[a]) * ex + (y[k] - y[a]) * ey) / length, off = ((x[k] - x[a]) * ey - (y[k] - y[a]) * ex) / length;
      if (along < 0 || along > length || Math.abs(off) >= clearance) continue;
      const by = (off < 0 ? -1 : 1) * (clearance - Math.abs(off)) / 2;
      x[k] += (by * ey) / length;
      y[k] -= (by * ex) / length;
      moved = true;
    }
  }
  return moved;
}

// Along the axis on which they overlap less.
function pushApart(x, y, boxes, a, b) {
  const [l1, u1, r1, d1] = boxes[a], [l2, u2, r2, d2] = boxes[b];
  const right = x[a] < x[b], down = y[a] < y[b];
  const across = right ? x[a] + r1 - (x[b] - l2) : x[b] + r2 - (x[a] - l1);
  if (across <= 0) return false;
  const along = down ? y[a] + d1 - (y[b] - u2) : y[b] + d2 - (y[a] - u1);
  if (along <= 0) return false;
  const by = Math.min(across, along) / 2 + 0.25;
  if (across < along) { x[a] += right ? -by : by; x[b] += right ? by : -by; }
  else { y[a] += down ? -by : by; y[b] += down ? by : -by; }
  return true;
}

// Places around a circle, with a gap between groups; angle is clockwise from the top.
function circleLayout(groups, radius, cx, cy) {
  const steps = groups.map((g, i) => (g === groups.at(i - 1) || groups.length < 2 ? 1 : 2)), total = steps.reduce((a, b) => a + b, 0);
  let sum = 0;
  const angle = steps.map((s) => (2 * Math.PI * (sum += s)) / total);
  return { angle, x: angle.map((t) => cx + radius * Math.sin(t)), y: angle.map((t) => cy - radius * Math.cos(t)) };
}
