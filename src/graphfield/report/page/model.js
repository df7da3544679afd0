// The fitted model: arrays out of base64, and the program of report/program.py carried out at one z.

function decodeBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

// No correlation is more than 1, but a regression may overshoot (graphs/strength.py).
const within = (value) => Math.min(1, Math.max(-1, value));

function fromHalf(h) {
  const exponent = (h >> 10) & 31, fraction = h & 1023, sign = h & 32768 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function readArray(buffer, entry) {
  const { type, start, length } = entry;
  if (type === "float32") return new Float32Array(buffer, start, length);
  if (type === "int32") return new Int32Array(buffer, start, length);
  const out = new Float32Array(length);
  if (type === "float16") {
    const halves = new Uint16Array(buffer, start, length);
    for (let i = 0; i < length; i++) out[i] = fromHalf(halves[i]);
  } else {
    const whole = new Int16Array(buffer, start, length);
    for (let i = 0; i < length; i++) out[i] = whole[i] * entry.unit;
  }
  return out;
}

// Replace every {type, start, length} in a program by its numbers.
function withArrays(value, buffer) {
  if (Array.isArray(value)) return value.map((v) => withArrays(v, buffer));
  if (value === null || typeof value !== "object") return value;
  if ("type" in value && "start" in value && "length" in value) return readArray(buffer, value);
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withArrays(v, buffer)]));
}

function encoded(inputs, z) {
  const x = [];
  for (const c of inputs.numeric) {
    const value = Math.min(Math.max(Number(z[c.name]), c.low), c.high);
    x.push((value - c.mean) / c.scale);
  }
  for (const c of inputs.categorical) {
    const width = c.table.length / (c.levels.length + 1);
    let level = c.levels.indexOf(String(z[c.name]));
    if (level < 0) level = c.levels.length;
    for (let i = 0; i < width; i++) x.push(c.table[level * width + i]);
  }
  return x;
}

const STEPS = {
  affine(u, step) {
    const [rows, columns] = step.shape;
    const out = Array.from(step.bias);
    for (let i = 0; i < rows; i++) {
      const value = u[i];
      if (value !== 0) for (let j = 0; j < columns; j++) out[j] += value * step.weight[i * columns + j];
    }
    return out;
  },
  relu: (u) => u.map((v) => Math.max(v, 0)),
  join: (u, step, x) => x.concat(u),
  one: (u) => u.concat([1]),
  softmax(u) {
    const top = Math.max(...u), e = u.map((v) => Math.exp(v - top));
    const sum = e.reduce((a, b) => a + b, 0);
    return e.map((v) => v / sum);
  },
  grid(u, step) {
    let weights = [1], at = 0;
    for (const axis of step.axes) {
      let own;
      if (axis.knots) {
        own = hat(u[at], axis.knots);
        at += 1;
      } else {
        own = u.slice(at, at + axis.levels);
        at += axis.levels;
      }
      weights = weights.flatMap((w) => own.map((o) => w * o));
    }
    return weights;
  },
};

function hat(value, knots) {
  const out = new Array(knots.length).fill(0), last = knots.length - 1;
  if (value <= knots[0]) { out[0] = 1; return out; }
  if (value >= knots[last]) { out[last] = 1; return out; }
  let i = 0;
  while (value > knots[i + 1]) i++;
  const share = (value - knots[i]) / (knots[i + 1] - knots[i]);
  out[i] = 1 - share;
  out[i + 1] = share;
  return out;
}

function featuresAt(features, z) {
  const x = encoded(features.inputs, z);
  let u = x;
  for (const step of features.steps) u = STEPS[step.op](u, step, x);
  return u;
}

// A field of graphs: graphAt(z) gives the signed partial correlation of every pair j < k and the weaker of its
// two directed strengths, by which the AND rule decides whether there is an edge.
class GraphField {
  constructor(program, p) {
    this.program = program;
    this.p = p;
    this.pairs = (p * (p - 1)) / 2;
    this.first = new Uint16Array(this.pairs);
    this.second = new Uint16Array(this.pairs);
    for (let j = 0, i = 0; j < p; j++)
      for (let k = j + 1; k < p; k++, i++) { this.first[i] = j; this.second[i] = k; }
    this.forward = new Float64Array(this.pairs);
    this.backward = new Float64Array(this.pairs);
  }

  pair(j, k) {
    if (j > k) [j, k] = [k, j];
    return j * this.p - (j * (j + 1)) / 2 + k - j - 1;
  }

  graphAt(z) {
    this.forward.fill(0);
    this.backward.fill(0);
    const variance = new Float64Array(this.p);
    this.add(this.program, z, 1, variance, null);
    return this.finished(variance, this.forward, this.backward, this.first, this.second);
  }

  // The same for a few pairs only, without touching the others.
  edgesAt(z, wanted, program = this.program) {
    const forward = new Float64Array(wanted.length), backward = new Float64Array(wanted.length);
    const variance = new Float64Array(this.p);
    this.add(program, z, 1, variance, { wanted, forward, backward });
    const first = wanted.map((i) => this.first[i]), second = wanted.map((i) => this.second[i]);
    return this.finished(variance, forward, backward, first, second);
  }

