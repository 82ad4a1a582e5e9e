//! CHANGE REPLICATION SOURCE TO, START REPLICA, STOP REPLICA and RESET REPLICA.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sheaf_binlog::gtid::GtidSet;
use sheaf_frontend::parser::replication::{
    FilterRule, ReplicaThreads, ReplicaUntil, ReplicationStatement, SourceChange,
};
use sheaf_types::error::codes;

use super::filter::Filter;
use super::source::{KeptSource, Password, Position};
use super::state::{Known, ThreadError, Until};
use super::{ReplicaThread, applier, lock, receiver};
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::variables::VariableValue;

impl Session {
    /// Runs a statement about the replica.
    pub(crate) fn change_replication(
        &mut self,
        statement: ReplicationStatement,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        let _control = lock(&engine.replica().control);
        match statement {
            ReplicationStatement::ChangeSource(change) => self.change_source(&change)?,
            ReplicationStatement::ChangeFilter(rules) => engine.change_filter(rules)?,
            ReplicationStatement::Start { threads, until } => {
                let until = until.map(until_of).transpose()?;
                if !engine.start_replica(threads, until, true)? {
                    let message = "Replication thread(s) for channel '' are already running.";
                    self.warnings
                        .note(codes::REPLICA_CHANNEL_WAS_RUNNING, message.to_string());
                }
            }
            ReplicationStatement::Stop(threads) => {
                if !engine.stop_replica(threads)? {
                    let message = "Replication thread(s) for channel '' are already stopped.";
                    self.warnings
                        .note(codes::REPLICA_CHANNEL_WAS_NOT_RUNNING, message.to_string());
                }
            }
            ReplicationStatement::Reset { all } => engine.reset_replica(all)?,
        }
        self.ok(sink, 0, String::new())
    }

    fn change_source(&mut self, change: &SourceChange) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        engine.check_replica_stopped()?;
        let known = engine.replica().state.get();
        let earlier = known.kept.unwrap_or_default();
        let next = earlier.changed(change)?;
        next.options.check_length()?;
        if change.user.is_some() || change.password.is_some() {
            self.warnings.note(
                codes::INSECURE_PLAIN_TEXT,
                "Sending passwords in plain text without SSL/TLS is extremely insecure."
                    .to_string(),
            );
        }
        if let Some(password) = &change.password {
            Password(password.clone()).write_file(engine.directory())?;
        }
        engine.catalog().keep_replication(Some(&next.to_kept()))?;
        engine.replica().state.change(|known| {
            known.kept = Some(next);
            if let Some(password) = &change.password {
                known.password = Password(password.clone());
            }
            known.io_error = ThreadError::default();
            known.sql_error = ThreadError::default();
            known.source_server_id = 0;
            known.source_uuid.clear();
            known.skip = 0;
        });
        Ok(())
    }
}

impl Engine {
    /// Reads what is kept of the source, and starts the threads that ran, unless they are to be left alone.
    ///
    /// # Errors
    /// What is kept cannot be read.
    pub fn begin_replication(self: &Arc<Self>, skips_start: bool) -> Result<()> {
        self.change_globals(|globals| {
            globals.set_internally("skip_replica_start", VariableValue::Bool(skips_start));
        });
        let replica = self.replica();
        let _control = lock(&replica.control);
        let Some((kept, password)) = super::read_kept(self.catalog(), self.directory())? else {
            return Ok(());
        };
        let threads = ReplicaThreads {
            io: kept.options.runs_io,
            sql: kept.options.runs_sql,
        };
        let started_by = kept.options.started_by.clone();
        if let Some(binlog) = self.binlog() {
            binlog.note_unlogged(kept.position.gtids.clone());
        }
        replica.state.change(|known| {
            known.kept = Some(kept);
            known.password = password;
        });
        let is_own = started_by == self.server_uuid();
        if is_own && !skips_start && (threads.io || threads.sql) {
            self.start_replica(threads, None, false)?;
        }
        Ok(())
    }

    /// CHANGE REPLICATION FILTER. It is kept with the source's options, so that it holds after a start, too. Error 3081
    /// while a thread runs.
    fn change_filter(&self, rules: Vec<FilterRule>) -> Result<()> {
        self.check_replica_stopped()?;
        let replica = self.replica();
        let mut next = replica.state.get().kept.unwrap_or_default();
        let filter = std::mem::take(&mut next.options.filter);
        next.options.filter = rules.into_iter().fold(filter, Filter::with);
        next.options.check_length()?;
        self.catalog().keep_replication(Some(&next.to_kept()))?;
        replica.state.change(|known| known.kept = Some(next));
        Ok(())
    }

    /// Starts threads. False: they run already. `is_kept`: the next start of the server starts them, too, but not an
    /// applier that is to stop somewhere.
    fn start_replica(
        self: &Arc<Self>,
        threads: ReplicaThreads,
        until: Option<Until>,
        is_kept: bool,
    ) -> Result<bool> {
        let replica = self.replica();
        let Some(kept) = replica
            .state
            .get()
            .kept
            .filter(|kept| !kept.options.host.is_empty())
        else {
            return Err(SqlError::new(
                codes::BAD_REPLICA,
                "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE TO",
            ));
        };
        if replica.open_link.get().is_none() {
            return Err(SqlError::not_supported_yet(
                "START REPLICA inside a program, which reaches no other servers",
            ));
        }
        let (runs_io, runs_sql) = replica.threads_running();
        let (io, sql) = (threads.io && !runs_io, threads.sql && !runs_sql);
        if is_kept {
            let sql = threads.sql && (until.is_none() || runs_sql);
            self.keep_runs(kept, ReplicaThreads { sql, ..threads }, true)?;
        }
        // The applier first: the receiver begins where it has come to.
        if sql {
            let skip = self.take_replica_skip_counter();
            replica.state.change(|known| {
                known.sql_error = ThreadError::default();
                // What an earlier start was to leave out, and has not, is over.
                known.skip = skip;
                known.until = until;
            });
            spawn(self, &replica.applier, "replica_sql", applier::apply)?;
        }
        if io {
            replica
                .state
                .change(|known| known.io_error = ThreadError::default());
            spawn(self, &replica.receiver, "replica_io", receiver::receive)?;
        }
        Ok(io || sql)
    }

