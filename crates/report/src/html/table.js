// Tables that can be sorted, filtered and copied. Rows are drawn a page at a time.

const PAGE_ROWS = 25;

// A column has a key or a function of the row, a label, and perhaps a format, a definition and a bar.
class DataTable {
  constructor(name, columns, rows, options = {}) {
    Object.assign(this, { name, rows, options });
    this.columns = columns.map((column) => ({
      format: (value) => (value === null || value === undefined ? ABSENT : String(value)),
      value: (row) => row[column.key],
      ...column,
      isText: column.isText ?? typeof (column.value ?? ((row) => row[column.key]))(rows[0] ?? {}) === "string",
    }));
    this.sorted = { column: null, down: true };
    this.page = 0;
    this.text = "";
    this.build();
    this.update();
  }

  build() {
    this.body = el("tbody");
    this.count = el("output", { class: "muted" });
    this.filter = el("input", {
      type: "search",
      placeholder: "Filter rows",
      "aria-label": `Filter ${this.name}`,
      oninput: () => {
        this.text = this.filter.value.trim().toLowerCase();
        this.page = 0;
        this.update();
      },
    });
    this.heads = this.columns.map((column) => this.head(column));
    const go = (by) => () => {
      this.page += by;
      this.update();
    };
    this.back = button("Previous", go(-1));
    this.next = button("Next", go(1));
    this.pager = el("div", { class: "pager" }, this.back, this.next);
    const copy = copyButton("Copy as CSV", () => this.csv());
    this.root = el(
      "div",
      { class: "table-block", "data-table": this.name },
      el("div", { class: "toolbar" }, this.filter, this.count, copy),
      el(
        "div",
        { class: "table-scroll", tabindex: "0", role: "region", "aria-label": this.name },
        el("table", null, el("thead", null, el("tr", null, this.heads)), this.body),
      ),
      this.pager,
      this.options.note ? el("p", { class: "note" }, this.options.note) : null,
    );
  }

  head(column) {
    const sort = button(column.label, () => this.sortBy(column), { class: "sort" });
    if (column.term) {
      sort.dataset.term = column.term;
      sort.setAttribute("aria-description", DEFINITIONS[column.term][1]);
    }
    return el("th", { scope: "col", class: column.isText ? "text" : null, "aria-sort": "none" }, sort);
  }

  // Numbers begin with the largest, texts with the first.
  sortBy(column) {
    const again = this.sorted.column === column;
    this.sorted = { column, down: again ? !this.sorted.down : !column.isText };
    this.page = 0;
    this.heads.forEach((head, place) => {
      const order = this.sorted.down ? "descending" : "ascending";
      head.setAttribute("aria-sort", this.columns[place] === column ? order : "none");
    });
    this.update();
    announce(`Sorted by ${column.label}, ${this.sorted.down ? "descending" : "ascending"}`);
  }

  matching() {
    const rows = this.text ? this.rows.filter((_, place) => this.texts()[place].includes(this.text)) : [...this.rows];
    const { column, down } = this.sorted;
    if (!column) return rows;
    const sign = down ? -1 : 1;
    return rows.sort((one, other) => {
      const [a, b] = [column.value(one), column.value(other)];
      // What does not exist is last, whatever the order.
      if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
      if (b === null || b === undefined) return -1;
      return sign * (column.isText ? String(a).localeCompare(String(b)) : a - b);
    });
  }

  // What is shown of every row, as one text to search. Made when someone first searches.
  texts() {
    this.searchable ??= this.rows.map((row) => this.columns.map((column) => column.format(column.value(row), row)).join("\n").toLowerCase());
    return this.searchable;
  }

  update() {
    const rows = this.matching();
    const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
    this.page = Math.min(this.page, pages - 1);
    const first = this.page * PAGE_ROWS;
    const shown = rows.slice(first, first + PAGE_ROWS);
    this.body.replaceChildren(...shown.map((row) => el("tr", null, this.columns.map((column) => this.cell(column, row)))));
    const all = this.options.all ?? this.rows.length;
    const cut = all > this.rows.length ? ` of ${formatCount(all)}` : "";
    this.count.textContent = rows.length === 0
      ? "No row matches"
      : `${formatCount(first + 1)}-${formatCount(first + shown.length)} of ${formatCount(rows.length)} rows${cut && `, the first ${formatCount(this.rows.length)}${cut}`}`;
    this.pager.hidden = pages === 1;
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
  }

  cell(column, row) {
    const value = column.value(row);
    const text = column.format(value, row);
    const content = column.show ? column.show(value, row) : text;
    const share = column.bar?.(row);
    return el(
      "td",
      {
        class: column.isText ? "text" : null,
        title: column.isText && text.length > 48 ? text : null,
        "data-value": column.isText ? null : value,
      },
      share > 0
        ? el("span", { class: "cell-bar", style: { "--share": `${Math.min(100, 100 * share).toFixed(1)}%` } }, content)
        : el("span", { class: column.isText ? "clip" : null }, content),
    );
  }

  csv() {
    const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
    const lines = [this.columns.map((column) => quoted(column.label))];
    for (const row of this.matching()) lines.push(this.columns.map((column) => quoted(column.value(row))));
    return lines.map((line) => line.join(",")).join("\r\n");
  }
}

// Tabs as screen readers know them: one stop for the tab key, arrow keys between them.
function tabs(label, entries) {
  const list = el("div", { role: "tablist", class: "tabs", "aria-label": label });
  const panels = el("div");
  const buttons = [];
  const choose = (chosen) => {
    entries.forEach((entry, place) => {
      const on = place === chosen;
      buttons[place].setAttribute("aria-selected", String(on));
      buttons[place].tabIndex = on ? 0 : -1;
      const panel = panels.children[place];
      if (on && panel.childElementCount === 0) panel.append(entry.make());
      panel.hidden = !on;
    });
  };
  entries.forEach((entry, place) => {
    const tab = button([entry.title, el("span", { class: "badge" }, formatCount(entry.count))], () => choose(place), {
      role: "tab",
      id: `tab-${entry.id}`,
      class: "tab",
      "aria-controls": `panel-${entry.id}`,
    });
    buttons.push(tab);
    panels.append(el("div", { role: "tabpanel", id: `panel-${entry.id}`, "aria-labelledby": `tab-${entry.id}`, "data-title": entry.title }));
  });
  list.append(...buttons);
  list.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = (buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length;
    choose(next);
    buttons[next].focus();
  });
  choose(0);
  // On paper there are no tabs: all tables are there.
  window.addEventListener("beforeprint", () => entries.forEach((entry, place) => {
    if (panels.children[place].childElementCount === 0) panels.children[place].append(entry.make());
  }));
  return el("div", null, list, panels);
}
