// One tooltip for the page: definitions of names that are pointed at or have the focus, and what is
// under the pointer in a chart.

const DEFINITIONS = JSON.parse(document.getElementById("definitions").textContent);

const tooltip = {
  node: document.getElementById("tooltip"),

  show(content, x, y) {
    this.node.replaceChildren(...[content].flat());
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), document.documentElement.clientWidth - width - 8);
    const below = y + 18;
    const top = below + height > window.innerHeight - 8 ? Math.max(8, y - height - 12) : below;
    this.node.style.left = `${Math.max(8, left)}px`;
    this.node.style.top = `${top}px`;
  },

  hide() {
    this.node.hidden = true;
  },
};

// A name that explains itself. Reached by the keyboard too.
function term(key, label) {
  const definition = DEFINITIONS[key];
  if (!definition) return el("span", null, label ?? key);
  return el(
    "span",
    { class: "term", tabindex: "0", "data-term": key, "aria-description": definition[1] },
    label ?? definition[0],
  );
}

const labelOf = (key) => DEFINITIONS[key]?.[0] ?? key;

function showDefinition(target) {
  const definition = DEFINITIONS[target.dataset.term];
  const box = target.getBoundingClientRect();
  tooltip.show([el("b", null, definition[0]), el("p", null, definition[1])], box.left - 14, box.bottom - 8);
}

function watchTerms() {
  const found = (event) => event.target.closest?.("[data-term]");
  document.addEventListener("pointerover", (event) => found(event) && showDefinition(found(event)));
  document.addEventListener("pointerout", (event) => found(event) && tooltip.hide());
  document.addEventListener("focusin", (event) => found(event) && showDefinition(found(event)));
  document.addEventListener("focusout", (event) => found(event) && tooltip.hide());
  document.addEventListener("keydown", (event) => event.key === "Escape" && tooltip.hide());
}

// Rows of a name and a value, for what is under the pointer.
function facts(title, rows) {
  return [
    el("b", null, title),
    el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", null, name), el("dd", null, value)])),
  ];
}
