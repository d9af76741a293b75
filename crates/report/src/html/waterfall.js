// Stalls step by step: a stacked bar of causes for each step, joined where there are more steps than pixels.

const REST = ["compute", "communication", "other"];

class Waterfall extends Chart {
  constructor(data, timeView) {
    const columns = Waterfall.ofAll(data);
    super(new View(0, columns.length, Math.min(8, columns.length)), {
      name: "waterfall",
      label: "Stalled time by step and cause",
      height: 300,
    });
    Object.assign(this, { data, timeView, columns, hidden: new Set(), whole: false });
  }

  // A column for each step number: sums over ranks.
  static ofAll({ waterfall }) {
    return waterfall.step.map((step, place) => ({
      phase: waterfall.phase[place],
      epoch: waterfall.epoch[place],
      step,
      until: waterfall.until[place],
      start: waterfall.start[place],
      end: waterfall.end[place],
      steps: waterfall.steps[place],
      duration: waterfall.duration[place],
      stall: waterfall.stall[place],
      compute: waterfall.compute[place],
      communication: waterfall.communication[place],
      parts: waterfall.parts[place],
      worst: waterfall.worst[place],
    }));
  }

  // A column for each embedded step of a rank.
  static ofRank({ steps }, rank) {
    const places = steps.rank.flatMap((one, place) => (one === rank ? [place] : []));
    const columns = places.map((place) => ({
      phase: steps.phase[place],
      epoch: steps.epoch[place],
      step: steps.step[place],
      until: [steps.epoch[place], steps.step[place]],
      start: steps.start[place],
      end: steps.start[place] + steps.duration[place],
      steps: 1,
      duration: steps.duration[place],
      stall: steps.stall[place],
      compute: steps.compute[place],
      communication: steps.communication[place],
      parts: steps.parts[place],
      worst: rank,
    }));
    return columns.sort((a, b) => a.start - b.start);
  }

  choose(rank) {
    this.columns = rank === null ? Waterfall.ofAll(this.data) : Waterfall.ofRank(this.data, rank);
    this.view.full = [0, Math.max(1, this.columns.length)];
    this.view.least = Math.min(8, this.view.full[1]);
    this.view.reset();
  }

  caption() {
    const [first, last] = [this.columns[Math.floor(this.view.start)], this.columns[Math.ceil(this.view.end) - 1]];
    if (!first || !last) return "No steps";
    return `Epoch ${first.epoch} step ${first.step} to epoch ${last.until[0]} step ${last.until[1]}`;
  }

  // Bars at least two pixels wide, each with the mean step of its columns.
  bars() {
    const first = Math.max(0, Math.floor(this.view.start));
    const last = Math.min(this.columns.length, Math.ceil(this.view.end));
    const perBar = Math.max(1, Math.ceil((2 * this.view.span) / this.plotWidth));
    const bars = [];
    for (let from = first - (first % perBar); from < last; from += perBar) {
      bars.push(this.bar(from, Math.min(from + perBar, this.columns.length)));
    }
    return bars;
  }

  bar(from, to) {
    const parts = new Float64Array(this.data.causes.length);
    const sum = { steps: 0, duration: 0, stall: 0, compute: 0, communication: 0 };
    let peak = 0;
    for (let place = from; place < to; place += 1) {
      const column = this.columns[place];
      for (const key of Object.keys(sum)) sum[key] += column[key];
      for (let part = 0; part < column.parts.length; part += 2) parts[column.parts[part]] += column.parts[part + 1];
      peak = Math.max(peak, this.visibleStall(column) / column.steps);
    }
    const mean = (value) => value / Math.max(1, sum.steps);
    const other = Math.max(0, sum.duration - sum.stall - sum.compute - Math.max(0, sum.communication - this.peerOf(parts)));
    return {
      from,
      to,
      steps: sum.steps,
      parts: Array.from(parts, mean),
      stall: mean(sum.stall),
      duration: mean(sum.duration),
      compute: mean(sum.compute),
      communication: mean(Math.max(0, sum.communication - this.peerOf(parts))),
      other: mean(other),
      peak,
    };
  }

  // Waiting for a peer is stalled time and time of a collective; it is drawn once.
  peerOf(parts) {
    return parts[this.data.causes.indexOf("peer")];
  }

