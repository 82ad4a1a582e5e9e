// What the server does and has. Each view is made once, and reads again what it shows.

import { amount, ask, bar, button, bytes, empty, h, replace, say, spark, sql, svg, table, time } from "./elements.js";
import { hasEscapes, quotedName, quotedText, request, rows } from "./server.js";

const PS = 1e6; // Picoseconds of a microsecond.
const KEPT = 60;

async function kill(kind, id, refresh) {
  if (!await ask(`KILL ${kind} ${id}?`)) return;
  try {
    await request(`KILL ${kind} ${Number(id)}`);
  } catch (problem) {
    say(problem.message);
  }
  await refresh(false);
}

/** Status variables as numbers, by their names. */
async function status(names, poll) {
  const list = names.map((name) => quotedText(name)).join(", ");
  const found = await rows(`SHOW GLOBAL STATUS WHERE Variable_name IN (${list})`, { poll });
  return Object.fromEntries(found.map((row) => [row.variable_name, Number(row.value)]));
}

/** Sessions, their statements, and some numbers of the last minutes. */
export function nowView(page) {
  const cards = h("div", { class: "cards" });
  const list = h("div");
  const history = {};
  let before = null;
  const all = h("input", { type: "checkbox", onchange: () => refresh(false) });
  // What keeps its state is not drawn again, and so keeps the focus.
  const head = h("div", { class: "buttons" }, h("h2", {}, "Statements now"), h("label", {}, all, " and sessions that wait for their clients"));
  const rates = ["Questions", "Innodb_rows_read", "Innodb_buffer_pool_reads", "Statement_errors", "Slow_queries"];
  const gauges = ["Threads_running", "Threads_connected", "Process_memory_bytes", "Innodb_row_lock_current_waits"];

  function card(title, value, text) {
    const kept = (history[title] ??= []);
    kept.push(value);
    if (kept.length > KEPT) kept.shift();
    return h("div", { class: "card" }, h("span", { class: "quiet" }, title), h("b", {}, text), spark(kept, `${title}, the last values`));
  }

  async function refresh(poll) {
    const now = performance.now();
    const values = await status([...rates, ...gauges, "Innodb_buffer_pool_read_requests"], poll);
    const earlier = before;
    const since = earlier && { of: (name) => ((values[name] - earlier.values[name]) * 1000) / (now - earlier.now) };
    before = { now, values };
    if (since) {
      const requests = since.of("Innodb_buffer_pool_read_requests");
      const hits = requests > 0 ? 1 - since.of("Innodb_buffer_pool_reads") / requests : 1;
      replace(cards,
        card("Statements a second", since.of("Questions"), amount(since.of("Questions"))),
        card("Running", values.Threads_running, `${values.Threads_running} of ${values.Threads_connected}`),
        card("Rows read a second", since.of("Innodb_rows_read"), amount(since.of("Innodb_rows_read"))),
        card("Found in memory", hits * 100, `${(hits * 100).toFixed(1)} %`),
        card("Waits for row locks", values.Innodb_row_lock_current_waits ?? 0, amount(values.Innodb_row_lock_current_waits ?? 0)),
        card("Errors a second", since.of("Statement_errors"), amount(since.of("Statement_errors"))),
        card("Memory", values.Process_memory_bytes, bytes(values.Process_memory_bytes)));
    }
    const found = await rows("SELECT ID, USER, HOST, DB, COMMAND, TIME, STATE, INFO FROM information_schema.PROCESSLIST ORDER BY COMMAND = 'Sleep', TIME DESC", { poll });
    const own = [String(page.login.editor), String(page.login.watcher)];
    const shown = found.filter((row) => row.id !== own[1] && (all.checked || row.command !== "Sleep"));
    replace(list, table(`${shown.length} of ${found.length} sessions`, [
        ["id", (row) => row.id, { number: true }],
        ["account", (row) => `${row.user}@${row.host}`],
        ["database", (row) => row.db],
        ["seconds", (row) => row.time, { number: true }],
        ["state", (row) => row.state || row.command],
        ["statement", (row) => sql(row.info)],
        ["", (row) => h("div", { class: "buttons" },
          row.info ? button("Plan", () => page.open("sql", { connection: row.id }), { class: "small", "data-key": `plan${row.id}`, "aria-label": `Plan of session ${row.id}` }) : null,
          row.info ? button("Stop", () => kill("QUERY", row.id, refresh), { class: "small", "data-key": `stop${row.id}`, "aria-label": `Stop the statement of session ${row.id}` }) : null,
          row.id === own[0] ? "this page" : button("Kill", () => kill("CONNECTION", row.id, refresh), { class: "small danger", "data-key": `kill${row.id}`, "aria-label": `Kill session ${row.id}` }))],
      ], shown, "No statement runs, or none that this account may see."));
  }
  return { elements: [h("section", {}, h("h2", {}, "The server"), cards), h("section", {}, head, list)], refresh };
}

