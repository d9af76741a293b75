// What happened when: threads as strips, rates as curves, and single steps when there is room for them.

const LANE = 18;
const PANEL = 62;
const SHORT_LIST = 9;
// Steps are drawn one by one from here on.
const BUCKET_PX = 12;

class TimeChart extends Chart {
  constructor(data, view) {
    super(view, { name: "timeline", label: "Timeline of threads, rates and counters", height: 200 });
    this.data = data;
    this.line = data.timeline;
    // As in the heat map, so that the same moments stand below each other.
    this.wideLeft = 124;
    this.wideRight = 76;
    this.shown = new Set(["bandwidth", "in_flight", "stall_now", "latency"]);
    this.allStrips = false;
    this.strips = this.line.strips.map((strip) => ({
      ...strip,
      layers: unpackBytes(strip.layers),
      busy: unpackBytes(strip.busy),
    }));
    this.steps = TimeChart.stepsByRank(data.steps);
    this.series = TimeChart.seriesOf(this.line);
    this.arrange();
  }

  static stepsByRank(steps) {
    const ranks = new Map();
    steps?.rank.forEach((rank, place) => {
      if (!ranks.has(rank)) ranks.set(rank, []);
      ranks.get(rank).push(place);
    });
    for (const places of ranks.values()) places.sort((a, b) => steps.start[a] - steps.start[b]);
    return ranks;
  }

  // Curves: a name, a definition, a format, and one or two lines.
  static seriesOf(line) {
    const seconds = line.bucket_ns / NS_PER_S;
    const perSecond = (values) => values.map((value) => value / seconds);
    const perBucket = (values) => values.map((us) => (us * 1000) / line.bucket_ns);
    const all = [
      ["bandwidth", formatRate, [["read", perSecond(line.bytes_read)], ["written", perSecond(line.bytes_written)]]],
      ["iops", formatNumber, [["calls/s", perSecond(line.calls)]]],
      ["latency", formatNs, [["p50", line.read_p50], ["p99", line.read_p99]]],
      ["in_flight", formatNumber, [["calls", perBucket(line.io)]]],
      ["stall_now", formatNumber, [["ranks", perBucket(line.stall)]]],
      ["compute_now", formatNumber, [["ranks", perBucket(line.compute)]]],
      ["ready", formatNumber, [["batches", line.ready]]],
      ...line.counters.map(({ name, values }, place) => [`counter-${place}`, formatNumber, [["mean", values]], name]),
    ];
    return all
      .map(([key, format, lines, label]) => ({ key, format, label: label ?? labelOf(key), lines: lines.filter(([, values]) => values.length > 0) }))
      .filter(({ lines }) => lines.length > 0);
  }

  // Places of lanes and panels, from the top down.
  arrange() {
    const lanes = this.allStrips ? this.strips : this.strips.slice(0, SHORT_LIST);
    let y = this.margin.top;
    this.lanes = lanes.map((strip) => ({ strip, y: (y += LANE) - LANE }));
    if (this.lanes.length > 0) y += 8;
    this.panels = this.series.filter(({ key }) => this.shown.has(key)).map((series) => ({ series, y: (y += PANEL) - PANEL }));
    this.height = y + this.margin.bottom;
    this.redraw();
  }

  get bucketPx() {
    return (this.line.bucket_ns / this.view.span) * this.plotWidth;
  }

  get showsSteps() {
    return this.steps.size > 0 && this.bucketPx >= BUCKET_PX;
  }

  caption() {
    const steps = this.showsSteps ? ", single steps" : "";
    return timeCaption(this.view) + steps;
  }

  visibleBuckets() {
    const first = Math.max(0, Math.floor(this.view.start / this.line.bucket_ns));
    return [first, Math.min(this.line.buckets, Math.ceil(this.view.end / this.line.bucket_ns))];
  }

  draw(context) {
    this.timeAxis(context);
    for (const { strip, y } of this.lanes) {
      const title = this.fittedEnd(context, strip.title, this.margin.left - 12);
      this.label(context, title, this.margin.left - 8, y + LANE / 2, "right", strip.role === "rank" ? "text" : "muted");
    }
    this.clipped(context, () => {
      for (const lane of this.lanes) this.drawLane(context, lane);
    });
    for (const panel of this.panels) this.drawPanel(context, panel);
    this.canvas.dataset.steps = String(this.showsSteps);
  }

