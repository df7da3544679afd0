// Marks of an axis: where they are, and names of levels that do not run into each other.

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.7);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

const TICK_FONT = 11, TICK_GAP = 6, TILT = 40; // pixels, pixels, degrees

// How the names of levels stand below an axis: level where they have room, tilted where not, and so many that even
// tilted ones would touch, only every so-manyth.
function levelTicks(levels, width) {
  const slot = width / levels.length, names = levels.map(String);
  const widest = Math.max(...names.map((name) => textWidth(short(name, 22), TICK_FONT)));
  if (widest + TICK_GAP <= slot) return { texts: names.map((name) => short(name, 22)), tilt: 0, height: 30 };
  const lines = 1.25 * TICK_FONT / Math.sin((TILT * Math.PI) / 180), every = Math.ceil(lines / slot);
  const texts = names.map((name, i) => (i % every ? "" : short(name, 16)));
  const long = Math.max(...texts.map((text) => textWidth(text, TICK_FONT)));
  return { texts, tilt: TILT, height: 22 + long * Math.sin((TILT * Math.PI) / 180) };
}

// Of labels at ascending places, those that do not touch the one before.
function apart(labels, width = (text) => textWidth(text, TICK_FONT)) {
  let end = -Infinity;
  return labels.filter(({ at, text }) => {
    const half = width(text) / 2;
    if (at - half < end + TICK_GAP) return false;
    end = at + half;
    return true;
  });
}
