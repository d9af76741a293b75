// Charts on canvases that can be zoomed and moved along their horizontal axis, by pointer and by keyboard.

// The part of an axis that is visible. Charts that share one move together.
class View {
  constructor(start, end, least) {
    this.full = [start, end];
    this.least = Math.min(least, end - start);
    [this.start, this.end] = this.full;
    this.listeners = [];
  }

  get span() {
    return this.end - this.start;
  }

  get isFull() {
    return this.start <= this.full[0] && this.end >= this.full[1];
  }

  set(start, end) {
    const [first, last] = this.full;
    const span = Math.min(Math.max(end - start, this.least), last - first);
    const middle = (start + end) / 2;
    this.start = Math.min(Math.max(middle - span / 2, first), last - span);
    this.end = this.start + span;
    for (const listener of this.listeners) listener();
  }

  reset() {
    this.set(...this.full);
  }

  // Makes the visible part `factor` times as long; `anchor` stays where it is.
  zoom(factor, anchor = (this.start + this.end) / 2) {
    const span = Math.min(Math.max(this.span * factor, this.least), this.full[1] - this.full[0]);
    const start = anchor - ((anchor - this.start) * span) / this.span;
    this.set(start, start + span);
  }

  // Moves by a share of what is visible.
  pan(share) {
    const shift = Math.min(Math.max(share * this.span, this.full[0] - this.start), this.full[1] - this.end);
    this.set(this.start + shift, this.end + shift);
  }
}

const CHART_KEYS = "Arrow keys move, plus and minus zoom, 0 resets, Shift with arrow keys reads values, Enter opens.";
const DRAG_PX = 4;

