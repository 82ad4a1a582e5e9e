// The server: requests of the page, and what comes back.

let token = "";

/** Something that the server refused. `code` is that of SQL, if it is an error of SQL. */
export class Problem extends Error {
  constructor(message, { status = 0, code = 0, results = [] } = {}) {
    super(message);
    Object.assign(this, { status, code, results });
  }
}

async function send(path, body) {
  const options = body === undefined ? {} : {
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
  if (response.status === 401 && path !== "/api/login") {
    document.dispatchEvent(new Event("logged-out"));
  }
  const code = content.code ? `ERROR ${content.code} (${content.sqlstate}): ` : "";
  throw new Problem(code + content.message, { status: response.status, code: content.code });
}

function enter(login) {
  token = login.token;
  return login;
}

/** Who is logged in; null: nobody. */
export async function who() {
  try {
    return enter(await send("/api/login"));
  } catch (problem) {
    if (problem.status === 401) return null;
    throw problem;
  }
}

export async function logIn(user, password) {
  return enter(await send("/api/login", { user, password }));
}

export async function logOut() {
  await send("/api/logout", {});
  token = "";
}

/** The last request of the watcher. Its session answers one at a time, so each waits for the one before. */
let watching = Promise.resolve();

function inTurn(task) {
  const turn = watching.then(task);
  watching = turn.catch(() => null);
  return turn;
}

/** What came of statements: all results, whatever they are. Errors of SQL are thrown. */
export async function request(sql, { desk = "watcher", database = "", poll = false } = {}) {
  const ask = () => send("/api/statement", { sql, desk, database, poll });
  const answer = await (desk === "watcher" ? inTurn(ask) : ask());
  if (answer.error) {
    const { code, sqlstate, message } = answer.error;
    throw new Problem(`ERROR ${code} (${sqlstate}): ${message}`, { code, results: answer.results });
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

/** A text as SQL writes it, whatever sql_mode says of backslashes. */
export const quotedText = (text) => {
  const bytes = new TextEncoder().encode(text);
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return text.includes("\\") ? `CONVERT(0x${digits} USING utf8mb4)` : "'" + text.replaceAll("'", "''") + "'";
};