  drawLane(context, { strip, y }) {
    if (strip.role === "rank" && this.showsSteps && this.steps.has(strip.rank)) {
      this.drawSteps(context, strip.rank, y);
      return;
    }
    const [first, last] = this.visibleBuckets();
    const room = LANE - 3;
    for (let bucket = first; bucket < last; bucket += 1) {
      const busy = strip.busy[bucket];
      if (!busy) continue;
      const x = this.toX(bucket * this.line.bucket_ns);
      const height = Math.max(1, (busy / 100) * room);
      context.fillStyle = palette.color(`layer-${this.data.layer_names[strip.layers[bucket]]}`);
      context.fillRect(x, y + LANE - 1 - height, this.toX((bucket + 1) * this.line.bucket_ns) - x + 0.3, height);
    }
  }

  // Lengths are measured. The place of the computation inside the step is not: it is drawn behind the fetch.
  pieces(place) {
    const { steps } = this.data;
    const start = steps.start[place];
    const compute = start + steps.fetch[place];
    const meets = steps.meets[place] ?? start + steps.duration[place] - steps.communication[place];
    return [
      ["fetch", start, steps.fetch[place]],
      ["compute", compute, steps.compute[place]],
      ["communication", meets, steps.communication[place]],
    ].filter(([, , us]) => us > 0);
  }

  drawSteps(context, rank, y) {
    const { steps } = this.data;
    for (const place of this.steps.get(rank)) {
      const start = steps.start[place] * 1000;
      if (start > this.view.end) break;
      if (start + steps.duration[place] * 1000 < this.view.start) continue;
      for (const [name, from, us] of this.pieces(place)) {
        const x = this.toX(from * 1000);
        const width = (us * 1000 * this.plotWidth) / this.view.span;
        context.fillStyle = palette.color(`layer-${name}`);
        context.fillRect(x, y + 2, Math.max(0.6, width - (width > 5 ? 1 : 0)), LANE - 4);
        if (width > 16) this.label(context, this.fitted(context, name, width - 6), x + 4, y + LANE / 2 + 0.5, "left", "on-layer");
      }
    }
  }

  drawPanel(context, { series, y }) {
    const [first, last] = this.visibleBuckets();
    const top = y + 14;
    const room = PANEL - 20;
    let most = 0;
    for (const [, values] of series.lines) {
      for (let bucket = first; bucket < last; bucket += 1) most = Math.max(most, values[bucket] ?? 0);
    }
    context.fillStyle = palette.color("grid");
    context.fillRect(this.margin.left, top + room, this.plotWidth, 1);
    // Where the margins are too narrow for them, texts stand above the curve.
    let x = this.margin.left + 4;
    if (this.isNarrow) {
      const name = this.fitted(context, series.label, 90);
      this.label(context, name, x, y + 6, "left", "text");
      x += context.measureText(name).width + 14;
      this.label(context, series.format(most), this.width - this.margin.right, y + 6, "right");
    } else {
      this.label(context, this.fitted(context, series.label, this.margin.left - 12), this.margin.left - 8, top + room / 2, "right", "text");
      this.label(context, this.fitted(context, series.format(most), this.margin.right - 8), this.width - this.margin.right + 6, top + 2, "left");
    }
    series.lines.forEach((line, number) => this.drawLine(context, line, { number, most, top, room, first, last }));
    if (series.lines.length < 2) return;
    series.lines.forEach(([name], number) => {
      this.stroked(context, number, () => {
        context.moveTo(x, y + 6);
        context.lineTo(x + 18, y + 6);
      });
      this.label(context, name, x + 23, y + 6, "left");
      x += 37 + context.measureText(name).width;
    });
  }

  // The first curve of a panel is solid, the second one dashed.
  stroked(context, number, path) {
    context.save();
    context.strokeStyle = palette.color(number === 0 ? "accent" : "accent-2");
    context.lineWidth = 1.4;
    context.setLineDash(number === 0 ? [] : [4, 3]);
    context.beginPath();
    path();
    context.stroke();
    context.restore();
  }

  drawLine(context, [, values], { number, most, top, room, first, last }) {
    context.save();
    context.beginPath();
    context.rect(this.margin.left, top - 2, this.plotWidth, room + 3);
    context.clip();
    this.stroked(context, number, () => this.traced(context, values, { most, top, room, first, last }));
    context.restore();
  }

