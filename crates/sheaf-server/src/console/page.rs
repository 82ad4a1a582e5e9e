//! The page: files that are part of the program. It loads nothing from elsewhere, and no browser may be made to.

use crate::http::answer::Answer;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// By paths, with their types.
const FILES: &[(&str, &str, &str)] = &[
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../page/index.html"),
    ),
    (
        "/console/style.css",
        "text/css; charset=utf-8",
        include_str!("../../page/style.css"),
    ),
    (
        "/console/main.js",
        SCRIPT,
        include_str!("../../page/main.js"),
    ),
    (
        "/console/server.js",
        SCRIPT,
        include_str!("../../page/server.js"),
    ),
    (
        "/console/elements.js",
        SCRIPT,
        include_str!("../../page/elements.js"),
    ),
    (
        "/console/views.js",
        SCRIPT,
        include_str!("../../page/views.js"),
    ),
    (
        "/console/editor.js",
        SCRIPT,
        include_str!("../../page/editor.js"),
    ),
    (
        "/console/plan.js",
        SCRIPT,
        include_str!("../../page/plan.js"),
    ),
    (
        "/console/plan_view.js",
        SCRIPT,
        include_str!("../../page/plan_view.js"),
    ),
    (
        "/console/learn.js",
        SCRIPT,
        include_str!("../../page/learn.js"),
    ),
];

/// What a browser is told about the page and about all answers.
const HEADERS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

/// A file of the page.
pub(super) fn file(path: &str) -> Option<Answer> {
    let (_, kind, text) = FILES.iter().find(|(known, _, _)| *known == path)?;
    Some(Answer::new("200 OK", kind, text.as_bytes()))
}

/// The answer with what browsers are told.
pub(super) fn guarded(answer: Answer) -> Answer {
    HEADERS
        .iter()
        .fold(answer, |answer, (name, value)| answer.with(name, *value))
}

#[cfg(test)]
mod tests {
    use super::FILES;

    /// The policy above allows no script and no style inside of the page, and no other server.
    #[test]
    fn the_page_needs_no_other_server() {
        for (path, _, text) in FILES {
            for unwanted in ["http://", "https://", "<script>", " style=\"", "onclick="] {
                let found = text.matches(unwanted).count();
                let allowed = text.matches("http://www.w3.org/2000/svg").count();
                let allowed = if unwanted == "http://" { allowed } else { 0 };
                assert_eq!(found, allowed, "{unwanted} in {path}");
            }
        }
        let (_, _, page) = FILES[0];
        for (path, _, _) in &FILES[1..3] {
            assert!(page.contains(path), "{path}");
        }
    }
}
