// The editor: statements, their results, and plans.

import { button, h, replace, resultTable, say, time } from "./elements.js";
import { makePlan, openPlan, planView } from "./plan_view.js";
import { askNow, inTurn, quotedName, request, rows } from "./server.js";

const WORDS = ("SELECT FROM WHERE GROUP BY ORDER BY HAVING LIMIT OFFSET JOIN LEFT JOIN INNER JOIN ON USING AND OR NOT IN EXISTS BETWEEN LIKE IS NULL "
  + "DISTINCT UNION ALL WITH RECURSIVE INSERT INTO VALUES UPDATE SET DELETE REPLACE CREATE TABLE INDEX ALTER DROP EXPLAIN ANALYZE SHOW USE BEGIN COMMIT "
  + "ROLLBACK COUNT SUM AVG MIN MAX CASE WHEN THEN ELSE END ASC DESC OVER PARTITION BY").split(/ (?!BY|JOIN|ALL|NULL)/);
const MAX_WORDS = 30;
const KEPT_HISTORY = 50;

/** The word that is being written: where it begins, and what there is of it. */
function wordAt(text, end) {
  const start = /[\w.$`]*$/.exec(text.slice(0, end)).index;
  const word = text.slice(start, end);
  const point = word.lastIndexOf(".");
  return { start: start + point + 1, table: point > 0 ? word.slice(0, point).split(".").at(-1).replaceAll("`", "") : null, begun: word.slice(point + 1).replaceAll("`", "") };
}

export function editorView(page) {
  const text = h("textarea", { "aria-label": "SQL", spellcheck: "false", autocapitalize: "none", placeholder: "SQL. Ctrl+Enter runs it, or what is selected; Ctrl+Space completes a word.", "aria-controls": "words", "aria-autocomplete": "list" });
  const words = h("ul", { class: "words", id: "words", role: "listbox", "aria-label": "Completions", hidden: true });
  const database = h("input", { "aria-label": "Database", placeholder: "database", size: "14", list: "databases" });
  const databases = h("datalist", { id: "databases" });
  const old = h("select", { "aria-label": "Statements before", onchange: () => { if (old.value) text.value = old.value; old.value = ""; } });
  const state = h("span", { class: "quiet", role: "status" });
  const output = h("div");
  const plans = h("div", { class: "plans" });
  const stop = button("Stop", halt, { disabled: true });
  const file = h("input", { type: "file", accept: "application/json,.json", hidden: true, onchange: load });
  let names = null;
  let kept = null;
  let shown = null;
  const history = [];

  const asked = () => {
    const { selectionStart: from, selectionEnd: to, value } = text;
    return (from < to ? value.slice(from, to) : value).trim().replace(/;\s*$/, "");
  };

  function remember(sql) {
    if (history[0] === sql) return;
    history.unshift(sql);
    history.splice(KEPT_HISTORY);
    replace(old, h("option", { value: "" }, "before…"), history.map((one) => h("option", { value: one }, one.replace(/\s+/g, " ").slice(0, 80))));
  }

  async function halt() {
    try {
      await request(`KILL QUERY ${Number(page.login.editor)}`);
    } catch (problem) {
      say(problem.message);
    }
  }

  /** Runs something with the session of the editor. */
  async function work(what, task) {
    say("");
    state.textContent = what;
    stop.disabled = false;
    try {
      await task();
    } catch (problem) {
      state.textContent = "";
      say(problem.status === 409 ? "A statement is still running; stop it first." : problem.message);
      if (problem.results?.length) showResults(problem.results, problem.cut);
    }
    stop.disabled = true;
  }

  const ask = (sql) => request(sql, { desk: "editor", database: database.value });

  function showResults(results, isCut) {
    replace(output, isCut ? h("p", { class: "error" }, "There were more results; they were left out.") : null, results.map((result, at) => h("section", {}, result.columns
      ? [resultTable(result, `Result${results.length > 1 ? ` ${at + 1}` : ""}: ${result.rows.length} rows${result.cut ? ", more were left out" : ""}${result.warnings ? `, ${result.warnings} warnings` : ""}`)]
      : h("p", {}, `Done: ${result.affected} rows changed${result.info ? `. ${result.info}` : ""}${result.warnings ? `, ${result.warnings} warnings` : ""}`))));
  }

  const run = () => work("runs…", async () => {
    const sql = asked();
    if (!sql) return;
    remember(sql);
    const answer = await ask(sql);
    database.value = answer.database;
    state.textContent = time(answer.seconds * 1e6);
    plans.replaceChildren();
    shown = null;
    showResults(answer.results, answer.cut);
    if (/\b(create|alter|drop|use)\b/i.test(sql)) names = null;
  });

  const cell = (answer, at = 0) => answer.results[at]?.rows?.[0]?.[0] ?? "";
  const parsed = (json) => {
    try {
      return JSON.parse(json);
    } catch {
      // A trace may be cut off.
      return null;
    }
  };

  /** The plan of a statement, by requests of one statement each: what stands behind a semicolon must not run. */
  async function planOf(sql, isRun, one) {
    let trace = null;
    let json = null;
    await one("SET @sheaf_console_trace = @@optimizer_trace, optimizer_trace = 'enabled=on'");
    try {
      json = parsed(cell(await one(`EXPLAIN FORMAT=JSON ${sql}`)));
      trace = parsed(cell(await one("SELECT TRACE FROM information_schema.OPTIMIZER_TRACE")));
    } finally {
      await one("SET optimizer_trace = @sheaf_console_trace");
    }
    const answer = await one(isRun ? `EXPLAIN ANALYZE FORMAT=JSON ${sql}` : `EXPLAIN FORMAT=TREE ${sql}`);
    state.textContent = time(answer.seconds * 1e6);
    show(makePlan({ sql, database: database.value, text: cell(answer), json, trace }));
  }

  /** The plan of a statement, with what the optimizer compared; measured by a run of it, if it is to be. */
  const explain = (isRun) => work(isRun ? "runs and measures…" : "plans…", async () => {
    const sql = asked();
    if (!sql) return;
    remember(sql);
    await planOf(sql, isRun, (text) => request(text, { desk: "editor", database: database.value, single: true }));
  });

  /** The plan of what somebody else has sent, in the other session: its sql_mode is the server's. */
  const explainSample = (sql) => work("plans…", () => inTurn(async () => {
    await askNow("SET sql_mode = DEFAULT");
    await planOf(sql, false, (text) => askNow(text, { database: database.value }));
  }));

  /** The plan of what another session runs. */
  const explainConnection = (id) => work("asks…", async () => {
    const answer = await request(`EXPLAIN FORMAT=TREE FOR CONNECTION ${Number(id)}`);
    const of = await rows(`SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = ${Number(id)}`);
    state.textContent = "";
    show(makePlan({ sql: of[0]?.info ?? `session ${id}`, database: "", text: cell(answer) }));
  });

  const view = (plan, isKept) => planView(plan, {
    isKept,
    keep: () => {
      if (isKept) kept = null;
      else [kept, shown] = [plan, shown === plan && kept ? shown : plan];
      draw();
    },
    advise: (of) => page.open("advisor", { sql: of.sql, database: of.database }),
  });

  function draw() {
    plans.replaceChildren(...[kept && view(kept, true), shown && shown !== kept && view(shown, false)].filter(Boolean));
  }

  function show(plan) {
    output.replaceChildren();
    shown = plan;
    draw();
  }

  async function load() {
    try {
      show(await openPlan(file.files[0]));
      say("");
    } catch (problem) {
      say(problem.message);
    }
    file.value = "";
  }

  /** Names of tables and columns that the account sees. */
  async function learn() {
    const found = await rows("SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN ('sys', 'performance_schema', 'mysql') "
      + "ORDER BY TABLE_SCHEMA = 'information_schema', TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION LIMIT 1000");
    names = { tables: new Map(), databases: new Set() };
    for (const row of found) {
      names.databases.add(row.table_schema);
      (names.tables.get(row.table_name) ?? names.tables.set(row.table_name, []).get(row.table_name)).push(row.column_name);
    }
    replace(databases, [...names.databases].map((value) => h("option", { value })));
  }

  async function complete() {
    if (!names) await learn().catch((problem) => say(problem.message));
    const { start, table, begun } = wordAt(text.value, text.selectionEnd);
    const alias = table && new RegExp(`(\\w+)\`?\\s+(?:AS\\s+)?\`?${table.replace(/\W/g, "")}\\b`, "i").exec(text.value)?.[1];
    const columns = table ? names?.tables.get(table) ?? names?.tables.get(alias) ?? [] : [...names?.tables.keys() ?? [], ...[...names?.tables.values() ?? []].flat(), ...WORDS];
    const low = begun.toLowerCase();
    const found = [...new Set(columns)].filter((word) => word.toLowerCase().startsWith(low)).slice(0, MAX_WORDS);
    if (!found.length) return hideWords();
    replace(words, found.map((word, at) => h("li", { role: "option", id: `word${at}`, "aria-selected": String(at === 0), onmousedown: (event) => { event.preventDefault(); take(word, start); } }, word)));
    words.dataset.start = start;
    words.hidden = false;
    text.setAttribute("aria-activedescendant", "word0");
  }

  function hideWords() {
    words.hidden = true;
    text.removeAttribute("aria-activedescendant");
  }

  function take(word, start) {
    const written = /^\w+$|^[A-Z ]+$/.test(word) ? word : quotedName(word);
    text.setRangeText(written, Number(start), text.selectionEnd, "end");
    hideWords();
  }

  function move(step) {
    const items = [...words.children];
    const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
    const next = items[(at + step + items.length) % items.length];
    items.forEach((item) => item.setAttribute("aria-selected", String(item === next)));
    text.setAttribute("aria-activedescendant", next.id);
    next.scrollIntoView({ block: "nearest" });
  }

  text.addEventListener("keydown", (event) => {
    const isChosen = !words.hidden && ["Enter", "Tab"].includes(event.key) && !event.ctrlKey;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    else if (event.key === " " && event.ctrlKey) complete();
    else if (isChosen) take(words.querySelector('[aria-selected="true"]').textContent, words.dataset.start);
    else if (!words.hidden && event.key === "ArrowDown") move(1);
    else if (!words.hidden && event.key === "ArrowUp") move(-1);
    else if (!words.hidden && event.key === "Escape") hideWords();
    else return;
    event.preventDefault();
  });
  text.addEventListener("input", () => (words.hidden ? null : complete()));
  text.addEventListener("blur", hideWords);

  return {
    elements: [
      h("section", {}, h("h2", {}, "SQL"), h("div", { class: "editor" }, text, words),
        h("div", { class: "buttons" }, database, databases, button("Run", run, { class: "main" }), button("Explain", () => explain(false)),
          button("Explain and measure", () => explain(true)), stop, old, button("Open a plan", () => file.click()), file, state)),
      plans, output,
    ],
    async refresh() {
      if (!names) await learn();
    },
    async take(task) {
      if (task.connection) return explainConnection(task.connection);
      text.value = task.sql;
      if (task.database) database.value = task.database;
      text.focus();
      return task.explain ? explainSample(task.sql) : undefined;
    },
  };
}
