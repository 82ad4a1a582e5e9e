//! Prepared statements: PREPARE, EXECUTE, DEALLOCATE, and what COM_STMT_* of the protocol does in them.
//!
//! A prepared statement is its text. Executing it puts the parameters' values in the places of the `?`, as literal
//! tokens before the statement is parsed. So a parameter can stand wherever a literal can and is never read as SQL.
//!
//! Its first execution also compiles it to a [direct plan](crate::direct), if it has one, or keeps its syntax tree, if
//! it has no parameters. Later executions then parse nothing, as long as the circumstances are what they were. One of
//! them does not change: a statement runs in the database that was current at PREPARE.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sheaf_memory::kept_by;
use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::direct::{DirectPlan, Known, Spelled};
use crate::error::{Result, SqlError};
use crate::parser::statement::{PrepareSource, Statement};
use crate::parser::{self, Parameters, Parsed, ParsedStatement, scan};
use crate::session::Session;
use crate::session::circumstances::Circumstances;
use crate::session::measured::NamedStatement;
use crate::session::prepared::Prepared;
use crate::session::result::{ColumnMeta, ResultSink};
use crate::session::status::Command;
use crate::session_parts::kept::Kept;
use crate::statement::properties::{Preparing, properties_of};
use sheaf_frontend::query::SessionValues;

/// The most bytes of text that a session's prepared statements may have together.
const MAX_PREPARED_TEXT_BYTES: usize = 16 << 20;

/// What a prepared statement is counted with besides its text.
const PREPARED_BYTES: usize = 256;

/// Longer texts are parsed at each execution: what was compiled from them would take many times their memory.
const MAX_KEPT_TEXT_BYTES: usize = 64 << 10;

/// What the first execution has found out.
struct Compiled {
    circumstances: Circumstances,
    run: Run,
}

/// How a statement is run.
enum Run {
    Direct(Arc<DirectPlan>),
    /// Not direct, and the same for all executions.
    Parsed(Box<Statement>),
    /// Not direct, and parsed again with the values of its parameters.
    ByText,
}

impl Compiled {
    fn holds(&self, session: &Session) -> bool {
        session.is_still_under(&self.circumstances)
            && match &self.run {
                Run::Direct(plan) => plan.is_current(),
                Run::Parsed(_) | Run::ByText => true,
            }
    }
}

impl Session {
    pub(crate) fn add_prepared(&mut self, sql: &str) -> Result<(u32, Vec<ColumnMeta>)> {
        if sql.len() > self.variables.max_allowed_packet() {
            return Err(SqlError::net_packet_too_large());
        }
        let limit = self.engine.globals().max_prepared_statements();
        let text_bytes: usize = self
            .prepared
            .by_id
            .values()
            .map(|prepared| prepared.text.len())
            .sum();
        if self.engine.prepared_statements.load(Ordering::Relaxed) >= limit as u64 {
            return Err(SqlError::max_prepared_statements(limit as u64));
        }
        if text_bytes + sql.len() > MAX_PREPARED_TEXT_BYTES {
            return Err(SqlError::out_of_memory(&format!(
                "the prepared statements of a session have at most {MAX_PREPARED_TEXT_BYTES} bytes of text"
            )));
        }
        let memory = self.keep(PREPARED_BYTES + sql.len())?;
        let text = scan::resolve_executable_comments(sql);
        let (range, next) = scan::first_statement(&text).ok_or_else(SqlError::empty_query)?;
        if let Some((following, _)) = scan::first_statement(&text[next..]) {
            let at = next + following.start;
            return Err(SqlError::parse_error(
                &text[at..],
                1 + text[..at].matches('\n').count() as u64,
            ));
        }
        let text = match self.rewrite(&text[range.clone()]) {
            Some(rewritten) => {
                // The list of warnings was begun before.
                self.clear_warnings();
                rewritten
            }
            None => text[range].to_string(),
        };
        self.admit(&text)?;
        let (statement, parameters) = self.workers.planning().during(|| {
            parser::parse_with_parameters(&text, &self.dialect(), Parameters::Unknown)
        })?;
        let columns = self.columns_of_statement(Parsed::new(&statement, &text))?;
        let id = self.prepared.next_id();
        self.prepared.by_id.insert(
            id,
            Prepared {
                text: text.into(),
                database: self.database.as_deref().map(Arc::from),
                reading: self.reading(),
                parameters,
                memory,
                compiled: Kept::default(),
            },
        );
        self.engine
            .prepared_statements
            .fetch_add(1, Ordering::Relaxed);
        Ok((id, columns))
    }

