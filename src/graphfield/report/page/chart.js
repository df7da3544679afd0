// One kind of chart: lines with intervals, points, bars, against a number, a date or levels. Only levels that have an
// order are joined: what lies between others means nothing.

// o: title, x: {low, high} or {levels}, y: [low, high], lines: [{points, colour, dash, label}], dots: [[x, y]],
// (y is null where it is not known; points are [x, y] or [x, y, low, high], with an interval, or [x, y, low, high, lowAll, highAll], with a wider one around it)
// share: whether y is told in percent, at: x of the dotted line, bars: counts at the bottom, cut: values between -cut and cut are shaded, says: text for a reader;
// a line with edges, true or false for each point, is bold where they are true
function chart(box, o) {
  const f = chartFrame(box, o);
  if (o.title) f.root.append(svg("text", { class: "title", x: f.left, y: 16 }, short(o.title, Math.floor(f.width / 8))));
  chartGround(f, o);
  chartAxes(f, o);
  chartMarks(f, o);
  chartEnds(f, o.lines, o.lines.map((line, n) => (f.levels ? levelLine(f, line, n, o) : numberLine(f, line, o.lines.length === 1))));
  if (f.levels) levelHovers(f, o);
  return f.root;
}

// Asking for the width of a box while the page changes makes the browser lay all of it out: it is asked once per window.
const WIDTHS = new WeakMap();
function widthOf(box) {
  const key = `${window.innerWidth} ${box.className}`;
  if (!WIDTHS.get(box)?.[key]) WIDTHS.set(box, { [key]: box.clientWidth });
  return WIDTHS.get(box)[key];
}

function chartFrame(box, o) {
  const width = Math.max(280, widthOf(box) || 380), left = 46, right = o.lines.length > 1 ? 22 : 12, top = o.title ? 26 : 10;
  const w = width - left - right, levels = o.x.levels, names = levels && levelTicks(levels, w, left);
  const bottom = levels ? names.height : o.xlabel ? 40 : 30, h = Math.round(Math.min(250, width * 0.62)) - top - 30, height = top + h + bottom;
  const [low, high] = o.y, sy = (v) => top + h - (h * (v - low)) / (high - low || 1);
  const sx = (v) => levels ? left + (w * (levels.indexOf(v) + 0.5)) / levels.length : left + (w * (v - o.x.low)) / (o.x.high - o.x.low || 1);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": o.says || o.title || "" });
  return { root, width, height, left, top, w, h, levels, names, low, high, sx, sy };
}

function chartGround({ root, left, top, w, h, levels, low, high, sy }, o) {
  if (o.bars) {
    const most = Math.max(...o.bars, 1), wide = w / o.bars.length, gap = levels ? Math.min(12, wide / 3) : 0.5;
    o.bars.forEach((n, i) => root.append(svg("rect", { x: left + i * wide + (levels ? gap / 2 : 0), y: top + h - (22 * n) / most, width: Math.max(0.5, wide - gap), height: (22 * n) / most, fill: tones.bars })));
  }
  if (o.cut > 0)
    root.append(svg("rect", { x: left, width: w, y: sy(Math.min(high, o.cut)), height: Math.max(0, sy(Math.max(low, -o.cut)) - sy(Math.min(high, o.cut))), fill: tones.axis, "fill-opacity": 0.1 }));
}

function chartAxes(f, o) {
  const { root, left, top, w, h, low, high, sx, sy } = f, base = top + h;
  for (const t of ticks(low, high, 5)) {
    root.append(svg("line", { class: t === 0 && low < 0 ? "axis" : "grid", x1: left, x2: left + w, y1: sy(t), y2: sy(t) }));
    root.append(svg("text", { x: left - 5, y: sy(t) + 4, "text-anchor": "end" }, o.share ? `${plain(100 * t, 4)} %` : plain(t, 6)));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: left + w, y1: base, y2: base }));
  if (f.levels) levelNames(f, base);
  else {
    const at = (o.x.date ? dateTicks : ticks)(o.x.low, o.x.high, Math.max(3, Math.floor(w / (o.x.date ? 90 : 70))));
    for (const t of at) root.append(svg("line", { class: "axis", x1: sx(t), x2: sx(t), y1: base, y2: base + 4 }));
    for (const { at: x, text } of apart(at.map((t) => ({ at: sx(t), text: o.x.date ? dateText(t) : plain(t, 8) }))))
      root.append(svg("text", { class: "tick", x, y: base + 16, "text-anchor": "middle" }, text));
  }
  if (o.xlabel) root.append(svg("text", { x: left + w / 2, y: f.height - 4, "text-anchor": "middle" }, o.xlabel));
}

function levelNames({ root, levels, names, sx }, base) {
  levels.forEach((level, i) => {
    if (!names.texts[i]) return;
    const x = sx(level), tilted = { x, y: base + 12, "text-anchor": "end", transform: `rotate(${-names.tilt} ${x} ${base + 12})` };
    root.append(svg("text", { class: "tick", ...(names.tilt ? tilted : { x, y: base + 15, "text-anchor": "middle" }) }, names.texts[i], svg("title", {}, String(level))));
  });
}

