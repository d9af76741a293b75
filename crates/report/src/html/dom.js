// Elements are made here and nowhere else. Texts of a trace are hostile, so they only ever become text
// nodes or attribute values, never markup.

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "style") for (const [key, css] of Object.entries(value)) node.style.setProperty(key, css);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

// el("p", { class: "note" }, "text", el("b", null, "more"))
const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);

const button = (label, onclick, props) => el("button", { type: "button", class: "button", onclick, ...props }, label);

// A section with a heading that the navigation leads to.
function section(id, title, intro, ...children) {
  return el(
    "section",
    { id, class: "card", "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    intro ? el("p", { class: "intro" }, intro) : null,
    ...children,
  );
}

// A choice of one of a few: buttons that work as radio buttons.
function segments(label, choices, chosen, onchange) {
  const group = el("div", { class: "segments", role: "group", "aria-label": label });
  const mark = (value) => {
    for (const one of group.children) one.setAttribute("aria-pressed", String(one.dataset.value === value));
  };
  for (const [value, text] of choices) {
    const one = button(text, () => {
      mark(value);
      onchange(value);
    });
    one.dataset.value = value;
    group.append(one);
  }
  mark(chosen);
  return group;
}

function checkbox(label, checked, onchange) {
  const input = el("input", { type: "checkbox", checked, onchange: () => onchange(input.checked) });
  return el("label", { class: "check" }, input, label);
}

function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// Pages from disk may not be allowed to write to the clipboard; a selection still can be copied.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function copyButton(label, text) {
  const one = button(label, async () => {
    const done = await copyText(text());
    one.textContent = done ? "Copied" : "Not allowed";
    announce(one.textContent);
    one.dataset.copied = String(done);
    setTimeout(() => {
      one.textContent = label;
    }, 2000);
  });
  return one;
}
