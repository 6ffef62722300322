//! Many processes change the same files while some of them are killed: no finished update may be
//! lost, and no file may be partly written.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use serde_json::{Value, json};
use switchboard::config::edit::value_at;
use switchboard::config::server::ServerEntry;
use switchboard::config::trust::{TrustHash, trust_hash};
use switchboard::demo::Demo;
use switchboard::edit::{EditEffect, Editor, Existing, NewServer, Scope};
use switchboard::load::{LoadOptions, load};
use switchboard::name::ServerName;
use switchboard::paths::Paths;
use switchboard::request::Request;
use switchboard::trust::TrustStore;
use switchboard::{Environment, Gateway, Headless};

/// A file with comments and trailing commas, in which every writer has its own entry.
const CONFIG: &str = "{\n  // Written by many.\n  \"mcpServers\": {\n    \
    \"cached\": { \"command\": \"cached-mcp\" }, // the one that is listed\n  },\n}\n";

/// Of ten updates, one also writes an approval, and another one a cached listing.
const PERIOD: u32 = 10;
const APPROVES: u32 = 3;
const LISTS: u32 = 7;

/// The number of writers and updates, and the interval between kills.
#[derive(Clone, Copy, Debug)]
pub struct WriterPlan {
    pub writers: u32,
    pub updates: u32,
    /// The maximum number of updates, of all writers, between two kills.
    pub updates_per_kill: u32,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterFigures {
    pub updates: u32,
    pub kills: u32,
}

/// Runs the writers in the new home `home`. `program` is the binary `soak`. Panics if an update is
/// lost or a file is invalid.
pub fn update_concurrently(program: &Path, home: &Path, plan: WriterPlan) -> WriterFigures {
    let world = World::at(home);
    fs::create_dir_all(&world.paths.config).expect("a directory can be made");
    fs::write(world.paths.user_config(), CONFIG).expect("a file can be written");
    let processes = WriterProcesses {
        writers: (0..plan.writers).map(|_| Mutex::new(None)).collect(),
        progress: Mutex::new(Progress::default()),
        changed: Condvar::new(),
    };
    let kills = std::thread::scope(|scope| {
        for writer in 0..plan.writers {
            let processes = &processes;
            scope.spawn(move || {
                processes.restart_until_finished(program, home, writer, plan.updates)
            });
        }
        processes.kill_some(&world, plan)
    });
    world.inspect(plan);
    WriterFigures { updates: plan.writers * plan.updates, kills }
}

/// One writer: counts its own entry from `first` to `last`, and prints each finished update.
pub fn write(home: &Path, writer: u32, first: u32, last: u32) -> io::Result<()> {
    let world = World::at(home);
    for update in first..=last {
        let before = world.set_counter(writer, update);
        // The previous update was finished, so it must be in the file. Only the update during which
        // an earlier process was killed may be missing.
        let at_restart = update == first && before == Some(update);
        if before.unwrap_or(0) + 1 != update && !at_restart {
            return Err(io::Error::other(format!("{writer} finds {before:?} before {update}")));
        }
        match update % PERIOD {
            APPROVES => world.approve(writer, update),
            LISTS => world.list()?,
            _ => {}
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{update}")?;
        out.flush()?;
    }
    Ok(())
}

/// The writer processes and their progress.
struct WriterProcesses {
    writers: Vec<Mutex<Option<Child>>>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    updates: u32,
    finished: u32,
}

impl WriterProcesses {
    /// Restarts a writer until it has finished.
    fn restart_until_finished(&self, program: &Path, home: &Path, writer: u32, last: u32) {
        let _finished = FinishedOnDrop(self);
        let mut done = 0;
        while done < last {
            let mut child = start(program, home, [writer, done + 1, last]);
            let lines = BufReader::new(child.stdout.take().expect("a pipe was asked for")).lines();
            *lock(&self.writers[writer as usize]) = Some(child);
            for line in lines.map_while(Result::ok) {
                // A short write to a pipe is atomic, so no number is cut.
                done = line.parse().expect("a writer says numbers");
                lock(&self.progress).updates += 1;
                self.changed.notify_all();
            }
            let mut child =
                lock(&self.writers[writer as usize]).take().expect("it was just started");
            let status = child.wait().expect("a child can be waited for");
            assert!(status.code().is_none_or(|code| code == 0), "writer {writer}: {status}");
        }
    }

    /// Kills random writers at random times.
    fn kill_some(&self, world: &World, plan: WriterPlan) -> u32 {
        let mut kills = 0;
        let mut next = 0;
        loop {
            next += random_below(plan.updates_per_kill) + 1;
            let progress = lock(&self.progress);
            let waited = self.changed.wait_while(progress, |progress| {
                progress.updates < next && progress.finished < plan.writers
            });
            let progress = waited.unwrap_or_else(PoisonError::into_inner);
            if progress.finished == plan.writers {
                return kills;
            }
            drop(progress);
            let victim = random_below(plan.writers) as usize;
            if let Some(child) = lock(&self.writers[victim]).as_mut() {
                child.kill().expect("a child can be killed until it is waited for");
                kills += 1;
            }
            world.config();
        }
    }
}

/// Counts a writer as finished when dropped, even after a panic.
struct FinishedOnDrop<'f>(&'f WriterProcesses);

impl Drop for FinishedOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.0.progress).finished += 1;
        self.0.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A random number below `limit`, from the random keys of the hasher.
