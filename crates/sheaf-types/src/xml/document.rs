//! A document from its text.
//!
//! The rules are those of MySQL's own small parser, not of XML: attributes may have no value, names may begin with a
//! dot, a document may have several outermost elements, and entities are texts.

use std::ops::Range;

/// The deepest nesting of elements.
const MAX_LEVEL: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An element; the first of a document is the root around all of them, without a name.
    Element,
    Attribute,
    Text,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// By its number; the root is its own.
    pub parent: usize,
    pub level: usize,
    /// Where its name stands in the text, or the text that it is.
    pub place: Range<usize>,
    /// All of it, with its name.
    pub whole: Range<usize>,
}

/// A document, over its text.
#[derive(Debug)]
pub struct Document<'t> {
    pub text: &'t str,
    pub nodes: Vec<Node>,
}

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongDocument {
    pub line: usize,
    pub position: usize,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lexeme {
    End,
    Comment,
    Data,
    Sign(u8),
    String,
    Name,
    Unknown,
}

impl Lexeme {
    fn shown(self) -> String {
        match self {
            Lexeme::End => "END-OF-INPUT".to_string(),
            Lexeme::Comment => "COMMENT".to_string(),
            Lexeme::Data => "CDATA".to_string(),
            Lexeme::Sign(sign) => format!("'{}'", char::from(sign)),
            Lexeme::String => "STRING".to_string(),
            Lexeme::Name => "IDENT".to_string(),
            Lexeme::Unknown => "unknown token".to_string(),
        }
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    nodes: Vec<Node>,
    /// Open nodes, the root first.
    open: Vec<usize>,
}

impl<'t> Document<'t> {
    /// # Errors
    /// What the text has where something else must stand.
    pub fn parse(text: &'t str) -> Result<Document<'t>, WrongDocument> {
        let mut reader = Reader {
            text,
            at: 0,
            nodes: Vec::new(),
            open: Vec::new(),
        };
        reader.enter(Kind::Element, 0..0, 0);
        match reader.read() {
            Ok(()) => Ok(Document {
                text,
                nodes: reader.nodes,
            }),
            Err(message) => {
                let before = &text.as_bytes()[..reader.at.min(text.len())];
                let lines = before.iter().filter(|byte| **byte == b'\n').count();
                let start = before.iter().rposition(|byte| *byte == b'\n');
                Err(WrongDocument {
                    line: lines + 1,
                    position: before.len() - start.map_or(0, |start| start + 1),
                    message,
                })
            }
        }
    }
}

impl Reader<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn starts(&self, with: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(with.as_bytes())
    }

    fn scan(&mut self) -> (Lexeme, Range<usize>) {
        while self.byte(self.at).is_some_and(is_blank) {
            self.at += 1;
        }
        let start = self.at;
        let Some(first) = self.byte(start) else {
            return (Lexeme::End, start..start);
        };
        let find = |text: &str| self.text[start..].find(text).map(|at| start + at);
        if self.starts("<!--") {
            self.at = find("-->").map_or(self.text.len(), |end| end + 3);
            return (Lexeme::Comment, start..self.at);
        }
        if self.starts("<![CDATA[") {
            return match find("]]>") {
                Some(end) => {
                    self.at = end + 3;
                    (Lexeme::Data, start + 9..end)
                }
                None => {
                    self.at = self.text.len();
                    (Lexeme::End, self.at..self.at)
                }
            };
        }
        match first {
            b'?' | b'=' | b'/' | b'<' | b'>' | b'!' => {
                self.at += 1;
                (Lexeme::Sign(first), start..self.at)
            }
            b'"' | b'\'' => {
                let rest = &self.text.as_bytes()[start + 1..];
                let end = rest.iter().position(|byte| *byte == first);
                let end = end.map_or(self.text.len(), |end| start + 1 + end);
                self.at = (end + 1).min(self.text.len());
                (Lexeme::String, start + 1..end)
            }
            first if begins_name(first) => {
                while self.byte(self.at).is_some_and(continues_name) {
                    self.at += 1;
                }
                (Lexeme::Name, start..self.at)
            }
            _ => (Lexeme::Unknown, start..start),
        }
    }

    fn enter(&mut self, kind: Kind, place: Range<usize>, start: usize) {
        let parent = self.open.last().copied().unwrap_or(0);
        self.open.push(self.nodes.len());
        self.nodes.push(Node {
            kind,
            parent,
            level: self.open.len() - 1,
            whole: start..place.end,
            place,
        });
    }

    fn value(&mut self, place: Range<usize>) {
        let parent = self.open.last().copied().unwrap_or(0);
        self.nodes.push(Node {
            kind: Kind::Text,
            parent,
            level: self.open.len(),
            whole: place.clone(),
            place,
        });
    }

    /// Ends the innermost open element, which must have this name, if one is said. Returns its number.
    fn leave(&mut self, name: Option<Range<usize>>) -> Result<usize, String> {
        let shown = |place: &Range<usize>| self.text[place.clone()].to_string();
        let Some(innermost) = self.open.last().copied().filter(|_| self.open.len() > 1) else {
            let name = name.map_or_else(String::new, |name| shown(&name));
            return Err(format!("'</{name}>' unexpected (END-OF-INPUT wanted)"));
        };
        let wanted = shown(&self.nodes[innermost].place);
        if let Some(name) = name
            && shown(&name) != wanted
        {
            let found = shown(&name);
            return Err(format!("'</{found}>' unexpected ('</{wanted}>' wanted)"));
        }
        self.open.pop();
        Ok(innermost)
    }

    fn read(&mut self) -> Result<(), String> {
        while self.at < self.text.len() {
            if self.byte(self.at) == Some(b'<') {
                self.tag()?;
                continue;
            }
            let start = self.at;
            let end = self.text[start..].find('<');
            self.at = end.map_or(self.text.len(), |end| start + end);
            self.value(start..self.at);
        }
        match self.open.len() {
            1 => Ok(()),
            _ => Err("unexpected END-OF-INPUT".to_string()),
        }
    }

    fn tag(&mut self) -> Result<(), String> {
        let start = self.at;
        match self.scan() {
            (Lexeme::Comment, _) => return Ok(()),
            (Lexeme::Data, place) => {
                self.value(place);
                return Ok(());
            }
            (Lexeme::End, _) => return Err("unexpected END-OF-INPUT".to_string()),
            _ => {}
        }
        let (mut lexeme, mut place) = self.scan();
        let (mut is_question, mut is_exclamation) = (false, false);
        match lexeme {
            Lexeme::Sign(b'/') => {
                (lexeme, place) = self.scan();
                if lexeme != Lexeme::Name {
                    return Err(format!("{} unexpected (ident wanted)", lexeme.shown()));
                }
                let left = self.leave(Some(place))?;
                (lexeme, _) = self.scan();
                return self.close(lexeme, Some(left));
            }
            Lexeme::Sign(b'!') => {
                is_exclamation = true;
                (lexeme, place) = self.scan();
            }
            Lexeme::Sign(b'?') => {
                is_question = true;
                (lexeme, place) = self.scan();
            }
            _ => {}
        }
        if lexeme != Lexeme::Name {
            return Err(format!(
                "{} unexpected (ident or '/' wanted)",
                lexeme.shown()
            ));
        }
        if self.open.len() > MAX_LEVEL {
            return Err("the document is nested too deep".to_string());
        }
        self.enter(Kind::Element, place, start);
        lexeme = self.attributes(is_exclamation)?;
        let mut left = None;
        if lexeme == Lexeme::Sign(b'/') {
            left = Some(self.leave(None)?);
            (lexeme, _) = self.scan();
        }
        if is_question {
            if lexeme != Lexeme::Sign(b'?') {
                return Err(format!("{} unexpected ('?' wanted)", lexeme.shown()));
            }
            left = Some(self.leave(None)?);
            (lexeme, _) = self.scan();
        }
        if is_exclamation {
            left = Some(self.leave(None)?);
        }
        self.close(lexeme, left)
    }

    /// What ends a tag. `left`: the element that ends with it.
    fn close(&mut self, lexeme: Lexeme, left: Option<usize>) -> Result<(), String> {
        if lexeme != Lexeme::Sign(b'>') {
            return Err(format!("{} unexpected ('>' wanted)", lexeme.shown()));
        }
        if let Some(left) = left {
            self.nodes[left].whole.end = self.at;
        }
        Ok(())
    }

    /// The attributes of a tag, and what stands behind them.
    fn attributes(&mut self, is_exclamation: bool) -> Result<Lexeme, String> {
        let (mut lexeme, mut place) = self.scan();
        loop {
            match lexeme {
                Lexeme::Name => {}
                Lexeme::String if is_exclamation => {}
                other => return Ok(other),
            }
            let is_string = lexeme == Lexeme::String;
            let before = self.at;
            let (next, _) = self.scan();
            match next {
                Lexeme::Sign(b'=') => {
                    let (value, value_place) = self.scan();
                    if !matches!(value, Lexeme::Name | Lexeme::String) {
                        return Err(format!(
                            "{} unexpected (ident or string wanted)",
                            value.shown()
                        ));
                    }
                    self.attribute(place, Some(value_place));
                }
                // Without a value. What follows is an attribute of its own.
                Lexeme::Name => {
                    self.at = before;
                    self.attribute(place, None);
                }
                Lexeme::String if is_exclamation => {}
                other => {
                    if !is_string && other != Lexeme::Unknown && !is_exclamation {
                        self.at = before;
                        self.attribute(place, None);
                        let (again, _) = self.scan();
                        return Ok(again);
                    }
                    return Ok(other);
                }
            }
            (lexeme, place) = self.scan();
        }
    }

    fn attribute(&mut self, name: Range<usize>, value: Option<Range<usize>>) {
        let start = name.start;
        let end = self.at;
        self.enter(Kind::Attribute, name, start);
        if let Some(value) = value {
            self.value(value);
        }
        if let Some(attribute) = self.open.pop() {
            self.nodes[attribute].whole.end = end;
        }
    }
}
