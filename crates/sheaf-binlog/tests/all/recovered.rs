//! What is found of files that were cut or damaged.

use sheaf_binlog::event::{EventHeader, GtidLog, Query};
use sheaf_binlog::file::{BinlogFile, Transaction};
use sheaf_binlog::gtid::{Gtid, Uuid};
use sheaf_binlog::recovery::{Recovered, recover};

use crate::cases::{self, file_of};

/// A file without much in it, and what is found of it if it ends behind the start or behind one of its transactions.
fn file_and_ends() -> (Vec<u8>, Vec<Recovered>) {
    let cases: Vec<_> = cases::all()
        .into_iter()
        .filter(|case| !case.name.contains("documents"))
        .collect();
    let ends = (0..=cases.len()).map(|count| {
        let whole = file_of(&cases[..count]);
        recover(&whole[..]).unwrap().expect("a file")
    });
    (file_of(&cases), ends.collect())
}

#[test]
fn what_is_whole_is_found_of_a_file_that_was_cut_anywhere() {
    let (file, ends) = file_and_ends();
    for (count, end) in (0..).zip(&ends) {
        assert!(!end.is_closed);
        assert_eq!(end.last.map_or(0, Gtid::number), count);
    }
    let start = ends[0].end as usize;
    assert_eq!(ends.last().map(|last| last.end), Some(file.len() as u64));
    // Everywhere around the ends, and here and there between them.
    let is_near = |cut: usize| ends.iter().any(|end| cut.abs_diff(end.end as usize) < 3);
    for cut in (0..=file.len()).filter(|cut| cut % 61 == 0 || is_near(*cut)) {
        let found = recover(&file[..cut]).unwrap();
        match cut < start {
            true => assert_eq!(found, None, "cut at {cut}"),
            false => {
                let expected = ends.iter().rfind(|end| end.end <= cut as u64);
                assert_eq!(found.as_ref(), expected, "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_damaged_byte_ends_what_is_found() {
    let (file, ends) = file_and_ends();
    let start = ends[0].end as usize;
    for place in (start..file.len()).step_by(67) {
        let mut damaged = file.clone();
        damaged[place] ^= 1 << (place % 8);
        let expected = ends.iter().rfind(|end| end.end <= place as u64);
        assert_eq!(
            recover(&damaged[..]).unwrap().as_ref(),
            expected,
            "byte {place}"
        );
    }
}

#[test]
fn a_file_goes_on_where_it_was_cut() {
    let (mut file, ends) = file_and_ends();
    let end = &ends[3];
    file.truncate(end.end as usize);
    let mut resumed = BinlogFile::resume(file, end.end);
    let header = EventHeader::new(1, 9);
    let gtid = Gtid::new(Uuid([7; 16]), 4).unwrap();
    let mut transaction = Transaction::new();
    transaction.push(
        &header,
        &Query::new("db", "DROP TABLE t", Default::default()),
    );
    let log = GtidLog::new(gtid)
        .with_statements()
        .committed(5, 80_099)
        .originally_committed(4, 80_400);
    resumed.append(&header, log, transaction).unwrap();
    let position = resumed.position();
    let found = recover(&resumed.into_inner()[..]).unwrap().unwrap();
    assert_eq!((found.end, found.last), (position, Some(gtid)));
    assert_eq!(found.gtids.to_string(), format!("{}:1-4", Uuid([7; 16])));
}

#[test]
fn files_of_mysql_are_read_to_their_end() {
    let rows: &[u8] = include_bytes!("../golden/rows.binlog");
    let first = recover(rows).unwrap().unwrap();
    assert!(first.is_closed);
    assert_eq!(first.end, rows.len() as u64);
    let closed: &[u8] = include_bytes!("../golden/closed.binlog");
    let second = recover(closed).unwrap().unwrap();
    assert!(second.is_closed);
    assert_eq!((second.end, second.last), (closed.len() as u64, None));
    assert_eq!(
        second.gtids, first.gtids,
        "it begins with what the first one has"
    );
}