  visibleStall(column) {
    let sum = 0;
    for (let part = 0; part < column.parts.length; part += 2) {
      if (!this.hidden.has(column.parts[part])) sum += column.parts[part + 1];
    }
    return sum;
  }

  draw(context) {
    const bars = this.bars();
    const stack = (bar) => bar.parts.reduce((sum, part, cause) => sum + (this.hidden.has(cause) ? 0 : part), 0);
    const height = (bar) => (this.whole ? stack(bar) + bar.compute + bar.communication + bar.other : Math.max(stack(bar), bar.peak));
    const most = Waterfall.ceiling(bars.map(height));
    const base = this.height - this.margin.bottom;
    const toY = (us) => base - (us / most) * this.plotHeight;
    for (const tick of axisTicks(most, 5)) {
      context.fillStyle = palette.color("grid");
      context.fillRect(this.margin.left, Math.round(toY(tick)), this.plotWidth, 1);
      this.label(context, formatUs(tick), this.margin.left - 8, toY(tick), "right");
    }
    this.clipped(context, () => {
      for (const bar of bars) this.drawBar(context, bar, toY);
    });
    this.drawCut(context, bars.filter((bar) => height(bar) > most), height);
    this.drawEpochs(context);
    this.label(context, "steps in time order", this.margin.left + this.plotWidth / 2, this.height - 9, "center");
  }

  // A few bars that tower above all others would leave no room for them: they are cut.
  static ceiling(heights) {
    const sorted = [...heights].sort((a, b) => a - b);
    const most = sorted.at(-1) ?? 0;
    const usual = sorted[Math.floor(sorted.length * 0.97)] ?? 0;
    return Math.max(1, most > 2.5 * usual && usual > 0 ? 1.3 * usual : 1.08 * most);
  }

  // A cut bar ends in an arrow and has its height written beside it.
  drawCut(context, bars, height) {
    let free = -Infinity;
    for (const bar of bars) {
      const x = (this.toX(bar.from) + this.toX(bar.to)) / 2;
      if (x < this.margin.left || x > this.width - this.margin.right) continue;
      context.fillStyle = palette.color("text");
      context.beginPath();
      context.moveTo(x, this.margin.top);
      context.lineTo(x - 5, this.margin.top + 8);
      context.lineTo(x + 5, this.margin.top + 8);
      context.fill();
      const text = formatUs(height(bar));
      const room = context.measureText(text).width;
      if (x + 8 < free || x + 10 + room > this.width) continue;
      this.labelAbove(context, text, x + 9, this.margin.top + 22);
      free = x + 12 + room;
    }
  }

  drawBar(context, bar, toY) {
    const x = this.toX(bar.from);
    const gap = this.toX(bar.to) - x > 6 ? 1 : 0;
    const width = Math.max(1, this.toX(bar.to) - x - gap);
    let sum = 0;
    const add = (value, style, alpha) => {
      if (value <= 0) return;
      context.globalAlpha = alpha;
      context.fillStyle = style;
      const top = toY(sum + value);
      context.fillRect(x, top, width, Math.max(0.5, toY(sum) - top));
      context.globalAlpha = 1;
      sum += value;
    };
    bar.parts.forEach((part, cause) => {
      if (!this.hidden.has(cause)) add(part, palette.cause(context, this.data.causes[cause]), 1);
    });
    if (this.whole) {
      for (const name of REST) add(bar[name], palette.color(`layer-${name}`), 0.45);
    } else if (bar.to - bar.from > 1) {
      // Means hide the worst of the steps that were joined: a tick marks it.
      context.fillStyle = palette.color("muted");
      context.fillRect(x, toY(bar.peak), width, 1);
    }
  }

  drawEpochs(context) {
    let before = null;
    this.columns.forEach((column, place) => {
      const name = `${column.phase === 1 ? "evaluation" : "epoch"} ${column.epoch}`;
      if (name === before) return;
      before = name;
      const x = this.toX(place);
      if (x < this.margin.left - 1 || x > this.width - this.margin.right) return;
      context.fillStyle = palette.color("muted");
      for (let y = this.margin.top; y < this.height - this.margin.bottom; y += 6) context.fillRect(Math.round(x), y, 1, 3);
      this.labelAbove(context, name, x + 9, this.margin.top + 6);
    });
  }

  barAt(x) {
    const place = Math.floor(this.fromX(x));
    return this.bars().find((bar) => place >= bar.from && place < bar.to);
  }

