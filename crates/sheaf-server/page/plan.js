// Plans: what EXPLAIN and the optimizer trace say, as a tree of operators with what each took.

const KNOWN = new Set(["operation", "inputs", "estimated_rows", "estimated_total_cost", "actual_first_row_ms",
  "actual_last_row_ms", "actual_rows", "actual_loops"]);

function node(operation) {
  return { operation, estimated: null, cost: null, found: null, loops: null, lastUs: null, counters: {}, isUnused: false, isRunning: false, inputs: [] };
}

/** An operator of EXPLAIN ANALYZE FORMAT=JSON. */
function ofJson(object) {
  const made = node(object.operation ?? "?");
  made.estimated = object.estimated_rows ?? null;
  made.cost = object.estimated_total_cost ?? null;
  made.found = object.actual_rows ?? null;
  made.loops = object.actual_loops ?? null;
  made.isUnused = object.actual_loops === 0;
  if (object.actual_last_row_ms !== undefined && !made.isUnused) made.lastUs = object.actual_last_row_ms * 1000;
  for (const [name, value] of Object.entries(object)) {
    if (!KNOWN.has(name) && typeof value !== "object") made.counters[name] = value;
  }
  made.inputs = (object.inputs ?? []).map(ofJson);
  return made;
}

/** The operators of EXPLAIN FORMAT=TREE, one a line, with or without what ANALYZE adds. */
function ofTree(text) {
  const top = node("");
  const open = [{ depth: -1, node: top }];
  for (const line of text.split("\n")) {
    const found = /^( *)-> (.*)$/.exec(line);
    if (!found) {
      if (line.trim() && open.length > 1) open.at(-1).node.operation += ` ${line.trim()}`;
      continue;
    }
    const made = node(found[2]);
    const take = (pattern, use) => {
      const match = pattern.exec(made.operation);
      if (!match) return;
      use(match);
      made.operation = made.operation.slice(0, match.index).trimEnd();
    };
    take(/ {2}\[([^\][]*=[^\][]*)\]$/, ([, pairs]) => {
      for (const [, name, value] of pairs.matchAll(/(\w+)=(\S+)/g)) made.counters[name] = Number(value);
    });
    take(/ {2}\(so far:? (?:rows=([\d.e+-]+))?([^()]*)\)$/, ([, rows, others]) => {
      made.isRunning = true;
      if (rows !== undefined) made.found = Number(rows);
      for (const [, name, value] of others.matchAll(/(\w+)=(\S+)/g)) made.counters[name] = Number(value);
    });
    take(/ {2}\(never executed\)$/, () => { made.isUnused = true; made.loops = 0; });
    take(/ {2}\(actual (?:time=([\d.e+-]+)\.\.([\d.e+-]+) )?rows=([\d.e+-]+)(?: loops=(\d+))?\)$/, ([, , last, rows, loops]) => {
      if (last !== undefined) made.lastUs = Number(last) * 1000;
      made.found = Number(rows);
      made.loops = Number(loops ?? 1);
    });
    take(/ {2}\((?:cost=([\d.e+-]+) ?)?(?:rows=([\d.e+-]+))?\)$/, ([, cost, rows]) => {
      if (cost !== undefined) made.cost = Number(cost);
      if (rows !== undefined) made.estimated = Number(rows);
    });
    const depth = found[1].length;
    while (open.at(-1).depth >= depth) open.pop();
    open.at(-1).node.inputs.push(made);
    open.push({ depth, node: made });
  }
  return top.inputs.length === 1 ? top.inputs[0] : { ...top, operation: "Plan" };
}

/** All operators, the root first. */
export function* all(root) {
  yield root;
  for (const input of root.inputs) yield* all(input);
}

