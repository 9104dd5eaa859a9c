// One small chart per port; all of them show the same stretch of time.
const H = 170, LEFT = 54, RIGHT = 8, TOP = 8, BOTTOM = 22;
let view = null; // the stretch of time in sight
let drawn = [];

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG_SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

function curve(times, values, from, to, x, y) {
  let path = "", pen = false;
  for (let i = from; i < to; i++) {
    if (values[i] === null) { pen = false; continue; }
    path += `${pen ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    pen = true;
  }
  return path;
}

function bandPath(times, low, high, from, to, x, y) {
  let path = "", start = from;
  const piece = (a, b) => {
    if (b <= a) return;
    let there = "", back = "";
    for (let i = a; i < b; i++) {
      there += `${i === a ? "M" : "L"}${x(times[i]).toFixed(1)} ${y(high[i]).toFixed(1)}`;
      back = `L${x(times[i]).toFixed(1)} ${y(low[i]).toFixed(1)}` + back;
    }
    path += there + back + "Z";
  };
  for (let i = from; i < to; i++) if (low[i] === null || high[i] === null) { piece(start, i); start = i + 1; }
  piece(start, to);
  return path;
}

function makeChart(port) {
  const box = document.createElement("div");
  box.className = "chart";
  const title = document.createElement("h3");
  const name = document.createElement("span"), value = document.createElement("span");
  name.textContent = port.name;
  name.title = port.name;
  if (port.unit) { const unit = document.createElement("small"); unit.textContent = ` [${port.unit}]`; name.append(unit); }
  value.className = "value";
  title.append(name, value);
  const svg = document.createElementNS(SVG_SPACE, "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${port.name} over time`);
  box.append(title, svg);
  const chart = { port, box, svg, value, times: DATA.times[port.t] };
  handle(chart);
  return chart;
}

function drawChart(chart) {
  const { port, svg, times } = chart;
  const width = Math.max(120, svg.clientWidth || 400);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${H}`);
  const [t0, t1] = view;
  const from = Math.max(0, place(times, t0) - 1), to = Math.min(times.length, place(times, t1) + 2);
  const lists = port.low ? [port.v, port.low, port.high] : [port.v];
  let [low, high] = extent(lists, from, to);
  if (port.low) { // a band much wider than the curve must not hide it
    const [a, b] = extent([port.v], from, to), room = 3 * (b - a);
    low = Math.max(low, a - room); high = Math.min(high, b + room);
  }
  const x = (t) => LEFT + ((t - t0) / (t1 - t0)) * (width - LEFT - RIGHT);
  const span = high / 2 - low / 2; // halves: the whole may be beyond all numbers
  const y = (v) => Math.max(-1e4, Math.min(1e4, H - BOTTOM - ((v / 2 - low / 2) / span) * (H - TOP - BOTTOM)));
  Object.assign(chart, { x, y, width, from, to });
  const id = `clip${port.index}`;
  const clip = element("clipPath", { id }, svg);
  element("rect", { x: LEFT, y: TOP - 2, width: width - LEFT - RIGHT, height: H - TOP - BOTTOM + 4 }, clip);
  const ys = niceTicks(low, high, 5);
  for (const tick of ys.ticks) {
    element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }, svg);
    element("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, svg).textContent = tickText(tick, ys.step);
  }
  const xs = niceTicks(t0, t1, Math.max(2, Math.floor(width / 90)));
  xs.ticks.forEach((tick, i) => {
    const last = i === xs.ticks.length - 1;
    const anchor = x(tick) > width - 30 ? "end" : "middle";
    const text = element("text", { x: anchor === "end" ? width - 2 : x(tick), y: H - 6, "text-anchor": anchor }, svg);
    text.textContent = tickText(tick, xs.step) + (last ? " s" : "");
  });
  const inner = element("g", { "clip-path": `url(#${id})` }, svg);
  if (port.low) element("path", { class: "band", d: bandPath(times, port.low, port.high, from, to, x, y) }, inner);
  element("path", { class: "curve", d: curve(times, port.v, from, to, x, y) }, inner);
  if (to - from === 1 || times.length === 1) element("circle", { class: "dot", r: 3, cx: x(times[from]), cy: y(port.v[from]) }, inner);
  for (let i = from; i < to; i++) { // events: absent before them or after them, so that no line shows them
    if (port.v[i] === null || (port.v[i - 1] !== null && port.v[i + 1] !== null)) continue;
    element("circle", { class: "dot", r: 2.5, cx: x(times[i]), cy: y(port.v[i]) }, inner);
  }
  chart.layer = element("g", {}, svg);
  chart.value.textContent = resting(port);
}

// What stands beside the name while nothing is pointed at.
function resting(port) {
  return port.error == null ? "" : `at most ± ${numberText(port.error, 2)}`;
}

function pointAt(t) {
  for (const chart of drawn) {
    const { times, port, layer, x, y } = chart;
    layer.replaceChildren();
    let i = place(times, t);
    if (i > 0 && (i === times.length || t - times[i - 1] < times[i] - t)) i--;
    if (times[i] === undefined || times[i] < view[0] || times[i] > view[1]) continue;
    element("line", { class: "cursor", x1: x(times[i]), x2: x(times[i]), y1: TOP, y2: H - BOTTOM }, layer);
    if (port.v[i] !== null) element("circle", { class: "dot", r: 3, cx: x(times[i]), cy: y(port.v[i]) }, layer);
    const half = port.low && port.low[i] !== null && port.high[i] !== null ? ` ± ${numberText((port.high[i] - port.low[i]) / 2, 2)}` : "";
    chart.value.textContent = `${numberText(port.v[i])}${half} at ${numberText(times[i])} s`;
  }
}

function leave() {
  for (const chart of drawn) { chart.layer.replaceChildren(); chart.value.textContent = resting(chart.port); }
}

function look(from, to) {
  const [a, b] = WHOLE;
  const length = Math.min(b - a, Math.max(to - from, (b - a) * 1e-6));
  const start = Math.min(Math.max(from, a), b - length);
  view = [start, start + length];
  document.getElementById("reset").hidden = start === a && length === b - a;
  drawn.forEach(drawChart);
}

function handle(chart) {
  const { svg } = chart;
  let held = null;
  const time = (event) => {
    const box = svg.getBoundingClientRect();
    const part = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return view[0] + Math.min(1, Math.max(0, part)) * (view[1] - view[0]);
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = { x: event.clientX, t: time(event), view: [...view], move: event.shiftKey };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return pointAt(time(event));
    if (held.move) {
      const shift = ((event.clientX - held.x) / (svg.clientWidth - LEFT - RIGHT)) * (held.view[1] - held.view[0]);
      return look(held.view[0] - shift, held.view[1] - shift);
    }
    const a = chart.x(held.t), b = chart.x(time(event));
    chart.layer.replaceChildren();
    element("rect", { class: "choice", x: Math.min(a, b), width: Math.abs(b - a), y: TOP, height: H - TOP - BOTTOM }, chart.layer);
  });
  svg.addEventListener("pointerup", (event) => {
    const was = held, t = time(event);
    held = null;
    if (was && !was.move && Math.abs(event.clientX - was.x) > 5) look(Math.min(was.t, t), Math.max(was.t, t));
  });
  svg.addEventListener("pointercancel", () => { held = null; });
  svg.addEventListener("pointerleave", () => { if (!held) leave(); });
  svg.addEventListener("dblclick", () => look(...WHOLE));
}

