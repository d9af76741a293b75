// Puts the page together. Sections without data are left out.

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  theme.start();
  watchTerms();
  const { timeline } = data;
  const run_ns = Math.max(1, timeline.buckets * timeline.bucket_ns);
  const timeView = new View(0, run_ns, Math.max(1000, run_ns / 100_000));
  const hasTime = timeline.buckets > 0;
  const sections = [
    ["Verdict", () => verdictSection(data)],
    ["Causes", () => data.stall?.length > 0 && stallSection(data)],
    ["Findings", () => data.findings.rows.length > 0 && findingsSection(data)],
    ["What if", () => data.what_if && (data.what_if.refused || data.what_if.cases.length > 0) && whatIfSection(data)],
    ["Steps", () => data.waterfall?.step.length > 0 && waterfallSection(data, hasTime ? timeView : null)],
    ["Ranks", () => data.heat_map && hasTime && heatMapSection(data, timeView)],
    ["Timeline", () => hasTime && timelineSection(data, timeView)],
    ["Overlap", () => overlapSection(data)],
    ["Tables", () => tablesSection(data)],
    ["Calls", () => distributionsSection(data)],
    ["Health", () => healthSection(data)],
  ];
  const nav = document.getElementById("nav");
  for (const [title, make] of sections) {
    const made = make();
    if (!made) continue;
    main.append(made);
    nav.append(el("a", { href: `#${made.id}` }, title));
  }
  followSections(nav);
  openOnPaper();
  main.dataset.ready = "true";
}

// What can be unfolded is unfolded on paper, and as it was before afterwards.
function openOnPaper() {
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });
}

// Marks the section that is being read.
function followSections(nav) {
  const links = new Map([...nav.children].map((link) => [link.getAttribute("href").slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) watcher.observe(document.getElementById(id));
}

start();
