// The page of a search: what was judged over two numbers, what is pointed at, what is chosen.
const DATA = JSON.parse(document.getElementById("data").textContent);
const COUNT = DATA.numbers.length ? DATA.numbers[0].length : 0;
const FRONT = new Set(DATA.front), OUTSIDE = new Set(DATA.outside);
document.getElementById("beyond").hidden = !OUTSIDE.size;
const LINES = 40; // of a difference
let plane = null, x = null, y = null, pointed = null, chosen = null;

// What can be on an axis: objectives, and choices that are numbers.
const AXES = [
  ...DATA.objectives.map((each, n) => ({ name: each.name, words: each.words, values: DATA.numbers[n], now: DATA.now[n], limit: each.limit })),
  ...DATA.variables.map((each, n) => ({ each, n })).filter(({ each }) => each.values && each.values.length > 1)
    .map(({ each, n }) => ({ name: each.name, words: each.name, values: DATA.choices[n].map((k) => each.values[k]), now: null, limit: null })),
];
const pick = (id) => AXES[Number(document.getElementById(id).value)];

function choices(i) {
  return DATA.variables.map((each, n) => [each.name, each.words[DATA.choices[n][i]]]);
}

function results(i) {
  return DATA.objectives.map((each, n) => [each.name, brief(DATA.numbers[n][i], 4), DATA.now[n]]);
}

function made(tag, text, kind) {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (kind) found.className = kind;
  return found;
}

function rank(i) {
  if (i === DATA.proposed) return `row ${DATA.front.indexOf(i)} of the front, proposed`;
  if (FRONT.has(i)) return `row ${DATA.front.indexOf(i)} of the front`;
  return OUTSIDE.has(i) ? "beyond a limit" : "another coupling does better in all that counts";
}

function frame(everything) {
  const a = pick("across"), b = pick("up");
  const seen = everything ? [...Array(COUNT).keys()] : DATA.front.length ? DATA.front : [...Array(COUNT).keys()];
  const of = (axis) => [...seen.map((i) => axis.values[i]), ...(axis.now === null ? [] : [axis.now])];
  x = scaleOf(of(a), everything ? 0.06 : 0.25);
  y = scaleOf(of(b), everything ? 0.06 : 0.25);
}

function draw() {
  const box = document.getElementById("plane"), svg = box.querySelector("svg"), canvas = box.querySelector("canvas");
  const width = Math.max(240, box.clientWidth), height = box.clientHeight;
  const a = pick("across"), b = pick("up");
  const inner = [width - EDGE.left - EDGE.right, height - EDGE.top - EDGE.bottom];
  plane = { width, height, x: (v) => EDGE.left + partOn(x, v) * inner[0], y: (v) => height - EDGE.bottom - partOn(y, v) * inner[1] };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  drawAxes(svg, plane, x, y, [a.words, b.words]);
  drawDots(canvas, plane, a.values, b.values, shader());
  const clip = node("clipPath", { id: "inside" }, svg);
  node("rect", { x: EDGE.left, y: EDGE.top, width: inner[0], height: inner[1] }, clip);
  const layer = node("g", { "clip-path": "url(#inside)" }, svg);
  for (const [axis, side] of [[a, "x"], [b, "y"]]) {
    if (axis.limit === null || (axis.limit <= 0 && (side === "x" ? x : y).log)) continue;
    const at = plane[side](axis.limit);
    node("line", side === "x" ? { class: "limit", x1: at, x2: at, y1: EDGE.top, y2: height - EDGE.bottom } : { class: "limit", y1: at, y2: at, x1: EDGE.left, x2: width - EDGE.right }, layer);
  }
  const path = DATA.front.map((i) => `${plane.x(a.values[i]).toFixed(1)} ${plane.y(b.values[i]).toFixed(1)}`);
  const goals = DATA.objectives.filter((each) => each.goal).map((each) => each.name);
  if (goals.length === 2 && goals.includes(a.name) && goals.includes(b.name) && a !== b && path.length > 1) node("path", { class: "edge", d: "M" + path.join("L") }, layer);
  for (const i of DATA.front) node("circle", { class: "front", r: 3.6, cx: plane.x(a.values[i]), cy: plane.y(b.values[i]), "data-point": i }, layer);
  if (DATA.proposed !== null) node("circle", { class: "proposed", r: 8, cx: plane.x(a.values[DATA.proposed]), cy: plane.y(b.values[DATA.proposed]) }, layer);
  if (a.now !== null && b.now !== null) node("path", { class: "now", d: star(plane.x(a.now), plane.y(b.now), 9) }, layer);
  ring("selected", chosen, layer);
  ring("pointed", pointed, layer);
}

function ring(kind, i, layer) {
  if (i !== null) node("circle", { class: kind, r: 6, cx: plane.x(pick("across").values[i]), cy: plane.y(pick("up").values[i]) }, layer);
}

function star(cx, cy, size) {
  let path = "";
  for (let k = 0; k < 10; k++) {
    const r = k % 2 ? size * 0.42 : size, at = (Math.PI * k) / 5 - Math.PI / 2;
    path += `${k ? "L" : "M"}${(cx + r * Math.cos(at)).toFixed(1)} ${(cy + r * Math.sin(at)).toFixed(1)}`;
  }
  return path + "Z";
}

// Grey, or the darker the larger a number is among all.
function shader() {
  const by = document.getElementById("shade").value, grey = colour("--wire");
  if (by === "") return (i) => [grey, OUTSIDE.has(i) ? 0.25 : 0.7];
  const values = AXES[Number(by)].values, ink = colour("--chart");
  const order = values.map((value, i) => i).sort((i, j) => values[i] - values[j]);
  const place = [];
  order.forEach((i, k) => { place[i] = k / Math.max(1, COUNT - 1); });
  return (i) => [ink, 0.08 + 0.87 * place[i]];
}