// Which level it is, and how many rows it has, wherever one points.
function levelHovers({ root, left, top, w, levels, height }, o) {
  const slot = w / levels.length;
  levels.forEach((level, i) => root.append(svg("rect", { class: "level", x: left + i * slot, y: top, width: slot, height: height - top, fill: "transparent" }, svg("title", {}, o.bars ? `${level} (${o.bars[i]} of the rows shown)` : String(level)))));
}

function chartMarks({ root, top, w, h, levels, sx, sy }, o) {
  for (const [x, text, line = 0] of o.marks || []) {
    root.append(svg("line", { class: "axis", x1: sx(x), x2: sx(x), y1: top, y2: top + h, "stroke-dasharray": "2 3" }));
    root.append(svg("text", { x: sx(x) + 3, y: top + 9 + 12 * line }, text));
  }
  (o.dots || []).forEach(([x, y, shift]) => root.append(svg("circle", { cx: sx(x) + (shift || 0) * (levels ? w / levels.length : 0), cy: sy(y), r: 2, fill: tones.accent, "fill-opacity": 0.28 })));
  if (o.at !== undefined) root.append(svg("line", { x1: sx(o.at), x2: sx(o.at), y1: top, y2: top + h, stroke: tones.ink, "stroke-dasharray": "2 3" }));
}

const joined = (points) => points.map((q) => q.map((v) => v.toFixed(1)).join(",")).join(" ");

function stroked(root, line, points, wide, opacity) {
  root.append(svg("polyline", { class: wide > 1 ? "curve" : "curve faint", points: joined(points), fill: "none", stroke: line.colour, "stroke-width": wide, "stroke-dasharray": line.dash || undefined, "stroke-opacity": opacity }));
}

// Over levels: points, with bars of intervals, those of several lines beside each other. Gives the last point.
function levelLine({ root, w, levels, sx, sy }, whole, n, o) {
  const known = (_, i) => whole.points[i][1] !== null, line = { ...whole, points: whole.points.filter(known), edges: whole.edges?.filter(known) };
  const aside = Math.min(9, w / levels.length / 7) * (n - (o.lines.length - 1) / 2);
  const points = line.points.map(([x, y]) => [sx(x) + aside, sy(y)]);
  for (const [at, wide] of [[4, 1], [2, 3]])
    for (const q of line.points.filter((q) => q.length > at))
      root.append(svg("line", { class: "interval", x1: sx(q[0]) + aside, x2: sx(q[0]) + aside, y1: sy(q[at]), y2: sy(q[at + 1]), stroke: line.colour, "stroke-width": wide }));
  points.forEach(([x, y], i) => {
    const there = !line.edges || line.edges[i];
    root.append(svg("circle", { cx: x, cy: y, r: there ? 4.5 : 3.5, fill: there ? line.colour : tones.paper, stroke: line.colour }));
  });
  if (o.x.ordered) stroked(root, line, points, 1, 0.5);
  return points.at(-1);
}

// A line over numbers, in parts where some of them are not known. Gives the last point.
function numberLine(f, line, alone) {
  let last;
  for (let i = 0, end; i < line.points.length; i = end + 1) {
    for (end = i; end < line.points.length && line.points[end][1] !== null; ) end++;
    if (end > i) last = numberPart(f, { ...line, points: line.points.slice(i, end), edges: line.edges?.slice(i, end) }, alone);
  }
  return last;
}

// With its band; with both where it is alone.
function numberPart({ root, sx, sy }, line, alone) {
  const points = line.points.map(([x, y]) => [sx(x), sy(y)]), there = (i) => !line.edges || line.edges[i];
  for (const at of alone ? [4, 2] : [2]) {
    const band = line.points.filter((q) => q.length > at).map((q) => [sx(q[0]), sy(q[at]), sy(q[at + 1])]);
    if (band.length) root.append(svg("polygon", { class: "interval", points: joined([...band.map((q) => [q[0], q[1]]), ...band.map((q) => [q[0], q[2]]).reverse()]), fill: line.colour, "fill-opacity": 0.12 }));
  }
  for (let i = 0; i < points.length; ) {
    let end = i + 1;
    while (end < points.length && there(end) === there(i)) end++;
    stroked(root, line, points.slice(i, end + 1), there(i) ? 2.2 : 1, there(i) ? 1 : 0.75);
    i = end;
  }
  return points.at(-1);
}

// Labels beside the last points, moved apart.
function chartEnds({ root, levels }, lines, last) {
  const ends = lines.map((line, n) => ({ line, y: last[n]?.[1] })).filter((e) => e.line.label && e.y !== undefined).sort((a, b) => a.y - b.y);
  const x = Math.max(...last.map((point) => point?.[0] || 0)) + (levels ? 9 : 4);
  ends.forEach((e, i) => { if (i && e.y < ends[i - 1].y + 11) e.y = ends[i - 1].y + 11; });
  for (const e of ends) root.append(svg("text", { x, y: e.y + 4, style: `fill:${e.line.colour};font-weight:650` }, e.line.label));
}
