//! Words and signs of Rust, as far as paths need them: comments and literals are left out.

/// A piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(String),
    /// `::`
    Path,
    Sign(char),
}

pub fn tokens(text: &str) -> Vec<Token> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&begin) = text.get(at) {
        let next = text.get(at + 1).copied().unwrap_or_default();
        match begin {
            '/' if next == '/' => at = after_line(&text, at),
            '/' if next == '*' => at = after_comment(&text, at),
            '"' => at = after_string(&text, at + 1),
            '\'' => at = after_quote(&text, at),
            ':' if next == ':' => {
                tokens.push(Token::Path);
                at += 2;
            }
            _ if is_of_word(begin) => {
                let end = (at..text.len()).find(|at| !is_of_word(text[*at]));
                let end = end.unwrap_or(text.len());
                let word: String = text[at..end].iter().collect();
                let is_raw = ["r", "br", "cr"].contains(&word.as_str());
                match raw_string(&text, end) {
                    Some(after) if is_raw => at = after,
                    _ => {
                        tokens.push(Token::Word(word));
                        at = end;
                    }
                }
            }
            _ => {
                if !begin.is_whitespace() {
                    tokens.push(Token::Sign(begin));
                }
                at += 1;
            }
        }
    }
    tokens
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn after_line(text: &[char], at: usize) -> usize {
    let end = (at..text.len()).find(|at| text[*at] == '\n');
    end.unwrap_or(text.len())
}

/// Comments of this kind stand inside of each other.
fn after_comment(text: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < text.len() {
        match text.get(at..at + 2) {
            Some(['/', '*']) => {
                depth += 1;
                at += 2;
            }
            Some(['*', '/']) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn after_string(text: &[char], mut at: usize) -> usize {
    while let Some(letter) = text.get(at) {
        match letter {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// After a character, or after the quote of a lifetime.
fn after_quote(text: &[char], at: usize) -> usize {
    match text.get(at + 1..at + 3) {
        Some(['\\', _]) => {
            let end = (at + 3..text.len()).find(|at| text[*at] == '\'');
            end.unwrap_or(text.len()) + 1
        }
        Some([_, '\'']) => at + 3,
        _ => at + 1,
    }
}

/// After the raw string whose signs `#` begin at a place.
fn raw_string(text: &[char], at: usize) -> Option<usize> {
    let signs = text[at..].iter().take_while(|sign| **sign == '#').count();
    if text.get(at + signs) != Some(&'"') {
        return None;
    }
    let mut end = at + signs + 1;
    while end < text.len() {
        let closing = text[end..].iter().skip(1).take(signs);
        if text[end] == '"' && closing.filter(|sign| **sign == '#').count() == signs {
            return Some(end + 1 + signs);
        }
        end += 1;
    }
    Some(text.len())
}
