//! `sheaf prune`: takes out of an archive of the log what no backup needs any more.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sheaf::existing_archive;
use sheaf_cli::size::format_size;
use sheaf_storage::archive::prune;
use sheaf_storage::backup_info;

#[derive(Debug, Args)]
pub struct PruneArguments {
    /// Where the server's log was archived to.
    #[arg(long, value_name = "DIR-or-URL")]
    archive: String,
    /// The folder of the oldest backup that shall be of use; what only older ones need is removed.
    #[arg(long, value_name = "DIR")]
    oldest_backup: PathBuf,
}

pub fn run(arguments: &PruneArguments) -> Result<ExitCode, Box<dyn Error>> {
    let oldest = backup_info(&arguments.oldest_backup)?;
    let pruned = prune(&*existing_archive(&arguments.archive)?, &oldest)?;
    println!(
        "{}: {} objects of history {} removed, {} of log; {} and younger backups can be restored",
        arguments.archive,
        pruned.objects,
        oldest.history,
        format_size(pruned.log_bytes as usize),
        arguments.oldest_backup.display()
    );
    Ok(ExitCode::SUCCESS)
}
