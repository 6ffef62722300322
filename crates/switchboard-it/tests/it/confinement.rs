//! A server cannot outlive its gateway by stopping, killing or evading the processes that end it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_it::fixture::Helper;
use switchboard_it::grove::{Grove, Moment, Role, Temper, Victims, call};
use switchboard_it::processes::{is_alive, send_signal, until, until_gone};
use switchboard_it::program::Installed;

use crate::PROGRAMS;
use crate::reaper::shell;

/// A server that sends every signal to keeper, reaper and gateway, and records each success. Then
/// it kills its own child, which must succeed.
const SIGNALS: &str = "
keeper=$PPID
reaper=$(cut -d' ' -f4 /proc/$keeper/stat)
gateway=$(cut -d' ' -f4 /proc/$reaper/stat)
for target in $keeper $reaper $gateway; do
  for signal in $SIGNALS; do
    echo \"$signal $target\" >>tried
    kill -$signal $target 2>/dev/null && echo \"$signal $target\" >>sent
  done
done
sleep 600 &
kill -KILL $! && echo child >>ended
grep NoNewPrivs /proc/self/status >privileges
exec fixture-server everything
";

const ALL: &str = "0 STOP TSTP TTIN TTOU CONT KILL TERM INT HUP QUIT ABRT SEGV USR1 USR2 ALRM";

fn with_server(script: &str, entry: Value) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("server.sh", script);
    let mut entry = entry;
    entry["command"] = json!("sh");
    entry["args"] = json!([script]);
    let config = json!({ "mcpServers": { "s": entry } });
    installed.write("switchboard/mcp.json", &config.to_string());
    installed
}

fn lines(installed: &Installed, file: &str) -> Vec<String> {
    let text = fs::read_to_string(installed.home().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn confined_server_can_signal_only_its_children() {
    if !switchboard::reaper::can_confine() {
        return;
    }
    let installed = with_server(SIGNALS, json!({ "env": { "SIGNALS": ALL } }));
    let ran = installed.run(["call", "s_echo", "text=hi"]).await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "hi"), "{ran:?}");
    assert_eq!(lines(&installed, "tried").len(), 3 * ALL.split(' ').count());
    assert_eq!(lines(&installed, "sent"), [""; 0]);
    assert_eq!(lines(&installed, "ended"), ["child"]);
}

/// Without `CAP_SYS_ADMIN`, confinement sets `no_new_privs`, which disables setuid programs.
#[tokio::test]
async fn unprivileged_confinement_disables_setuid_programs() {
    if !switchboard::reaper::can_confine() {
        return;
    }
    let check = async |entry: Value, expected: &str| {
        let installed = with_server(SIGNALS, entry);
        let unprivileged = "setpriv --securebits +noroot,+noroot_locked --inh-caps=-all \
                            --bounding-set=-all";
        let line = format!("exec {unprivileged} '{}' tools s", PROGRAMS.switchboard);
        let ran = shell(&installed, &line).output().await.unwrap();
        let [listed, said] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(listed.contains("s_echo"), "{listed}{said}");
        let sent = lines(&installed, "sent").len();
        (lines(&installed, "privileges"), sent) == (vec![format!("NoNewPrivs:\t{expected}")], 0)
    };
    assert!(check(json!({ "env": { "SIGNALS": ALL } }), "1").await);
    assert!(check(json!({ "confine": false, "env": { "SIGNALS": "" } }), "0").await);
}

#[tokio::test]
async fn confine_false_lets_a_server_signal_other_processes() {
    let installed = with_server(SIGNALS, json!({ "confine": false, "env": { "SIGNALS": "0" } }));
    let ran = installed.run(["call", "s_echo", "text=hi"]).await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "hi"), "{ran:?}");
    assert_eq!(lines(&installed, "sent"), lines(&installed, "tried"));
    assert_eq!(lines(&installed, "sent").len(), 3);
}

fn stop(grove: &Grove, roles: &[Role]) -> Vec<u32> {
    let stopped: Vec<u32> = roles.iter().flat_map(|role| grove.having(*role)).collect();
    for pid in &stopped {
        send_signal(*pid, Signal::STOP);
    }
    stopped
}

#[tokio::test]
async fn server_of_killed_gateway_ends_despite_sigstopped_helpers() {
    for roles in [&[Role::Keeper][..], &[Role::Reaper], &[Role::Reaper, Role::Keeper]] {
        let grove = Grove::new(PROGRAMS, 1, Helper::Daemon, Temper::Stubborn);
        let client = grove.reach(Moment::TreeUp).await;
        assert_eq!(stop(&grove, roles).len(), roles.len());
        grove.end(client, Victims::Gateway).await;
    }
}

#[tokio::test]
async fn removed_server_ends_despite_sigstopped_keeper() {
    let grove = Grove::new(PROGRAMS, 2, Helper::Daemon, Temper::Stubborn);
    let mut client = grove.reach(Moment::TreeUp).await;
    let first = grove.having(Role::Server);
    stop(&grove, &[Role::Keeper, Role::Reaper]);
    // Although reaper and keeper are stopped, the reaper starts another server and the keeper ends
    // its server.
    assert_eq!(call(&mut client, 1, "up").await, "up");
    grove.plant(1..2);
    until_gone(&first).await;
    assert_eq!(call(&mut client, 1, "still").await, "still");
    grove.end(client, Victims::Gateway).await;
}

