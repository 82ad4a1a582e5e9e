// Pieces of the page. Texts become text nodes, so nothing that comes from a database is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** 1234567 as 1.23 M. */
export function amount(value) {
  const number = Number(value);
  if (!Number.isFinite(number)) return "–";
  for (const [unit, factor] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    if (Math.abs(number) >= factor) return `${plain.format(number / (unit === "k" ? 1e3 : factor))} ${unit}`;
  }
  return plain.format(number);
}

export function bytes(value) {
  let number = Number(value);
  if (!Number.isFinite(number)) return "–";
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(number) < 1024) return `${plain.format(number)} ${unit}`;
    number /= 1024;
  }
  return `${plain.format(number)} TiB`;
}

/** A time in microseconds. */
export function time(us) {
  if (us === null || us === undefined || !Number.isFinite(us)) return "–";
  if (us < 1000) return `${plain.format(us)} µs`;
  if (us < 1e6) return `${plain.format(us / 1000)} ms`;
  if (us < 120e6) return `${plain.format(us / 1e6)} s`;
  return `${plain.format(us / 60e6)} min`;
}

/** A bar that says a share, for the eye and for the ear. */
export function bar(share, label, kind = "") {
  const percent = Math.max(0, Math.min(1, share || 0)) * 100;
  const inner = h("i");
  inner.style.width = `${percent}%`;
  return h("span", { class: `bar ${kind}`, role: "img", "aria-label": label ?? `${Math.round(percent)} %` }, inner);
}

export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

export const sql = (text) => (text ? h("code", { class: "sql clip", tabindex: "0" }, text) : empty());
export const empty = () => h("span", { class: "null" }, "–");

/**
 * A table. Columns: [heading, function of a row that makes a cell, {number}].
 */
export function table(caption, columns, rows, none = "Nothing.") {
  const head = columns.map(([name, , options]) => h("th", { scope: "col", class: options?.number ? "number" : null }, name));
  const body = rows.map((row) => h("tr", {}, columns.map(([, cell, options]) =>
    h("td", { class: options?.number ? "number" : null }, cell(row) ?? empty()))));
  const found = rows.length ? null : h("tr", {}, h("td", { colspan: columns.length, class: "quiet" }, none));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body, found)));
}

/** The rows of a result as they came. */
export function resultTable(result, caption) {
  const columns = result.columns.map((column, at) => [
    column.name,
    (row) => (row[at] === null ? h("span", { class: "null" }, "NULL") : h("span", { class: "sql" }, row[at])),
    { number: column.number },
  ]);
  return table(caption, columns, result.rows, "No rows.");
}

/** A line of the last values. */
export function spark(values, label) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, at) => `${(at / Math.max(values.length - 1, 1)) * 100},${25 - (value / most) * 23}`);
  return svg("svg", { viewBox: "0 0 100 26", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("polyline", { points: points.join(" ") }));
}

/** Asks a question. */
export function ask(question) {
  const dialog = document.getElementById("ask");
  document.getElementById("ask-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Tells the user, by eye and by ear. */
export function say(text, isError = true) {
  const line = document.getElementById("message");
  // A screen reader says it again otherwise.
  if (line.textContent === text) return;
  line.textContent = text;
  line.style.color = isError ? "" : "inherit";
}

/** Puts new content in the place of old, and leaves the focus where it was if something of the same name is there. */
export function replace(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const alike = () => [...parent.querySelectorAll(focused.localName)].filter((one) => one.className === focused.className);
  const place = focused ? alike().indexOf(focused) : -1;
  const scrolled = [...parent.querySelectorAll(".scroll")].map((one) => [one.scrollTop, one.scrollLeft]);
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  [...parent.querySelectorAll(".scroll")].forEach((one, at) => {
    if (scrolled[at]) [one.scrollTop, one.scrollLeft] = scrolled[at];
  });
  if (!focused) return;
  // What has no name of its own is found by its place among its like.
  const key = focused.dataset.key;
  const after = parent.contains(focused) ? focused : key ? parent.querySelector(`[data-key="${CSS.escape(key)}"]`) : alike()[place];
  after?.focus({ preventScroll: true });
}
