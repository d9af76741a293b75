// The sections of the page that are not charts over time.

const CONFIDENCE = ["low", "medium", "high"];

const fact = (key, value, note, label) =>
  el("div", { class: "fact" }, el("dt", null, term(key, label)), el("dd", null, value), note ? el("dd", { class: "muted" }, note) : null);

function verdictSection(data) {
  const { verdict, trace, health } = data;
  const source = el(
    "p",
    { class: "source" },
    el("span", { class: "path" }, trace.inputs.slice(0, 3).join(", ")),
    trace.all_inputs > 3 ? ` and ${formatCount(trace.all_inputs - 3)} more:` : ":",
    ` ${counted(trace.events, "event")} of a ${trace.source} trace, ${new Date(trace.start_ms).toISOString().replace("T", " ").slice(0, 19)} UTC, ${formatNs(trace.run_ns)} long`,
  );
  const limits = health.problems.rows.filter((problem) => problem.limits_claims).length;
  const caution = limits > 0
    ? el("p", { class: "caution" }, "⚠ ", el("a", { href: "#health" }, `${counted(limits, "problem")} in the trace may make these numbers wrong`))
    : null;
  if (!verdict) {
    return el(
      "section",
      { id: "verdict", class: "card verdict no-steps", "aria-labelledby": "verdict-title" },
      el("h1", { id: "verdict-title" }, "Storage calls only"),
      el("p", { class: "answer" }, sentence(health.sentence)),
      el("dl", { class: "facts-row" }, fact("calls", formatCount(data.data.calls)), fact("bytes_read", formatBytes(data.data.bytes_read)), fact("bytes_written", formatBytes(data.data.bytes_written)), fact("errors", formatCount(data.data.errors)), fact("run_time", formatNs(trace.run_ns))),
      caution,
      source,
    );
  }
  return el(
    "section",
    { id: "verdict", class: `card verdict ${verdict.code}`, "aria-labelledby": "verdict-title" },
    el("h1", { id: "verdict-title" }, verdict.answer),
    el("p", { class: "answer" }, sentence(verdict.text)),
    verdict.steps > 0 ? gauge(verdict) : null,
    el(
      "dl",
      { class: "facts-row" },
      fact("stall_share", formatShare(verdict.stall_share), verdict.interval ? [term("interval", "95 %"), `: ${(100 * verdict.interval[0]).toFixed(1)} to ${formatShare(verdict.interval[1])}`] : null),
      fact("stall", formatNs(verdict.stall_ns), `of ${formatNs(verdict.step_ns)} of steps`),
      fact("step", formatCount(verdict.steps), "of all ranks", "Steps"),
      fact("stalled_steps", formatShare(verdict.stalled_steps_share), [term("stall_p95", "p95"), ` ${formatNs(verdict.stall_p95_ns)}`]),
      fact("confidence", CONFIDENCE[verdict.confidence], "of the split by cause"),
      verdict.au_percent === null ? null : fact("au", formatPercent(verdict.au_percent)),
      verdict.samples_per_second === null ? null : fact("samples_per_s", formatNumber(verdict.samples_per_second)),
      verdict.read_bytes_per_second === null ? null : fact("read_rate", formatRate(verdict.read_bytes_per_second)),
    ),
    caution,
    source,
  );
}

// The stall share between the bands of the verdict.
function gauge({ stall_share: share, interval }) {
  const largest = Math.min(1, Math.max(0.3, 1.15 * (interval?.[1] ?? share)));
  const at = (value) => `${Math.min(100, (100 * value) / largest).toFixed(2)}%`;
  const band = (from, to, name) => el("span", { class: `band ${name.replaceAll(" ", "-")}`, style: { left: at(from), width: `calc(${at(Math.min(to, largest))} - ${at(from)})` } }, el("i", null, name));
  return el(
    "div",
    { class: "gauge", role: "img", "aria-label": `Stall share ${formatShare(share)} on a scale with bands at 5 and 20 percent` },
    band(0, 0.05, "not"),
    band(0.05, 0.2, "moderately"),
    band(0.2, 1, "input-bound"),
    interval ? el("span", { class: "whisker", style: { left: at(interval[0]), width: `calc(${at(interval[1])} - ${at(interval[0])})` } }) : null,
    el("span", { class: "needle", style: { left: at(share) } }, el("b", null, formatShare(share))),
  );
}

