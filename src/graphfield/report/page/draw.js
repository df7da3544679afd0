// Small things to draw with: elements, numbers and names as text, colours.

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

// A value of a covariate: a number, a level (which may be a number), or a date (days since 1970).
function told(c, value) {
  if (c.kind === "category") return String(value);
  return c.date ? dateText(value) : plain(value, c.decimals);
}

function dateText(days) {
  return new Date(Math.round(days) * 864e5).toISOString().slice(0, 10);
}

function percent(share) {
  const value = 100 * share;
  return `${value.toFixed(value < 10 && value > 0 ? 1 : 0)} %`;
}

// A q-value; what cannot be told is not a number. A value above the level of the page never reads as that level.
function rate(value) {
  if (Number.isNaN(value)) return "\u2013";
  const short = value.toFixed(3);
  return value < 0.001 ? "< 0.001" : short === "0.100" && value > 0.1 ? value.toPrecision(6) : short;
}

// Blue for negative, red for positive, the paper for zero: the stronger, the further from the paper.
const STOPS = {
  light: [[-1, [5, 60, 120]], [-0.66, [33, 102, 172]], [-0.33, [103, 169, 207]], [-0.08, [209, 229, 240]], [0, [255, 255, 255]],
    [0.08, [253, 224, 210]], [0.33, [239, 138, 98]], [0.66, [178, 24, 43]], [1, [120, 0, 30]]],
  dark: [[-1, [190, 220, 255]], [-0.66, [100, 165, 240]], [-0.33, [45, 100, 170]], [-0.08, [20, 42, 68]], [0, [15, 19, 24]],
    [0.08, [66, 26, 30]], [0.33, [160, 45, 50]], [0.66, [240, 105, 95]], [1, [255, 190, 180]]],
};
const SHADES = Object.fromEntries(Object.entries(STOPS).map(([name, stops]) => [name, Array.from({ length: 513 }, (_, i) => {
  const t = (i - 256) / 256;
  let s = 0;
  while (s < stops.length - 2 && t > stops[s + 1][0]) s++;
  const [a, from] = stops[s], [b, to] = stops[s + 1], share = (t - a) / (b - a);
  return from.map((v, c) => Math.round(v + share * (to[c] - v)));
})]));

// Colours are those of the style sheet, which has two sets of them.
const tones = { name: "light" };

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const style = getComputedStyle(document.documentElement);
  for (const tone of ["ink", "paper", "plus", "minus", "mark", "axis", "bars", "accent", "neutral", "self"]) tones[tone] = style.getPropertyValue(`--${tone}`).trim();
  tones.name = name;
}

const blank = () => (tones.name === "dark" ? "black" : "white");
const channels = (hex) => (hex.length === 4 ? [1, 2, 3].map((i) => 17 * parseInt(hex[i], 16)) : [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));

function shade(value, limit) {
  const t = Math.max(-1, Math.min(1, value / limit));
  return SHADES[tones.name][Math.round(256 + 256 * t)];
}

// Of edges that have no sign: paper for zero, grey for the strongest.
function neutralShade(value, limit) {
  const t = Math.min(1, Math.abs(value) / limit), to = channels(tones.neutral);
  return channels(tones.paper).map((from, c) => Math.round(from + t * (to[c] - from)));
}

const LINES = ["#0072B2", "#D55E00", "#009E73", "#9B4F96", "#6E7781", "#B8860B"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 2"];
const GROUPS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C6BB1", "#666666", "#A6761D", "#1B9E77", "#E7298A"];

// Names often differ at their beginning or at their end: both are kept.
function short(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) * 0.4);
  return text.slice(0, most - 1 - end) + "\u2026" + (end ? text.slice(-end) : "");
}

function sampleLine(n) {
  return svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, stroke: LINES[n], "stroke-width": 2.5, "stroke-dasharray": DASHES[n] || "none" }));
}

const RULER = document.createElement("canvas").getContext("2d");

// Pixels that a text takes, without touching the page.
function textWidth(text, font) {
  RULER.font = `${font}px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif`;
  return RULER.measureText(text).width;
}
