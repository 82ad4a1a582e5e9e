// The page: login, views, and what is common to them.

import { ask, button, h, replace, say } from "./elements.js";
import { editorView } from "./editor.js";
import { hasLessons, learnView } from "./learn.js";
import { editor, forget, logIn, logOut, who } from "./server.js";
import { advisorView, definitionsView, locksView, memoryView, nowView, statementsView } from "./views.js";

const VIEWS = [
  ["now", "Now", nowView, 2000],
  ["statements", "Statements", statementsView, 5000],
  ["locks", "Locks", locksView, 2000],
  ["memory", "Memory", memoryView, 5000],
  ["definitions", "Definitions", definitionsView, 2000],
  ["advisor", "Advisor", advisorView, 0],
  ["sql", "SQL", editorView, 0],
  ["learn", "Learn", learnView, 0],
];
/** Of a database without lessons. */
const WITHOUT_LESSONS = VIEWS.filter(([name]) => name !== "learn");

const get = (id) => document.getElementById(id);
let login = null;
let current = null;
let timer = 0;
/** The message is about what could not be read again. */
let isFailing = false;
/** Views that were made, by their names. They stay as they are while others are shown. */
let made = {};

/** What views may ask of the page. */
const page = {
  get login() { return login; },
  /** Shows a view, and gives it something to do. */
  async open(name, task) {
    await show(name);
    await made[name].take?.(task);
  },
};

async function refresh(isPoll) {
  clearTimeout(timer);
  const [name, , , interval] = VIEWS.find(([known]) => known === current) ?? [];
  if (!login || !name || !made[name].refresh) return;
  if (!document.hidden) {
    try {
      await made[name].refresh(isPoll);
      if (isFailing) say("");
      isFailing = false;
    } catch (problem) {
      // The session may still be busy with the request before.
      if (problem.status !== 409) {
        isFailing = true;
        say(problem.message);
      }
    }
  }
  if (interval > 0 && name === current) {
    clearTimeout(timer);
    timer = setTimeout(() => refresh(true), interval);
  }
}

async function show(name) {
  current = name;
  say("");
  for (const tab of get("tabs").children) {
    const isCurrent = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isCurrent));
    tab.tabIndex = isCurrent ? 0 : -1;
  }
  made[name] ??= VIEWS.find(([known]) => known === name)[2](page);
  const view = get("view");
  view.setAttribute("aria-labelledby", `tab-${name}`);
  view.replaceChildren(...made[name].elements);
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  await refresh(false);
}

async function enter(as) {
  login = as;
  // An account that may not see the lessons has none.
  const views = await hasLessons().catch(() => false) ? VIEWS : WITHOUT_LESSONS;
  if (login !== as) return;
  made = {};
  get("login").hidden = true;
  get("login").reset();
  for (const id of ["tabs", "logout", "view"]) get(id).hidden = false;
  get("who").textContent = `${login.account} at ${location.host}`;
  const tabs = views.map(([name, title]) => button(title, () => show(name), {
    id: `tab-${name}`, role: "tab", "aria-controls": "view",
  }));
  replace(get("tabs"), tabs);
  const asked = location.hash.slice(1);
  await show(views.some(([name]) => name === asked) ? asked : "now");
}

function leave(text = "") {
  forget();
  clearTimeout(timer);
  login = null;
  made = {};
  get("who").textContent = "";
  get("view").replaceChildren();
  for (const id of ["tabs", "logout", "view"]) get(id).hidden = true;
  get("login").hidden = false;
  get("login").elements.user.focus();
  say(text);
}

get("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...get("tabs").children];
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
});

get("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { user, password } = event.target.elements;
  try {
    await enter(await logIn(user.value, password.value));
  } catch (problem) {
    say(problem.message);
    password.value = "";
    password.focus();
  }
});

get("logout").addEventListener("click", async () => {
  if (editor.transaction && !await ask("A transaction is open. Log out, and roll it back?")) return;
  try {
    await logOut();
  } catch {
    // It has ended anyway.
  }
  leave();
});

document.addEventListener("logged-out", () => login && leave("The login has ended."));
document.addEventListener("transaction", () => { get("transaction").hidden = !editor.transaction; });
window.addEventListener("beforeunload", (event) => editor.transaction && event.preventDefault());
window.addEventListener("unhandledrejection", (event) => {
  // It is said on the page. What logging out has interrupted is nobody's concern.
  event.preventDefault();
  if (login) say(String(event.reason?.message ?? event.reason));
});
document.addEventListener("visibilitychange", () => !document.hidden && refresh(true));

// The theme is all that this browser remembers.
const themes = ["", "light", "dark"];
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  get("theme").setAttribute("aria-label", `Colours: ${theme || "as the system"}`);
}
get("theme").addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % themes.length];
  localStorage.setItem("theme", next);
  setTheme(next);
});
setTheme(localStorage.getItem("theme") ?? "");

who().then((found) => (found ? enter(found) : leave()), (problem) => leave(problem.message));