function tell(i, at) {
  const tip = document.getElementById("tip");
  tip.hidden = i === null;
  if (i === null) return;
  const lines = [made("b", rank(i))];
  for (const [name, text] of [...results(i), ...choices(i)]) {
    const line = made("div");
    line.append(made("span", `${name} `), text);
    lines.push(line);
  }
  tip.replaceChildren(...lines);
  tip.style.left = `${Math.max(0, Math.min(at[0] + 14, plane.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(0, Math.min(at[1] + 14, plane.height - tip.offsetHeight - 4))}px`;
}

function choose(i) {
  chosen = i;
  const panel = document.getElementById("chosen");
  const list = made("dl");
  for (const [name, text, now] of results(i)) list.append(pair(name, now === null ? text : `${text} (now ${brief(now, 4)})`));
  for (const [name, text] of choices(i)) list.append(pair(name, text));
  panel.replaceChildren(made("h3", rank(i)), list, ...difference(DATA.changes[i]));
  const row = DATA.front.indexOf(i);
  document.querySelectorAll("#front tbody tr").forEach((each, k) => each.classList.toggle("selected", k === row));
  draw();
}

function pair(name, text) {
  const found = made("div");
  found.append(made("dt", name), made("dd", text));
  return found;
}

function difference(lines) {
  if (!lines) return [];
  if (!lines.length) return [made("p", "Nothing changes: it is the coupling of now.", "words")];
  const box = made("pre", undefined, "diff");
  let header = "";
  for (const [table, line] of lines.slice(0, LINES).map((k) => DATA.lines[k])) {
    if (table !== header) { header = table; box.append(made("span", `[${table}]`, "table")); }
    box.append(made("span", line, line[0] === "-" ? "dropped" : "added"));
  }
  if (lines.length > LINES) box.append(made("span", `and ${lines.length - LINES} lines more`, "table"));
  return [made("p", "In the scenario file:", "words"), box];
}

function handle() {
  const box = document.getElementById("plane"), svg = box.querySelector("svg");
  let held = null;
  const place = (event) => { const at = svg.getBoundingClientRect(); return [event.clientX - at.left, event.clientY - at.top]; };
  const dot = (at) => nearestDot(plane, pick("across").values, pick("up").values, at, FRONT);
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { held = place(event); svg.setPointerCapture(event.pointerId); } });
  svg.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (held && Math.hypot(at[0] - held[0], at[1] - held[1]) > 5) {
      pointed = null; tell(null); draw();
      node("rect", { class: "choice", x: Math.min(at[0], held[0]), y: Math.min(at[1], held[1]), width: Math.abs(at[0] - held[0]), height: Math.abs(at[1] - held[1]) }, svg);
      return;
    }
    const found = dot(at);
    if (found !== pointed) { pointed = found; draw(); }
    tell(found, at);
  });
  svg.addEventListener("pointerup", (event) => {
    const at = place(event), from = held;
    held = null;
    if (!from) return;
    if (Math.abs(at[0] - from[0]) > 8 && Math.abs(at[1] - from[1]) > 8) return zoom(from, at);
    const found = dot(at);
    if (found !== null) choose(found); else draw();
  });
  svg.addEventListener("pointercancel", () => { held = null; draw(); });
  svg.addEventListener("pointerleave", () => { if (!held) { pointed = null; tell(null); draw(); } });
  svg.addEventListener("dblclick", () => { frame(false); draw(); });
  box.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!way || !DATA.front.length) return;
    event.preventDefault();
    const row = DATA.front.indexOf(chosen === null ? DATA.proposed : chosen);
    choose(DATA.front[Math.min(DATA.front.length - 1, Math.max(0, row + way))]);
  });
}

function zoom(from, to) {
  const inner = [plane.width - EDGE.left - EDGE.right, plane.height - EDGE.top - EDGE.bottom];
  const parts = [from, to].map((at) => [(at[0] - EDGE.left) / inner[0], (plane.height - EDGE.bottom - at[1]) / inner[1]]);
  const within = (scale, a, b) => ({ ...scale, low: scale.low + Math.min(a, b) * (scale.high - scale.low), high: scale.low + Math.max(a, b) * (scale.high - scale.low) });
  x = within(x, parts[0][0], parts[1][0]);
  y = within(y, parts[0][1], parts[1][1]);
  draw();
}

function start() {
  SVG_SPACE = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
  for (const [id, first] of [["across", 0], ["up", Math.min(1, AXES.length - 1)], ["shade", ""]]) {
    const select = document.getElementById(id);
    if (id === "shade") { const none = made("option", "by nothing"); none.value = ""; select.append(none); }
    AXES.forEach((axis, k) => { const option = made("option", axis.name); option.value = k; select.append(option); });
    select.value = first;
    select.addEventListener("change", () => { if (id !== "shade") frame(false); draw(); });
  }
  document.getElementById("near").addEventListener("click", () => { frame(false); draw(); });
  document.getElementById("far").addEventListener("click", () => { frame(true); draw(); });
  document.querySelectorAll("#front tbody tr").forEach((row, k) => row.addEventListener("click", () => choose(DATA.front[k])));
  frame(false);
  draw();
  handle();
  if (DATA.proposed !== null) choose(DATA.proposed);
  let wide = 0;
  new ResizeObserver(() => { const now = document.getElementById("plane").clientWidth; if (now !== wide) { wide = now; draw(); } }).observe(document.getElementById("plane"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
start();
document.body.dataset.ready = "yes";