/** What EXPLAIN and the advisor take. */
const PLANNED = /^\s*\(*\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b/i;

/** Statements without their literals, by the time that they take. */
export function statementsView(page) {
  const list = h("div");
  let base = null;
  let last = [];
  /** What each took between the last readings. */
  const history = new Map();
  const key = (row) => `${row.schema_name}/${row.digest}`;
  const order = h("select", { onchange: () => draw() },
    [["sum_timer_wait", "time"], ["count_star", "executions"], ["avg", "time of one"], ["sum_rows_examined", "rows examined"], ["sum_errors", "errors"]]
      .map(([value, title]) => h("option", { value }, title)));
  const count = button("Count from now on", () => {
    base = base ? null : new Map(last.map((row) => [key(row), row]));
    draw();
  });
  const head = h("div", { class: "buttons" }, h("h2", {}, "Statements by digest"), h("label", {}, "by ", order), count);

  function draw() {
    const shown = last.map((row) => {
      const earlier = base?.get(key(row));
      const one = { ...row };
      for (const name of ["count_star", "sum_timer_wait", "sum_rows_examined", "sum_rows_sent", "sum_errors", "sum_no_index_used"]) {
        one[name] = Number(row[name]) - Number(earlier?.[name] ?? 0);
      }
      one.avg = one.count_star ? one.sum_timer_wait / one.count_star : 0;
      return one;
    }).filter((row) => row.count_star > 0);
    const total = shown.reduce((sum, row) => sum + row.sum_timer_wait, 0) || 1;
    shown.sort((a, b) => b[order.value] - a[order.value]);
    count.textContent = base ? "Since the start of the server" : "Count from now on";
    replace(list, table(base ? "Since the button was pressed" : "Since the server started", [
      ["share", (row) => bar(row.sum_timer_wait / total)],
      ["lately", (row) => spark(history.get(key(row)) ?? [], `time of the last readings, ${time((history.get(key(row)) ?? [0]).at(-1) / PS)} in the last one`)],
      ["time", (row) => time(row.sum_timer_wait / PS), { number: true }],
      ["executions", (row) => amount(row.count_star), { number: true }],
      ["one takes", (row) => time(row.avg / PS), { number: true }],
      ["95 % within", (row) => time(Number(row.quantile_95) / PS), { number: true }],
      ["rows examined / sent", (row) => `${amount(row.sum_rows_examined)} / ${amount(row.sum_rows_sent)}`, { number: true }],
      ["errors", (row) => amount(row.sum_errors), { number: true }],
      ["database", (row) => row.schema_name],
      ["statement", (row) => (row.digest_text ? sql(row.digest_text) : "all others")],
      ["", (row) => (PLANNED.test(row.query_sample_text ?? "") ? h("div", { class: "buttons" },
        button("Explain", () => page.open("sql", { sql: row.query_sample_text, database: row.schema_name ?? "", explain: true }), { class: "small", "data-key": `explain${key(row)}` }),
        button("Advise", () => page.open("advisor", { sql: row.query_sample_text, database: row.schema_name ?? "" }), { class: "small", "data-key": `advise${key(row)}` })) : empty())],
    ], shown.slice(0, 100), "No statement was counted."));
  }

  async function refresh(poll) {
    const before = new Map(last.map((row) => [key(row), Number(row.sum_timer_wait)]));
    last = await rows("SELECT SCHEMA_NAME, DIGEST, DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT, QUANTILE_95, SUM_ROWS_EXAMINED, SUM_ROWS_SENT, "
      + "SUM_ERRORS, SUM_NO_INDEX_USED, QUERY_SAMPLE_TEXT FROM performance_schema.events_statements_summary_by_digest "
      + "ORDER BY SUM_TIMER_WAIT DESC LIMIT 1000", { poll });
    for (const row of before.size ? last : []) {
      const kept = history.get(key(row)) ?? history.set(key(row), []).get(key(row));
      kept.push(Math.max(0, Number(row.sum_timer_wait) - (before.get(key(row)) ?? 0)));
      if (kept.length > KEPT) kept.shift();
    }
    draw();
  }
  return { elements: [h("section", {}, head, list)], refresh };
}

/** Who waits for whom, and what transactions hold. */
export function locksView() {
  const waits = h("section", { class: "waits" });
  const list = h("section");

  async function refresh(poll) {
    const found = await rows("SELECT waiting_pid, waiting_query, waiting_lock_mode, wait_age_secs, locked_table, locked_index, blocking_pid, blocking_query, "
      + "blocking_trx_age FROM sys.innodb_lock_waits", { poll });
    const transactions = await rows("SELECT trx_mysql_thread_id AS id, trx_state, trx_started, TIMESTAMPDIFF(SECOND, trx_started, NOW()) AS age, "
      + "trx_rows_locked, trx_rows_modified, trx_query FROM information_schema.INNODB_TRX ORDER BY trx_started", { poll });
    const others = await rows("SELECT ID, USER, STATE, TIME, INFO FROM information_schema.PROCESSLIST WHERE STATE LIKE '%ait%' AND COMMAND <> 'Sleep'", { poll });
    const waiters = new Set(found.map((row) => row.waiting_pid));
    const blockers = new Map();
    for (const row of found) (blockers.get(row.blocking_pid) ?? blockers.set(row.blocking_pid, []).get(row.blocking_pid)).push(row);
    const end = (id) => [button("Stop", () => kill("QUERY", id, refresh), { class: "small", "data-key": `s${id}`, "aria-label": `Stop the statement of session ${id}` }), " ",
      button("Kill", () => kill("CONNECTION", id, refresh), { class: "small danger", "data-key": `k${id}`, "aria-label": `Kill session ${id}` }), " "];
    const below = (id, seen) => (seen.has(id) || !blockers.has(id) ? null : h("ul", {}, blockers.get(id).map((row) => h("li", {},
      h("b", {}, `session ${row.waiting_pid}`), ` waits ${row.wait_age_secs} s for ${row.locked_table} (${row.locked_index}, ${row.waiting_lock_mode}) `,
      end(row.waiting_pid), sql(row.waiting_query), below(row.waiting_pid, new Set([...seen, id]))))));
    const roots = [...blockers.keys()].filter((id) => !waiters.has(id));
    const shown = roots.length || !blockers.size ? roots : [blockers.keys().next().value];
    replace(waits, h("h2", {}, "Who waits for whom"),
      shown.length ? h("ul", {}, shown.map((id) => h("li", {}, h("b", {}, `session ${id}`), " blocks others ", end(id),
        sql(blockers.get(id)[0].blocking_query), below(id, new Set())))) : h("p", { class: "quiet" }, "No session waits for a row lock."),
      others.length ? table("Statements that wait for something", [
        ["id", (row) => row.id, { number: true }], ["account", (row) => row.user], ["seconds", (row) => row.time, { number: true }],
        ["state", (row) => row.state], ["statement", (row) => sql(row.info)],
      ], others) : null);
    replace(list, h("h2", {}, "Transactions"), table(`${transactions.length} are open`, [
      ["session", (row) => row.id, { number: true }], ["state", (row) => row.trx_state], ["seconds", (row) => row.age, { number: true }],
      ["row locks", (row) => row.trx_rows_locked, { number: true }], ["changed rows", (row) => row.trx_rows_modified, { number: true }],
      ["statement", (row) => sql(row.trx_query)],
      ["", (row) => end(row.id)],
    ], transactions, "No transaction is open."));
  }
  return { elements: [waits, list], refresh };
}

/** Rectangles in a square, of areas that the values say (squarified treemap, Bruls et al. 2000). */
function layOut(items, width, height) {
  const total = items.reduce((sum, item) => sum + item.size, 0) || 1;
  const scale = (width * height) / total;
  const placed = [];
  let [x, y, w, h2, row] = [0, 0, width, height, []];
  const worst = (some, side) => {
    const sum = some.reduce((all, item) => all + item.size * scale, 0);
    return Math.max(...some.map((item) => Math.max((side ** 2 * item.size * scale) / sum ** 2, sum ** 2 / (side ** 2 * item.size * scale))));
  };
  const place = () => {
    const sum = row.reduce((all, item) => all + item.size * scale, 0);
    const isWide = w >= h2;
    const thick = sum / (isWide ? h2 : w);
    let at = isWide ? y : x;
    for (const item of row) {
      const long = (item.size * scale) / thick;
      placed.push(isWide ? { item, x, y: at, w: thick, h: long } : { item, x: at, y, w: long, h: thick });
      at += long;
    }
    if (isWide) { x += thick; w -= thick; } else { y += thick; h2 -= thick; }
    row = [];
  };
  for (const item of items) {
    const side = Math.min(w, h2);
    if (row.length && worst([...row, item], side) > worst(row, side)) place();
    row.push(item);
  }
  if (row.length) place();
  return placed;
}

/** What memory is used for, and what of each table and index is in it. */
export function memoryView() {
  const use = h("section");
  const map = h("section");
  const names = ["Process_memory_bytes", "Process_memory_limit", "Innodb_buffer_pool_bytes_data", "Innodb_buffer_pool_bytes_dirty", "Innodb_buffer_pool_pages_total",
    "Innodb_page_size", "Query_memory_bytes", "Version_bytes", "Version_bytes_limit", "Statement_cache_bytes", "Temp_file_bytes", "Version_spilled_bytes", "Query_memory_waits"];

  async function refresh(poll) {
    const s = await status(names, poll);
    const pool = s.Innodb_buffer_pool_pages_total * s.Innodb_page_size;
    const parts = [
      ["Process", s.Process_memory_bytes, s.Process_memory_limit || null, "what it may take, as --memory says"],
      ["Buffer pool", s.Innodb_buffer_pool_bytes_data, pool, "pages with data"],
      ["Changed pages", s.Innodb_buffer_pool_bytes_dirty, pool, "not written yet"],
      ["Query memory", s.Query_memory_bytes, s.Process_memory_limit || null, s.Query_memory_waits ? `${s.Query_memory_waits} statements wait for some` : "nobody waits"],
      ["Old versions of rows", s.Version_bytes, s.Version_bytes_limit, `${bytes(s.Version_spilled_bytes)} in the spill file`],
      ["Statement cache", s.Statement_cache_bytes, null, "direct plans"],
      ["Temporary files", s.Temp_file_bytes, null, "on disk"],
    ];
    replace(use, h("h2", {}, "Memory"), table("What it is used for", [
      ["what", ([name]) => name], ["bytes", ([, used]) => bytes(used), { number: true }],
      ["of", ([, , limit]) => (limit ? bytes(limit) : null), { number: true }],
      ["share", ([name, used, limit]) => (limit ? bar(used / limit, `${name}: ${Math.round((used / limit) * 100)} %`) : null)],
      ["", ([, , , note]) => h("span", { class: "quiet" }, note)],
    ], parts));
    const found = await rows("SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, PAGES, RESIDENT, DIRTY FROM information_schema.SHEAF_RESIDENCY "
      + "WHERE PAGES > 0 ORDER BY PAGES DESC LIMIT 500", { poll });
    const items = found.map((row) => ({ row, size: Number(row.pages), share: Number(row.resident) / Number(row.pages) }));
    const label = ({ row, size, share }) => `${row.table_schema}.${row.table_name} ${row.index_name ?? "long values"}: ${bytes(size * s.Innodb_page_size)}, ${Math.round(share * 100)} % in memory`;
    const drawing = svg("svg", { class: "map", viewBox: "0 0 1000 340", preserveAspectRatio: "none", role: "img", "aria-label": "Tables and indexes by size; the more of one is in memory, the more colour it has. The table below says the same." },
      layOut(items.slice(0, 120), 1000, 340).map(({ item, x, y, w, h: high }) => svg("g", {},
        svg("title", {}, label(item)),
        svg("rect", { x, y, width: Math.max(w, 0), height: Math.max(high, 0), fill: `hsl(${20 + 120 * item.share} ${25 + 35 * item.share}% 34%)` }),
        w > 90 && high > 30 ? svg("text", { x: x + 5, y: y + 15 }, `${item.row.table_name}.${item.row.index_name ?? "…"}`.slice(0, Math.floor(w / 7))) : null,
        w > 90 && high > 45 ? svg("text", { x: x + 5, y: y + 30 }, `${bytes(item.size * s.Innodb_page_size)}, ${Math.round(item.share * 100)} %`) : null)));
    replace(map, h("h2", {}, "What of each table and index is in memory"), drawing, table("By size", [
      ["database", ({ row }) => row.table_schema], ["table", ({ row }) => row.table_name],
      ["index", ({ row }) => row.index_name ?? "long values"],
      ["size", ({ size }) => bytes(size * s.Innodb_page_size), { number: true }],
      ["in memory", ({ share }) => h("span", {}, bar(share, undefined, "good"), ` ${Math.round(share * 100)} %`)],
      ["changed pages", ({ row }) => amount(row.dirty), { number: true }],
    ], items, "No table, or none that this account may see."));
  }
  return { elements: [use, map], refresh };
}

const DEFINITION = "^[[:space:]]*(ALTER|CREATE|DROP|OPTIMIZE|ANALYZE|RENAME|TRUNCATE|CHECK|LOAD)[[:space:]]";

/** ALTER TABLE and the like that run now. */
export function definitionsView(page) {
  const list = h("section");
  async function refresh(poll) {
    const found = await rows(`SELECT ID, USER, DB, TIME, STATE, INFO FROM information_schema.PROCESSLIST WHERE INFO REGEXP ${quotedText(DEFINITION)} ORDER BY TIME DESC`, { poll });
    replace(list, h("h2", {}, "Definitions under way"), table("Statements that make, change or check tables and indexes", [
      ["id", (row) => row.id, { number: true }], ["account", (row) => row.user], ["database", (row) => row.db],
      ["seconds", (row) => row.time, { number: true }],
      ["state", (row) => row.state],
      ["progress", (row) => {
        const percent = /([\d.]+) ?%/.exec(row.state ?? "");
        return percent ? h("span", {}, bar(Number(percent[1]) / 100), ` ${percent[1]} %`) : null;
      }],
      ["statement", (row) => sql(row.info)],
      ["", (row) => button("Stop", () => kill("QUERY", row.id, refresh), { class: "small danger", "data-key": `s${row.id}`, "aria-label": `Stop the statement of session ${row.id}` })],
    ], found, "None runs now."),
    h("p", { class: "quiet" }, "EXPLAIN ALTER TABLE says before what a change would do, and how long it takes. ",
      button("Write one", () => page.open("sql", { sql: "EXPLAIN ALTER TABLE ", database: "" }), { class: "small", "data-key": "write" })));
  }
  return { elements: [list], refresh };
}

/** Indexes to make and to drop. */
export function advisorView(page) {
  const text = h("textarea", { rows: "4", "aria-label": "Statements", placeholder: "Statements to advise for; none: what has run", spellcheck: "false" });
  const schema = h("input", { "aria-label": "Database", placeholder: "database", size: "14" });
  const limit = h("input", { "aria-label": "Most bytes of new indexes", placeholder: "bytes at most", inputmode: "numeric", size: "12" });
  const found = h("section", { hidden: true });
  const go = button("Advise", advise, { class: "main" });

  async function advise() {
    const size = Number(limit.value.replaceAll("_", "")) || 0;
    const asked = text.value.trim().replace(/;\s*$/, "");
    const about = (escapes) => (asked ? ` FOR ${quotedText(asked, escapes)}` : schema.value ? ` FOR SCHEMA ${quotedName(schema.value)}` : "");
    go.disabled = true;
    say("The advisor plans the statements again and again, 20 seconds at most.", false);
    try {
      const advised = await rows(`ADVISE INDEXES${about(await hasEscapes())}${size ? ` LIMIT ${size}` : ""}`, { desk: "editor", single: true, database: asked ? schema.value : "" });
      const notes = await rows("SHOW WARNINGS", { desk: "editor" });
      say("");
      found.hidden = false;
      replace(found, h("h2", {}, "Advice"), table("The most useful first; costs in the optimizer's microseconds", [
        ["", (row) => h("b", { class: row.action === "CREATE" ? "chosen" : "error" }, row.action)],
        ["table", (row) => `${row.object_schema}.${row.object_name}`],
        ["statement", (row) => sql(row.statement)],
        ["why", (row) => row.reason],
        ["cost before", (row) => (row.cost_before_us === null ? null : time(Number(row.cost_before_us))), { number: true }],
        ["after", (row) => (row.cost_after_us === null ? null : time(Number(row.cost_after_us))), { number: true }],
        ["upkeep", (row) => (row.upkeep_us === null ? null : time(Number(row.upkeep_us))), { number: true }],
        ["size", (row) => bytes(row.size_bytes), { number: true }],
        ["executions", (row) => (row.executions === null ? null : amount(row.executions)), { number: true }],
        ["", (row) => button("To the editor", () => page.open("sql", { sql: `${row.statement};`, database: "" }), { class: "small" })],
      ], advised, "No index would help, and none can go."),
      notes.length ? h("ul", {}, notes.map((note) => h("li", { class: "quiet" }, note.message))) : null);
    } catch (problem) {
      say(problem.status === 409 ? "The session of the editor runs a statement; stop it first." : problem.message);
    }
    go.disabled = false;
  }
  return {
    elements: [h("section", {}, h("h2", {}, "Which indexes would help"), text, h("div", { class: "buttons" }, schema, limit, go)), found],
    take: ({ sql: asked, database }) => {
      text.value = asked;
      schema.value = database;
      return advise();
    },
  };
}