  traced(context, values, { most, top, room, first, last }) {
    let drawn = false;
    for (let bucket = first; bucket < last; bucket += 1) {
      const value = values[bucket];
      if (value === null || value === undefined) {
        drawn = false;
        continue;
      }
      const y = top + room - (most > 0 ? value / most : 0) * room;
      const x = this.toX(bucket * this.line.bucket_ns);
      if (drawn) context.lineTo(x, y);
      else context.moveTo(x, y);
      context.lineTo(this.toX((bucket + 1) * this.line.bucket_ns), y);
      drawn = true;
    }
  }

  stride() {
    return { x: Math.max(1, this.bucketPx), y: LANE };
  }

  describe(x, y) {
    const ns = this.fromX(x);
    const bucket = Math.floor(ns / this.line.bucket_ns);
    if (bucket < 0 || bucket >= this.line.buckets) return null;
    const time = ["from", `${formatNs(bucket * this.line.bucket_ns)}, for ${formatNs(this.line.bucket_ns)}`];
    const panel = this.panels.find((one) => y >= one.y && y < one.y + PANEL);
    if (panel) {
      const { series } = panel;
      return facts(series.label, [time, ...series.lines.map(([name, values]) => [name, series.format(values[bucket])])]);
    }
    const lane = this.lanes.find((one) => y >= one.y && y < one.y + LANE);
    if (!lane) return null;
    return this.describeStep(lane.strip, ns) ?? facts(lane.strip.title, [
      time,
      ["mostly in", this.data.layer_names[lane.strip.layers[bucket]] ?? ABSENT],
      ["busy", `${lane.strip.busy[bucket] ?? 0} %`],
    ]);
  }

  describeStep(strip, ns) {
    if (strip.role !== "rank" || !this.showsSteps) return null;
    const { steps } = this.data;
    const us = ns / 1000;
    const place = this.steps.get(strip.rank)?.find((one) => us >= steps.start[one] && us < steps.start[one] + steps.duration[one]);
    if (place === undefined) return null;
    return facts(`Rank ${strip.rank}, epoch ${steps.epoch[place]}, step ${steps.step[place]}`, [
      ["step", formatUs(steps.duration[place])],
      ["stalled", formatUs(steps.stall[place])],
      ...this.pieces(place).map(([name, , length]) => [name, formatUs(length)]),
    ]);
  }
}

function timelineSection(data, timeView) {
  const chart = new TimeChart(data, timeView);
  const boxes = chart.series.map(({ key, label }) =>
    checkbox(DEFINITIONS[key] ? term(key) : label, chart.shown.has(key), (on) => {
      if (on) chart.shown.add(key);
      else chart.shown.delete(key);
      chart.arrange();
    }),
  );
  const { strips } = chart;
  const used = new Set(strips.flatMap((strip) => [...new Set(strip.layers)].map((layer) => data.layer_names[layer])));
  const more = strips.length > SHORT_LIST
    ? button(`Show all ${strips.length} threads`, () => {
        chart.allStrips = !chart.allStrips;
        more.textContent = chart.allStrips ? `Show ${SHORT_LIST} threads` : `Show all ${strips.length} threads`;
        chart.arrange();
      })
    : null;
  const left = data.timeline.all_strips - strips.length;
  const notes = [
    left > 0 ? `${formatCount(left)} more threads are not shown.` : "",
    data.timeline.joined > 1 ? `${data.timeline.joined} buckets of the analysis are merged into one; for latencies the largest is shown.` : "",
    chart.steps.size > 0 ? "Zoom in to see single steps of ranks: lengths are measured, and computation is drawn after the fetch." : "",
  ];
  return section(
    "timeline",
    "Timeline",
    `Drag or Ctrl + wheel to zoom, double-click to reset. A bucket is ${formatNs(data.timeline.bucket_ns)}.${data.heat_map ? " It moves together with the rank chart above." : ""}`,
    el("div", { class: "toolbar" }, more, chart.controls()),
    el("div", { class: "toolbar series", role: "group", "aria-label": "Visible curves" }, boxes),
    chart.root,
    strips.length > 0
      ? el("div", { class: "legend" }, term("strip"), [...used].map((name) => el("span", { class: "legend-item plain" }, layerSwatch(name), name)))
      : null,
    el("p", { class: "note" }, notes.filter(Boolean).join(" ")),
  );
}
