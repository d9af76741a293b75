// Ranks by time: what every rank did in every bucket, with sums at the edges.

const HEAT_METRICS = [
  ["stall", "Stall", "stall", formatNs],
  ["bytes_read", "Bytes read", "bytes_read", formatBytes],
  ["io", "I/O time", "io", formatNs],
];

class HeatMap extends Chart {
  constructor(heat, view) {
    const rowHeight = Math.min(22, Math.max(1, Math.round(420 / heat.rows.length)));
    super(view, { name: "heat-map", label: "Ranks by time", height: 58 + 24 + rowHeight * heat.rows.length });
    this.margin = { left: 84, right: 76, top: 58, bottom: 24 };
    this.wideLeft = 124;
    this.wideRight = 76;
    this.heat = heat;
    this.cells = new Map();
    this.choose(HEAT_METRICS.find(([key]) => heat[key])[0]);
  }

  choose(key) {
    this.metric = HEAT_METRICS.find(([name]) => name === key);
    this.layer = this.heat[key];
    if (!this.cells.has(key)) this.cells.set(key, unpackFractions(this.layer.cells));
    this.image = null;
    this.redraw();
  }

  value(row, column) {
    return (this.cells.get(this.metric[0])[row * this.heat.buckets + column] / 65535) * this.layer.most;
  }

  rowLabel(row) {
    const [first, last] = this.heat.rows[row];
    return first === last ? `rank ${first}` : `ranks ${first}-${last}`;
  }

  caption() {
    return timeCaption(this.view);
  }

  // The cells as an image of a pixel each, which the browser stretches.
  picture() {
    if (this.image?.theme === palette.color("heat-4")) return this.image.canvas;
    const { buckets, rows } = this.heat;
    const canvas = el("canvas", { width: buckets, height: rows.length });
    const pixels = new ImageData(buckets, rows.length);
    const scale = Array.from({ length: 256 }, (_, step) => heatColor(step / 255));
    const cells = this.cells.get(this.metric[0]);
    for (let place = 0; place < cells.length; place += 1) {
      pixels.data.set(scale[cells[place] >> 8], 4 * place);
      pixels.data[4 * place + 3] = 255;
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    this.image = { canvas, theme: palette.color("heat-4") };
    return canvas;
  }

  draw(context) {
        const { buckets, rows } = this.heat;
    const picture = this.picture();
    this.timeAxis(context);
    this.clipped(context, () => {
      context.imageSmoothingEnabled = (this.view.span / this.heat.bucket_ns) > this.plotWidth;
      const left = this.toX(0);
      context.drawImage(picture, left, this.margin.top, this.toX(buckets * this.heat.bucket_ns) - left, this.plotHeight);
    });
    this.drawColumnSums(context);
    this.drawRowSums(context);
    const every = Math.ceil(14 / (this.plotHeight / rows.length));
    for (let row = 0; row < rows.length; row += every) {
      const y = this.margin.top + ((row + 0.5) * this.plotHeight) / rows.length;
      this.label(context, this.fitted(context, this.rowLabel(row), this.margin.left - 10), this.margin.left - 8, y, "right");
    }
  }

  drawColumnSums(context) {
    const sums = this.layer.by_column;
    const most = Math.max(1, ...sums);
    const base = this.margin.top - 4;
    context.save();
    context.beginPath();
    context.rect(this.margin.left, 0, this.plotWidth, this.margin.top);
    context.clip();
    context.fillStyle = palette.color("accent");
    sums.forEach((sum, column) => {
      const x = this.toX(column * this.heat.bucket_ns);
      const width = this.toX((column + 1) * this.heat.bucket_ns) - x;
      const height = (sum / most) * (this.margin.top - 18);
      context.fillRect(x, base - height, Math.max(0.6, width - (width > 4 ? 1 : 0)), height);
    });
    context.restore();
    this.label(context, "all ranks", this.margin.left - 8, base - 22, "right");
    this.label(context, this.metric[3](most), this.margin.left + 2, 7, "left");
  }

  drawRowSums(context) {
    const sums = this.layer.by_row;
    const most = Math.max(1, ...sums);
    const height = this.plotHeight / sums.length;
    const left = this.width - this.margin.right + 6;
    const room = this.margin.right - 12;
    context.fillStyle = palette.color("accent");
    sums.forEach((sum, row) => {
      context.fillRect(left, this.margin.top + row * height, (sum / most) * room, Math.max(0.6, height - (height > 4 ? 1 : 0)));
    });
    this.label(context, "sum", left, this.margin.top - 10, "left");
  }

  stride() {
    return {
      x: Math.max(1, (this.heat.bucket_ns / this.view.span) * this.plotWidth),
      y: this.plotHeight / this.heat.rows.length,
    };
  }

  describe(x, y) {
    const column = Math.floor(this.fromX(x) / this.heat.bucket_ns);
    const row = Math.floor(((y - this.margin.top) / this.plotHeight) * this.heat.rows.length);
    if (column < 0 || column >= this.heat.buckets || row >= this.heat.rows.length) return null;
    const [, name, , format] = this.metric;
    const time = [
      "from",
      `${formatNs(column * this.heat.bucket_ns)}, for ${formatNs(this.heat.bucket_ns)}`,
    ];
    if (row < 0) return facts("All ranks", [time, [name, format(this.layer.by_column[column])]]);
    return facts(this.rowLabel(row), [time, [name, format(this.value(row, column))], ["total", format(this.layer.by_row[row])]]);
  }
}

function heatMapSection(data, timeView) {
  const chart = new HeatMap(data.heat_map, timeView);
  const least = el("span", { class: "muted" }, "0");
  const most = el("span", { class: "muted" });
  const legend = el("div", { class: "scale", "aria-label": "Color scale" }, least, el("span", { class: "ramp", "aria-hidden": "true" }), most);
  const choose = (key) => {
    chart.choose(key);
    most.textContent = `${chart.metric[3](chart.layer.most)} a bucket`;
  };
  const choices = HEAT_METRICS.filter(([key]) => data.heat_map[key]);
  choose(choices[0][0]);
  const joined = data.heat_map.ranks_joined > 1 ? ` ${data.heat_map.ranks_joined} neighboring ranks share a row.` : "";
  return section(
    "heat-map",
    "Ranks over time",
    `One row per rank; time runs from left to right. Bars at the edges are sums.${joined}`,
    el("div", { class: "toolbar" }, segments("What is shown", choices, choices[0][0], choose), legend, chart.controls()),
    chart.root,
  );
}
