// Colors come from the style sheet, so that themes are in one place. What waits is hatched, what works
// is plain: color is never the only mark.

const HATCHED = new Set(["hand-off", "workers", "prefetch", "start-up", "peer", "unknown"]);

const palette = {
  colors: new Map(),

  // The value of a custom property. Looking one up is slow, so it is kept until the theme changes.
  color(name) {
    if (!this.colors.has(name)) {
      this.colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    }
    return this.colors.get(name);
  },

  // How a cause is filled in a canvas.
  cause(context, name) {
    const color = this.color(`cause-${name}`);
    if (!HATCHED.has(name)) return color;
    const key = `pattern-${name}`;
    if (!this.colors.has(key)) {
      const tile = el("canvas", { width: 6, height: 6 });
      const brush = tile.getContext("2d");
      brush.fillStyle = color;
      brush.fillRect(0, 0, 6, 6);
      brush.strokeStyle = this.color("surface");
      brush.lineWidth = 1.4;
      brush.beginPath();
      for (const shift of [-6, 0, 6]) {
        brush.moveTo(shift - 1, 7);
        brush.lineTo(shift + 7, -1);
      }
      brush.stroke();
      this.colors.set(key, context.createPattern(tile, "repeat"));
    }
    return this.colors.get(key);
  },

  forget() {
    this.colors.clear();
  },
};

function causeSwatch(name) {
  return el("span", {
    class: HATCHED.has(name) ? "swatch hatched" : "swatch",
    style: { "--swatch": `var(--cause-${name})` },
    "aria-hidden": "true",
  });
}

const layerSwatch = (name) => el("span", { class: "swatch", style: { "--swatch": `var(--layer-${name})` }, "aria-hidden": "true" });

// Blends the stops of the heat map; `share` is from 0 to 1. Gives red, green, blue.
function heatColor(share) {
  const stops = [0, 1, 2, 3, 4].map((stop) => channels(palette.color(`heat-${stop}`)));
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((value, channel) => Math.round(value + (stops[low + 1][channel] - value) * (place - low)));
}

function channels(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

// Light, dark, or as the system has it. The style sheet knows light and dark only.
const theme = {
  listeners: [],
  order: ["auto", "light", "dark"],
  choice: "auto",
  system: matchMedia("(prefers-color-scheme: dark)"),

  start() {
    document.getElementById("theme").addEventListener("click", () => {
      this.choose(this.order[(this.order.indexOf(this.choice) + 1) % this.order.length]);
      this.store();
    });
    this.system.addEventListener("change", () => this.choose(this.choice));
    // Paper is light.
    window.addEventListener("beforeprint", () => this.show("light"));
    window.addEventListener("afterprint", () => this.choose(this.choice));
    this.choose(this.stored());
  },

  // Without storage the choice lasts as long as the page.
  stored() {
    try {
      const name = localStorage.getItem("feedline-theme");
      return this.order.includes(name) ? name : "auto";
    } catch {
      return "auto";
    }
  },

  store() {
    try {
      localStorage.setItem("feedline-theme", this.choice);
    } catch {
      // See above.
    }
  },

  choose(name) {
    this.choice = name;
    const toggle = document.getElementById("theme");
    toggle.textContent = `Theme: ${name}`;
    toggle.setAttribute("aria-label", `Theme: ${name}. Change it.`);
    this.show(name === "auto" ? (this.system.matches ? "dark" : "light") : name);
  },

  show(name) {
    document.documentElement.dataset.theme = name;
    palette.forget();
    for (const listener of this.listeners) listener();
  },
};