  describe(x) {
    const bar = this.barAt(x);
    if (!bar) return null;
    const [first, last] = [this.columns[bar.from], this.columns[bar.to - 1]];
    const title = first === last && first.until[1] === first.step
      ? `Epoch ${first.epoch}, step ${first.step}`
      : `Epoch ${first.epoch} step ${first.step} to epoch ${last.until[0]} step ${last.until[1]}`;
    const parts = bar.parts.map((us, cause) => [us, cause]).filter(([us]) => us > 0).sort((a, b) => b[0] - a[0]);
    const rows = [
      ["step", formatUs(bar.duration)],
      ["stalled", `${formatUs(bar.stall)}, ${formatShare(ratio(bar.stall, bar.duration))}`],
      ...parts.map(([us, cause]) => [`  ${labelOf(this.data.causes[cause])}`, formatUs(us)]),
      ["compute", formatUs(bar.compute)],
    ];
    if (bar.steps > 1) {
      rows.unshift(["mean of", counted(bar.steps, "step")]);
      if (bar.stall > 0 && first === last) rows.push(["most stalled", `rank ${first.worst}`]);
    }
    return facts(title, rows);
  }

  stride() {
    const bar = this.bars()[0];
    return { x: bar ? this.toX(bar.to) - this.toX(bar.from) : 4, y: 0 };
  }

  // Shows the time of a step in the charts over time.
  activate(x) {
    const bar = this.barAt(x);
    if (!bar || !this.timeView) return;
    const [start, end] = [this.columns[bar.from].start * 1000, this.columns[bar.to - 1].end * 1000];
    this.timeView.set(start - (end - start), end + (end - start));
    announce(`Charts over time show ${formatNs(start)} to ${formatNs(end)}`);
  }
}

function waterfallSection(data, timeView) {
  const chart = new Waterfall(data, timeView);
  const ranks = [...new Set(data.steps.rank)].sort((a, b) => a - b);
  const choice = el(
    "select",
    { "aria-label": "Whose steps", onchange: () => chart.choose(choice.value === "all" ? null : Number(choice.value)) },
    el("option", { value: "all" }, "Mean of all ranks"),
    ranks.map((rank) => el("option", { value: rank }, `Rank ${rank}`)),
  );
  const legend = el("div", { class: "legend", role: "group", "aria-label": "Visible causes" });
  for (const { cause, ns } of data.stall) {
    const index = data.causes.indexOf(cause);
    const one = button([causeSwatch(cause), labelOf(cause), el("span", { class: "muted" }, formatNs(ns))], () => {
      const hide = !chart.hidden.has(index);
      if (hide) chart.hidden.add(index);
      else chart.hidden.delete(index);
      one.setAttribute("aria-pressed", String(!hide));
      chart.redraw();
    }, { class: "legend-item", "aria-pressed": "true", "data-cause": cause });
    legend.append(one);
  }
  const rest = REST.map((name) => el("span", { class: "legend-item plain", hidden: true }, layerSwatch(name), name));
  legend.append(...rest);
  const whole = checkbox("Whole steps, with computation", false, (on) => {
    chart.whole = on;
    for (const item of rest) item.hidden = !on;
    chart.redraw();
  });
  const joined = data.waterfall.joined > 1 ? ` ${data.waterfall.joined} neighboring steps share a column.` : "";
  return section(
    "waterfall",
    "Stalls by step",
    `How long each step stalled, and why. If there are more steps than fit, a bar is the mean of several and the tick above it the worst. Bars with an arrow are cut off; their height is labeled. Drag or Ctrl + wheel to zoom; click a bar to see its time below.${joined}`,
    el("div", { class: "toolbar" }, el("label", null, "Steps of ", choice), whole, chart.controls()),
    chart.root,
    legend,
    stepsNote(data),
  );
}

// Says which steps are in the page if not all are.
function stepsNote({ steps }) {
  const shown = steps.rank.length;
  if (shown >= steps.all) return null;
  const worst = steps.worst > 0 ? `the ${formatCount(steps.worst)} with the longest stalls and an even sample of the others` : "as kept by the analysis";
  return el("p", { class: "note", id: "steps-note" }, `Single steps: ${formatCount(shown)} of ${formatCount(steps.all)}, ${worst}. Means over ranks include all steps of the analysis.`);
}
