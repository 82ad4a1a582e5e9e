//! An archive in S3, spoken to over HTTP: `cargo test -p sheaf-archive --features s3`.
//!
//! The other side is a few lines that know four requests of S3 ("Amazon S3 API Reference": PutObject with
//! `If-None-Match`, GetObject, ListObjectsV2, DeleteObjects) and no signatures.

#![cfg(feature = "s3")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sheaf_archive::ObjectArchive;
use sheaf_storage::{HistoryId, LogArchive, LogRange, Lsn};
use url::Url;

const BUCKET: &str = "bank";

const HISTORY: HistoryId = HistoryId(0xabc);

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Serves until the process ends. Returns the port.
fn serve(objects: Objects) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(&mut stream.unwrap(), &objects);
        }
    });
    port
}

/// One request of a connection.
fn answer(stream: &mut TcpStream, objects: &Objects) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let mut length = 0;
    let mut only_new = false;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        only_new |= header == "if-none-match: *";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();

    let mut objects = objects.lock().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.trim_start_matches(&format!("/{BUCKET}"));
    let key = key.trim_start_matches('/').to_string();
    let (status, answer) = match method {
        "PUT" if only_new && objects.contains_key(&key) => ("412 Precondition Failed", Vec::new()),
        "PUT" => {
            objects.insert(key, body);
            ("200 OK", Vec::new())
        }
        "GET" if query.contains("list-type=2") => {
            let mut xml = String::from("<ListBucketResult>");
            for (key, object) in objects.iter() {
                xml += &format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-11-22T00:00:00.000Z</LastModified>\
                     <ETag>\"e\"</ETag><Size>{}</Size></Contents>",
                    object.len()
                );
            }
            xml += "<IsTruncated>false</IsTruncated></ListBucketResult>";
            ("200 OK", xml.into_bytes())
        }
        "POST" if query.contains("delete") => {
            let request = String::from_utf8(body).unwrap();
            let (_, key) = request.split_once("<Key>").unwrap();
            let (key, _) = key.split_once("</Key>").unwrap();
            objects.remove(key);
            let xml = format!("<DeleteResult><Deleted><Key>{key}</Key></Deleted></DeleteResult>");
            ("200 OK", xml.into_bytes())
        }
        "GET" => match objects.get(&key) {
            Some(object) => ("200 OK", object.clone()),
            None => ("404 Not Found", Vec::new()),
        },
        _ => ("501 Not Implemented", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"e\"\r\n\
         Last-Modified: Sun, 22 Nov 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&answer).unwrap();
}

#[test]
fn an_archive_in_s3_keeps_what_it_was_given() {
    let objects = Objects::default();
    let endpoint = format!("http://127.0.0.1:{}", serve(objects.clone()));
    let settings = [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "anything"),
        ("HOME", "/not/for/us"),
    ];
    let settings = settings.map(|(name, value)| (name.to_string(), value.to_string()));
    let url = Url::parse("s3://bank/log/main").unwrap();
    let archive = ObjectArchive::open_with(&url, settings).unwrap();
    assert_eq!(archive.ranges(HISTORY).unwrap(), []);

    let (first, second) = (Lsn(1), Lsn(70_000));
    let range = |start, end| LogRange { start, end };
    let (one, other) = (range(first, second), range(second, Lsn(80_000)));
    archive.put(HISTORY, one, &[7; 100_000]).unwrap();
    archive.put(HISTORY, other, b"bytes").unwrap();
    let mut ranges = archive.ranges(HISTORY).unwrap();
    ranges.sort();
    assert_eq!(ranges, [one, other]);
    assert_eq!(archive.get(HISTORY, one).unwrap(), [7; 100_000]);
    let name = format!("log/main/{HISTORY}/{}", other.object_name());
    assert_eq!(objects.lock().unwrap()[&name], b"bytes");

    // Once more is nothing new; something else is refused.
    archive.put(HISTORY, other, b"bytes").unwrap();
    let error = archive
        .put(HISTORY, other, b"other")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("s3://bank/{name} is there already")),
        "{error}"
    );
    assert_eq!(archive.get(HISTORY, other).unwrap(), b"bytes");
    let absent = archive
        .get(HISTORY, range(second, Lsn(90_000)))
        .unwrap_err()
        .to_string();
    assert!(absent.contains("reading s3://bank/log/main/"), "{absent}");
    archive.remove(HISTORY, one).unwrap();
    assert_eq!(archive.ranges(HISTORY).unwrap(), [other]);
}
