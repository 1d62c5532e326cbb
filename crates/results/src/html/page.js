"use strict";
(() => {
  const SPACE = "\u202f";
  const digits = (v) => {
    const a = Math.abs(v);
    return v.toFixed(a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
  };
  const scaled = (v, units) => {
    let at = 0;
    while (at + 1 < units.length && Math.abs(v) >= 999.5) { v /= 1000; at += 1; }
    return digits(v) + SPACE + units[at];
  };
  const show = {
    time: (v) => (Math.abs(v) < 0.9995 ? digits(v * 1000) + SPACE + "ns" : scaled(v, ["µs", "ms", "s"])),
    bytes: (v) => scaled(v, ["B", "KB", "MB", "GB", "TB"]),
    rate: (v) => digits(v) + SPACE + "Gb/s",
    ratio: digits,
    count: (v) => (v < 1000 ? digits(v) : Math.round(v).toLocaleString("en")),
    name: () => "",
    percent: (v) => digits(v) + SPACE + "%",
    share: (v) => {
      const nines = Math.max(0, Math.ceil(-Math.log10(v) - 1e-6) - 1);
      return "p" + ((1 - v) * 100).toFixed(v > 0.05 ? 0 : nines);
    },
  };
  const axis = (text) => {
    const [scale, from, to, unit] = text.split(" ");
    const [a, b] = [Number(from), Number(to)];
    return {
      show: show[unit],
      value: (part) => {
        const at = a + part * (b - a);
        return scale === "log" ? 10 ** at : scale === "tail" ? 10 ** -at : at;
      },
    };
  };
  const box = document.createElement("div");
  box.className = "readout";
  box.hidden = true;
  document.body.append(box);

  // Where a line is when one coordinate is held: between the two points around it.
  const between = (points, held, other, at) => {
    for (let n = 1; n < points.length; n += 1) {
      const [a, b] = [points[n - 1], points[n]];
      const [low, high] = [Math.min(a[held], b[held]), Math.max(a[held], b[held])];
      if (at >= low && at <= high) {
        return high === low ? b[other] : a[other] + ((b[other] - a[other]) * (at - a[held])) / (b[held] - a[held]);
      }
    }
    return undefined;
  };
  const prepare = (svg) => {
    const [left, top, right, bottom] = svg.dataset.box.split(" ").map(Number);
    const lines = [...svg.querySelectorAll("g[data-v]")].map((group) => {
      const numbers = (group.querySelector(".line").getAttribute("d").match(/-?[\d.]+/g) || []).map(Number);
      const points = [];
      for (let n = 0; n + 1 < numbers.length; n += 2) points.push([numbers[n], numbers[n + 1]]);
      return { group, points };
    });
    const cross = document.createElementNS(svg.namespaceURI, "path");
    cross.setAttribute("class", "cross");
    svg.append(cross);
    return { left, top, right, bottom, lines, cross, x: axis(svg.dataset.x), y: axis(svg.dataset.y) };
  };
  const names = [...document.querySelectorAll("[data-toggle]")].map((button) => button.textContent);
  const row = (key, text, group) => {
    const line = document.createElement("div");
    if (group) {
      const dot = document.createElement("i");
      dot.className = "dot " + group.getAttribute("class");
      line.append(dot);
    }
    const value = document.createElement("b");
    value.textContent = text;
    line.append(key, value);
    return line;
  };
  const hide = (chart) => { box.hidden = true; if (chart) chart.cross.removeAttribute("d"); };
  const point = (svg, chart, event) => {
    const frame = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    let x = ((event.clientX - frame.left) / frame.width) * view.width;
    const y = ((event.clientY - frame.top) / frame.height) * view.height;
    const c = chart;
    if (x < c.left || x > c.right || y < c.top || y > c.bottom) return hide(c);
    const part = { x: (v) => (v - c.left) / (c.right - c.left), y: (v) => (c.bottom - v) / (c.bottom - c.top) };
    const atX = svg.dataset.read === "x";
    const visible = c.lines.filter(({ group }) => !group.classList.contains("off"));
    if (atX && svg.querySelector(".mark")) {
      const places = visible.flatMap(({ points }) => points.map((p) => p[0]));
      if (places.length) x = places.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));
    }
    box.replaceChildren(row("", atX ? c.x.show(c.x.value(part.x(x))) : c.y.show(c.y.value(part.y(y)))));
    for (const { group, points } of visible) {
      const at = atX ? between(points, 0, 1, x) : between(points, 1, 0, y);
      const text = at === undefined ? "–" : atX ? c.y.show(c.y.value(part.y(at))) : c.x.show(c.x.value(part.x(at)));
      box.append(row((group.dataset.name || names[group.dataset.v] || "") + " ", text, group));
    }
    c.cross.setAttribute("d", atX ? `M${x} ${c.top}V${c.bottom}` : `M${c.left} ${y}H${c.right}`);
    box.hidden = false;
    const [w, h] = [box.offsetWidth, box.offsetHeight];
    const side = event.clientX + 16 + w > innerWidth ? event.clientX - 16 - w : event.clientX + 16;
    box.style.left = Math.max(4, side) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY - h - 12, innerHeight - h - 4)) + "px";
  };
  for (const svg of document.querySelectorAll("svg.chart")) {
    let chart;
    const move = (event) => point(svg, (chart ||= prepare(svg)), event);
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", () => hide(chart));
  }
  addEventListener("scroll", () => hide(), { passive: true });
  for (const button of document.querySelectorAll("[data-toggle]")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const part of document.querySelectorAll(`[data-v="${button.dataset.toggle}"]`)) part.classList.toggle("off", !on);
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
