// Points over two numbers: scales, axes, dots on a canvas, and which dot is near the pointer.
const EDGE = { left: 74, right: 16, top: 16, bottom: 46 };
const FAR = 30; // from this ratio on a scale is logarithmic
let SVG_SPACE = "";

function node(name, attributes, parent, text) {
  const made = document.createElementNS(SVG_SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Numbers far from one with a power of ten.
function brief(value, digits) {
  if (value === null || value === undefined) return "none";
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e6)) return numberText(value, digits);
  const [mantissa, power] = value.toExponential(Math.max(0, digits - 1)).split("e");
  return `${Number(mantissa)}e${Number(power)}`.replaceAll("-", "−");
}

// A scale over the values that must be seen; `wide` leaves room around them.
function scaleOf(values, wide) {
  const kept = values.filter((value) => value !== null && value !== undefined);
  let low = Infinity, high = -Infinity;
  for (const value of kept) { if (value < low) low = value; if (value > high) high = value; }
  if (!kept.length) return { low: 0, high: 1, log: false };
  const log = low > 0 && high / low > FAR;
  return widened(log ? Math.log10(low) : low, log ? Math.log10(high) : high, log, wide);
}

function widened(low, high, log, wide) {
  const span = high - low || Math.abs(low) * 0.2 || 1;
  return { low: low - 0.06 * span, high: high + wide * span, log };
}

function valueOn(scale, part) {
  const value = scale.low + part * (scale.high - scale.low);
  return scale.log ? 10 ** value : value;
}

function partOn(scale, value) {
  const at = scale.log ? Math.log10(value) : value;
  return (at - scale.low) / (scale.high - scale.low);
}

function ticksOn(scale, about) {
  if (!scale.log) {
    const { ticks, step } = niceTicks(scale.low, scale.high, about);
    return ticks.map((tick) => [tick, tickText(tick, step)]);
  }
  const decades = scale.high - scale.low;
  const every = Math.max(1, Math.ceil(decades / about));
  const factors = decades > about / 2 ? [1] : decades > about / 4 ? [1, 3] : [1, 2, 5];
  const found = [];
  for (let power = Math.floor(scale.low); power <= Math.ceil(scale.high); power++) {
    if (power % every) continue;
    for (const factor of factors) {
      const value = factor * 10 ** power, at = Math.log10(value);
      if (at >= scale.low && at <= scale.high) found.push([value, brief(value, 1)]);
    }
  }
  if (found.length > 1) return found;
  return niceTicks(10 ** scale.low, 10 ** scale.high, about).ticks.map((tick) => [tick, brief(tick, 3)]);
}

function drawAxes(svg, plane, x, y, names) {
  const { width, height } = plane;
  for (const [value, text] of ticksOn(y, Math.floor(height / 70))) {
    const at = plane.y(value);
    node("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }, svg);
    node("text", { x: EDGE.left - 7, y: at + 4, "text-anchor": "end" }, svg, text);
  }
  for (const [value, text] of ticksOn(x, Math.floor(width / 100))) {
    const at = plane.x(value);
    node("line", { class: "grid", x1: at, x2: at, y1: EDGE.top, y2: height - EDGE.bottom }, svg);
    node("text", { x: at, y: height - EDGE.bottom + 16, "text-anchor": "middle" }, svg, text);
  }
  const middle = (EDGE.top + height - EDGE.bottom) / 2;
  node("text", { class: "head", x: (EDGE.left + width - EDGE.right) / 2, y: height - 8, "text-anchor": "middle" }, svg, names[0]);
  node("text", { class: "head", "text-anchor": "middle", transform: `translate(16 ${middle}) rotate(-90)` }, svg, names[1]);
}

// Dots on the canvas; `look` says how each is drawn: [colour, opacity].
function drawDots(canvas, plane, xs, ys, look) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(plane.width * ratio);
  canvas.height = Math.round(plane.height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.beginPath();
  pen.rect(EDGE.left, EDGE.top, plane.width - EDGE.left - EDGE.right, plane.height - EDGE.top - EDGE.bottom);
  pen.clip();
  const size = xs.length > 3000 ? 1.7 : 2.6;
  for (let i = 0; i < xs.length; i++) {
    if (xs[i] === null || ys[i] === null) continue;
    const [fill, opacity] = look(i);
    pen.globalAlpha = opacity;
    pen.fillStyle = fill;
    pen.beginPath();
    pen.arc(plane.x(xs[i]), plane.y(ys[i]), size, 0, 7);
    pen.fill();
  }
}

// The nearest dot to a place in pixels, if it is near; dots on the front win over others.
function nearestDot(plane, xs, ys, at, first) {
  let best = null, least = 18;
  for (let i = 0; i < xs.length; i++) {
    if (xs[i] === null || ys[i] === null) continue;
    const away = Math.hypot(plane.x(xs[i]) - at[0], plane.y(ys[i]) - at[1]) - (first.has(i) ? 4 : 0);
    if (away < least) { least = away; best = i; }
  }
  return best;
}