/** The alias of the table that an operator reads. */
export function tableOf(operation) {
  return /\b(?:scan|lookup|dive|Dive|range scan|Rows) on ([^\s,(]+)/.exec(operation)?.[1] ?? null;
}

/** What the operators below have taken that say it. */
function below(root, taken) {
  return root.inputs.reduce((sum, input) => sum + (input.isUnused ? 0 : taken(input) ?? below(input, taken)), 0);
}

/** Reads a plan from a text of EXPLAIN, and computes what its operators take by themselves. */
export function read(text) {
  const start = text.trimStart();
  const root = start.startsWith("{") ? ofJson(JSON.parse(start)) : ofTree(text);
  const isMeasured = [...all(root)].some((one) => one.lastUs !== null);
  for (const one of all(root)) {
    // Another plan that may take over is no part of this one until it does.
    if (!isMeasured && /^In (?:place of|its place)/.test(one.operation)) one.isUnused = true;
    if (one.isUnused) one.inputs.forEach((input) => { input.isUnused = true; });
  }
  const taken = isMeasured
    ? (one) => (one.lastUs === null ? null : one.lastUs * Math.max(one.loops ?? 1, 1))
    : (one) => one.cost;
  let total = 0;
  for (const one of all(root)) {
    const whole = taken(one);
    one.ownUs = one.isUnused || whole === null ? null : Math.max(0, whole - below(one, taken));
    total += one.ownUs ?? 0;
    one.table = tableOf(one.operation);
    one.off = misestimate(one);
  }
  const shown = [...all(root)];
  shown.forEach((one, at) => {
    one.id = at;
    one.share = total > 0 && one.ownUs !== null ? one.ownUs / total : null;
  });
  const most = (measure) => shown.reduce((best, one) => ((measure(one) ?? 0) > (measure(best) ?? 0) ? one : best), root);
  return {
    root, isMeasured, total,
    slowest: most((one) => one.ownUs),
    mostOff: most((one) => one.off),
    mostRead: most((one) => one.counters.pages_read),
  };
}

/** By what factor an estimate is wrong; null: nothing was measured, or too little to say. */
function misestimate(one) {
  if (one.estimated === null || one.found === null || one.isUnused) return null;
  if (one.isRunning && one.found <= one.estimated) return null;
  const [less, more] = [one.estimated, one.found].map((rows) => Math.max(rows, 1)).sort((a, b) => a - b);
  return more < 10 ? 1 : more / less;
}

/** What of each table is in memory, from EXPLAIN FORMAT=JSON, by alias. */
export function residents(json) {
  const found = new Map();
  const walk = (value) => {
    if (value === null || typeof value !== "object") return;
    if (value.table_name && value.resident) found.set(value.table_name, value.resident);
    Object.values(value).forEach(walk);
  };
  walk(json);
  return found;
}

/** What the optimizer compared: for each table the ways to read it, and the orders of joins. */
export function alternatives(trace) {
  const found = { tables: new Map(), joins: [], orders: [], regrets: [] };
  const walk = (value) => {
    if (value === null || typeof value !== "object") return;
    const one = value.rows_estimation;
    if (one?.table) {
      found.tables.set(one.table, [...found.tables.get(one.table) ?? [], ...one.considered_access_paths ?? []]);
    }
    const join = value.considered_execution_plans;
    if (join?.plan_prefix) found.joins.push(join);
    if (value.chosen_join_order) found.orders.push(value.chosen_join_order);
    if (value.bounded_regret) found.regrets.push(value.bounded_regret);
    Object.values(value).forEach(walk);
  };
  walk(trace);
  return found;
}

/** What may be done about an operator: texts. */
export function advice(one, resident) {
  const found = [];
  const { pages = 0, pages_read: read = 0, rows_examined: examined = 0, row_lookups: lookups = 0 } = one.counters;
  if (one.off >= 10) {
    found.push(`Rows were estimated ${Math.round(one.off)} times wrong. ANALYZE TABLE renews the statistics; conditions `
      + "on columns that go together have none.");
  }
  if (/Table scan/.test(one.operation) && /condition/.test(one.operation) && examined > 100 * Math.max(one.found ?? 0, 1)) {
    found.push("Nearly all rows that were read did not match: an index on the columns of the condition would find the others.");
  }
  if (lookups > 0 && /condition/.test(one.operation) && one.found !== null && lookups > 20 * Math.max(one.found, 1)) {
    found.push("Most rows that the index led to were looked up in vain: an index with the columns of the condition tests them before.");
  }
  if (read > 0.2 * Math.max(pages, 1)) {
    found.push(`${read} of ${pages} pages had to be waited for. Once they are in memory the statement is faster, if there is room for them.`);
  }
  if (/^Sort/.test(one.operation) && !/limit input/.test(one.operation)) {
    found.push("An index in this order would make the sort unnecessary.");
  }
  if (one.counters.switches) found.push("The first plan cost more than estimated, and another one took over.");
  const share = resident && Math.min(resident.index ?? 1, resident.rows ?? 1);
  if (share !== undefined && share !== null && share < 0.5) found.push("Less than half of what it reads is in memory now.");
  return found;
}
