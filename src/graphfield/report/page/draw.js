// Small things to draw with: elements, numbers as text, colours, and one kind of chart.

function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  for (const child of children) node.append(child);
  return node;
}

const byId = (id) => document.getElementById(id);

function signed(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "\u2212" : "+") + text;
}

function plain(value, decimals) {
  const text = Number(value).toLocaleString("en", { maximumFractionDigits: decimals, useGrouping: Math.abs(value) >= 10000 });
  return text.replace("-", "\u2212");
}

// A value of a covariate: a number, a level, or a date (days since 1970).
function told(c, value) {
  if (c.kind === "category") return value;
  return c.date ? dateText(value) : plain(value, c.decimals);
}

function dateText(days) {
  return new Date(Math.round(days) * 864e5).toISOString().slice(0, 10);
}

function percent(share) {
  const value = 100 * share;
  return `${value.toFixed(value < 10 && value > 0 ? 1 : 0)} %`;
}

// Blue for negative, white for zero, red for positive.
const STOPS = [[-1, [5, 60, 120]], [-0.66, [33, 102, 172]], [-0.33, [103, 169, 207]], [-0.08, [209, 229, 240]], [0, [255, 255, 255]],
  [0.08, [253, 224, 210]], [0.33, [239, 138, 98]], [0.66, [178, 24, 43]], [1, [120, 0, 30]]];
const SHADES = Array.from({ length: 513 }, (_, i) => {
  const t = (i - 256) / 256;
  let s = 0;
  while (s < STOPS.length - 2 && t > STOPS[s + 1][0]) s++;
  const [a, from] = STOPS[s], [b, to] = STOPS[s + 1], share = (t - a) / (b - a);
  return from.map((v, c) => Math.round(v + share * (to[c] - v)));
});

function shade(value, limit) {
  const t = Math.max(-1, Math.min(1, value / limit));
  return SHADES[Math.round(256 + 256 * t)];
}

const LINES = ["#0072B2", "#D55E00", "#009E73", "#9B4F96", "#000000", "#B8860B"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 2"];
const GROUPS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C6BB1", "#666666", "#A6761D", "#1B9E77", "#E7298A"];

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.7);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

// Names often differ at their beginning or at their end: both are kept.
function short(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) * 0.4);
  return text.slice(0, most - 1 - end) + "\u2026" + (end ? text.slice(-end) : "");
}