    /// The columns of a query; statements whose result is not known before they run have none here. Error 1295 for
    /// statements about prepared statements, one of which could run itself.
    fn columns_of_statement(&self, statement: Parsed<'_, &Statement>) -> Result<Vec<ColumnMeta>> {
        match properties_of(statement.ast).preparing {
            Preparing::Query(query) => self.describe_query(statement.with(query)),
            Preparing::WithoutColumns => Ok(Vec::new()),
            Preparing::Refused => Err(SqlError::new(
                codes::UNSUPPORTED_PS,
                "This command is not supported in the prepared statement protocol yet",
            )),
            Preparing::Unsupported(what) => Err(SqlError::not_supported_yet(what)),
        }
    }

    pub(crate) fn run_prepared(
        &mut self,
        prepared: (u32, &str),
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.prepared.runs = !parameters.is_empty();
        let outcome = self.run_with_parameters(prepared, parameters, sink);
        self.prepared.runs = false;
        outcome
    }

    fn run_with_parameters(
        &mut self,
        (id, text): (u32, &str),
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        // It is used where it is: counting one's users would be noticed by all sessions that have the same plan.
        let (compiled, is_kept) = self.enter_prepared(id, text)?;
        let outcome = match compiled.as_ref().map(|compiled| &compiled.run) {
            Some(Run::Direct(plan)) => {
                self.run_direct(plan, (parameters, Spelled::AsWritten), sink)
            }
            Some(Run::Parsed(statement)) => {
                let entered = self.enter_crowd(text).and_then(|()| self.admit(text));
                let copied = entered.map(|()| {
                    let planning = self.workers.planning();
                    planning.during(|| Statement::clone(statement))
                });
                copied.and_then(|statement| {
                    self.dispatch(ParsedStatement::new(statement, text), sink)
                        .map(|()| true)
                })
            }
            Some(Run::ByText) | None => Ok(false),
        };
        // Unless it has closed itself.
        if is_kept
            && let Some(prepared) = self.prepared.by_id.get_mut(&id)
            && let Some(compiled) = compiled
        {
            prepared.compiled.put(compiled);
        }
        if outcome? {
            return Ok(());
        }
        self.enter_crowd(text)?;
        self.admit(text)?;
        let (statement, _) = self.workers.planning().during(|| {
            parser::parse_with_parameters(text, &self.dialect(), Parameters::Values(parameters))
        })?;
        self.dispatch(ParsedStatement::new(statement, text), sink)
    }

    /// Names and texts mean what they meant at PREPARE: the session has its own database back when the request has
    /// ended, and reads as `sql_mode` and `collation_connection` say by then. Returns what is known of the statement,
    /// found out anew if the circumstances have changed, and whether that may be kept. `None`: nothing is known of it.
    ///
    /// # Errors
    /// What stops the running statement.
    fn enter_prepared(&mut self, id: u32, text: &str) -> Result<(Option<Box<Compiled>>, bool)> {
        let Some(prepared) = self.prepared.by_id.get_mut(&id) else {
            return Ok((None, true));
        };
        if prepared.database.as_deref() != self.database.as_deref() {
            let database = prepared.database.as_deref().map(str::to_string);
            let own = std::mem::replace(&mut self.database, database);
            self.statement.own_database.get_or_insert(own);
        }
        let (has_parameters, reading) = (prepared.parameters > 0, prepared.reading);
        let compiled: Option<Box<Compiled>> = prepared.compiled.take_kept();
        if compiled
            .as_ref()
            .is_some_and(|compiled| compiled.holds(self))
        {
            return Ok((compiled, true));
        }
        if reading != self.reading() {
            // Plans are known by texts as the session reads them.
            self.statement.reading = Some(reading);
            return Ok((None, true));
        }
        if text.len() > MAX_KEPT_TEXT_BYTES {
            return Ok((None, true));
        }
        let (run, bytes) = kept_by(|| self.compile(text, has_parameters));
        let run = run?;
        let of_tree = match run {
            Run::Parsed(_) => bytes,
            // Plans are counted where all sessions have them.
            Run::Direct(_) | Run::ByText => 0,
        };
        let is_kept = self.keep_tree(id, of_tree) || of_tree == 0;
        let compiled = Compiled {
            circumstances: self.circumstances(),
            run,
        };
        Ok((Some(Box::new(compiled)), is_kept))
    }