// Rows of a name, a bar, a value.
function barList(rows) {
  return el("div", { class: "bar-list" }, rows.map(({ name, swatch, share, text, note }) =>
    el(
      "div",
      { class: "bar-row" },
      el("div", { class: "bar-name" }, swatch, name),
      el("div", { class: "bar-track" }, el("div", { class: `bar-fill ${swatch.classList.contains("hatched") ? "hatched" : ""}`, style: { width: `${Math.max(0.3, 100 * share).toFixed(2)}%`, "--swatch": swatch.style.getPropertyValue("--swatch") } })),
      el("div", { class: "bar-value" }, text, el("span", { class: "muted" }, note)),
    ),
  ));
}

function stallSection(data) {
  const most = Math.max(...data.stall.map((time) => time.share));
  const rows = data.stall.map(({ cause, ns, share }) => ({
    name: term(cause),
    swatch: causeSwatch(cause),
    share: share / most,
    text: formatNs(ns),
    note: formatShare(share),
  }));
  return section("stall", "Why ranks stalled", `${formatNs(data.verdict.stall_ns)} stalled over all ranks. The parts add up exactly. Plain bars are work; hatched bars are waiting for work to begin or to be handed over.`, barList(rows));
}

function findingsSection({ findings, verdict }) {
  const left = findings.all - findings.rows.length;
  return section(
    "findings",
    "Findings",
    "What costs time, the most expensive first, and what to do about it.",
    el("ol", { class: "findings" }, findings.rows.map((finding, place) => findingItem(finding, place, verdict))),
    left > 0 ? el("p", { class: "note" }, `${formatCount(left)} smaller findings are not shown.`) : null,
  );
}

function findingItem(finding, place, verdict) {
  const head = el(
    "div",
    { class: "finding-head" },
    el("h3", null, sentence(finding.title)),
    el("div", { class: "finding-cost" }, el("b", null, term("explains", formatNs(finding.explains_ns))), verdict ? el("span", { class: "muted" }, term("severity", `${formatShare(finding.severity)} of step time`)) : null),
  );
  const tags = el("p", { class: "tags" }, el("code", null, finding.code), " ", term("confidence", `${CONFIDENCE[finding.confidence]} confidence`));
  const body = el(
    "div",
    { class: "finding-body" },
    el("dl", { class: "evidence" }, finding.evidence.map(([name, value]) => [el("dt", null, name), el("dd", null, value)])),
    finding.objects.length > 0
      ? el("div", null, el("h4", null, "About"), el("ul", { class: "objects" }, finding.objects.map((object) => el("li", { class: "path" }, object))), finding.all_objects > finding.objects.length ? el("p", { class: "note" }, `and ${formatCount(finding.all_objects - finding.objects.length)} more`) : null)
      : null,
    finding.sql
      ? el("div", null, el("div", { class: "sql-head" }, el("h4", null, "Query for feedline sql"), copyButton("Copy SQL", () => finding.sql)), el("pre", { class: "sql", tabindex: "0" }, finding.sql))
      : null,
    finding.threshold ? el("p", { class: "note" }, term("threshold"), `: ${finding.threshold}`) : null,
  );
  return el(
    "li",
    { class: "finding", "data-code": finding.code },
    head,
    tags,
    finding.actions.length > 0 ? el("ul", { class: "actions" }, finding.actions.map((action) => el("li", null, sentence(action)))) : null,
    el("details", { open: place === 0 }, el("summary", null, "Evidence and query"), body),
  );
}

