// Names of nodes in the network: as much of each as there is room for, where it hides least.

const WHOLE = 40, LONGEST = 18, SHORTEST = 6; // letters of a label: in a picture with much room, mostly, and in one with little
const FILL = 0.36, FULL = 0.46; // share of the picture that dots and labels should take, and may before names get shorter
const ALONE = 260, EACH = 60; // the height that a picture has at most for few nodes
const TALLEST = 3.5; // times the width, on narrow screens with many nodes

// What all names begin with, up to the last separator; it is left out where names have to be short.
function commonStart(names) {
  if (names.length < 3) return "";
  let start = names[0];
  for (const name of names) while (!name.startsWith(start)) start = start.slice(0, -1);
  start = start.replace(/[A-Za-z0-9]+$/, "");
  return names.includes(start) ? "" : start;
}

function labelTexts(names, most, start) {
  return names.map((name) => short(name.length > most ? name.slice(start.length) : name, most));
}

// Font, texts and height of a picture of this width in which all labels find a place.
function labelPlan(names, start, width) {
  const n = names.length, font = n <= 40 && width > 500 ? 12 : n <= 100 ? 11 : n <= 200 ? 10 : 9, radius = n <= 40 ? 6 : n <= 120 ? 4.5 : 3.5;
  const low = n ? Math.round(Math.min(0.8 * width, 740, ALONE + EACH * n)) : 0, high = width * (width > 700 ? 0.95 : 1.25);
  for (let most = WHOLE; ; most--) {
    const texts = labelTexts(names, most, start), boxes = texts.map((text) => labelBox(text, font, radius));
    const tall = boxes.reduce((sum, [l, u, r, d]) => sum + (l + r) * (u + d), 0) / width, wide = Math.max(...boxes.map(([l, , r]) => l + r));
    const fits = most > LONGEST ? tall / FILL <= low && 3 * wide <= width : tall / FULL <= high;
    if (fits || most === SHORTEST) return { font, radius, texts, boxes, height: Math.round(Math.max(low, Math.min(tall / FILL, fits ? high : TALLEST * width))) };
  }
}

// Around a node, its dot with the name below.
function labelBox(text, font, radius) {
  const half = Math.max(radius, textWidth(text, font) / 2) + 3;
  return [half, radius + 2, half, radius + font + 5];
}

// Per node {anchor, dx, dy, free}: below its dot, or where the name crosses fewer edges and nothing else.
function placeLabels(plan, x, y, edges, width, height) {
  const { font, radius } = plan, away = radius + 3, n = x.length, wide = plan.texts.map((text) => textWidth(text, font));
  const spots = [["middle", 0, away + font - 2], ["middle", 0, -away], ["start", away + 1, font * 0.35], ["end", -away - 1, font * 0.35],
    ["start", away - 2, -away + 3], ["end", -away + 2, -away + 3], ["start", away - 2, away + font - 4], ["end", -away + 2, away + font - 4]];
  const boxAt = (i, [anchor, dx, dy]) => {
    const left = x[i] + dx - (anchor === "middle" ? wide[i] / 2 : anchor === "end" ? wide[i] : 0), base = y[i] + dy;
    return [left - 1, base - font * 0.85, left + wide[i] + 1, base + font * 0.25];
  };
  const taken = Array.from({ length: n }, (_, i) => boxAt(i, spots[0])), found = new Array(n);
  const cost = (i, box) => {
    let sum = box[0] < 0 || box[1] < 0 || box[2] > width || box[3] > height ? 100 : 0;
    for (let k = 0; k < n; k++) {
      if (k === i) continue;
      if (overlap(box, taken[k])) sum += 10;
      if (x[k] > box[0] - radius && x[k] < box[2] + radius && y[k] > box[1] - radius && y[k] < box[3] + radius) sum += 6;
    }
    for (const [a, b, weight] of edges) if (a !== i && b !== i ? crosses(box, x[a], y[a], x[b], y[b]) : crosses(box, (x[a] + x[b]) / 2, (y[a] + y[b]) / 2, a === i ? x[a] : x[b], a === i ? y[a] : y[b])) sum += 0.4 + weight;
    return sum;
  };
  for (let i = 0; i < n; i++) {
    const tried = spots.map((spot, s) => { const box = boxAt(i, spot); return { spot, box, cost: cost(i, box) + 0.02 * s }; });
    const best = tried.reduce((a, b) => (b.cost < a.cost ? b : a));
    taken[i] = best.box;
    found[i] = best;
  }
  return found.map(({ spot: [anchor, dx, dy], box }, i) => ({ anchor, dx, dy, free: !taken.some((other, k) => k < i && overlap(box, other)) }));
}

function overlap(a, b) {
  return a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];
}

// Whether a line passes through a box [left, top, right, bottom]. Called very often: nothing is allocated.
function crosses(box, x1, y1, x2, y2) {
  if (Math.max(x1, x2) < box[0] || Math.min(x1, x2) > box[2] || Math.max(y1, y2) < box[1] || Math.min(y1, y2) > box[3]) return false;
  const side = (x, y) => Math.sign((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1));
  const corners = side(box[0], box[1]) + side(box[2], box[1]) + side(box[0], box[3]) + side(box[2], box[3]);
  return Math.abs(corners) < 4; // all corners on one side: it passes by
}
