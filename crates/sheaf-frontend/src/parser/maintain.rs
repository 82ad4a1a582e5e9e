//! ANALYZE, CHECK, OPTIMIZE, REPAIR and CHECKSUM TABLE, histograms, and FLUSH.

use sheaf_table::statistics::DEFAULT_BUCKETS;
use sqlparser::tokenizer::Token;

use super::lock::within;
use super::statement::{MaintenanceVerb, Statement, TableName, Thoroughness};
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    pub(super) fn maintain(&mut self) -> ParseResult<Statement> {
        let Some(verb) = self.accept_one_of(&["ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"]) else {
            return self.unexpected("a statement");
        };
        let verb = match verb {
            "ANALYZE" => MaintenanceVerb::Analyze,
            "CHECK" => return self.check_tables(),
            "OPTIMIZE" => MaintenanceVerb::Optimize,
            _ => MaintenanceVerb::Repair,
        };
        let _ = self.accept_one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.accept_one_of(&["TABLE", "TABLES"]).is_none() {
            return self.unexpected("TABLE");
        }
        let names = self.table_names()?;
        if verb == MaintenanceVerb::Optimize {
            let wait = self.lock_wait()?;
            return Ok(within(wait, Statement::Maintain { verb, names }));
        }
        if verb == MaintenanceVerb::Analyze
            && let Some(change) = self.accept_one_of(&["UPDATE HISTOGRAM", "DROP HISTOGRAM"])
        {
            return self.histograms(names, change == "UPDATE HISTOGRAM");
        }
        // How a table's files would be repaired. No table needs it.
        if verb == MaintenanceVerb::Repair {
            while self
                .accept_one_of(&["QUICK", "EXTENDED", "USE_FRM"])
                .is_some()
            {}
        }
        Ok(Statement::Maintain { verb, names })
    }

    /// The rest of CHECK TABLE.
    fn check_tables(&mut self) -> ParseResult<Statement> {
        if self.accept_one_of(&["TABLE", "TABLES"]).is_none() {
            return self.unexpected("TABLE");
        }
        let names = self.table_names()?;
        let mut thoroughness = None;
        while let Some(word) = self.accept_one_of(&[
            "FOR UPGRADE",
            "QUICK",
            "FAST",
            "MEDIUM",
            "EXTENDED",
            "CHANGED",
        ]) {
            thoroughness = thoroughness.max(Some(match word {
                "FOR UPGRADE" => Thoroughness::ForUpgrade,
                "EXTENDED" => Thoroughness::Extended,
                "QUICK" => Thoroughness::Quick,
                _ => Thoroughness::Medium,
            }));
        }
        let verb = MaintenanceVerb::Check(thoroughness.unwrap_or(Thoroughness::Medium));
        Ok(Statement::Maintain { verb, names })
    }

    pub(super) fn checksum(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        if self.accept_one_of(&["TABLE", "TABLES"]).is_none() {
            return self.unexpected("TABLE");
        }
        let names = self.table_names()?;
        let kind = self.accept_one_of(&["QUICK", "EXTENDED"]);
        Ok(Statement::ChecksumTables {
            names,
            is_quick: kind == Some("QUICK"),
        })
    }

    /// The rest of ANALYZE TABLE ... UPDATE HISTOGRAM and DROP HISTOGRAM.
    fn histograms(&mut self, mut names: Vec<TableName>, updates: bool) -> ParseResult<Statement> {
        self.expect("ON")?;
        let columns = self.list(Self::identifier)?;
        let buckets = if !updates {
            None
        } else if self.accept("WITH") {
            let buckets = self.number()?;
            self.expect("BUCKETS")?;
            Some(buckets)
        } else {
            Some(DEFAULT_BUCKETS as u64)
        };
        if self.peek("USING DATA") {
            return self.unsupported("ANALYZE TABLE ... UPDATE HISTOGRAM ... USING DATA");
        }
        match names.pop() {
            Some(table) if names.is_empty() => Ok(Statement::Histograms {
                table,
                columns,
                buckets,
            }),
            _ => self.unsupported("Changing histograms of several tables at once"),
        }
    }

    pub(super) fn flush(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let _ = self.accept_one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        let (mut status, mut optimizer_costs) = (false, false);
        let (mut slow_log, mut binary_log) = (false, false);
        let mut with_read_lock = None;
        self.list(|parser| {
            if parser.accept("STATUS") {
                status = true;
                return Ok(());
            }
            if parser.accept("OPTIMIZER_COSTS") {
                optimizer_costs = true;
                return Ok(());
            }
            if let Some(logs) = parser.accept_one_of(&["SLOW LOGS", "BINARY LOGS", "LOGS"]) {
                slow_log |= logs != "BINARY LOGS";
                binary_log |= logs != "SLOW LOGS";
                return Ok(());
            }
            if parser.accept("RELAY LOGS") {
                return parser.channel();
            }
            let known = parser.accept_one_of(&[
                "PRIVILEGES",
                "HOSTS",
                "USER_RESOURCES",
                "ENGINE LOGS",
                "ERROR LOGS",
                "GENERAL LOGS",
                "QUERY CACHE",
            ]);
            if known.is_none() {
                if parser.accept_one_of(&["TABLES", "TABLE"]).is_none() {
                    return parser.unexpected("STATUS");
                }
                let mut tables = Vec::new();
                if matches!(parser.tokens.peek_token_ref().token, Token::Word(_))
                    && !parser.peek("WITH")
                {
                    tables = parser.table_names()?;
                }
                let locks = parser.accept_one_of(&["WITH READ LOCK", "FOR EXPORT"]);
                if locks == Some("FOR EXPORT") && tables.is_empty() {
                    return parser.unexpected("WITH READ LOCK");
                }
                with_read_lock = locks.map(|_| tables);
            }
            Ok(())
        })?;
        if let Some(tables) = with_read_lock {
            return Ok(Statement::FlushWithReadLock(tables));
        }
        Ok(Statement::Flush {
            status,
            optimizer_costs,
            slow_log,
            binary_log,
        })
    }
}
