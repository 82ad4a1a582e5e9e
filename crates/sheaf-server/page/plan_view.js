// A plan as a picture: a tree of boxes, the worst of them marked, and what is known of the one that is selected.

import { amount, bar, button, h, say, table, time } from "./elements.js";
import { advice, all, alternatives, read, residents } from "./plan.js";

/** What a plan is made of, which is also what its file has. */
export function makePlan({ sql, database, text, json = null, trace = null, taken = new Date().toISOString() }) {
  return { sheaf_plan: 1, sql, database, text, json, trace, taken };
}

/** A plan from a file. */
export async function openPlan(file) {
  const plan = JSON.parse(await file.text());
  if (plan.sheaf_plan !== 1 || typeof plan.text !== "string") throw new Error("This file has no plan of the console.");
  return plan;
}

export function savePlan(plan) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(plan, null, 1)], { type: "application/json" }));
  h("a", { href: url, download: `plan-${plan.taken.slice(0, 19).replaceAll(":", "")}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const HEADS = [/^(.*?)(?= on | using |:|, |$)/];

/** The name of an operator and the rest of its description. */
function split(operation) {
  const name = HEADS[0].exec(operation)[1];
  return [name, operation.slice(name.length).replace(/^[:,]? ?/, "")];
}

const heatOf = (share) => (share === null ? 0 : share > 0.5 ? 3 : share > 0.2 ? 2 : share > 0.05 ? 1 : 0);

function rowsText(one) {
  const guess = one.estimated === null ? null : `${amount(one.estimated)} rows estimated`;
  if (one.found === null) return guess ?? "";
  return `${guess ?? "rows"}, ${amount(one.found)} ${one.isRunning ? "so far" : "found"}${one.loops > 1 ? ` × ${amount(one.loops)}` : ""}`;
}

function box(plan, one, resident, select) {
  const [name, rest] = split(one.operation);
  const { pages, pages_read: waited } = one.counters;
  const unit = plan.isMeasured ? "of time" : "of cost";
  const share = one.share === null ? null : `${Math.round(one.share * 100)} % ${unit}`;
  const own = one.ownUs === null ? null : time(one.ownUs);
  const memory = resident && [
    resident.index !== undefined ? `index ${Math.round(resident.index * 100)} %` : null,
    resident.rows !== undefined ? `rows ${Math.round(resident.rows * 100)} %` : null,
  ].filter(Boolean).join(", ");
  return h("div", {
    class: `node${one === plan.slowest && one.share > 0.2 ? " worst" : ""}${one.isUnused ? " unused" : ""}`,
    "data-heat": heatOf(one.share),
    onclick: () => select(one),
  },
  h("b", {}, name), rest ? h("span", { class: "what quiet" }, rest) : null,
  own ? [bar(one.share, share), h("div", {}, `${own} itself, ${share}`)] : null,
  one.isUnused ? h("div", {}, plan.isMeasured ? "did not run" : "takes over if need be") : h("div", {}, rowsText(one)),
  one.off >= 10 ? h("div", { class: "off" }, `estimate ${Math.round(one.off)} × off`) : null,
  pages !== undefined ? h("div", {}, `${amount(pages)} pages${waited ? `, ${amount(waited)} waited for` : ""}`) : null,
  one.counters.rows_examined !== undefined && one.found === null ? h("div", {}, `${amount(one.counters.rows_examined)} rows examined`) : null,
  memory ? h("div", { class: "quiet" }, `in memory: ${memory}`) : null);
}

/** The tree. Arrow keys go through it as through any tree of a screen reader. */
function tree(plan, resident, select) {
  const items = [];
  const make = (one, level) => {
    const item = h("li", { role: "treeitem", "aria-level": level, "aria-selected": "false", "aria-expanded": one.inputs.length ? "true" : null, tabindex: "-1" },
      box(plan, one, resident.get(one.table), choose),
      one.inputs.length ? h("ul", { role: "group" }, one.inputs.map((input) => make(input, level + 1))) : null);
    items[one.id] = item;
    return item;
  };
  const parents = new Map();
  for (const one of all(plan.root)) one.inputs.forEach((input) => parents.set(input, one));
  function choose(one, focus = false) {
    items.forEach((item, at) => {
      item.setAttribute("aria-selected", String(at === one.id));
      item.firstChild.setAttribute("aria-selected", String(at === one.id));
      item.tabIndex = at === one.id ? 0 : -1;
    });
    if (focus) items[one.id].focus();
    select(one);
  }
  const nodes = [...all(plan.root)];
  const keys = {
    ArrowDown: (one) => one.inputs[0],
    ArrowUp: (one) => parents.get(one),
    ArrowRight: (one) => sibling(one, 1),
    ArrowLeft: (one) => sibling(one, -1),
    Home: () => plan.root,
    End: () => nodes.at(-1),
  };
  function sibling(one, step) {
    const beside = parents.get(one)?.inputs ?? [];
    return beside[beside.indexOf(one) + step];
  }
  const list = h("ul", {
    role: "tree", "aria-label": "Operators of the plan",
    onkeydown: (event) => {
      const current = nodes[items.findIndex((item) => item.tabIndex === 0)] ?? plan.root;
      const next = keys[event.key]?.(current);
      if (!next) return;
      event.preventDefault();
      choose(next, true);
    },
  }, make(plan.root, 1));
  choose(plan.slowest);
  return list;
}

const pathName = (path) => [path.access_type ?? "", path.index ? `on ${path.index}` : "", path.in_memory ? `(${path.in_memory} in memory)` : ""]
  .filter(Boolean).join(" ") || "index";

/** What the optimizer compared for a table, cheapest first. */
function pathsTable(caption, paths) {
  const sorted = [...paths].sort((a, b) => (a.cost ?? Infinity) - (b.cost ?? Infinity));
  return table(caption, [
    ["way", (path) => h("span", { class: path.chosen ? "chosen" : null }, `${path.chosen ? "✓ " : ""}${pathName(path)}`)],
    ["cost", (path) => (path.cost === undefined ? null : time(path.cost)), { number: true }],
    ["rows", (path) => (path.rows ?? path.rows_per_key) === undefined ? null : amount(path.rows ?? path.rows_per_key), { number: true }],
    ["in memory", (path) => (path.resident === undefined ? null : `${Math.round(path.resident * 100)} %`), { number: true }],
    ["why", (path) => (path.chosen ? "chosen" : path.cause ?? null)],
  ], sorted);
}

function details(one, resident, compared, advise) {
  const pairs = Object.entries({
    "rows estimated": one.estimated === null ? null : amount(one.estimated),
    "rows found": one.found === null ? null : amount(one.found),
    runs: one.loops,
    "estimated cost": one.cost === null ? null : time(one.cost),
    "time by itself": one.lastUs === null || one.ownUs === null ? null : time(one.ownUs),
    ...one.counters,
    "index in memory": resident?.index === undefined ? null : `${Math.round(resident.index * 100)} %`,
    "rows in memory": resident?.rows === undefined ? null : `${Math.round(resident.rows * 100)} %`,
  }).filter(([, value]) => value !== null && value !== undefined);
  const hints = advice(one, resident);
  const single = compared.tables.get(one.table);
  const joins = compared.joins.filter((join) => join.table === one.table);
  return [
    h("h2", {}, "The selected operator"),
    h("p", { class: "sql" }, one.operation),
    h("dl", {}, pairs.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, String(value))])),
    hints.length ? [h("h3", {}, "What may help"), h("ul", {}, hints.map((hint) => h("li", {}, hint))), advise()] : null,
    single ? pathsTable(`Ways to read ${one.table} by itself, and why they lost`, single) : null,
    joins.map((join) => pathsTable(
      `Ways to join ${join.table} behind ${join.plan_prefix.join(", ")}`
      + ` (plan: ${time(join.cost_for_plan)}${join.pruned_by_cost ? ", another order is cheaper" : ""})`,
      join.considered_access_paths ?? [])),
  ];
}

/** A plan with all that is known of it. */
export function planView(source, { advise, keep, isKept }) {
  const plan = read(source.text);
  const resident = residents(source.json);
  const compared = alternatives(source.trace);
  const below = h("section", { "aria-live": "polite" });
  const adviseButton = () => button("Advise indexes", () => advise(source));
  const show = (one) => below.replaceChildren(...details(one, resident.get(one.table), compared, adviseButton).flat(Infinity).filter(Boolean));
  const drawn = tree(plan, resident, show);
  const what = plan.isMeasured ? `measured: ${time(plan.root.lastUs)}` : `estimated: ${time(plan.root.cost ?? plan.total)}`;
  const marks = [
    plan.slowest.share > 0.2 ? `most ${plan.isMeasured ? "time" : "cost"}: ${split(plan.slowest.operation)[0]} ${plan.slowest.table ?? ""} (${Math.round(plan.slowest.share * 100)} %)` : null,
    plan.mostOff.off >= 10 ? `worst estimate: ${split(plan.mostOff.operation)[0]} ${plan.mostOff.table ?? ""} (${Math.round(plan.mostOff.off)} ×)` : null,
    plan.mostRead.counters.pages_read ? `most reads: ${plan.mostRead.table ?? split(plan.mostRead.operation)[0]} (${amount(plan.mostRead.counters.pages_read)} pages)` : null,
  ].filter(Boolean);
  const order = compared.orders.length ? `order of tables: ${compared.orders.at(-1).map((one) => (typeof one === "string" ? one : one.table ?? "")).join(", ")}` : null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(source.text);
      say("The plan is in the clipboard.", false);
    } catch {
      say("The browser gives no access to the clipboard.");
    }
  };
  return h("div", { class: "one-plan" },
    h("section", {},
      h("h2", {}, `Plan, ${what}`),
      h("p", { class: "sql clip" }, source.sql ?? ""),
      h("p", {}, [...marks, order].filter(Boolean).join(" · ")),
      h("div", { class: "buttons" },
        button(isKept ? "Close" : "Keep for comparison", keep),
        button("Save as a file", () => savePlan(source)),
        button("Copy as text", copy)),
      h("div", { class: "plan" }, drawn)),
    below,
    h("section", {}, h("details", {}, h("summary", {}, "As text"), h("pre", {}, source.text))));
}