    /// Whether a prepared statement may keep a syntax tree of so many bytes, until it keeps another one. Texts, user
    /// variables and the like have to be kept, so half of the memory is left to them.
    fn keep_tree(&mut self, id: u32, bytes: usize) -> bool {
        let budget = self.engine.kept_by_sessions();
        let Some(prepared) = self.prepared.by_id.get_mut(&id) else {
            return false;
        };
        let of_text = PREPARED_BYTES + prepared.text.len();
        // The tree that it had before is gone.
        prepared.memory.resize(of_text)
            && budget.taken_bytes().saturating_add(bytes) <= budget.limit_bytes() / 2
            && prepared.memory.resize(of_text + bytes)
    }

    /// # Errors
    /// What stops the running statement. What is wrong with the text is told when it runs.
    fn compile(&self, text: &str, has_parameters: bool) -> Result<Run> {
        if let (_, Known::Direct(plan)) = self.known_plan(text)? {
            return Ok(Run::Direct(plan));
        }
        if has_parameters {
            return Ok(Run::ByText);
        }
        self.admit(text)?;
        let planning = self.workers.planning();
        let parsed = planning.during(|| parser::parse_statement(text, &self.dialect()));
        self.handle.cancel_flag().check()?;
        Ok(match parsed {
            Ok(statement) => Run::Parsed(Box::new(statement)),
            Err(_) => Run::ByText,
        })
    }

    /// Unknown ids are ignored, as COM_STMT_CLOSE has no answer.
    pub fn close_prepared(&mut self, id: u32) {
        if self.prepared.by_id.remove(&id).is_some() {
            self.prepared.names.retain(|_, known| *known != id);
            self.engine
                .prepared_statements
                .fetch_sub(1, Ordering::Relaxed);
            self.handle.commands.count(Command::StmtClose);
        }
    }

    /// PREPARE name FROM …
    pub(crate) fn prepare_by_name(
        &mut self,
        name: &str,
        source: PrepareSource,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let sql = match source {
            PrepareSource::Text(text) => text,
            PrepareSource::Variable(variable) => match self.user_variable(&variable) {
                Value::Text(text) => text,
                other => other.to_string(),
            },
        };
        // A name that is used again loses its old statement even if the new one is wrong.
        if let Some(old) = self.prepared.names.remove(name) {
            self.close_prepared(old);
        }
        let (id, _) = self.add_prepared(&self.text_by_mode(&sql))?;
        self.prepared.names.insert(name.to_string(), id);
        let prepared = self.prepared.by_id.get(&id);
        self.statement.named = prepared.map(|prepared| NamedStatement {
            verb: "PREPARE",
            text: Arc::clone(&prepared.text),
            parameters: Vec::new(),
        });
        self.ok(sink, 0, "Statement prepared".to_string())
    }

    /// EXECUTE name USING @a, …
    pub(crate) fn execute_by_name(
        &mut self,
        name: &str,
        using: &[String],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let known = self
            .prepared
            .names
            .get(name)
            .and_then(|id| Some((*id, self.prepared.by_id.get(id)?)));
        let (id, prepared) =
            known.ok_or_else(|| SqlError::unknown_statement_handler(name, "EXECUTE"))?;
        if prepared.parameters != using.len() {
            return Err(SqlError::wrong_arguments("EXECUTE"));
        }
        let text = Arc::clone(&prepared.text);
        let values: Vec<Value> = using
            .iter()
            .map(|variable| self.user_variable(variable))
            .collect();
        let outcome = self.run_prepared((id, &text), &values, sink);
        self.statement.named = Some(NamedStatement {
            verb: "EXECUTE",
            text,
            parameters: values,
        });
        outcome
    }

    /// DEALLOCATE PREPARE name.
    pub(crate) fn deallocate_by_name(
        &mut self,
        name: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match self.prepared.names.remove(name) {
            Some(id) => self.close_prepared(id),
            None => {
                return Err(SqlError::unknown_statement_handler(
                    name,
                    "DEALLOCATE PREPARE",
                ));
            }
        }
        self.ok(sink, 0, String::new())
    }
}