function whatIfSection({ what_if: what }) {
  const intro = el("span", null, term("what_if", "The loader's queue, replayed"), what.refused ? "." : ` with other numbers. Observed: ${what.workers} workers per rank, ${what.outstanding} batches in flight, ${formatNs(what.observed_step_ns)} a step; the model makes ${formatNs(what.modelled_step_ns)} of it.`);
  if (what.refused) return section("what-if", "What if", intro, el("p", { class: "caution" }, `No predictions: ${what.refused}.`));
  const most = Math.max(what.observed_step_ns, ...what.cases.map((one) => one.interval_ns[1]));
  const rows = [{ change: "as observed", step_ns: what.observed_step_ns, interval_ns: null, stall_share: null }, ...what.cases];
  const cell = (one) => {
    const at = (ns) => `${((100 * ns) / most).toFixed(2)}%`;
    return el(
      "div",
      { class: "prediction", "aria-hidden": "true" },
      el("span", { class: "bar-fill", style: { width: at(one.step_ns), "--swatch": one.interval_ns ? "var(--accent)" : "var(--muted)" } }),
      one.interval_ns ? el("span", { class: "whisker", style: { left: at(one.interval_ns[0]), width: `calc(${at(one.interval_ns[1])} - ${at(one.interval_ns[0])})` } }) : null,
    );
  };
  const head = ["Change", term("predicted"), term("predicted_interval"), "Against observed", term("stall_share"), ""];
  return section(
    "what-if",
    "What if",
    intro,
    el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Predictions" }, el(
      "table",
      { class: "predictions" },
      el("thead", null, el("tr", null, head.map((name, place) => el("th", { scope: "col", class: place === 0 ? "text" : null }, name)))),
      el("tbody", null, rows.map((one) => el(
        "tr",
        null,
        el("th", { scope: "row", class: "text" }, one.change),
        el("td", null, formatNs(one.step_ns)),
        el("td", null, one.interval_ns ? one.interval_ns.map(formatNs).join(" to ") : ""),
        el("td", null, one.interval_ns ? signedShare(one.step_ns / what.observed_step_ns - 1) : ""),
        el("td", null, one.stall_share === null ? "" : formatShare(one.stall_share)),
        el("td", { class: "wide" }, cell(one)),
      ))),
    )),
  );
}

const signedShare = (share) => `${share > 0 ? "+" : "−"}${(100 * Math.abs(share)).toFixed(1)} %`;

function overlapSection({ overlaps, allocation, data, trace }) {
  const roles = (list) => list.map(({ role, count }) => `${formatCount(count)} ${role}`).join(", ") || ABSENT;
  const hosts = allocation.all_hosts > 6 ? `${formatCount(allocation.all_hosts)}: ${allocation.hosts.slice(0, 6).join(", ")}, …` : allocation.hosts.join(", ") || ABSENT;
  const who = [
    ["Hosts", hosts],
    ["Ranks", formatCount(allocation.ranks)],
    ["Processes", roles(allocation.processes)],
    ["Threads", roles(allocation.threads)],
    ["Compute threads", formatCount(allocation.compute_threads)],
    ["I/O threads", formatCount(allocation.io_threads)],
    [term("events"), formatCount(trace.events)],
    ["Files", `${formatCount(data.files)}, ${formatCount(data.files_read)} read, ${formatCount(data.files_written)} written`],
    [term("bytes_read"), `${formatBytes(data.bytes_read)}, of ${formatBytes(data.extent_read)}`],
    [term("reread"), data.reread === null ? ABSENT : `${formatNumber(data.reread)} times`],
    [term("bytes_written"), formatBytes(data.bytes_written)],
    [term("opens_per_file"), formatNumber(data.opens_per_file)],
    [term("errors"), [formatCount(data.errors), ...data.errors_by_number.map((one) => `${one.name} ${formatCount(one.count)}`)].join(", ")],
    [term("run_time"), formatNs(trace.run_ns)],
  ];
  const most = Math.max(1, ...overlaps.map((one) => one.total_ns + one.compute_alone_ns));
  const width = (ns) => ({ width: `${((100 * ns) / most).toFixed(2)}%` });
  const bars = overlaps.map((one) => el(
    "div",
    { class: "overlap" },
    el("div", { class: "overlap-name" }, term(one.what), el("span", { class: "muted" }, formatNs(one.total_ns))),
    el(
      "div",
      { class: "overlap-track", role: "img", "aria-label": `${one.what}: ${formatNs(one.exposed_ns)} exposed, ${formatNs(one.overlapped_ns)} overlapped, computation alone ${formatNs(one.compute_alone_ns)}` },
      el("span", { class: "piece exposed", style: width(one.exposed_ns) }),
      el("span", { class: "piece both", style: width(one.overlapped_ns) }),
      el("span", { class: "piece alone", style: width(one.compute_alone_ns) }),
    ),
    el("div", { class: "overlap-values" }, [["exposed", one.exposed_ns], ["overlapped", one.overlapped_ns], ["compute_alone", one.compute_alone_ns], ["compute", one.compute_ns]].map(([key, ns]) => el("span", null, term(key), ` ${formatNs(ns)}`))),
  ));
  return section(
    "overlap",
    overlaps.length > 0 ? "Overlap with computation" : "What was traced",
    overlaps.length > 0 ? "Means over ranks; overlapping intervals count once. Exposed time is not hidden by computation." : null,
    el("div", { class: "two" }, bars.length > 0 ? el("div", null, bars) : null, el("dl", { class: "who" }, who.map(([name, value]) => [el("dt", null, name), el("dd", null, value)]))),
  );
}

