// Scales, ticks and numbers.
function niceTicks(low, high, about) {
  const rough = (high - low) / about;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) || 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && ticks.length < 20; k++) ticks.push(k * step);
  return { ticks, step };
}

function tickText(value, step) {
  const size = Math.max(Math.abs(value), step);
  if (value !== 0 && (size >= 1e5 || step < 1e-4)) {
    const digits = Math.max(0, Math.min(8, Math.ceil(Math.log10(Math.abs(value) / step) - 1e-9)));
    return value.toExponential(digits).replace("e+", "e").replaceAll("-", "−");
  }
  let digits = 0;
  while (digits < 12 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++;
  return value.toFixed(digits).replace("-", "−");
}

function numberText(value, digits = 5) {
  if (value === null || value === undefined) return "no number";
  return String(Number(value.toPrecision(digits))).replace("e+", "e").replaceAll("-", "−");
}

function extent(lists, from, to) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (let i = from; i < to; i++) {
      const value = list[i];
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return [0, 1];
  if (low === high) { const room = Math.abs(low) * 0.1 || 1; return [low - room, high + room]; }
  const room = (high - low) * 0.06;
  return [Number.isFinite(room) ? low - room : low, Number.isFinite(room) ? high + room : high];
}

// The first index whose time is not before t.
function place(times, t) {
  let low = 0, high = times.length;
  while (low < high) { const middle = (low + high) >> 1; if (times[middle] < t) low = middle + 1; else high = middle; }
  return low;
}