fn random_below(limit: u32) -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) % u64::from(limit.max(1))) as u32
}

#[expect(
    clippy::disallowed_methods,
    reason = "the writers are processes, which no Spawner may own"
)]
fn start(program: &Path, home: &Path, numbers: [u32; 3]) -> Child {
    let mut command = Command::new(program);
    command.arg("write").arg(home).args(numbers.map(|number| number.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the writer starts")
}

/// The files of a run.
struct World {
    home: PathBuf,
    environment: Environment,
    paths: Paths,
}

impl World {
    fn at(home: &Path) -> World {
        let text = home.to_string_lossy();
        let own = home.join("switchboard");
        let own = own.to_string_lossy();
        let environment = Environment::made_of([("HOME", &text), ("SWITCHBOARD_HOME", &own)], home);
        let paths = Paths::of(&environment);
        World { home: home.to_path_buf(), environment, paths }
    }

    fn options(&self) -> LoadOptions {
        LoadOptions { project: self.home.clone(), ..LoadOptions::default() }
    }

    /// The user's configuration file, which must always parse.
    fn config(&self) -> Value {
        let text = fs::read_to_string(self.paths.user_config()).expect("the file is there");
        assert!(text.starts_with("{\n  // Written by many.\n"), "torn: {text}");
        value_at(&text, &[]).expect("the file parses").expect("the file is not empty")
    }

    /// Sets the counter and returns its previous value.
    fn set_counter(&self, writer: u32, update: u32) -> Option<u32> {
        let entry = json!({ "command": "counter", "args": [update.to_string()] });
        let name = ServerName::new(&counter(writer)).expect("a plain name");
        let server = NewServer { name, entry: entry.as_object().cloned().unwrap_or_default() };
        let editor = Editor::new(&self.environment, &self.paths, self.options());
        let edited = editor
            .add(Scope::User, &[server], Existing::Replace, EditEffect::Written)
            .expect("the file can be changed");
        let args = value_at(&edited.before, &["mcpServers", &counter(writer), "args"]);
        let args = args.expect("the file parses");
        args.map(|args| args[0].as_str().and_then(|count| count.parse().ok()).expect("a counter"))
    }

    fn approve(&self, writer: u32, update: u32) {
        let store = TrustStore::at(self.paths.trust());
        let approved = store.approve(&hash(writer, update), &counter(writer), &self.home);
        approved.expect("the approval can be written");
    }

    /// Lists a server again, which writes the cache.
    fn list(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let loaded =
            load(&self.environment, &self.paths, &self.options()).map_err(io::Error::other)?;
        runtime.block_on(async {
            let gateway = Gateway::builder(self.environment.clone())
                .config(loaded.config)
                .server("cached", Demo)
                .on_demand()
                .build();
            let connect = Request::Connect { server: "cached".to_owned() };
            let listed = gateway.session(Headless).handle(connect).await;
            gateway.shutdown().await;
            listed.map(|_| ()).map_err(io::Error::other)
        })
    }

    /// Checks the files as the next start reads them.
    fn inspect(&self, plan: WriterPlan) {
        let loaded = load(&self.environment, &self.paths, &self.options()).expect("it loads");
        let problems = &loaded.config.diagnostics;
        assert!(problems.is_empty() && loaded.trust_problem.is_none(), "{problems:?}");
        let approved = TrustStore::at(self.paths.trust()).approvals().expect("approvals read");
        for writer in 0..plan.writers {
            let count = &self.config()["mcpServers"][counter(writer)]["args"][0];
            assert_eq!(*count, json!(plan.updates.to_string()), "writer {writer}");
            for update in (1..=plan.updates).filter(|update| update % PERIOD == APPROVES) {
                assert!(approved.cover(&hash(writer, update)), "{writer} approved {update}");
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let gateway = Gateway::builder(self.environment.clone()).config(loaded.config);
            let gateway = gateway.on_demand().build();
            let server = ServerName::new("cached").expect("a plain name");
            let shelf = gateway
                .catalog()
                .shelves()
                .find(|(name, _)| **name == server)
                .map(|(_, shelf)| shelf.clone());
            assert!(shelf.is_some_and(|shelf| shelf.listing().is_some()), "the listing was kept");
            gateway.shutdown().await;
        });
        let mut left = Vec::new();
        leftovers(&self.home, &mut left);
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

fn counter(writer: u32) -> String {
    format!("writer-{writer}")
}

fn hash(writer: u32, update: u32) -> TrustHash {
    trust_hash(&counter(writer), &ServerEntry::default(), &update.to_string(), &[])
}

/// Collects files that are neither known nor locks.
fn leftovers(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of ours").flatten() {
        let path = entry.path();
        if path.is_dir() {
            leftovers(&path, found);
        } else if !["json", "lock", "listing", "pins", "key"]
            .iter()
            .any(|kind| path.extension().is_some_and(|extension| extension == *kind))
        {
            found.push(path);
        }
    }
}