const countBar = (count, most) =>
  count > 0 ? el("span", { class: "bar-fill", style: { width: `${((100 * count) / most).toFixed(2)}%`, "--swatch": "var(--accent)" } }) : null;

// Counts by powers of two as bars.
function histogram(title, counts, labelFor) {
  const used = counts.map((count, power) => [power, count]).filter(([, count]) => count > 0);
  if (used.length === 0) return null;
  const [first, last] = [used[0][0], used.at(-1)[0]];
  const most = Math.max(...counts);
  const all = counts.reduce((sum, count) => sum + count, 0);
  const rows = [];
  for (let power = first; power <= last; power += 1) {
    const count = counts[power];
    rows.push(el(
      "tr",
      null,
      el("th", { scope: "row" }, labelFor(power)),
      el("td", { class: "wide" }, countBar(count, most)),
      el("td", null, formatCount(count)),
      el("td", { class: "muted" }, formatShare(count / all)),
    ));
  }
  return el("div", { class: "histogram" }, el("h3", null, title), el("table", null, el("tbody", null, rows)));
}

const sizeRange = (power) => `from ${power === 0 ? "0 B" : formatPower(power)}`;
const timeRange = (power) => `from ${power === 0 ? "0 ns" : formatNs(2 ** power)}`;

function distributionsSection({ data, access }) {
  const charts = [
    histogram("Read sizes", data.read_sizes, sizeRange),
    histogram("Read durations", data.read_latencies, timeRange),
    histogram("Write sizes", data.write_sizes, sizeRange),
    accessList("Read offsets", "reads", access),
    accessList("Write offsets", "writes", access),
  ].filter(Boolean);
  const grid = sizeByLatency(data.read_size_by_latency);
  if (charts.length === 0 && !grid) return null;
  const maps = access.maps > 0 ? el("p", { class: "note" }, `${counted(access.maps, "call")} to mmap mapped ${formatBytes(access.bytes_mapped)} of files; reads through mappings are not traced.`) : null;
  return section("distributions", "Sizes, durations and offsets of calls", "Powers of two: each row counts values below the next one.", el("div", { class: "histograms" }, charts), grid, maps);
}

function accessList(title, kind, access) {
  const names = [
    ["consecutive", "where the previous one ended"],
    ["forward", "further on"],
    ["backward", "before that"],
    ["first", "first in a file by a thread"],
    ["unplaced", "at an unknown offset"],
  ];
  const counts = names.map(([key]) => access[`${kind}_${key}`]);
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  return el("div", { class: "histogram" }, el("h3", null, term("access", title)), el("table", null, el("tbody", null, names.map(([, name], place) => el(
    "tr",
    null,
    el("th", { scope: "row" }, name),
    el("td", { class: "wide" }, countBar(counts[place], all)),
    el("td", null, formatCount(counts[place])),
    el("td", { class: "muted" }, formatShare(counts[place] / all)),
  )))));
}

