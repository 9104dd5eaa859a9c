// Routes the wires of each level beside its boxes, and lights up what belongs together.
function routeWires(inside) {
  const svg = inside.querySelector(":scope > svg.wires");
  const nodes = new Map();
  for (const node of inside.querySelectorAll(":scope > .node")) nodes.set(node.dataset.node, node);
  const lane = parseFloat(getComputedStyle(inside).getPropertyValue("--lane")) || 9;
  const wires = [...svg.querySelectorAll("path.wire")];
  const ends = new Map(); // node and side -> attachments
  const attach = (node, side, key, toward) => {
    const at = node + side;
    if (!ends.has(at)) ends.set(at, new Map());
    ends.get(at).set(key, toward);
  };
  for (const wire of wires) {
    const { from, to } = wire.dataset;
    wire.side = wire.classList.contains("right") ? "right" : "left";
    // all wires of one source leave it at one point
    attach(from, wire.side, "out", Number(to) - Number(from) || 0.5);
    attach(to, wire.side, "in" + from, Number(from) - Number(to) || -0.5);
  }
  const height = (key, node, side) => {
    const all = [...ends.get(node + side).entries()].sort((a, b) => a[1] - b[1]).map((entry) => entry[0]);
    const box = nodes.get(node);
    const tall = Math.min(box.offsetHeight, 90);
    return box.offsetTop + (tall * (all.indexOf(key) + 1)) / (all.length + 1);
  };
  for (const wire of wires) {
    const { from, to } = wire.dataset;
    if (!nodes.has(from) || !nodes.has(to)) continue;
    const right = wire.side === "right", out = right ? 1 : -1;
    const edge = (node) => nodes.get(node).offsetLeft + (right ? nodes.get(node).offsetWidth : 0);
    const x0 = edge(from), x1 = edge(to);
    const x = (right ? Math.max(x0, x1) : Math.min(x0, x1)) + out * (10 + lane * Number(wire.dataset.lane));
    const y0 = height("out", from, wire.side), y1 = height("in" + from, to, wire.side);
    const tip = `M${x1 + out * 6} ${y1 - 3.5}L${x1 + out} ${y1}L${x1 + out * 6} ${y1 + 3.5}`;
    wire.setAttribute("d", `M${x0} ${y0}H${x}V${y1}H${x1 + out}${tip}`);
  }
}

function routeAll() {
  for (const inside of document.querySelectorAll(".inside")) if (inside.offsetParent !== null) routeWires(inside);
}

function lightNode(node, on) {
  const svg = node.parentElement.querySelector(":scope > svg.wires");
  for (const wire of svg.querySelectorAll("path.wire")) {
    const mine = wire.dataset.from === node.dataset.node || wire.dataset.to === node.dataset.node;
    wire.classList.toggle("lit", on && mine);
  }
}

function lightLane(path, on) {
  for (const flow of document.querySelectorAll(".flow")) {
    flow.classList.toggle("lit", on && (flow.dataset.from === path || flow.dataset.to === path));
  }
  for (const name of document.querySelectorAll(".name")) {
    name.classList.toggle("lit", on && name.dataset.lane === path);
  }
}

// Paper does not scroll: a wide timeline is made smaller while it is printed.
const PAPER = 700;
function fitTimeline(printing) {
  const timeline = document.querySelector(".timeline"), lanes = document.querySelector("svg.lanes");
  if (!timeline) return;
  const needed = lanes.width.baseVal.value + 200;
  timeline.style.zoom = printing ? Math.max(0.3, Math.min(1, PAPER / needed)) : "";
}

function startWires() {
  window.addEventListener("beforeprint", () => fitTimeline(true));
  window.addEventListener("afterprint", () => fitTimeline(false));
  for (const node of document.querySelectorAll(".node")) {
    node.addEventListener("mouseenter", () => lightNode(node, true));
    node.addEventListener("mouseleave", () => lightNode(node, false));
  }
  for (const lane of document.querySelectorAll("[data-lane].name, line[data-lane]")) {
    lane.addEventListener("mouseenter", () => lightLane(lane.dataset.lane, true));
    lane.addEventListener("mouseleave", () => lightLane(lane.dataset.lane, false));
  }
  const tree = document.querySelector(".tree");
  if (!tree) return;
  routeAll();
  tree.addEventListener("toggle", routeAll, true);
  new ResizeObserver(routeAll).observe(tree);
  window.addEventListener("beforeprint", routeAll);
}
