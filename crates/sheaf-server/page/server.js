// The server: requests of the page, and what comes back.

/** The token of the login. This tab alone has it: the cookie does not lead to it, and other tabs log in for themselves. */
let token = sessionStorage.getItem("token") ?? "";

function setToken(text) {
  token = text;
  if (text) sessionStorage.setItem("token", text);
  else sessionStorage.removeItem("token");
}

/** Whether the session of the editor has a transaction open. */
export const editor = { transaction: false };

function setTransaction(isOpen) {
  editor.transaction = isOpen;
  document.dispatchEvent(new Event("transaction"));
}

/** Something that the server refused. `code` is that of SQL, if it is an error of SQL. */
export class Problem extends Error {
  constructor(message, { status = 0, code = 0, results = [], cut = false } = {}) {
    super(message);
    Object.assign(this, { status, code, results, cut });
  }
}

async function send(path, body) {
  const options = body === undefined ? { headers: { "X-CSRF-Token": token } } : {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": token },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem("The server does not answer.");
  }
  const text = await response.text();
  const isJson = response.headers.get("Content-Type") === "application/json";
  const content = isJson ? JSON.parse(text) : { message: text.trim() };
  if (response.ok) return content;
  if ([401, 403].includes(response.status) && path !== "/api/login") {
    document.dispatchEvent(new Event("logged-out"));
  }
  const code = content.code ? `ERROR ${content.code} (${content.sqlstate}): ` : "";
  throw new Problem(code + content.message, { status: response.status, code: content.code });
}

function enter(login) {
  if (login.token) setToken(login.token);
  setTransaction(login.transaction);
  return login;
}

/** Who is logged in; null: nobody, or not in this tab. */
export async function who() {
  if (!token) return null;
  try {
    return enter(await send("/api/login"));
  } catch (problem) {
    if ([401, 403].includes(problem.status)) return null;
    throw problem;
  }
}

export async function logIn(user, password) {
  return enter(await send("/api/login", { user, password }));
}

export async function logOut() {
  await send("/api/logout", {});
  forget();
}

/** The login has ended. */
export function forget() {
  setToken("");
  setTransaction(false);
}

/** The last request of the watcher. Its session answers one at a time, so each waits for the one before. */
let watching = Promise.resolve();

export function inTurn(task) {
  const turn = watching.then(task);
  watching = turn.catch(() => null);
  return turn;
}

/** What came of statements: all results, whatever they are. Errors of SQL are thrown. */
export async function request(sql, options = {}) {
  const ask = () => askNow(sql, options);
  return options.desk === "editor" ? ask() : inTurn(ask);
}

/** The same, for a task that has its turn. `single`: more than one statement is an error. */
export async function askNow(sql, { desk = "watcher", database = "", poll = false, single = desk === "watcher" } = {}) {
  const answer = await send("/api/statement", { sql, desk, database, poll, single });
  if (desk === "editor") setTransaction(answer.transaction);
  if (answer.error) {
    const { code, sqlstate, message } = answer.error;
    throw new Problem(`ERROR ${code} (${sqlstate}): ${message}`, { code, results: answer.results, cut: answer.cut });
  }
  return answer;
}

/** Rows of a query as objects, with names of columns in small letters. */
export async function rows(sql, options) {
  const { results } = await request(sql, options);
  const result = results.at(-1);
  if (!result?.columns) return [];
  const names = result.columns.map((column) => column.name.toLowerCase());
  return result.rows.map((row) => Object.fromEntries(row.map((value, at) => [names[at], value])));
}

/** A name as SQL writes it. */
export const quotedName = (name) => "`" + name.replaceAll("`", "``") + "`";

/** A text as SQL writes it. With `hasEscapes` a backslash is one of a literal, as in all sql_modes but NO_BACKSLASH_ESCAPES. */
export const quotedText = (text, hasEscapes = true) => {
  const doubled = text.replaceAll("'", "''");
  return `'${hasEscapes ? doubled.replaceAll("\\", "\\\\") : doubled}'`;
};

/** Whether a backslash escapes in literals of the editor's session. */
export async function hasEscapes() {
  const [found] = await rows("SELECT @@sql_mode AS mode", { desk: "editor", single: true });
  return !found.mode.includes("NO_BACKSLASH_ESCAPES");
}