// Reads by size and duration: a table whose cells are shaded, with the counts in them.
function sizeByLatency(cells) {
  if (cells.length === 0) return null;
  const range = (axis) => {
    const values = cells.map((cell) => cell[axis]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return Array.from({ length: high - low + 1 }, (_, place) => low + place);
  };
  const [sizes, times] = [range(0), range(1)];
  const counts = new Map(cells.map(([size, time, count]) => [`${size},${time}`, count]));
  const most = Math.max(...counts.values());
  const short = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)}M` : count >= 1e3 ? `${(count / 1e3).toFixed(0)}k` : String(count));
  const cell = (size, time) => {
    const count = counts.get(`${size},${time}`);
    if (!count) return el("td");
    const level = Math.max(1, Math.ceil((5 * Math.log1p(count)) / Math.log1p(most)));
    return el("td", { class: `level-${level}`, title: `${formatCount(count)} reads ${sizeRange(size)}, ${timeRange(time)}` }, short(count));
  };
  return el(
    "div",
    { class: "histogram grid" },
    el("h3", null, "Reads by size and duration"),
    el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Reads by size and duration" }, el(
      "table",
      { class: "heat" },
      el("thead", null, el("tr", null, el("th", null, "size \\ duration"), times.map((time) => el("th", { scope: "col" }, time === 0 ? "0 ns" : formatNs(2 ** time))))),
      el("tbody", null, sizes.map((size) => el("tr", null, el("th", { scope: "row" }, formatPower(size)), times.map((time) => cell(size, time))))),
    )),
  );
}

function healthSection({ health }) {
  const { problems } = health;
  const left = problems.all - problems.rows.length;
  return section(
    "health",
    "Trace health",
    el("span", null, term("coverage"), `: ${health.sentence}.`),
    problems.rows.length === 0 ? el("p", null, "✓ No problems were found in the trace.") : null,
    el("ul", { class: "problems" }, problems.rows.map((problem) => el(
      "li",
      { class: problem.limits_claims ? "limits" : null },
      el("p", null, el("code", null, problem.code), ` ${sentence(problem.text)}`, problem.limits_claims ? el("b", { class: "tag" }, "⚠ numbers may be wrong") : null),
      problem.places.length > 0 ? el("ul", { class: "objects" }, problem.places.map((place) => el("li", { class: "path" }, place))) : null,
    ))),
    left > 0 ? el("p", { class: "note" }, `${formatCount(left)} more are not shown.`) : null,
  );
}

const column = (key, label, format, term_, more) => ({ key, label, format, term: term_, ...more });
const derived = (label, value, format, term_, more) => ({ label, value, format, term: term_, ...more });
const text = (key, label, term_) => ({ key, label, term: term_, isText: true });
const stallShare = derived("Stall share", (row) => ratio(row.stall_us, row.step_us), formatShare, "stall_share", { bar: (row) => ratio(row.stall_us, row.step_us) });

// What was waited for most, of parts in turn with their microseconds.
function topCause(causes) {
  return derived("Mostly", (row) => {
    let [most, name] = [0, ""];
    for (let part = 0; part < row.parts.length; part += 2) {
      if (row.parts[part + 1] > most) [most, name] = [row.parts[part + 1], causes[row.parts[part]]];
    }
    return name;
  }, (name) => (name ? labelOf(name) : "-"), "stall", { isText: true });
}

const PERCENTILES = ["min", "p5", "p25", "p50", "mean", "p75", "p95", "p99", "max"];
const spreadColumns = (key, label, format) =>
  PERCENTILES.map((name, place) => derived(`${label} ${name}`, (row) => row[key]?.[place] ?? null, format, key));

function functionTable({ functions }) {
  const most = Math.max(1, ...functions.rows.map((row) => row.total_ns));
  return new DataTable("functions", [
    text("name", "Name"),
    text("category", "Category"),
    text("layer", "Layer"),
    column("count", "Count", formatCount),
    column("errors", "Errors", formatCount, "errors"),
    column("total_ns", "Total", formatNs, "total_time", { bar: (row) => row.total_ns / most }),
    column("self_ns", "Self", formatNs, "self_time"),
    column("bytes", "Bytes", formatBytes),
    column("rate", "Bandwidth", formatRate, "bandwidth"),
    ...spreadColumns("latency", "Time", formatNs),
    ...spreadColumns("size", "Size", formatBytes),
  ], functions.rows, { all: functions.all });
}

function fileTable(name, { rows, all }) {
  const most = Math.max(1, ...rows.map((row) => row.ns));
  return new DataTable(name, [
    text("path", "Path"),
    name === "folders" ? column("files", "Files", formatCount) : null,
    column("ns", "Time", formatNs, "total_time", { bar: (row) => row.ns / most }),
    column("metadata_ns", "Metadata", formatNs, "metadata_time"),
    column("opens", "Opens", formatCount),
    column("reads", "Reads", formatCount),
    column("writes", "Writes", formatCount),
    column("others", "Others", formatCount),
    column("bytes_read", "Read", formatBytes, "bytes_read"),
    column("bytes_written", "Written", formatBytes, "bytes_written"),
    column("extent", "Extent", formatBytes, "extent"),
    column("reread", "Re-read", formatNumber, "reread"),
    column("ranks", "Ranks", formatCount),
    column("errors", "Errors", formatCount, "errors"),
  ].filter(Boolean), rows, { all });
}

function epochTable({ epochs, causes }) {
  return new DataTable("epochs", [
    text("phase", "Phase"),
    column("epoch", "Epoch", formatCount),
    column("steps", "Steps", formatCount, "step"),
    column("duration_us", "Duration", formatUs),
    column("au", "AU", formatPercent, "au"),
    stallShare,
    topCause(causes),
    column("stall_us", "Stall", formatUs, "stall"),
    column("compute_us", "Compute", formatUs, "compute"),
    column("first_batch_us", "First batch", formatUs, "first_batch"),
    column("samples_per_second", "Samples/s", formatNumber, "samples_per_s"),
    column("bytes_read", "Read", formatBytes, "bytes_read"),
    derived("Excluded", (row) => row.excluded[0] + row.excluded[1], (_, row) => row.excluded.join(" + "), "excluded_steps"),
  ], epochs.rows, { all: epochs.all });
}

function stepTable(data) {
  const { steps, causes } = data;
  const rows = steps.rank.map((rank, place) => ({
    rank,
    phase: steps.phase[place] === 1 ? "evaluate" : "train",
    epoch: steps.epoch[place],
    block: steps.block[place],
    step: steps.step[place],
    start_us: steps.start[place],
    step_us: steps.duration[place],
    stall_us: steps.stall[place],
    fetch_us: steps.fetch[place],
    compute_us: steps.compute[place],
    communication_us: steps.communication[place],
    worker: steps.worker[place],
    service_us: steps.service[place],
    samples: steps.samples[place],
    confidence: CONFIDENCE[steps.confidence[place]],
    parts: steps.parts[place],
  }));
  const table = new DataTable("steps", [
    column("rank", "Rank", formatCount),
    text("phase", "Phase"),
    column("epoch", "Epoch", formatCount),
    column("block", "Block", formatCount, "block"),
    column("step", "Step", formatCount, "step"),
    column("start_us", "Begins", formatUs),
    column("step_us", "Duration", formatUs, "step"),
    column("stall_us", "Stall", formatUs, "stall"),
    stallShare,
    topCause(causes),
    column("fetch_us", "Fetch", formatUs, "fetch"),
    column("compute_us", "Compute", formatUs, "compute"),
    column("communication_us", "Communication", formatUs, "communication"),
    column("worker", "Worker", formatNumber, "worker"),
    column("service_us", "Service", formatUs, "service"),
    column("samples", "Samples", formatCount),
    text("confidence", "Confidence", "confidence"),
  ], rows, { all: steps.all, note: null });
  const note = stepsNote(data);
  if (note) {
    note.removeAttribute("id");
    table.root.append(note);
  }
  return table;
}

function rankTable({ ranks, causes, verdict }) {
  const stalls = verdict
    ? [
        column("steps", "Steps", formatCount, "step"),
        column("step_us", "Step time", formatUs, "step"),
        column("stall_us", "Stall", formatUs, "stall"),
        stallShare,
        topCause(causes),
        column("compute_us", "Compute", formatUs, "compute"),
        column("communication_us", "Communication", formatUs, "communication"),
        column("busy", "Workers busy", formatShare, "busy_workers"),
      ]
    : [];
  return new DataTable("ranks", [
    column("rank", "Rank", formatCount),
    text("host", "Host"),
    ...stalls,
    column("workers", "Workers", formatCount),
    column("io_us", "I/O", formatUs, "io"),
    column("bytes_read", "Read", formatBytes, "bytes_read"),
    column("bytes_written", "Written", formatBytes, "bytes_written"),
    column("calls", "Calls", formatCount, "calls"),
    column("samples", "Samples", formatCount),
    column("unseen_us", "Unseen", formatUs, "unseen"),
    text("title", "Thread"),
  ], ranks.rows, { all: ranks.all });
}

function stragglerTable({ stragglers }) {
  return new DataTable("stragglers", [
    column("rank", "Rank", formatCount),
    text("host", "Host"),
    column("lost_ns", "Lost", formatNs, "lost", { bar: (row) => ratio(row.lost_ns, stragglers.lost_ns) }),
    column("slowest_steps", "Slowest in", formatCount, "slowest"),
    column("slowest_share", "Share", formatShare, "slowest"),
    text("because", "Because of", "because"),
  ], stragglers.ranks.rows, {
    all: stragglers.ranks.all,
    note: `Waiting for the slowest rank cost ${formatNs(stragglers.lost_ns)}; the median rank's steps took ${formatNs(stragglers.median_ns)}.`,
  });
}

