// The page: a mesh, then picture after picture, from a run that runs or from its folder.
import { AGES, Graph } from "/page/graph.js";
import { Panels } from "/page/panels.js";
import { Player } from "/page/replay.js";

const RATE_SECONDS = 3; // over which rounds a second are taken
const $ = id => document.getElementById(id);
const graph = new Graph($("graph"));
const panels = new Panels();
let curves = { gap: [], costs: [] };
let faults = [];
let shown = null; // the picture on the page
let seen = []; // [time, rounds], for the rate

function state(name, text) {
  document.body.dataset.state = name;
  $("state").textContent = text;
}

function show(mesh) {
  graph.show(mesh);
  panels.show(mesh);
  shown = null;
  seen = [];
}

function present(picture, before) {
  graph.draw(picture, before);
  panels.draw(picture, before, curves, faults);
  const now = performance.now() / 1000;
  if (before?.k !== shown?.k) seen = []; // somebody has scrubbed
  seen.push([now, picture.k]);
  while (seen[0][0] < now - RATE_SECONDS) seen.shift();
  const span = now - seen[0][0];
  panels.rate(span > 0.5 ? (picture.k - seen[0][1]) / span : null);
  shown = picture;
  document.body.dataset.k = picture.k;
}

function live() {
  const events = new EventSource("/events");
  events.onmessage = message => {
    const news = JSON.parse(message.data);
    if (news.mesh) {
      curves = { gap: [], costs: [] };
      faults = [];
      show(news.mesh);
    }
    if (news.picture) {
      for (const name of ["gap", "costs"]) curves[name].push(...news.curves[name]);
      faults.push(...news.faults);
      present(news.picture, shown);
    }
    if (news.over) {
      events.close();
      state("over", "the run has ended");
    } else {
      state("live", news.picture ? "live" : "waiting for nodes");
    }
  };
  events.onerror = () => state("lost", "connection lost");
}

function theme(name) {
  document.documentElement.dataset.theme = name;
}

const light = matchMedia("(prefers-color-scheme: light)");
theme(light.matches ? "light" : "dark");
light.onchange = () => theme(light.matches ? "light" : "dark");
$("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("ages").replaceChildren(...AGES.map(color => {
  const dot = document.createElement("i");
  dot.style.background = color;
  return dot;
}));

const told = await (await fetch("/mesh")).json();
if (told.live) {
  live();
} else {
  ({ curves, faults } = told);
  show(told.mesh);
  state("replay", "replay");
  new Player(told.mesh.rounds, present);
}
