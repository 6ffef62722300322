//! A program that prints a secret, simulated by pipes of the test.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWriteExt, DuplexStream};

use super::*;
use crate::dial::spawn::{Confinement, Process, Promise, Started};

/// The behaviour of the program.
#[derive(Clone)]
enum Act {
    Writes(Vec<u8>, i32),
    /// The program neither ends nor closes its output.
    Hangs,
    NotThere,
}

struct Stage {
    act: Act,
    killed: Arc<AtomicBool>,
    /// The far ends of the pipes of a program that hangs.
    held: Mutex<Vec<DuplexStream>>,
}

struct Played {
    code: Option<i32>,
    killed: Arc<AtomicBool>,
}

impl Process for Played {
    fn exited(&mut self) -> Promise<'_, io::Result<ExitStatus>> {
        let code = self.code;
        Box::pin(async move {
            match code {
                Some(code) => Ok(ExitStatus::from_raw(code << 8)),
                None => std::future::pending().await,
            }
        })
    }

    fn terminate(&self) {}

    fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Spawner for Stage {
    fn start<'a>(&'a self, _: &'a Program) -> Promise<'a, io::Result<Started>> {
        Box::pin(async { self.play() })
    }
}

impl Stage {
    fn play(&self) -> io::Result<Started> {
        let (stdout, mut out) = tokio::io::duplex(2 * SECRET.output);
        let (stderr, mut err) = tokio::io::duplex(64);
        let code = match self.act.clone() {
            Act::NotThere => return Err(io::ErrorKind::NotFound.into()),
            Act::Hangs => {
                self.held.lock().unwrap().extend([out, err]);
                None
            }
            Act::Writes(bytes, code) => {
                tokio::spawn(async move {
                    // More than the pipe holds, so a program whose output is not read would hang.
                    err.write_all(&[b'e'; 1_000]).await.unwrap();
                    out.write_all(&bytes).await.ok();
                });
                Some(code)
            }
        };
        let killed = Arc::clone(&self.killed);
        Ok(Started {
            stdin: Box::new(tokio::io::sink()),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process: Box::new(Played { code, killed }),
        })
    }
}

async fn check(act: Act, expected: Result<&str, &str>) {
    let killed = Arc::new(AtomicBool::new(false));
    let held = Mutex::default();
    let stage = Stage { act: act.clone(), killed: Arc::clone(&killed), held };
    let program = Program {
        command: "topsecret".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: "/".into(),
        confinement: Confinement::default(),
    };
    let outcome = ask(Arc::new(stage), program).await;
    assert!(!format!("{outcome:?}").contains("topsecret"));
    let outcome = outcome.map(Secret::reveal).map_err(|error| error.to_string());
    assert_eq!(outcome.as_deref().map_err(String::as_str), expected);
    let was_started = !matches!(act, Act::NotThere);
    assert_eq!(killed.load(Ordering::Relaxed), was_started, "a started program is killed");
}

#[tokio::test(start_paused = true)]
async fn secret_is_the_output_of_its_command_if_valid() {
    let writes = |text: &str, code| Act::Writes(text.as_bytes().to_vec(), code);
    check(writes("s3cret\n", 0), Ok("s3cret")).await;
    check(writes(" two\nlines \r\n\n", 0), Ok(" two\nlines ")).await;
    check(writes("topsecret", 3), Err("the program failed (exit code 3)")).await;
    check(writes("\n", 0), Err("the program printed nothing")).await;
    check(Act::Writes(vec![0xff], 0), Err("the output of the program is not UTF-8")).await;
    let limit = vec![b'x'; SECRET.output];
    check(Act::Writes(limit.clone(), 0), Ok(str::from_utf8(&limit).unwrap())).await;
    let over = "the output of the program is larger than 1048576 bytes";
    check(Act::Writes(vec![b'x'; SECRET.output + 1], 0), Err(over)).await;
    check(Act::NotThere, Err("the program cannot be started")).await;
}

#[tokio::test(start_paused = true)]
async fn hanging_secret_program_is_killed_after_ten_seconds() {
    let began = tokio::time::Instant::now();
    check(Act::Hangs, Err("the program did not exit within 10 s")).await;
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}