function checkpointTable({ checkpoints }) {
  const interval = checkpoints.interval_ns === null ? "" : ` A save begins every ${formatNs(checkpoints.interval_ns)}.`;
  return new DataTable("checkpoints", [
    text("direction", "Direction"),
    column("start_ns", "Begins", formatNs),
    column("duration_ns", "Duration", formatNs),
    column("stall_ns", "Stall", formatNs, "checkpoint_stall"),
    column("sync_ns", "Sync", formatNs, "sync"),
    column("bytes", "Bytes", formatBytes),
    derived("Rate", (row) => ratio(row.bytes * NS_PER_S, row.duration_ns), formatRate, "bandwidth"),
    column("ranks", "Ranks", formatCount),
    column("slowest_rank", "Slowest rank", formatCount),
    column("slowest_ns", "It took", formatNs),
  ], checkpoints.transfers.rows, {
    all: checkpoints.transfers.all,
    note: `Ranks waited for ${formatNs(checkpoints.stall_ns)}, ${formatShare(checkpoints.stall_share)} of their run time.${interval}`,
  });
}

function layerTable({ layers }) {
  const most = Math.max(1, ...layers.map((row) => row.mean_ns));
  return new DataTable("layers", [
    text("layer", "Layer"),
    column("mean_ns", "Time", formatNs, "layer_mean", { bar: (row) => row.mean_ns / most }),
    column("exposed_ns", "Exposed", formatNs, "exposed"),
    column("least_ns", "Least", formatNs, "layer_least"),
    column("most_ns", "Most", formatNs, "layer_most"),
    column("self_ns", "Self", formatNs, "self_time"),
    column("summed_ns", "Summed", formatNs, "summed_time"),
    column("events", "Events", formatCount, "events"),
    column("bytes", "Bytes", formatBytes),
  ], layers);
}

function tablesSection(data) {
  const entry = (id, title, count, make) => ({ id, title, count, make: () => make().root });
  const entries = [
    entry("layers", "Layers", data.layers.length, () => layerTable(data)),
    entry("functions", "Functions", data.functions.all, () => functionTable(data)),
    entry("files", "Files", data.files.all, () => fileTable("files", data.files)),
    entry("folders", "Folders", data.folders.all, () => fileTable("folders", data.folders)),
    entry("epochs", "Epochs", data.epochs?.all ?? 0, () => epochTable(data)),
    entry("steps", "Steps", data.steps?.all ?? 0, () => stepTable(data)),
    entry("ranks", "Ranks", data.ranks.all, () => rankTable(data)),
    entry("stragglers", "Stragglers", data.stragglers?.ranks.all ?? 0, () => stragglerTable(data)),
    entry("checkpoints", "Checkpoints", data.checkpoints.transfers.all, () => checkpointTable(data)),
  ].filter(({ count }) => count > 0);
  if (entries.length === 0) return null;
  return section("tables", "Tables", "Hover over a heading for its definition, click it to sort.", tabs("Tables", entries));
}
