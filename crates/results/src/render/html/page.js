"use strict";
(() => {
  const SPACE = "\u202f";
  const digits = (v) => {
    const a = Math.abs(v);
    const text = v.toFixed(a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
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
  // An axis between two places of the drawing.
  const axis = (text, names, first, last) => {
    const [scale, from, to, unit] = text.split(" ");
    const [a, b] = [Number(from), Number(to)];
    const forth = scale === "log" ? Math.log10 : scale === "tail" ? (v) => -Math.log10(v) : (v) => v;
    const back = scale === "log" ? (v) => 10 ** v : scale === "tail" ? (v) => 10 ** -v : (v) => v;
    const all = names ? names.split("\n") : [];
    return {
      show: all.length ? (v) => all[Math.round(v)] || "" : show[unit],
      value: (at) => back(a + ((at - first) / (last - first)) * (b - a)),
      place: (v) => {
        const at = first + ((forth(v) - a) / (b - a)) * (last - first);
        const [low, high] = first < last ? [first, last] : [last, first];
        return v > 0 || scale === "linear" ? Math.max(low, Math.min(high, at)) : first;
      },
    };
  };
  const box = document.createElement("div");
  box.className = "readout";
  box.hidden = true;
  document.body.append(box);

  const pairs = (text, size) => {
    const [numbers, rows] = [(text || "").split(" ").filter(Boolean), []];
    for (let n = 0; n + size <= numbers.length; n += size) rows.push(numbers.slice(n, n + size));
    return rows;
  };
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
  // The point that holds at x: the last one before it.
  const held = (values, at) => {
    let found;
    for (const [x, y] of values) {
      if (x > at) return found;
      found = y;
    }
    return values.length && at <= values[values.length - 1][0] ? found : undefined;
  };
  const prepare = (svg) => {
    const [left, top, right, bottom] = svg.dataset.box.split(" ").map(Number);
    const x = axis(svg.dataset.x, svg.dataset.xNames, left, right);
    const rows = svg.dataset.yNames !== undefined;
    const y = axis(svg.dataset.y, svg.dataset.yNames, rows ? top : bottom, rows ? bottom : top);
    const lines = [...svg.querySelectorAll("g[data-v]")].map((group) => {
      const values = pairs(group.dataset.p, 2).map((pair) => pair.map(Number));
      const points = values.map((pair) => [x.place(pair[0]), y.place(pair[1])]);
      return { group, values, points, steps: group.dataset.steps !== undefined };
    });
    const cross = document.createElementNS(svg.namespaceURI, "path");
    cross.setAttribute("class", "cross");
    svg.append(cross);
    return { left, top, right, bottom, lines, cross, x, y };
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
    let y = ((event.clientY - frame.top) / frame.height) * view.height;
    const c = chart;
    if (x < c.left || x > c.right || y < c.top || y > c.bottom) return hide(c);
    const atX = svg.dataset.read === "x";
    const visible = c.lines.filter(({ group }) => !group.classList.contains("off"));
    if (svg.querySelector(".mark")) {
      const near = (at) => (a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a);
      const places = visible.flatMap(({ points }) => points.map((p) => p[atX ? 0 : 1]));
      if (places.length && atX) x = places.reduce(near(x));
      if (places.length && !atX) y = places.reduce(near(y));
    }
    box.replaceChildren(row("", atX ? c.x.show(c.x.value(x)) : c.y.show(c.y.value(y))));
    for (const { group, points, values, steps } of visible) {
      const alone = points.length === 1 && points[0][atX ? 0 : 1] !== (atX ? x : y);
      if (alone) continue;
      let at;
      if (points.length === 1) at = values[0][atX ? 1 : 0];
      else if (steps) at = held(values, c.x.value(x));
      else {
        const place = atX ? between(points, 0, 1, x) : between(points, 1, 0, y);
        at = place === undefined ? undefined : atX ? c.y.value(place) : c.x.value(place);
      }
      const text = at === undefined ? "–" : (atX ? c.y : c.x).show(at);
      box.append(row((group.dataset.name || names[group.dataset.v] || "") + " ", text, group));
    }
    c.cross.setAttribute("d", atX ? `M${x} ${c.top}V${c.bottom}` : `M${c.left} ${y}H${c.right}`);
    box.hidden = false;
    const [w, h] = [box.offsetWidth, box.offsetHeight];
    const side = event.clientX + 16 + w > innerWidth ? event.clientX - 16 - w : event.clientX + 16;
    box.style.left = Math.max(4, side) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY - h - 12, innerHeight - h - 4)) + "px";
  };
  const make = (name, attributes, text) => {
    const element = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };
  const frame = (svg) => svg.dataset.box.split(" ").map(Number);
  // The lines of a chart in a group that is stretched, and cut off at the axes.
  const stretched = (svg) => {
    const [left, top, right, bottom] = frame(svg);
    const id = `zoom${document.querySelectorAll("clipPath").length}`;
    const clip = make("clipPath", { id });
    clip.append(make("rect", { x: left, y: top, width: right - left, height: bottom - top }));
    const [outer, inner] = [make("g", { class: "zoom", "clip-path": `url(#${id})` }), make("g", {})];
    inner.append(...svg.querySelectorAll("g[data-v], .failure, .failure-edge"));
    outer.append(inner);
    svg.append(clip, outer);
    const isTick = (part) =>
      part.matches("path") ? part.getAttribute("d").includes("V") : Number(part.getAttribute("y")) === bottom + 18;
    for (const part of svg.querySelectorAll("path.grid, text:not(.title)")) part.classList.toggle("tick", isTick(part));
    return inner;
  };
  // Shows the range of an axis of time between two values alone.
  const zoom = (svg, from, to) => {
    const [left, top, right, bottom] = frame(svg);
    const whole = (svg.dataset.whole ||= svg.dataset.x).split(" ");
    const [first, last] = [Number(whole[1]), Number(whole[2])];
    const inner = svg.querySelector("g.zoom > g") || stretched(svg);
    const [times, each] = [(last - first) / (to - from), (right - left) / (to - from)];
    inner.setAttribute("transform", `translate(${left * (1 - times) - (from - first) * each} 0) scale(${times} 1)`);
    svg.dataset.x = [whole[0], from, to, whole[3]].join(" ");
    svg.classList.toggle("zoomed", times !== 1);
    svg.querySelectorAll(".fresh").forEach((part) => part.remove());
    if (times === 1) return;
    const rough = 10 ** Math.floor(Math.log10((to - from) / 3));
    const step = [1, 2, 5, 10].map((n) => n * rough).find((n) => (to - from) / n <= 5);
    for (let n = Math.ceil(from / step); n * step <= to; n += 1) {
      const x = left + (n * step - from) * each;
      const name = show.time(n * step);
      svg.prepend(make("path", { class: "grid fresh", d: `M${x} ${top}V${bottom}` }));
      svg.append(make("text", { class: "fresh", x, y: bottom + 18, "text-anchor": "middle" }, name));
    }
  };
  // A drag across a chart of time shows what lies between its ends; `whole` brings all back.
  const follow = (svg, tools) => {
    let [chart, start] = [];
    const isTime = svg.dataset.read === "x" && /^linear .* time$/.test(svg.dataset.x);
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      return Math.max(chart.left, Math.min(chart.right, x));
    };
    const to = (from, until) => {
      hide(chart);
      zoom(svg, from, until);
      chart.cross.remove();
      chart = undefined;
    };
    const whole = button("whole", "all of the time again", (self) => {
      const [, from, until] = svg.dataset.whole.split(" ").map(Number);
      chart ||= prepare(svg);
      to(from, until);
      self.remove();
    });
    const move = (event) => {
      point(svg, (chart ||= prepare(svg)), event);
      if (start !== undefined) chart.cross.setAttribute("d", `M${start} ${chart.top}V${chart.bottom}H${at(event)}V${chart.top}Z`);
    };
    const end = (event) => {
      const [from, until] = [start, at(event)].sort((a, b) => a - b);
      start = undefined;
      if (until - from < 8) return;
      to(chart.x.value(from), chart.x.value(until));
      tools.prepend(whole);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", (event) => {
      move(event);
      if (isTime) start = at(event);
    });
    svg.addEventListener("pointerup", (event) => start !== undefined && end(event));
    svg.addEventListener("pointerleave", () => { start = undefined; hide(chart); });
  };

  // What a chart shows, to take away.
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const nameOf = (group) => group.dataset.name || names[group.dataset.v] || "";
  const csv = (svg) => {
    if (svg.dataset.csv) return svg.dataset.csv;
    const lines = [];
    const line = (...cells) => lines.push(cells.map((cell) => quoted(String(cell))).join(","));
    if (svg.classList.contains("forest")) {
      line("series", "figure", "ratio", "low", "high");
      for (const group of svg.querySelectorAll("g[data-ratio]")) {
        const [ratio, low = "", high = ""] = group.dataset.ratio.split(" ");
        line(nameOf(group), group.dataset.figure, ratio, low, high);
      }
      return lines.join("\n") + "\n";
    }
    const [xNames, yNames] = [svg.dataset.xNames, svg.dataset.yNames].map((names) => names && names.split("\n"));
    const cell = (names, value) => (names ? names[Math.round(value)] : value);
    line("series", "seed", svg.dataset.xColumn, svg.dataset.yColumn || "row", "low", "high");
    for (const group of svg.querySelectorAll("g[data-v]")) {
      const [name, place] = [nameOf(group), yNames ? 1 : 0];
      const ends = new Map(pairs(group.dataset.w, 3).map(([at, low, high]) => [at, [low, high]]));
      for (const pair of pairs(group.dataset.p, 2)) {
        line(name, "", cell(xNames, pair[0]), cell(yNames, pair[1]), ...(ends.get(pair[place]) || ["", ""]));
      }
      for (const [seed, x, y] of pairs(group.dataset.d, 3)) line(name, seed, cell(xNames, x), cell(yNames, y), "", "");
    }
    return lines.join("\n") + "\n";
  };
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity",
    "font-size", "font-style", "font-weight", "paint-order", "display", "vector-effect"];
  // The drawing by itself: light, with its caption above and the names of its series below.
  const alone = (svg, caption) => {
    const root = document.documentElement;
    root.classList.add("light");
    const copy = svg.cloneNode(true);
    const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
    from.forEach((element, at) => {
      const style = getComputedStyle(element);
      to[at].setAttribute("style", KEPT.map((key) => `${key}:${style.getPropertyValue(key)}`).join(";"));
      for (const key of Object.keys(element.dataset)) delete to[at].dataset[key];
    });
    copy.querySelectorAll(".cross").forEach((cross) => cross.remove());
    const groups = [...svg.querySelectorAll("g[data-v]")].filter((group) => !group.classList.contains("off"));
    const series = svg.dataset.yNames ? [] : groups.filter((group, at) => {
      return nameOf(group) && groups.findIndex((other) => nameOf(other) === nameOf(group)) === at;
    });
    const { width, height } = svg.viewBox.baseVal;
    const above = 30;
    const out = make("svg", {});
    const back = make("rect", { width: "100%", height: "100%", fill: "#fff" });
    const style = getComputedStyle(svg);
    out.setAttribute("style", `font-family:${style.fontFamily.replaceAll('"', "'")}`);
    out.append(back, make("text", { x: 4, y: 19, "font-size": 15, "font-weight": 700, fill: style.color }, caption));
    const inner = make("g", { transform: `translate(0 ${above})` });
    inner.append(...copy.childNodes);
    out.append(inner);
    let [x, y] = [8, above + height + 12];
    for (const group of series) {
      const [name, line] = [nameOf(group), group.querySelector(".line")];
      const room = 34 + name.length * 7.2;
      if (x + room > width && x > 8) [x, y] = [8, y + 18];
      const { color } = getComputedStyle(group);
      const dash = line ? getComputedStyle(line).strokeDasharray : "none";
      out.append(make("path", { d: `M${x} ${y - 4}h20`, stroke: color, "stroke-width": 2.5, "stroke-dasharray": dash }));
      out.append(make("text", { x: x + 26, y, "font-size": 12, fill: style.color }, name));
      x += room;
    }
    root.classList.remove("light");
    const bottom = series.length ? y + 10 : above + height;
    out.setAttribute("viewBox", `0 0 ${width} ${bottom}`);
    out.setAttribute("width", width * 2);
    out.setAttribute("height", bottom * 2);
    return new XMLSerializer().serializeToString(out);
  };
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const button = (text, title, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = title;
    made.addEventListener("click", () => act(made));
    return made;
  };
  for (const figure of document.querySelectorAll("figure")) {
    let svg = figure.querySelector("svg.chart, svg.forest, svg.heat, svg.gantt");
    if (!svg) continue;
    const first = svg;
    const caption = figure.querySelector("figcaption b").textContent;
    const section = figure.closest("section").querySelector("h2").textContent;
    const file = `${document.title.split(" · ")[0]} ${section} ${caption}`.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
    const tools = document.createElement("div");
    tools.className = "tools";
    const other = figure.querySelector("template");
    if (svg.classList.contains("chart")) follow(svg, tools);
    if (other) {
      let waiting = other.content.querySelector("svg");
      const values = (drawing) => (drawing.dataset.yNames ? drawing.dataset.x : drawing.dataset.y);
      const log = button("log", "values on a logarithmic scale", (self) => {
        for (const group of waiting.querySelectorAll("g[data-v]")) {
          const same = svg.querySelector(`g[data-v="${group.dataset.v}"]`);
          group.classList.toggle("off", Boolean(same && same.classList.contains("off")));
        }
        svg.replaceWith(waiting);
        [svg, waiting] = [waiting, svg];
        if (!svg.dataset.followed) follow(svg, tools);
        svg.dataset.followed = waiting.dataset.followed = "yes";
        self.setAttribute("aria-pressed", String(values(svg).startsWith("log")));
      });
      log.setAttribute("aria-pressed", String(values(svg).startsWith("log")));
      tools.append(log);
    }
    tools.append(button("SVG", "this drawing as a file", () => save(`${file}.svg`, "image/svg+xml", alone(svg, caption))));
    tools.append(button("CSV", "its points as a file", () => save(`${file}.csv`, "text/csv", csv(first))));
    figure.querySelector("figcaption").append(tools);
  }
  addEventListener("scroll", () => hide(), { passive: true });
  const toggle = (button, on) => {
    button.setAttribute("aria-pressed", String(on));
    for (const part of document.querySelectorAll(`[data-v="${button.dataset.toggle}"]`)) part.classList.toggle("off", !on);
  };
  const toggles = [...document.querySelectorAll("[data-toggle]")];
  for (const button of toggles) {
    button.addEventListener("click", () => toggle(button, button.getAttribute("aria-pressed") !== "true"));
  }
  for (const button of document.querySelectorAll("[data-toggle-all]")) {
    button.addEventListener("click", () => toggles.forEach((one) => toggle(one, button.dataset.toggleAll === "true")));
  }
  document.documentElement.dataset.ready = "yes";
})();