    /// Stops threads. False: they do not run.
    fn stop_replica(&self, threads: ReplicaThreads) -> Result<bool> {
        let replica = self.replica();
        let (runs_io, runs_sql) = replica.threads_running();
        if threads.sql {
            replica.applier.ask_to_stop();
            replica.stop_applying();
        }
        if threads.io {
            replica.receiver.ask_to_stop();
        }
        replica.queue.wake();
        if threads.sql {
            replica.applier.join();
        }
        if threads.io {
            replica.receiver.join();
        }
        if let Some(kept) = replica.state.get().kept {
            self.keep_runs(kept, threads, false)?;
        }
        Ok(threads.io && runs_io || threads.sql && runs_sql)
    }

    /// RESET REPLICA: the place is forgotten; with `all` the source, too.
    fn reset_replica(&self, all: bool) -> Result<()> {
        self.check_replica_stopped()?;
        let replica = self.replica();
        let Some(kept) = replica.state.get().kept else {
            return Ok(());
        };
        let gtids = kept.position.gtids.clone();
        let position = Position {
            position: super::source::FIRST_POSITION,
            // They were applied, whatever becomes of their source.
            gtids,
            ..Position::default()
        };
        let next = KeptSource {
            options: match all {
                true => super::source::SourceOptions::default(),
                false => kept.options,
            },
            position,
        };
        self.catalog().keep_replication(Some(&next.to_kept()))?;
        if all {
            Password::remove_file(self.directory())?;
        }
        replica.state.change(|known| {
            let password = match all {
                true => Password::default(),
                false => known.password.clone(),
            };
            *known = Known {
                kept: Some(next),
                password,
                ..Known::default()
            };
        });
        Ok(())
    }

    /// RESET BINARY LOGS AND GTIDS: the binary log begins anew, and what was executed of other servers is forgotten.
    ///
    /// # Errors
    /// 3081 while a thread of the replica runs; those of the binary log and of the catalog.
    pub(crate) fn reset_executed(&self) -> Result<()> {
        let replica = self.replica();
        let _control = lock(&replica.control);
        let kept = replica.state.get().kept;
        if kept.is_some() {
            self.check_replica_stopped()?;
        }
        if let Some(binlog) = self.binlog() {
            binlog.reset()?;
        }
        let Some(mut kept) = kept.filter(|kept| !kept.position.gtids.is_empty()) else {
            return Ok(());
        };
        kept.position.gtids = GtidSet::default();
        self.catalog().keep_replication(Some(&kept.to_kept()))?;
        replica.state.change(|known| known.kept = Some(kept));
        Ok(())
    }

    fn keep_runs(&self, mut kept: KeptSource, threads: ReplicaThreads, runs: bool) -> Result<()> {
        let before = kept.options.clone();
        if threads.io {
            kept.options.runs_io = runs;
        }
        if threads.sql {
            kept.options.runs_sql = runs;
        }
        if runs {
            kept.options.started_by = self.server_uuid();
        }
        if kept.options == before {
            return Ok(());
        }
        let options = kept.options;
        // The position goes on while the applier runs.
        self.catalog().keep_source_options(&options.to_bytes())?;
        self.replica().state.change(|known| {
            if let Some(kept) = &mut known.kept {
                kept.options = options;
            }
        });
        Ok(())
    }

    /// Error 3081 while a thread runs.
    fn check_replica_stopped(&self) -> Result<()> {
        match self.replica().threads_running() {
            (false, false) => Ok(()),
            _ => Err(SqlError::new(
                codes::REPLICA_CHANNEL_MUST_STOP,
                "This operation cannot be performed with running replication threads; run STOP REPLICA FOR CHANNEL \
                 '' first",
            )),
        }
    }
}

/// Error 1772 for a set of GTIDs that is none.
fn until_of(until: ReplicaUntil) -> Result<Until> {
    let set_of = |text: &str| {
        let set = text.parse::<GtidSet>();
        set.map_err(|error| SqlError::new(error.code(), error.to_string()))
    };
    Ok(match until {
        ReplicaUntil::BeforeGtids(text) => Until::BeforeGtids(set_of(&text)?),
        ReplicaUntil::AfterGtids(text) => Until::AfterGtids(set_of(&text)?),
        ReplicaUntil::Place { file, position } => Until::Place { file, position },
    })
}

fn spawn(
    engine: &Arc<Engine>,
    thread: &ReplicaThread,
    name: &str,
    run: fn(&Arc<Engine>, &Arc<AtomicBool>),
) -> Result<()> {
    // What is left of one that has ended by itself.
    thread.join();
    thread.stops.store(false, Ordering::Release);
    let (engine, stops) = (Arc::clone(engine), Arc::clone(&thread.stops));
    let spawned = std::thread::Builder::new()
        .name(name.into())
        .spawn(move || run(&engine, &stops))
        .map_err(|error| SqlError::unknown(format!("no thread for the replica: {error}")))?;
    *lock(&thread.handle) = Some(spawned);
    Ok(())
}