// Subclasses have: draw(context), describe(x, y) -> rows for the tooltip or null, caption(), and may have
// activate(x). All places are in CSS pixels.
class Chart {
  constructor(view, options) {
    this.view = view;
    this.margin = { left: 64, right: 12, top: 10, bottom: 24 };
    this.height = options.height;
    this.cursor = null;
    this.drag = null;
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "application",
      class: "chart",
      "aria-label": `${options.label}. ${CHART_KEYS}`,
      "aria-roledescription": "chart",
    });
    this.canvas.dataset.chart = options.name;
    this.range = el("output", { class: "range" });
    this.root = el("div", { class: "chart-box" }, this.canvas);
    this.listen();
    view.listeners.push(() => this.redraw());
    theme.listeners.push(() => this.redraw());
    window.addEventListener("beforeprint", () => this.paint());
    new ResizeObserver(() => this.redraw()).observe(this.root);
  }

  // Buttons for what the pointer and the keyboard do too.
  controls() {
    const act = (label, title, run) => button(label, run, { title, "aria-label": title });
    return el(
      "div",
      { class: "controls" },
      act("←", "Move left", () => this.view.pan(-0.25)),
      act("→", "Move right", () => this.view.pan(0.25)),
      act("+", "Zoom in", () => this.view.zoom(0.5)),
      act("−", "Zoom out", () => this.view.zoom(2)),
      act("Reset", "Show all", () => this.view.reset()),
      this.range,
    );
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => this.leave());
    canvas.addEventListener("pointerleave", () => this.drag === null && this.leave());
    canvas.addEventListener("dblclick", () => this.view.reset());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.leave());
  }

  get plotWidth() {
    return Math.max(1, this.width - this.margin.left - this.margin.right);
  }

  get plotHeight() {
    return Math.max(1, this.height - this.margin.top - this.margin.bottom);
  }

  toX(value) {
    return this.margin.left + ((value - this.view.start) / this.view.span) * this.plotWidth;
  }

  fromX(x) {
    return this.view.start + ((x - this.margin.left) / this.plotWidth) * this.view.span;
  }

  down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { from: event.offsetX, to: event.offsetX };
  }

  move(event) {
    this.cursor = { x: event.offsetX, y: event.offsetY };
    if (this.drag) this.drag.to = event.offsetX;
    this.point(event.clientX, event.clientY);
    this.redraw();
  }

  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (Math.abs(drag.to - drag.from) > DRAG_PX) {
      const [from, to] = [drag.from, drag.to].sort((a, b) => a - b);
      this.view.set(this.fromX(Math.max(from, this.margin.left)), this.fromX(Math.min(to, this.width - this.margin.right)));
    } else {
      this.activate?.(event.offsetX, event.offsetY);
    }
    this.redraw();
  }

  leave() {
    this.drag = null;
    this.cursor = null;
    tooltip.hide();
    this.redraw();
  }

  // A plain wheel scrolls the page; with Ctrl or Command it zooms, with Shift it moves.
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.view.zoom(Math.exp(Math.sign(event.deltaY) * 0.25), this.fromX(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.view.pan(Math.sign(event.deltaX || event.deltaY) * 0.08);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => (event.shiftKey ? this.step(-1, 0) : this.view.pan(-0.1)),
      ArrowRight: () => (event.shiftKey ? this.step(1, 0) : this.view.pan(0.1)),
      ArrowUp: () => (event.shiftKey ? this.step(0, -1) : this.view.zoom(0.5)),
      ArrowDown: () => (event.shiftKey ? this.step(0, 1) : this.view.zoom(2)),
      "+": () => this.view.zoom(0.5),
      "=": () => this.view.zoom(0.5),
      "-": () => this.view.zoom(2),
      0: () => this.view.reset(),
      Home: () => this.view.reset(),
      Enter: () => this.cursor && this.activate?.(this.cursor.x, this.cursor.y),
      Escape: () => this.leave(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // Moves the reading cursor by the keyboard and says what is there.
  step(right, down) {
    const size = this.stride?.() ?? { x: this.plotWidth / 50, y: 20 };
    const from = this.cursor ?? { x: this.margin.left + this.plotWidth / 2, y: this.margin.top + 4 };
    this.cursor = {
      x: Math.min(Math.max(from.x + right * size.x, this.margin.left), this.width - this.margin.right - 1),
      y: Math.min(Math.max(from.y + down * size.y, this.margin.top), this.height - this.margin.bottom - 1),
    };
    const box = this.canvas.getBoundingClientRect();
    this.point(box.left + this.cursor.x, box.top + this.cursor.y);
    if (!tooltip.node.hidden) announce(tooltip.node.innerText);
    this.redraw();
  }

  point(clientX, clientY) {
    const { x, y } = this.cursor;
    const inside = x >= this.margin.left && x <= this.width - this.margin.right;
    const content = inside ? this.describe(x, y) : null;
    if (content) tooltip.show(content, clientX, clientY);
    else tooltip.hide();
  }

  // Many reasons to draw in one frame make one drawing.
  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  paint() {
    this.width = this.root.clientWidth;
    if (this.width === 0) return;
    this.isNarrow = this.width < 560;
    this.margin.left = this.isNarrow ? 56 : this.wideLeft ?? 84;
    this.margin.right = this.isNarrow ? Math.min(36, this.wideRight ?? 12) : this.wideRight ?? 12;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = `${this.height}px`;
    this.canvas.dataset.start = this.view.start;
    this.canvas.dataset.end = this.view.end;
    this.range.textContent = this.caption();
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.draw(context);
    this.drawSelection(context);
  }

  drawSelection(context) {
    if (this.drag && Math.abs(this.drag.to - this.drag.from) > DRAG_PX) {
      context.globalAlpha = 0.18;
      context.fillStyle = palette.color("accent");
      context.fillRect(Math.min(this.drag.from, this.drag.to), 0, Math.abs(this.drag.to - this.drag.from), this.height);
      context.globalAlpha = 1;
    } else if (this.cursor && this.cursor.x >= this.margin.left && this.cursor.x <= this.width - this.margin.right) {
      context.fillStyle = palette.color("muted");
      context.fillRect(Math.round(this.cursor.x), this.margin.top, 1, this.plotHeight);
    }
  }

  label(context, text, x, y, align, color = "muted") {
    context.fillStyle = palette.color(color);
    context.textAlign = align;
    context.fillText(text, x, y);
  }

  // A label that can be read on top of what is drawn.
  labelAbove(context, text, x, y) {
    context.strokeStyle = palette.color("surface");
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.textAlign = "left";
    context.strokeText(text, x, y);
    this.label(context, text, x, y, "left", "text");
  }

  // `text` cut so that it fits.
  fitted(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    let kept = text.length;
    while (kept > 1 && context.measureText(`${text.slice(0, kept)}…`).width > room) kept -= 1;
    return `${text.slice(0, kept)}…`;
  }

  // The end of `text`, which tells threads apart.
  fittedEnd(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    let from = 1;
    while (from < text.length - 1 && context.measureText(`…${text.slice(from)}`).width > room) from += 1;
    return `…${text.slice(from)}`;
  }

  // Everything that `run` draws stays inside the plot.
  clipped(context, run) {
    context.save();
    context.beginPath();
    context.rect(this.margin.left, this.margin.top, this.plotWidth, this.plotHeight);
    context.clip();
    run();
    context.restore();
  }

  timeAxis(context) {
    const y = this.height - this.margin.bottom;
    const most = Math.max(2, Math.floor(this.plotWidth / 90));
    const step = axisTicks(this.view.span, most)[0];
    if (!step) return;
    for (let value = Math.ceil(this.view.start / step) * step; value <= this.view.end; value += step) {
      const x = this.toX(value);
      context.fillStyle = palette.color("grid");
      context.fillRect(Math.round(x), this.margin.top, 1, this.plotHeight);
      if (x < this.width - 30) this.label(context, secondsLabel(value, step), x, y + 13, value === 0 ? "left" : "center");
    }
  }
}

// What part of the run is visible, with as many digits as tell its ends apart.
const timeCaption = ({ start, end, span }) => `${secondsLabel(start, span / 100)} to ${secondsLabel(end, span / 100)}`;

// A moment on an axis whose ticks are `step` apart, in nanoseconds.
function secondsLabel(ns, step) {
  const decimals = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / NS_PER_S) + 1e-9)));
  return `${(ns / NS_PER_S).toFixed(decimals)} s`;
}