  // Standard deviation over the members of an average.
  spreadAt(z, wanted) {
    const members = this.program.parts.map((part) => this.edgesAt(z, wanted, part).partial), n = members.length;
    return wanted.map((_, i) => {
      const mean = members.reduce((sum, own) => sum + own[i], 0) / n;
      return Math.sqrt(members.reduce((sum, own) => sum + (own[i] - mean) ** 2, 0) / (n - 1));
    });
  }

  finished(variance, forward, backward, first, second) {
    const n = forward.length, partial = new Float32Array(n), weaker = new Float32Array(n);
    const scale = variance.map(Math.sqrt);
    for (let i = 0; i < n; i++) {
      const ratio = scale[second[i]] / scale[first[i]];
      const a = within(forward[i] * ratio), b = within(backward[i] / ratio);
      partial[i] = (a + b) / 2;
      weaker[i] = Math.min(Math.abs(a), Math.abs(b), Math.abs(a + b) / 2);
    }
    return { partial, weaker };
  }

  add(part, z, weight, variance, few) {
    this[part.kind](part, z, weight, variance, few);
  }

  average(part, z, weight, variance, few) {
    part.parts.forEach((own, i) => this.add(own, z, weight * part.weights[i], variance, few));
  }

  choice(part, z, weight, variance, few) {
    const x = featuresAt(part.features, z), t = part.tree;
    let node = 0;
    while (t.left[node] >= 0)
      node = Math.fround(x[t.feature[node]]) <= t.threshold[node] ? t.left[node] : t.right[node];
    this.add(part.parts[t.part[node]], z, weight, variance, few);
  }

  linear(part, z, weight, variance, few) {
    const u = featuresAt(part.features, z), count = part.pairs.length;
    for (let j = 0; j < this.p; j++) variance[j] += weight * part.variance[j];
    if (few) {
      few.wanted.forEach((pair, i) => {
        const at = position(part.pairs, pair);
        if (at < 0) return;
        for (let r = 0; r < u.length; r++) {
          few.forward[i] += weight * u[r] * part.forward[r * count + at];
          few.backward[i] += weight * u[r] * part.backward[r * count + at];
        }
      });
      return;
    }
    for (let r = 0; r < u.length; r++) {
      const w = weight * u[r], start = r * count;
      if (w === 0) continue;
      for (let i = 0; i < count; i++) {
        this.forward[part.pairs[i]] += w * part.forward[start + i];
        this.backward[part.pairs[i]] += w * part.backward[start + i];
      }
    }
  }

  // Into arrays of its own, then times the units and the residual scales at z.
  scaled(part, z, weight, variance, few) {
    const [unit, residual] = [part.unit, part.residual].map((f) => f && featuresAt(f, z).map(Math.exp));
    const { forward, backward } = few || this, n = forward.length, own = new Float64Array(this.p);
    const into = { forward: new Float64Array(n), backward: new Float64Array(n) };
    if (few) this.add(part.part, z, weight, own, { wanted: few.wanted, ...into });
    else {
      Object.assign(this, into);
      this.add(part.part, z, weight, own, null);
      Object.assign(this, { forward, backward });
    }
    for (let j = 0; j < this.p; j++)
      variance[j] += own[j] * ((unit ? unit[j] : 1) * (residual ? residual[j] : 1)) ** 2;
    for (let i = 0; i < n; i++) {
      const pair = few ? few.wanted[i] : i;
      const ratio = unit ? unit[this.first[pair]] / unit[this.second[pair]] : 1;
      forward[i] += into.forward[i] * ratio;
      backward[i] += into.backward[i] / ratio;
    }
  }

  precision(part, z, weight, variance, few) {
    const u = featuresAt(part.features, z), count = part.pairs.length, own = new Float64Array(this.p);
    u.forEach((w, r) => { for (let j = 0; j < this.p; j++) own[j] += w * part.diagonal[r * this.p + j]; });
    for (let j = 0; j < this.p; j++) variance[j] += weight / own[j];
    const theta = (at) => {
      let total = 0;
      for (let r = 0; r < u.length; r++) total += u[r] * part.values[r * count + at];
      return total;
    };
    const put = (forward, backward, i, pair, at) => {
      const value = -weight * theta(at);
      forward[i] += value / own[this.first[pair]];
      backward[i] += value / own[this.second[pair]];
    };
    if (few)
      few.wanted.forEach((pair, i) => {
        const at = position(part.pairs, pair);
        if (at >= 0) put(few.forward, few.backward, i, pair, at);
      });
    else for (let at = 0; at < count; at++) put(this.forward, this.backward, part.pairs[at], part.pairs[at], at);
  }
}

// Where a number is in an ascending list, or -1.
function position(list, value) {
  let low = 0, high = list.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (list[middle] === value) return middle;
    if (list[middle] < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