/// A server that tries to lower resource limits of keeper, reaper, gateway and another process, and
/// to remove its own mark. It records each success.
const LIMITS: &str = "
keeper=$PPID
reaper=$(cut -d' ' -f4 /proc/$keeper/stat)
gateway=$(cut -d' ' -f4 /proc/$reaper/stat)
for target in $keeper $reaper $gateway $OTHER; do
  for limit in nofile=0 cpu=0 data=0 as=4096 rttime=1000000 core=0; do
    echo $limit >>tried
    prlimit --pid $target --$limit 2>/dev/null && echo \"$limit $target\" >>changed
    prlimit --pid $target --${limit%=*} >/dev/null && echo \"$limit $target\" >>read
  done
done
prlimit --rttime=1000000 true 2>/dev/null && echo mark >>changed
(ulimit -n 64 && echo own >>kept)
prlimit --nofile=64 true && echo own >>kept
exec fixture-server everything
";

#[tokio::test]
async fn confined_server_cannot_change_limits_of_other_processes() {
    if !switchboard::reaper::can_confine() {
        return;
    }
    let installed =
        with_server(LIMITS, json!({ "env": { "OTHER": std::process::id().to_string() } }));
    let ran = installed.run(["call", "s_echo", "text=hi"]).await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "hi"), "{ran:?}");
    assert_eq!(lines(&installed, "tried").len(), 24);
    assert_eq!(lines(&installed, "changed"), [""; 0]);
    assert_eq!(lines(&installed, "read").len(), 24, "limits can be read");
    assert_eq!(lines(&installed, "kept"), ["own", "own"]);
}

/// A server can write into the directory of the reaper's records, also in another home.
#[tokio::test]
async fn forged_reaper_record_ends_no_process() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Daemon, Temper::Obedient);
    let client = grove.reach(Moment::TreeUp).await;
    let installed = with_server("exec fixture-server everything\n", json!({}));
    let records = installed.home().join("switchboard/state/running");
    fs::create_dir_all(&records).unwrap();
    let space = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let innocent: Vec<u32> = grove.processes().into_iter().map(|(pid, _)| pid).collect();
    for (at, pid) in innocent.iter().enumerate() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let start = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
        for (kind, mark) in ["0", "1", "4611686018427387903"].iter().enumerate() {
            let name = format!("{space}-{}-5", 3_999_000 + 10 * at + kind);
            let path = records.join(name);
            fs::write(&path, format!("{} {mark}\n{pid} {start}\n", boot.trim())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
    for command in [&["status"][..], &["tools"]] {
        assert_eq!(installed.run(command.iter().copied()).await.code, Some(0));
        assert!(innocent.iter().all(|pid| is_alive(*pid)), "{command:?}");
    }
    grove.end(client, Victims::Gateway).await;
}

/// Each command starts a process that detaches from its server in a different way. The process
/// writes its process id.
const HELPERS: [&str; 12] = [
    "$SLEEP &",
    "setsid $SLEEP &",
    "(setsid $SLEEP &)",
    "(env -i /usr/bin/setsid /bin/sh -c \"$SLEEP\" &)",
    "(cd /; exec setsid $SLEEP </dev/null >/dev/null 2>&1 &)",
    "nohup $SLEEP >/dev/null 2>&1 &",
    "(setsid sh -c '(setsid sh -c \"$SLEEP\" &)' &)",
    "(env -i HOME=/ /usr/bin/setsid -f /bin/sh -c \"$SLEEP\")",
    "(ulimit -n 16; ulimit -c 0; exec setsid $SLEEP &)",
    "(umask 0; setsid nice $SLEEP &)",
    "(setsid perl -e '$0 = q(other); fork and exit; exec @ARGV' $SLEEP &)",
    "(trap '' TERM HUP INT; setsid $SLEEP &)",
];

fn pids(folder: &Path) -> Vec<u32> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_to_string(file.path()).ok()?.trim().parse().ok()).collect()
}

#[tokio::test]
async fn next_command_ends_server_children_of_a_killed_gateway() {
    check_helpers(&["status"], |_| {}).await;
}

#[tokio::test]
async fn next_connect_ends_orphaned_server_children_without_reaper_records() {
    check_helpers(&["connect", "tree-0"], |records| fs::remove_dir_all(records).unwrap()).await;
}

/// Kills gateway, reaper and keepers at the same time, and checks that `command` ends the orphaned
/// helpers.
async fn check_helpers(command: &[&str], spoil: impl Fn(&Path)) {
    let grove = Grove::new(PROGRAMS, 0, Helper::Session, Temper::Stubborn);
    let home = grove.installed.home();
    let folder = home.join("helpers");
    fs::create_dir(&folder).unwrap();
    let mut script = String::new();
    for (at, helper) in HELPERS.iter().enumerate() {
        let sleep = format!("sh {}/helper.sh {at}", home.display());
        script += &format!("{}\n", helper.replace("$SLEEP", &sleep));
    }
    script += "exec fixture-server everything\n";
    let helper = format!("echo $$ >{}/$1; exec sleep 600\n", folder.display());
    grove.installed.write("helper.sh", &helper);
    grove.installed.write("launcher", &script);
    grove.plant(0..1);
    let client = grove.reach(Moment::TreeUp).await;
    until("every helper runs", || pids(&folder).len() == HELPERS.len()).await;
    let helpers = pids(&folder);
    grove.kill_all_roles(client).await;
    assert!(helpers.iter().all(|pid| is_alive(*pid)), "{helpers:?}");
    let records = home.join("switchboard/state/running");
    spoil(&records);
    assert_eq!(grove.installed.run(command.iter().copied()).await.code, Some(0));
    until_gone(&helpers).await;
    grove.until_empty().await;
    assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
}