// A pattern with * and ? is for the whole name, anything else for a part of it.
function matcher(text) {
  const words = text.split(/[\s,]+/).filter(Boolean).map((word) => word.toLowerCase());
  const tests = words.map((word) => {
    if (!/[*?]/.test(word)) return (name) => name.includes(word);
    const plain = word.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
    const pattern = new RegExp(`^${plain}$`);
    return (name) => pattern.test(name);
  });
  return (name) => !tests.length || tests.some((test) => test(name.toLowerCase()));
}

let most = 0;
function fill() {
  const fits = matcher(document.getElementById("filter").value);
  const found = DATA.ports.filter((port) => fits(port.name));
  const seen = found.slice(0, most);
  drawn = seen.map(makeChart);
  document.getElementById("charts").replaceChildren(...drawn.map((chart) => chart.box));
  drawn.forEach(drawChart);
  document.getElementById("count").textContent = `${seen.length} of ${found.length} port${found.length === 1 ? "" : "s"}`;
  const more = document.getElementById("more");
  more.hidden = seen.length === found.length;
  more.textContent = `show ${Math.min(4 * DATA.atOnce, found.length - seen.length)} more`;
}

let DATA = null, WHOLE = [0, 1], SVG_SPACE = "";
function startCharts() {
  const text = document.getElementById("data");
  if (!text) return;
  DATA = JSON.parse(text.textContent);
  SVG_SPACE = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
  DATA.ports.forEach((port, index) => { port.index = index; });
  const some = DATA.times.filter((times) => times.length);
  if (some.length) WHOLE = [Math.min(...some.map((times) => times[0])), Math.max(...some.map((times) => times[times.length - 1]))];
  if (WHOLE[0] === WHOLE[1]) WHOLE = [WHOLE[0], WHOLE[0] + 1];
  view = [...WHOLE];
  most = DATA.atOnce;
  fill();
  document.getElementById("filter").addEventListener("input", () => { most = DATA.atOnce; fill(); });
  document.getElementById("more").addEventListener("click", () => { most += 4 * DATA.atOnce; fill(); });
  document.getElementById("reset").addEventListener("click", () => look(...WHOLE));
  let wide = 0;
  new ResizeObserver(() => {
    const now = document.getElementById("charts").clientWidth;
    if (now !== wide) { wide = now; drawn.forEach(drawChart); }
  }).observe(document.getElementById("charts"));
  window.addEventListener("beforeprint", () => drawn.forEach(drawChart));
}
