// Everything on the page beside the graph.
import { Chart } from "/page/chart.js";
import { bytes, clock, count, seconds, share, short, small } from "/page/numbers.js";

const $ = id => document.getElementById(id);
const WAITS = 9; // rows
const FADE = 0.93; // of a recent wait, with every picture
const FAULTS = 60; // shown
const ADDRESS = / at tcp:\/\/[^,;\]\s]+/g; // for the mouse that lingers
const RECOVERY = /^(going on|back at|the link to .* is up again)/;

export class Panels {
  constructor() {
    this.gapChart = new Chart($("gap-chart"), { log: true, format: small });
    this.costChart = new Chart($("cost-chart"), { format: short });
    this.recent = new Map();
  }

  show(mesh) {
    this.mesh = mesh;
    this.recent.clear();
    $("title").textContent = `${mesh.title}, ${mesh.nodes} nodes`;
    document.title = `dlag watch: ${mesh.title}`;
    $("wire").textContent = mesh.wire ? `${count(mesh.wire[0])} packets, ${bytes(mesh.wire[1])}` : "not counted";
    $("target").textContent = mesh.target === null ? "" : `target ${small(mesh.target)}`;
  }

  draw(picture, before, curves, faults) {
    const heard = picture.round.filter((_, i) => picture.finished[i] || picture.unheard[i] !== null || !this.mesh.live).length;
    const residuals = picture.residual.filter(r => r !== null);
    $("round").textContent = count(picture.k);
    $("heard").textContent = `${heard} of ${this.mesh.nodes}`;
    $("residual").textContent = residuals.length ? small(Math.max(...residuals)) : "–";
    this.#gap(picture, curves);
    this.#messages(picture, curves);
    this.#waits(picture, before);
    this.#faults(picture, faults);
  }

  rate(perSecond) {
    $("rate").textContent = perSecond === null ? "–" : perSecond >= 100 ? count(perSecond) : perSecond.toPrecision(2);
  }

  #gap(picture, curves) {
    const known = curves.gap.length > 0;
    const points = known ? curves.gap : curves.costs;
    const at = known ? 1 : 4;
    const last = this.mesh.rounds ?? Math.max(picture.k, points.at(-1)?.[0] ?? 1);
    const now = this.mesh.live ? Infinity : picture.k;
    const shown = points.findLast(p => p[0] <= now);
    $("gap-name").textContent = known ? "Suboptimality, f(θ) − f* of the worst node" : "Residual, ‖x − x before‖ of the worst node";
    $("gap").textContent = shown ? small(shown[at]) : "–";
    const target = known ? this.mesh.target : null;
    this.gapChart.draw({ points, lines: [{ name: "curve", of: p => p[at] }], now, last, target });
  }

  #messages(picture, curves) {
    const always = picture.deltas + picture.tokens + picture.quiet;
    $("sent").textContent = count(picture.deltas);
    $("saved").textContent = share(always ? 1 - picture.deltas / always : 0);
    $("sent-bar").style.width = `${always ? 100 * picture.deltas / always : 0}%`;
    $("token-bar").style.width = `${always ? 100 * picture.tokens / always : 0}%`;
    $("always").textContent = count(always);
    $("skipped").textContent = `${count(picture.tokens)} + ${count(picture.quiet)}`;
    $("bytes").textContent = bytes(picture.sent_bytes);
    const each = picture.deltas ? picture.payload_bytes / picture.deltas : 0;
    $("payload").textContent = `${bytes(picture.payload_bytes)}, ${bytes(Math.round(each * always))}`;
    const last = this.mesh.rounds ?? Math.max(1, picture.k);
    const lines = [{ name: "always", of: p => p[1] + p[2] }, { name: "sent", of: p => p[1] }];
    this.costChart.draw({ points: curves.costs, lines, now: this.mesh.live ? Infinity : picture.k, last });
  }

  #waits(picture, before) {
    const rows = [];
    this.mesh.edges.forEach((edge, e) => [0, 1].forEach(side => {
      const key = `${edge[side]} ${edge[1 - side]}`;
      const new_ = before ? Math.max(0, picture.waited[e][side] - before.waited[e][side]) : 0;
      const recent = FADE * (this.recent.get(key) ?? 0) + new_;
      this.recent.set(key, recent);
      rows.push({ i: edge[side], j: edge[1 - side], recent, total: picture.waited[e][side] });
    }));
    if (!rows.some(row => row.total > 0)) {
      const why = this.mesh.live ? "Nobody yet." : picture.k === 0 ? "Nobody yet."
        : "The records do not say: those of dlag run --watch do.";
      $("waits").replaceChildren(item(why, "empty"));
      return;
    }
    rows.sort((a, b) => b.recent - a.recent || b.total - a.total);
    const most = Math.max(1e-9, rows[0].recent);
    $("waits").replaceChildren(...rows.slice(0, WAITS).map(row => {
      const made = document.createElement("li");
      made.append(span(`node ${row.i} for ${row.j}`), meter(row.recent / most), span(seconds(row.total), "seconds"));
      return made;
    }));
  }

  #faults(picture, faults) {
    const shown = this.mesh.live ? faults : faults.filter(f => f.rounds <= picture.k);
    const key = `${this.mesh.title} ${shown.length} ${shown.at(-1)?.at}`;
    if (key === this.faultsKey) return;
    this.faultsKey = key;
    $("fault-count").textContent = shown.length;
    const rows = shown.slice(-FAULTS).reverse().map(fault => {
      const made = item(fault.text.replace(ADDRESS, ""), RECOVERY.test(fault.text) ? "good" : "");
      made.title = fault.text;
      const small = document.createElement("small");
      small.textContent = `${clock(fault.at)}  node ${fault.node}, round ${fault.rounds}`;
      made.prepend(small);
      return made;
    });
    $("faults").replaceChildren(...(rows.length ? rows : [item("None so far.", "empty")]));
  }
}

function item(text, kind) {
  const made = document.createElement("li");
  made.className = kind;
  made.append(text);
  return made;
}

function span(text, kind = "") {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  return made;
}

function meter(part) {
  const made = span("", "meter");
  const inner = document.createElement("i");
  inner.style.width = `${100 * part}%`;
  made.append(inner);
  return made;
}
