// Marks of an axis: where they are, and names of levels that do not run into each other.

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.7);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

const MONTHS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

// Marks of dates (days since 1970): first days of months or years, or of any days where there are few.
function dateTicks(low, high, count) {
  const step = MONTHS.find((m) => (high - low) / (30.44 * m) <= count) || MONTHS.at(-1), first = new Date(low * 864e5);
  if ((high - low) / 30.44 < 2) return ticks(low, high, count).filter(Number.isInteger);
  const out = [];
  for (let month = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / step) * step; ; month += step) {
    const day = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1) / 864e5;
    if (day > high) return out;
    if (day >= low) out.push(day);
  }
}

const TICK_FONT = 11, TICK_GAP = 6; // pixels
const TILTS = [40, 60, 90]; // degrees
const ENOUGH = 12, MOST = 18; // letters by which names can mostly be told apart, and of one that is tilted
const NARROW = 18; // levels whose names find room in the narrowest chart; one of more takes the width of the page

// How the names of levels stand below an axis: level where they have room, if need be shortened; tilted where not, none
// beyond the left of the chart; and where even upright ones would touch, only every so-manyth.
function levelTicks(levels, width, left) {
  const slot = width / levels.length, room = Math.floor((slot - TICK_GAP) / (0.58 * TICK_FONT));
  const flat = levels.map((level) => short(String(level), Math.max(ENOUGH, room)));
  if (new Set(flat).size === levels.length && flat.every((text) => textWidth(text, TICK_FONT) + TICK_GAP <= slot)) return { texts: flat, tilt: 0, height: 30 };
  const apart = (tilt) => (1.2 * TICK_FONT) / Math.sin((tilt * Math.PI) / 180), tilt = TILTS.find((t) => apart(t) <= slot) || TILTS.at(-1);
  const every = Math.ceil(apart(tilt) / slot), flatness = Math.cos((tilt * Math.PI) / 180);
  const texts = levels.map((level, i) => (i % every ? "" : shortened(String(level), MOST, (left + (i + 0.5) * slot) / flatness)));
  const long = Math.max(...texts.map((text) => textWidth(text, TICK_FONT)));
  return { texts, tilt, height: 22 + long * Math.sin((tilt * Math.PI) / 180) };
}

// As many letters as fit into so many pixels.
function shortened(text, most, pixels) {
  while (most > 1 && textWidth(short(text, most), TICK_FONT) > pixels) most--;
  return short(text, most);
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
