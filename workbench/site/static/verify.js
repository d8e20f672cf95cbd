"use strict";

// Every Brent equation of a scheme in exact integers (BigInt): the readers and the proof of the page "Verify in your
// browser". Plain JavaScript, no network; node runs the same file in the tests.
(() => {
  const MAX_TERMS = 20_000_000;
  const MAX_SIDE = 128;
  const USE_COMMAND = "use the command lcma verify";

  class Unreadable extends Error {}
  const refuse = (text) => {
    throw new Unreadable(text);
  };

  // Rational numbers as [numerator, denominator], denominator positive, in lowest terms.
  const abs = (x) => (x < 0n ? -x : x);
  const gcd = (x, y) => {
    [x, y] = [abs(x), abs(y)];
    while (y) [x, y] = [y, x % y];
    return x;
  };
  const rational = (n, d = 1n) => {
    if (d === 0n) refuse("a fraction over 0");
    const g = gcd(n, d) || 1n;
    return d < 0n ? [-n / g, -d / g] : [n / g, d / g];
  };
  const plus = (x, y) => rational(x[0] * y[1] + y[0] * x[1], x[1] * y[1]);
  const times = (x, y) => rational(x[0] * y[0], x[1] * y[1]);
  const shown = (x) => (x[1] === 1n ? `${x[0]}` : `${x[0]}/${x[1]}`);
  const ONE = [1n, 1n];

  function number(value, where) {
    if (typeof value === "bigint") return [value, 1n];
    const match = typeof value === "string" && /^\s*([+-]?\d{1,1000})(?:\s*\/\s*(\d{1,1000}))?\s*$/.exec(value);
    if (!match) refuse(`${where}: ${JSON.stringify(String(value)).slice(0, 40)} is not an exact coefficient`);
    return rational(BigInt(match[1]), BigInt(match[2] || "1"));
  }

  // JSON with integers of any size; duplicate keys are refused, as the command refuses them.
  function parseJson(text) {
    let at = 0;
    const fail = () => refuse(`not JSON at character ${at + 1}`);
    const space = () => {
      while (at < text.length && " \t\r\n".includes(text[at])) at += 1;
    };
    const literal = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|"(?:[^"\\\u0000-\u001f]|\\.)*"|true|false|null/y;
    function scalar() {
      literal.lastIndex = at;
      const match = literal.exec(text);
      if (!match) fail();
      at = literal.lastIndex;
      if (/^-?\d+$/.test(match[0])) return BigInt(match[0]);
      try {
        return JSON.parse(match[0]);
      } catch {
        return fail();
      }
    }
    function items(close, read) {
      at += 1;
      space();
      if (text[at] === close) {
        at += 1;
        return;
      }
      for (;;) {
        read();
        space();
        const sign = text[at];
        at += 1;
        if (sign === close) return;
        if (sign !== ",") fail();
      }
    }
    function value(depth) {
      if (depth > 50) refuse("JSON nested too deeply");
      space();
      if (text[at] === "[") {
        const list = [];
        items("]", () => list.push(value(depth + 1)));
        return list;
      }
      if (text[at] === "{") {
        const object = new Map();
        items("}", () => {
          space();
          if (text[at] !== '"') fail();
          const key = scalar();
          space();
          if (text[at] !== ":") fail();
          at += 1;
          if (object.has(key)) refuse(`the key ${JSON.stringify(key)} stands twice in one object`);
          object.set(key, value(depth + 1));
        });
        return object;
      }
      return scalar();
    }
    const found = value(0);
    space();
    if (at < text.length) fail();
    return found;
  }

  // Targets: {name, m, k, n, a, b, c}, grids of booleans: whether there is such a block. Half blocks are blocks.
  const grid = (rows, cols, present) =>
    Array.from({ length: rows * cols }, (_, place) => present(Math.floor(place / cols), place % cols));
  const full = (rows, cols) => grid(rows, cols, () => true);

  function general(m, k, n) {
    for (const side of [m, k, n]) {
      if (!(side >= 1 && side <= MAX_SIDE)) refuse(`grid ${m}x${k}x${n}: each side must be 1 to ${MAX_SIDE}`);
    }
    return { name: `${m}x${k}x${n}`, m, k, n, a: full(m, k), b: full(k, n), c: full(m, n) };
  }

  function parseTarget(name) {
    const match = /^\s*(\d{1,3})x(\d{1,3})x(\d{1,3})(?::(.+?))?\s*$/.exec(name);
    if (!match) refuse(`target ${JSON.stringify(name.slice(0, 40))} is not known here; ${USE_COMMAND}`);
    const target = general(+match[1], +match[2], +match[3]);
    if (!match[4]) return target;
    target.name = name.trim();
    const { m, k, n } = target;
    const blocks = /^blocks\(([FLU./]+),([FLU./]+),([FLU./]+)\)$/.exec(match[4]);
    if (blocks) {
      [target.a, target.b, target.c] = blocks.slice(1).map((text, slot) => {
        const [rows, cols] = [[m, k], [k, n], [m, n]][slot];
        const lines = text.split("/");
        if (lines.length !== rows || lines.some((line) => line.length !== cols)) refuse("blocks(...) do not fit the grid");
        return grid(rows, cols, (i, j) => lines[i][j] !== ".");
      });
      return target;
    }
    const taken = new Set();
    for (const form of match[4].split("+")) {
      const [slot, cells] = formOf(form, m, k, n);
      if (taken.has(slot)) refuse(`target form ${match[4]} says twice what ${"ABC"[slot]} is`);
      taken.add(slot);
      target["abc"[slot]] = cells;
    }
    return target;
  }

  function formOf(form, m, k, n) {
    const banded = /^(band|prefix|window)\((\d{1,3})\)$/.exec(form);
    const triangle = /^tri-(left|right|out)(?::(upper|lower))?$/.exec(form);
    const square = (rows, cols) => rows === cols || refuse(`target form ${form} needs a square grid`);
    if (banded) {
      square(m, n);
      const width = +banded[2];
      const present = {
        band: (i, j) => Math.abs(i - j) <= width,
        prefix: (i, j) => j < width || j <= i,
        window: (i, j) => i - j >= 0 && i - j <= width,
      }[banded[1]];
      return [2, grid(m, n, present)];
    }
    if (!triangle) refuse(`target form ${form.slice(0, 40)} is not known here; ${USE_COMMAND}`);
    const slot = { left: 0, right: 1, out: 2 }[triangle[1]];
    const [rows, cols] = [[m, k], [k, n], [m, n]][slot];
    square(rows, cols);
    return [slot, grid(rows, cols, (i, j) => (triangle[2] === "upper" ? j >= i : j <= i))];
  }

  function parseRing(name) {
    const text = name.trim().toUpperCase();
    if (text === "Z" || text === "Q") return { name: text, modulus: 0n };
    const match = /^Z(\d{1,7})$/.exec(text);
    const p = match ? +match[1] : 0;
    let prime = p > 1 && p < 1 << 20;
    for (let divisor = 2; prime && divisor * divisor <= p; divisor += 1) prime = p % divisor !== 0;
    if (!prime) refuse(`ring ${JSON.stringify(name.slice(0, 20))} is not known here; ${USE_COMMAND}`);
    return { name: `Z${p}`, modulus: BigInt(p) };
  }

  // A candidate: {convention, target, ring or null, factors}: factors[slot][r] is a Map from flat place to rational.
  function candidate(convention, target, ring, factors) {
    const names = ["a", "b", "c"];
    factors.forEach((rows, slot) =>
      rows.forEach((row, r) => {
        for (const place of row.keys()) {
          if (!target[names[slot]][place]) {
            refuse(`${"UVW"[slot]} uses a block in product ${r + 1} that ${target.name} does not have`);
          }
        }
      })
    );
    const fractions = factors.some((rows) => rows.some((row) => [...row.values()].some((value) => value[1] !== 1n)));
    if (ring && ring.name !== "Q" && fractions) refuse(`a fraction, which ring ${ring.name} does not have`);
    return { convention, target, ring: ring || { name: fractions ? "Q" : "Z", modulus: 0n }, factors };
  }

  function addTo(map, key, value) {
    const sum = map.has(key) ? plus(map.get(key), value) : value;
    if (sum[0] === 0n) map.delete(key);
    else map.set(key, sum);
  }

  // Target, ring, rank and products; name, provenance and certificate say nothing of the equations.
  function readLcmaJson(data) {
    const inner = data.has("lcma_scheme") ? data : data.get("scheme") || data.get("origin");
    if (!(inner instanceof Map) || inner.get("lcma_scheme") !== 1n) refuse("no lcma-json of version 1");
    const [name, ring] = [inner.get("target"), inner.get("ring")];
    if (typeof name !== "string" || typeof ring !== "string") refuse("target and ring must be texts");
    const target = parseTarget(name);
    const products = inner.get("products");
    if (!Array.isArray(products) || !products.length) refuse("products must be a list");
    if (inner.get("rank") !== BigInt(products.length)) refuse(`rank is not the number of products, ${products.length}`);
    const sizes = { u: [target.m, target.k], v: [target.k, target.n], w: [target.m, target.n] };
    const factors = ["u", "v", "w"].map((key) =>
      products.map((product, r) => {
        const where = `product ${r + 1}`;
        if (!(product instanceof Map) || product.size !== 3 || !(product.get(key) instanceof Map)) {
          refuse(`${where} must be an object with u, v and w`);
        }
        const row = new Map();
        for (const [block, value] of product.get(key)) {
          const match = /^([1-9]\d{0,3}),([1-9]\d{0,3})$/.exec(block);
          if (!match) refuse(`${where}: ${key} has key ${JSON.stringify(block)}`);
          const [i, j] = [match[1] - 1, match[2] - 1];
          if (i >= sizes[key][0] || j >= sizes[key][1]) refuse(`${where}: block ${block} is outside the grid`);
          addTo(row, i * sizes[key][1] + j, number(value, where));
        }
        return row;
      })
    );
    const declared = parseRing(ring);
    return { format: "lcma-json", declared, candidates: [candidate("C", target, declared, factors)] };
  }

  function readFmmJson(data) {
    const sizes = data.get("n");
    if (!Array.isArray(sizes) || sizes.length !== 3 || sizes.some((size) => typeof size !== "bigint")) {
      refuse('field "n" must be three sizes, such as [2, 2, 2]');
    }
    const target = general(...sizes.map(Number));
    const { m, k, n } = target;
    const rank = data.get("m");
    const factors = [["u", m * k], ["v", k * n], ["w", m * n]].map(([key, size]) => {
      const rows = data.get(key);
      if (!Array.isArray(rows) || BigInt(rows.length) !== rank || !rows.length) refuse(`${key} must have m rows`);
      return rows.map((row, r) => {
        if (!Array.isArray(row) || row.length !== size) refuse(`${key} row ${r + 1} must have ${size} entries`);
        const map = new Map();
        row.forEach((value, place) => addTo(map, place, number(value, `${key} row ${r + 1}`)));
        return map;
      });
    });
    const z2 = data.get("z2");
    const ring = z2 === true ? parseRing("Z2") : null;
    const [u, v, w] = factors;
    const turned = w.map((row) => new Map([...row].map(([at, value]) => [(at % m) * n + Math.floor(at / m), value])));
    const candidates = [candidate("C^T", target, ring, [u, v, turned]), candidate("C", target, ring, [u, v, w])];
    refuseContradiction(data, target, candidates, z2 === true);
    return { format: "fmm-json", declared: z2 === true ? ring : z2 === false ? parseRing("Q") : null, candidates };
  }

  // The equations that the file also has must say the same, unless they are not understood.
  function refuseContradiction(data, target, candidates, z2) {
    const texts = ["multiplications", "elements"].map((key) => data.get(key));
    const lines = texts.every(Array.isArray) ? texts.flat() : [];
    if (!lines.length || lines.some((line) => typeof line !== "string")) return;
    if (Math.max(target.m, target.k, target.n) > 9) return;
    let written;
    try {
      written = readEquations(lines.join("\n"), target).candidates;
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      return;
    }
    const numbers = candidates.map((one) => products(one, z2));
    if (!written.some((one) => numbers.includes(products(one, z2)))) refuse("the equations in the file contradict its numbers");
  }

  // The products as tensors of rank one, sorted: the same text for the same scheme, however its factors are scaled.
  function products(one, z2) {
    const [u, v, w] = one.factors;
    const keys = u.map((row, r) => {
      const terms = [];
      for (const [p, x] of row) {
        for (const [q, y] of v[r]) {
          for (const [s, z] of w[r]) {
            const [n, d] = rational(x[0] * y[0] * z[0], x[1] * y[1] * z[1]);
            if (!z2 || n % 2n) terms.push(`${p},${q},${s}:${z2 ? 1 : `${n}/${d}`}`);
          }
        }
      }
      return terms.sort().join(" ");
    });
    return keys.sort().join("\n");
  }

  // Equations. A value is {kind, terms}: a constant (kind ""), a linear form in blocks of A or B or in products, or
  // "ab": a product of two forms that has no name yet.
  function readEquations(text, given) {
    const header = {};
    for (const match of text.matchAll(/^[ \t]*#\s*(target|ring|name):[ \t]*(\S.*?)\s*$/gm)) header[match[1]] ??= match[2];
    const declared = header.ring ? parseRing(header.ring) : null;
    const wanted = given || (header.target ? parseTarget(header.target) : null);
    const [texts, outputs, products, values] = [new Map(), new Map(), [], new Map()];
    text.split(/\r?\n/).forEach((raw, index) => {
      const line = raw.replace(/#.*$/, "").replace(/[;,]\s*$/, "").trim();
      if (!line) return;
      const match = /^([A-Za-z][A-Za-z0-9_]*(?:\[\d+,\d+\])?)\s*(?::=|=|<-|:)\s*(.+)$/.exec(line);
      if (!match) refuse(`line ${index + 1} is no equation that this page reads; ${USE_COMMAND}`);
      const block = blockOf(match[1]);
      const [key, place] = block && block.letter === "c" ? [`${block.i},${block.j}`, outputs] : [match[1], texts];
      if (place.has(key)) refuse(`line ${index + 1}: ${match[1]} is set twice`);
      if (place === texts && (block || /^[abc]_?\d*$/i.test(key))) refuse(`line ${index + 1}: ${key} can't be set here`);
      place.set(key, { ...block, text: match[2], line: index + 1 });
    });
    // Lines may stand in any order: a name is worked out when it is first asked for.
    const valueOf = (name) => {
      const equation = texts.get(name);
      if (!equation || values.has(name)) return values.get(name);
      if (equation.busy) refuse(`line ${equation.line}: ${name} is made of itself`);
      equation.busy = true;
      values.set(name, expression(equation.text, valueOf, products, equation.line));
      return values.get(name);
    };
    for (const name of texts.keys()) valueOf(name);
    for (const output of outputs.values()) {
      const value = expression(output.text, valueOf, products, output.line);
      if (value.kind !== "p" && value.terms.size) refuse(`line ${output.line}: an output is a sum of products`);
      output.terms = value.terms;
    }
    if (!products.length || !(outputs.size || wanted)) refuse(`no products and outputs found; ${USE_COMMAND}`);
    return { format: "equations", declared, unnamed: !wanted, candidates: layouts(products, outputs, wanted, declared) };
  }

  const BLOCK = /^([abcABC])(?:_?([1-9])([1-9])|_([1-9]\d{0,2})_([1-9]\d{0,2})|\[([1-9]\d{0,2}),([1-9]\d{0,2})\])$/;
  function blockOf(name) {
    const match = BLOCK.exec(name);
    if (!match) return null;
    const [i, j] = match.slice(2).filter((part) => part !== undefined);
    return { letter: match[1].toLowerCase(), i: i - 1, j: j - 1 };
  }

  function expression(text, valueOf, products, line) {
    const tokens = text.match(/[A-Za-z][A-Za-z0-9_]*(?:\[\s*\d+\s*,\s*\d+\s*\])?|\d+|[-+*/()]|\S/g) || [];
    const fail = (what) => refuse(`line ${line}: ${what}`);
    let at = 0;
    const scale = (value, by) => {
      const terms = new Map();
      for (const [key, one] of value.terms) addTo(terms, key, times(one, by));
      return { ...value, terms };
    };
    const named = (value) => {
      if (value.kind !== "ab") return value;
      products.push([value.left, value.right]);
      return { kind: "p", terms: new Map([[products.length - 1, value.terms.get("")]]) };
    };
    const multiply = (left, right) => {
      if (left.kind === "" || right.kind === "") {
        const [by, form] = left.kind === "" ? [left, right] : [right, left];
        return by.terms.size ? scale(form, by.terms.get("")) : { ...form, terms: new Map() };
      }
      if (left.kind !== "a" || right.kind !== "b") fail("a product is (blocks of A)(blocks of B)");
      return { kind: "ab", terms: new Map([["", ONE]]), left: left.terms, right: right.terms };
    };
    const add = (left, right, sign) => {
      [left, right] = [named(left), named(right)];
      if (!left.terms.size) return scale(right, sign);
      if (!right.terms.size) return left;
      if (left.kind !== right.kind) fail("a sum of unlike things");
      const terms = new Map(left.terms);
      for (const [key, value] of right.terms) addTo(terms, key, times(value, sign));
      return { kind: left.kind, terms };
    };
    function atom() {
      const token = tokens[at];
      at += 1;
      if (token === "(") {
        const inner = sum();
        if (tokens[at] !== ")") fail("a parenthesis is not closed");
        at += 1;
        return inner;
      }
      if (/^\d+$/.test(token || "")) {
        if (token.length > 1000) fail("a number of more than 1000 digits");
        const value = [BigInt(token), 1n];
        return { kind: "", terms: value[0] ? new Map([["", value]]) : new Map() };
      }
      if (!/^[A-Za-z]/.test(token || "")) fail(`${JSON.stringify(token || "the end")} is not expected here`);
      const name = token.replace(/\s/g, "");
      const known = valueOf(name);
      if (known) return known;
      const block = blockOf(name);
      if (!block || block.letter === "c") fail(`${name} has no value`);
      return { kind: block.letter, terms: new Map([[`${block.i},${block.j}`, ONE]]) };
    }
    function term() {
      let value = atom();
      for (;;) {
        const token = tokens[at];
        if (token === "/") {
          at += 1;
          const by = atom();
          if (by.kind !== "" || !by.terms.size) fail("only numbers divide");
          const [n, d] = by.terms.get("");
          value = scale(value, rational(d, n));
        } else if (token === "*" || (token && /^[A-Za-z0-9(]/.test(token))) {
          at += token === "*" ? 1 : 0;
          value = multiply(value, atom());
        } else return value;
      }
    }
    function sum() {
      let value = null;
      do {
        let sign = 1n;
        while (tokens[at] === "+" || tokens[at] === "-") {
          sign = tokens[at] === "-" ? -sign : sign;
          at += 1;
        }
        const next = term();
        value = value ? add(value, next, [sign, 1n]) : sign < 0n ? scale(next, [-1n, 1n]) : next;
      } while (tokens[at] === "+" || tokens[at] === "-");
      return value;
    }
    const value = sum();
    if (at < tokens.length) fail(`${JSON.stringify(tokens[at])} is not expected here`);
    return named(value);
  }

  function layouts(products, outputs, wanted, ring) {
    const extent = (side) => {
      const size = [0, 0];
      for (const product of products) {
        for (const key of product[side].keys()) key.split(",").forEach((at, axis) => (size[axis] = Math.max(size[axis], +at + 1)));
      }
      return size;
    };
    const [left, right] = [extent(0), extent(1)];
    const [rows, cols] = [0, 1].map((axis) => Math.max(0, ...[...outputs.values()].map((one) => (axis ? one.j : one.i) + 1)));
    const shape = (height, width) => [Math.max(left[0], height), Math.max(left[1], right[0]), Math.max(right[1], width)];
    const shapes = { C: shape(rows, cols), "C^T": shape(cols, rows) };
    const volume = (sides) => sides[0] * sides[1] * sides[2];
    const least = Math.min(volume(shapes.C), volume(shapes["C^T"]));
    const found = [];
    let failure = null;
    for (const convention of ["C", "C^T"]) {
      if (!wanted && volume(shapes[convention]) !== least) continue;
      try {
        const target = wanted || general(...shapes[convention]);
        const place = (i, j, height, width, what) => {
          if (i >= height || j >= width) refuse(`${what}${i + 1},${j + 1} is outside the grid of ${target.name}`);
          return i * width + j;
        };
        const { m, k, n } = target;
        const flat = (form, height, width, what) =>
          new Map([...form].map(([key, value]) => [place(...key.split(",").map(Number), height, width, what), value]));
        const w = products.map(() => new Map());
        for (const { i, j, terms } of outputs.values()) {
          const at = convention === "C" ? place(i, j, m, n, "c") : place(j, i, m, n, "c");
          for (const [r, value] of terms) addTo(w[r], at, value);
        }
        const u = products.map((product) => flat(product[0], m, k, "a"));
        const v = products.map((product) => flat(product[1], k, n, "b"));
        found.push(candidate(convention, target, ring, [u, v, w]));
      } catch (error) {
        if (!(error instanceof Unreadable)) throw error;
        failure = failure || error;
      }
    }
    if (!found.length) throw failure;
    return found;
  }

  // The proof.
  const modular = (value, modulus) => ((value % modulus) + modulus) % modulus;
  function inverse(value, modulus) {
    let [r, s, x, y] = [modulus, modular(value, modulus), 0n, 1n];
    while (s) [r, s, x, y] = [s, r % s, y, x - (r / s) * y];
    return r === 1n ? modular(x, modulus) : null;
  }

  // Integers in place of the coefficients: over a common denominator, or residues; null where there are none.
  function integers(rows, modulus) {
    let common = 1n;
    for (const row of rows) for (const [, d] of row.values()) common = (common / gcd(common, d)) * d;
    const invert = modulus ? inverse(common, modulus) : 1n;
    if (invert === null) return null;
    const parts = rows.map((row) => {
      const list = [];
      for (const [place, [n, d]] of row) {
        let value = n * (common / d);
        if (modulus) value = modular(value * invert, modulus);
        if (value) list.push([place, value]);
      }
      return list;
    });
    return { parts, common: modulus ? 1n : common };
  }

  function check(one, modulus) {
    const sides = one.factors.map((rows) => integers(rows, modulus));
    if (sides.includes(null)) return null;
    const { k, n, a, b, c } = one.target;
    const [u, v, w] = sides.map((side) => side.parts);
    const terms = u.reduce((sum, row, r) => sum + row.length * v[r].length * w[r].length, 0);
    if (terms > MAX_TERMS) refuse(`${terms} terms are too many for this page; ${USE_COMMAND}`);
    const scale = sides.reduce((product, side) => product * side.common, 1n);
    const sums = new Map();
    const [width, depth] = [b.length, c.length];
    u.forEach((row, r) => {
      for (const [p, x] of row) {
        for (const [q, y] of v[r]) {
          const [xy, base] = [x * y, (p * width + q) * depth];
          for (const [s, z] of w[r]) sums.set(base + s, (sums.get(base + s) || 0n) + xy * z);
        }
      }
    });
    const wantedAt = (p, q, s) => {
      const [i, l, j] = [Math.floor(p / k), p % k, q % n];
      return Math.floor(q / n) === l && s === i * n + j && a[p] && b[q] && c[s] ? 1n : 0n;
    };
    for (let i = 0; i < one.target.m; i += 1) {
      for (let l = 0; l < k; l += 1) {
        for (let j = 0; j < n; j += 1) {
          const [p, q, s] = [i * k + l, l * n + j, i * n + j];
          const key = (p * width + q) * depth + s;
          if (a[p] && b[q] && c[s]) sums.set(key, (sums.get(key) || 0n) - scale);
        }
      }
    }
    let [wrong, first] = [0, Infinity];
    for (const [key, value] of sums) {
      if (modulus ? modular(value, modulus) : value) {
        wrong += 1;
        first = Math.min(first, key);
      }
    }
    const count = (cells) => cells.filter(Boolean).length;
    const result = { wrong, equations: count(a) * count(b) * count(c), first: "" };
    if (wrong) {
      const [s, rest] = [first % depth, Math.floor(first / depth)];
      const [p, q] = [Math.floor(rest / width), rest % width];
      const one_ = wantedAt(p, q, s);
      let got = rational(sums.get(first) + one_ * scale, scale);
      if (modulus) got = [modular(got[0], modulus), 1n];
      const name = (place, cols) => `${Math.floor(place / cols) + 1},${(place % cols) + 1}`;
      result.first = `coefficient of A[${name(p, k)}] B[${name(q, n)}] in C[${name(s, n)}] is ${shown(got)}, wanted ${one_}`;
    }
    return result;
  }

  function read(text) {
    if (/^\s*\{/.test(text)) {
      const data = parseJson(text);
      if (data.has("lcma_scheme") || data.has("scheme") || data.has("origin")) return readLcmaJson(data);
      if (data.has("n") && data.has("m") && data.has("u")) return readFmmJson(data);
      refuse(`a JSON file of another format; ${USE_COMMAND}`);
    }
    return readEquations(text);
  }

  const subject = (one) => `${one.target.name} rank ${one.factors[0].length}`;

  // Whether every block of A, B and C that the target has occurs in a product.
  function complete({ target, factors }) {
    return [target.a, target.b, target.c].every((cells, f) => {
      const met = new Set(factors[f].flatMap((row) => [...row.keys()]));
      return cells.every((held, place) => !held || met.has(place));
    });
  }

  function judge({ format, declared, unnamed, candidates }) {
    const tried = candidates.map((one) => check(one, one.ring.modulus));
    const holding = (place, ring, only) => ({
      ok: true,
      format,
      convention: candidates[place].convention,
      headline: `OK ${subject(candidates[place])} over ${ring}${only ? " only" : ""} (exact, ${tried[place].equations} equations)`,
    });
    const place = tried.findIndex((result) => result && !result.wrong);
    if (place >= 0) return holding(place, candidates[place].ring.name, candidates[place].ring.name === "Z2");
    const overZ2 = candidates.map((one) => (one.ring.modulus ? null : check(one, 2n)));
    const binary = overZ2.findIndex((result) => result && !result.wrong);
    if (binary >= 0 && !declared) return holding(binary, "Z2", true);
    const nearest = tried.reduce((best, result, at) => (result.wrong < tried[best].wrong ? at : best), 0);
    const [one, result] = [candidates[nearest], tried[nearest]];
    if (unnamed && !complete(one)) refuse(`blocks are absent and no target is named; ${USE_COMMAND}`);
    const mod2 = one.ring.modulus
      ? ""
      : overZ2[nearest] && !overZ2[nearest].wrong
        ? "; it holds mod 2"
        : "; nor does it hold mod 2";
    return {
      ok: false,
      format,
      convention: one.convention,
      headline: `FAIL ${subject(one)} over ${one.ring.name}: ${result.wrong} of ${result.equations} equations fail; ${result.first}${overZ2[nearest] === null && !one.ring.modulus ? "" : mod2}`,
    };
  }

  // {ok: true, false or null (not read), headline, format, convention}
  function verify(text) {
    try {
      return judge(read(String(text)));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      return { ok: null, headline: error.message, format: "", convention: "" };
    }
  }

  globalThis.LCMA_VERIFY = verify;
})();
