// Lessons: a statement by a slow plan and by a fast one, side by side, with what each of them took.
//
// They are rows of the table `learn`.`lessons`, which `sheaf demo --http` makes. What a lesson says is data: this view only
// runs it.

import { amount, bar, button, h, replace, say, table, time } from "./elements.js";
import { makePlan, planView } from "./plan_view.js";
import { quotedText, request, rows } from "./server.js";

/** What is counted of a run, by names of status variables and words for them. */
const COUNTERS = [
  ["Innodb_rows_read", "rows fetched"],
  ["Handler_read_next", "steps forward in an index"],
  ["Handler_read_prev", "steps backward in an index"],
  ["Handler_read_rnd_next", "rows of whole tables"],
  ["Handler_icp_attempts", "index entries tested"],
  ["Handler_icp_match", "index entries that matched"],
  ["Handler_mrr_init", "multi-range reads"],
];

/** What the operators of a plan have counted, all together. */
const PAGES = [
  ["pages", "pages asked for"],
  ["pages_read", "pages waited for"],
  ["pages_read_ahead", "pages read ahead"],
  ["read_requests", "requests to the disk"],
];

/** So long is waited for transactions to be open, in turns of so many milliseconds. */
const TURNS = 100;
const TURN_MS = 100;

/** Whether this database has lessons. */
export async function hasLessons() {
  const found = await rows("SELECT COUNT(*) AS n FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'learn' AND TABLE_NAME = 'lessons'");
  return Number(found[0]?.n) === 1;
}

function sumOf(one, name) {
  if (one === null || typeof one !== "object") return 0;
  const own = Array.isArray(one) ? 0 : Number(one[name] ?? 0) || 0;
  return Object.values(one).reduce((sum, part) => sum + sumOf(part, name), own);
}

/** Runs a statement once, measured. `first` is what has to be in memory before, or not to be. */
async function measure(sql, database, first) {
  const one = (text) => request(text, { desk: "editor", database, single: true });
  if (first) await one(first);
  await one("FLUSH STATUS");
  const answer = await one(`EXPLAIN ANALYZE FORMAT=JSON ${sql}`);
  const names = COUNTERS.map(([name]) => quotedText(name)).join(", ");
  const status = await one(`SHOW SESSION STATUS WHERE Variable_name IN (${names})`);
  const counters = Object.fromEntries(status.results[0].rows.map(([name, value]) => [name, Number(value)]));
  const text = answer.results[0].rows[0][0];
  const operators = JSON.parse(text);
  for (const [name] of PAGES) counters[name] = sumOf(operators, name);
  return { us: operators.actual_last_row_ms * 1000, counters, plan: makePlan({ sql, database, text }) };
}

/** Asks the demo to hold so many transactions open, and waits until it does. */
async function holdTransactions(count) {
  await request(`UPDATE learn.transactions SET wanted = ${Number(count)}`);
  for (let turn = 0; turn < TURNS; turn += 1) {
    const [found] = await rows("SELECT open_now FROM learn.transactions");
    if (Number(found?.open_now) === Number(count)) return;
    await new Promise((resolve) => { setTimeout(resolve, TURN_MS); });
  }
  throw new Error("The transactions were not opened. Does `sheaf demo` still run?");
}

export function learnView(page) {
  const list = h("div", { class: "buttons", role: "group", "aria-label": "Lessons" });
  const story = h("section");
  const compared = h("section", { hidden: true });
  const plans = h("div", { class: "plans" });
  let lessons = [];
  let chosen = null;
  let isBusy = false;

  const side = (lesson, name) => ({
    title: lesson[`${name}_title`], sql: lesson[`${name}_sql`], transactions: Number(lesson[`${name}_transactions`]),
  });

  function show(lesson) {
    chosen = lesson;
    compared.hidden = true;
    plans.replaceChildren();
    replace(list, lessons.map((one) => button(`${one.number}. ${one.title}`, () => show(one), {
      class: one === chosen ? "main" : null, "aria-pressed": String(one === chosen), "data-key": `lesson${one.number}`,
    })));
    replace(story,
      h("h2", {}, `${lesson.number}. ${lesson.title}`),
      h("p", {}, lesson.story),
      h("p", {}, h("b", {}, "What Sheaf does: "), lesson.answer),
      h("div", { class: "buttons" },
        button("Run both", run, { class: "main" }),
        ["slow", "fast"].map((name) => button(`To the editor: ${side(lesson, name).title}`, () => page.open("sql", { sql: side(lesson, name).sql, database: lesson.in_database })))));
  }

  function draw(slow, fast) {
    const most = Math.max(slow.us, fast.us, 1);
    const names = [...COUNTERS, ...PAGES].filter(([name]) => slow.counters[name] || fast.counters[name]);
    const lines = [
      { what: "time", slow: time(slow.us), fast: time(fast.us), ratio: slow.us / fast.us },
      ...names.map(([name, what]) => ({ what, slow: amount(slow.counters[name] ?? 0), fast: amount(fast.counters[name] ?? 0), ratio: slow.counters[name] / fast.counters[name] })),
    ];
    const share = (one) => bar(one.us / most, time(one.us), one === fast ? "good" : "");
    compared.hidden = false;
    replace(compared,
      h("p", {}, side(chosen, "slow").title, " ", share(slow), " ", side(chosen, "fast").title, " ", share(fast)),
      table("What each of them took", [
        ["", (row) => row.what],
        [side(chosen, "slow").title, (row) => row.slow, { number: true }],
        [side(chosen, "fast").title, (row) => row.fast, { number: true }],
        ["times as much", (row) => (Number.isFinite(row.ratio) && row.ratio > 0 ? amount(row.ratio) : null), { number: true }],
      ], lines));
    const view = (one, name) => h("div", {}, h("h2", {}, side(chosen, name).title), planView(one.plan, {
      isKept: true,
      keep: () => plans.replaceChildren(),
      advise: (of) => page.open("advisor", { sql: of.sql, database: of.database }),
    }));
    plans.replaceChildren(view(slow, "slow"), view(fast, "fast"));
  }

  async function run() {
    if (isBusy) return;
    const lesson = chosen;
    isBusy = true;
    say("Runs…", false);
    try {
      const found = [];
      for (const name of ["slow", "fast"]) {
        const { sql, transactions } = side(lesson, name);
        if (lesson.holds_transactions === "1") await holdTransactions(transactions);
        found.push(await measure(sql, lesson.in_database, lesson.first_sql));
      }
      if (lesson === chosen) draw(...found);
      say("");
    } catch (problem) {
      say(problem.status === 409 ? "A statement is still running in SQL; stop it first." : problem.message);
    } finally {
      isBusy = false;
      if (lesson.holds_transactions === "1") await request("UPDATE learn.transactions SET wanted = 0");
    }
  }

  return {
    elements: [h("section", {}, h("h2", {}, "Five evenings"), list), story, compared, plans],
    async refresh() {
      if (lessons.length) return;
      lessons = await rows("SELECT * FROM learn.lessons ORDER BY number");
      if (lessons.length) show(lessons[0]);
    },
  };
}