// o: title, x: {low, high} or {levels}, y: [low, high], lines: [{points, colour, dash, label}], dots: [[x, y]],
// (points are [x, y] or [x, y, low, high], with an interval)
// at: x of the dotted line, bars: counts at the bottom, cut: values between -cut and cut are shaded, says: text for a reader;
// a line with edges, true or false for each point, is bold where they are true
function chart(box, o) {
  const width = Math.max(280, box.clientWidth || 380), height = Math.round(Math.min(250, width * 0.62));
  const left = 46, right = o.lines.length > 1 ? 22 : 12, top = o.title ? 26 : 10, bottom = o.xlabel ? 40 : 30;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": o.says || o.title || "" });
  const w = width - left - right, h = height - top - bottom, levels = o.x.levels;
  const sx = (v) => levels ? left + (w * (levels.indexOf(v) + 0.5)) / levels.length : left + (w * (v - o.x.low)) / (o.x.high - o.x.low || 1);
  const [low, high] = o.y, sy = (v) => top + h - (h * (v - low)) / (high - low || 1);
  if (o.title) root.append(svg("text", { class: "title", x: left, y: 16 }, short(o.title, Math.floor(width / 8))));
  if (o.bars) {
    const most = Math.max(...o.bars, 1), wide = w / o.bars.length;
    o.bars.forEach((n, i) => root.append(svg("rect", { x: left + i * wide, y: top + h - (22 * n) / most, width: Math.max(0.5, wide - (levels ? 12 : 0.5)), height: (22 * n) / most, fill: "#dfe4ea", transform: levels ? "translate(6 0)" : undefined })));
  }
  if (o.cut > 0)
    root.append(svg("rect", { x: left, width: w, y: sy(Math.min(high, o.cut)), height: Math.max(0, sy(Math.max(low, -o.cut)) - sy(Math.min(high, o.cut))), fill: "#8c959f", "fill-opacity": 0.1 }));
  for (const t of ticks(low, high, 5)) {
    root.append(svg("line", { class: t === 0 && low < 0 ? "axis" : "grid", x1: left, x2: left + w, y1: sy(t), y2: sy(t) }));
    root.append(svg("text", { x: left - 5, y: sy(t) + 4, "text-anchor": "end" }, plain(t, 6)));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: left + w, y1: top + h, y2: top + h }));
  if (levels) {
    const room = Math.max(3, Math.floor(w / levels.length / 6.2));
    levels.forEach((l) => root.append(svg("text", { x: sx(l), y: top + h + 15, "text-anchor": "middle" }, short(String(l), room), svg("title", {}, String(l)))));
  } else {
    const marks = ticks(o.x.low, o.x.high, Math.max(3, Math.floor(w / (o.x.date ? 110 : 70))));
    for (const t of marks) {
      root.append(svg("line", { class: "axis", x1: sx(t), x2: sx(t), y1: top + h, y2: top + h + 4 }));
      root.append(svg("text", { x: sx(t), y: top + h + 16, "text-anchor": "middle" }, o.x.date ? dateText(t) : plain(t, 8)));
    }
  }
  if (o.xlabel) root.append(svg("text", { x: left + w / 2, y: height - 4, "text-anchor": "middle" }, o.xlabel));
  for (const [x, text] of o.marks || []) {
    root.append(svg("line", { class: "axis", x1: sx(x), x2: sx(x), y1: top, y2: top + h, "stroke-dasharray": "2 3" }));
    root.append(svg("text", { x: sx(x) + 3, y: top + 9 }, text));
  }
  (o.dots || []).forEach(([x, y, shift]) => root.append(svg("circle", { cx: sx(x) + (shift || 0) * (levels ? w / levels.length : 0), cy: sy(y), r: 2, fill: "#0b5cad", "fill-opacity": 0.28 })));
  if (o.at !== undefined) root.append(svg("line", { x1: sx(o.at), x2: sx(o.at), y1: top, y2: top + h, stroke: "#1b1f24", "stroke-dasharray": "2 3" }));
  const ends = [];
  for (const [n, line] of o.lines.entries()) {
    const aside = levels && line.points[0]?.length > 2 ? Math.min(7, w / levels.length / 7) * (n - (o.lines.length - 1) / 2) : 0;
    const points = line.points.map(([x, y]) => [sx(x) + aside, sy(y)]);
    const band = line.points.filter((q) => q.length > 2).map(([x, , low, high]) => [sx(x) + aside, sy(low), sy(high)]);
    if (levels) band.forEach(([x, y1, y2]) => root.append(svg("line", { class: "interval", x1: x, x2: x, y1, y2, stroke: line.colour, "stroke-width": 2 })));
    else if (band.length) root.append(svg("polygon", { class: "interval", points: [...band.map((q) => [q[0], q[1]]), ...band.map((q) => [q[0], q[2]]).reverse()].map((q) => q.map((v) => v.toFixed(1)).join(",")).join(" "), fill: line.colour, "fill-opacity": 0.12 }));
    const there = (i) => !line.edges || line.edges[i], stroke = (own, wide, opacity) => root.append(svg("polyline", { class: wide > 1 ? "curve" : "curve faint", points: own.map((q) => q.map((v) => v.toFixed(1)).join(",")).join(" "), fill: "none", stroke: line.colour, "stroke-width": wide, "stroke-dasharray": line.dash || undefined, "stroke-opacity": opacity }));
    if (levels) {
      points.forEach(([x, y], i) => root.append(svg("circle", { cx: x, cy: y, r: there(i) ? 4 : 3, fill: there(i) ? line.colour : "#fff", stroke: line.colour })));
      stroke(points, 1, 0.5);
    } else for (let i = 0; i < points.length; ) {
      let end = i + 1;
      while (end < points.length && there(end) === there(i)) end++;
      stroke(points.slice(i, end + 1), there(i) ? 2.2 : 1, there(i) ? 1 : 0.75);
      i = end;
    }
    if (line.label && points.length) ends.push({ y: points[points.length - 1][1], line });
  }
  ends.sort((a, b) => a.y - b.y);
  ends.forEach((e, i) => { if (i && e.y < ends[i - 1].y + 11) e.y = ends[i - 1].y + 11; });
  for (const e of ends) root.append(svg("text", { x: left + w + 4, y: e.y + 4, fill: e.line.colour, style: `fill:${e.line.colour};font-weight:650` }, e.line.label));
  return root;
}

function sampleLine(n) {
  return svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, stroke: LINES[n], "stroke-width": 2.5, "stroke-dasharray": DASHES[n] || "none" }));
}
