// A line chart in SVG that fits its box: rounds to the right, values upwards, linear or by decades.
const LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 20;
const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

export class Chart {
  // lines: [{name, of}] where `of` takes a point and returns its value, or null
  constructor(svg, { log = false, format }) {
    this.svg = svg;
    this.log = log;
    this.format = format;
  }

  // points up to `now` are drawn bright, those behind it faint; `last` is the axis' end
  draw({ points, lines, now, last, target = null }) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (width < LEFT + RIGHT + 20 || height < TOP + BOTTOM + 20) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const values = lines.flatMap(line => points.map(line.of)).filter(v => v !== null && (!this.log || v > 0));
    const marks = target === null ? values : [...values, target];
    const range = this.#range(marks);
    const x = k => LEFT + (width - LEFT - RIGHT) * k / Math.max(1, last);
    const y = v => {
      const at = this.log ? Math.log10(Math.max(v, 1e-300)) : v;
      return height - BOTTOM - (height - TOP - BOTTOM) * (at - range.low) / (range.high - range.low);
    };
    const made = [];
    for (const tick of range.ticks) {
      const at = y(this.log ? 10 ** tick : tick);
      made.push(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }));
      const label = this.log ? `1e${tick}` : this.format(tick);
      made.push(element("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, label));
    }
    made.push(element("text", { x: LEFT, y: height - 4 }, "0"));
    made.push(element("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end" }, `round ${last}`));
    if (target !== null) made.push(element("line", { class: "target", x1: LEFT, x2: width - RIGHT, y1: y(target), y2: y(target) }));
    const split = points.findIndex(p => p[0] > now);
    const seen = split < 0 ? points : points.slice(0, split);
    const rest = split < 0 ? [] : points.slice(Math.max(0, split - 1));
    for (const line of lines) {
      for (const [part, kind] of [[rest, "rest"], [seen, ""]]) {
        const d = this.#path(part, line.of, x, y);
        if (d) made.push(element("path", { class: `${line.name} ${kind}`, d }));
      }
    }
    if (rest.length) made.push(element("line", { class: "now", x1: x(now), x2: x(now), y1: TOP, y2: height - BOTTOM }));
    this.svg.replaceChildren(...made);
  }

  #path(points, of, x, y) {
    const step = Math.max(1, Math.floor(points.length / 800));
    let d = "";
    for (let i = 0; i < points.length; i = i === points.length - 1 ? points.length : Math.min(i + step, points.length - 1)) {
      const value = of(points[i]);
      if (value === null || (this.log && value <= 0)) continue;
      d += `${d ? "L" : "M"}${x(points[i][0]).toFixed(1)} ${y(value).toFixed(1)}`;
    }
    return d;
  }

  #range(values) {
    if (this.log) {
      const exponents = values.map(Math.log10);
      const low = exponents.length ? Math.floor(Math.min(...exponents)) : -1;
      const high = Math.max(low + 1, exponents.length ? Math.ceil(Math.max(...exponents)) : 0);
      const step = Math.ceil((high - low) / 5);
      const ticks = [];
      for (let tick = high; tick >= low; tick -= step) ticks.push(tick);
      return { low, high, ticks };
    }
    const high = Math.max(1, ...values);
    const step = niceStep(high / 3);
    const ticks = [];
    for (let tick = 0; tick <= high; tick += step) ticks.push(tick);
    return { low: 0, high, ticks };
  }
}

function niceStep(about) {
  const power = 10 ** Math.floor(Math.log10(Math.max(about, 1)));
  return [1, 2, 5, 10].find(m => m * power >= about) * power;
}
