// The mesh as a graph: the half of an edge next to a sender lights up when a delta leaves it, dimly
// when a token does; what is quiet stays dark.
import { element } from "/page/chart.js";

const UNHEARD_SECONDS = 2.5;
const FAINTEST = 0.15; // light of one delta in a long silence
// a worker's age in doublings, as in the terminal: 0, 1, 2-3, 4-7, 8-15, 16-31, 32 and more rounds
export const AGES = ["#fde725", "#a0da39", "#4ac16d", "#1fa187", "#277f8e", "#365c8d", "#46327e"];
const UNIT = 100; // between neighbors on a grid
const ROOM = 52; // around the outermost nodes

export class Graph {
  constructor(svg) {
    this.svg = svg;
  }

  show(mesh) {
    this.mesh = mesh;
    const at = mesh.at.map(([x, y]) => [x * UNIT, -y * UNIT]);
    const xs = at.map(p => p[0]), ys = at.map(p => p[1]);
    const left = Math.min(...xs) - ROOM, top = Math.min(...ys) - ROOM;
    const width = Math.max(...xs) - left + ROOM, height = Math.max(...ys) - top + ROOM;
    this.svg.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
    this.halves = mesh.edges.map(edge => [this.#half(at, edge[0], edge[1]), this.#half(at, edge[1], edge[0])]);
    const lines = mesh.edges.map(([i, j]) =>
      element("line", { class: "edge", x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1] }));
    const most = Math.max(1, ...(mesh.samples ?? [1]));
    const large = mesh.nodes > 60 ? 18 : 27;
    this.nodes = at.map((p, i) => {
      const share = mesh.samples ? mesh.samples[i] / most : 0.6;
      return this.#node(p, i, large * Math.sqrt(Math.max(0.35, share)));
    });
    this.svg.replaceChildren(...lines, ...this.halves.flat(), ...this.nodes.map(n => n.group));
  }

  // light what was sent between two pictures; without an earlier one everything is dark
  draw(picture, before) {
    this.mesh.edges.forEach((edge, e) => {
      for (const side of [0, 1]) {
        const sent = before ? picture.told[e][side] - before.told[e][side] : 0;
        const tokens = before ? picture.tokened[e][side] - before.tokened[e][side] : 0;
        const exchanges = before ? picture.exchanges[edge[side]] - before.exchanges[edge[side]] : 0;
        const half = this.halves[e][side];
        half.classList.toggle("lit", sent > 0);
        half.classList.toggle("token", sent <= 0 && tokens > 0);
        const crossed = sent > 0 ? sent : tokens;
        half.style.opacity = crossed > 0 ? Math.max(FAINTEST, Math.min(1, crossed / Math.max(1, exchanges))) : 0;
      }
    });
    this.nodes.forEach(({ group, disc, text, title }, i) => {
      const level = Math.min(AGES.length - 1, 32 - Math.clz32(picture.age[i]));
      disc.style.fill = AGES[level];
      text.style.fill = level < 3 ? "#10161d" : "#ffffff";
      const unheard = picture.unheard[i] !== null && picture.unheard[i] > UNHEARD_SECONDS;
      group.classList.toggle("unheard", unheard);
      group.classList.toggle("restarted", picture.restarts[i] > 0);
      const samples = this.mesh.samples ? `, ${this.mesh.samples[i]} samples` : "";
      title.textContent = `node ${i}${samples}: round ${picture.round[i]}, age ${picture.age[i]}, `
        + `residual ${picture.residual[i]?.toExponential(2) ?? "none"}, waited ${picture.wait[i].toFixed(1)} s`
        + (picture.restarts[i] ? `, restarts ${picture.restarts[i]}` : "")
        + (unheard ? `, not heard for ${picture.unheard[i]} s` : "");
    });
  }

  #half(at, i, j) {
    const [a, b] = [at[i], at[j]];
    return element("line", { class: "half", "data-from": i, "data-to": j,
      x1: a[0], y1: a[1], x2: (a[0] + b[0]) / 2, y2: (a[1] + b[1]) / 2 });
  }

  #node([x, y], i, radius) {
    const group = element("g", { class: "node", "data-node": i });
    const ring = element("circle", { class: "ring", cx: x, cy: y, r: radius + 5 });
    const disc = element("circle", { class: "disc", cx: x, cy: y, r: radius });
    const text = element("text", { x, y, "font-size": Math.min(17, radius * 0.85) }, String(i));
    const title = element("title");
    group.append(title, ring, disc, text);
    return { group, disc, text, title };
  }
}
