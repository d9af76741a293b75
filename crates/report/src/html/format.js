// Numbers for people: three significant digits, decimal units, "n/a" for what does not exist.

const ABSENT = "n/a";
const NS_PER_S = 1e9;

const isAbsent = (value) => value === null || value === undefined || !Number.isFinite(value);

// Made once: to make one takes longer than to use it.
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function formatCount(value) {
  return isAbsent(value) ? ABSENT : GROUPED.format(value);
}

function formatNumber(value) {
  if (isAbsent(value)) return ABSENT;
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return formatCount(value);
  return value.toPrecision(3);
}

function formatBytes(value) {
  if (isAbsent(value)) return ABSENT;
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : formatNumber(value)} ${units[unit]}`;
}

const formatRate = (value) => (isAbsent(value) ? ABSENT : `${formatBytes(value)}/s`);

function formatNs(ns) {
  if (isAbsent(ns)) return ABSENT;
  if (ns === 0) return "0 s";
  const seconds = ns / NS_PER_S;
  if (seconds >= 7170) {
    const minutes = Math.round(seconds / 60);
    return `${formatCount(Math.floor(minutes / 60))} h ${String(minutes % 60).padStart(2, "0")} min`;
  }
  if (seconds >= 119.5) {
    const whole = Math.round(seconds);
    return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  }
  if (ns >= 999.5e6) return `${seconds.toPrecision(3)} s`;
  if (ns >= 999.5e3) return `${(ns / 1e6).toPrecision(3)} ms`;
  if (ns >= 999.5) return `${(ns / 1e3).toPrecision(3)} µs`;
  return `${Math.round(ns)} ns`;
}

const formatUs = (us) => (isAbsent(us) ? ABSENT : formatNs(us * 1000));
const formatShare = (share) => (isAbsent(share) ? ABSENT : `${(100 * share).toFixed(1)} %`);
const formatPercent = (percent) => (isAbsent(percent) ? ABSENT : `${percent.toFixed(1)} %`);
const counted = (count, noun) => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
// The first word of a sentence with a capital.
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const ratio = (part, whole) => (whole > 0 ? part / whole : null);

// A size that is a power of two, in the units in which such sizes are spoken of.
function formatPower(exponent) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const unit = Math.floor(exponent / 10);
  return `${2 ** (exponent % 10)} ${units[unit] ?? ""}`;
}

// Round steps for an axis: at most `most` of them up to `largest`.
function axisTicks(largest, most) {
  if (!(largest > 0)) return [];
  const rough = largest / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let turn = 1; turn * step <= largest * 1.0001; turn += 1) ticks.push(turn * step);
  return ticks;
}

// Base 64 to bytes.
function unpackBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  return bytes;
}

// Base 64 to fractions of 65535, little endian whatever the machine is.
function unpackFractions(text) {
  const view = new DataView(unpackBytes(text).buffer);
  return Uint16Array.from({ length: view.byteLength / 2 }, (_, place) => view.getUint16(2 * place, true));
}
