//! Tests that nothing of a child is left after its end, its drop, and the end of all children.

use std::time::{Duration, Instant};

use jaato_process::{Exit, GroupSignal, ProcessError};

use crate::{
    assert_all_end, is_process_alive, new_supervisor, read_all, read_pids, script_command,
};

/// Ways in which a process leaves its command. Each script prints the process id of a stray.
const STRAYS: [&str; 6] = [
    "sleep 300 & echo $!",
    "(sleep 300 & echo $!)",
    "setsid sh -c 'echo $$; exec sleep 300' &",
    "setsid -f sh -c 'echo $$; exec sleep 300'",
    "(setsid sh -c '(sleep 300 & echo $!)' &)",
    "env -i /usr/bin/setsid -f /bin/sh -c '(/bin/sleep 300 & echo $!)'",
];

/// Returns all of them, followed by a command that keeps running.
fn strays_and_wait() -> String {
    format!("{}\nexec sleep 300", STRAYS.join("\n"))
}

#[tokio::test]
async fn every_kind_of_stray_process_ends_with_the_command() {
    let supervisor = new_supervisor();
    for way in STRAYS {
        let mut child =
            supervisor.spawn(script_command(&format!("{way}\nexec sleep 300"))).await.unwrap();
        let pid = read_pids(&mut child, 1).await[0];
        assert!(is_process_alive(pid) && is_process_alive(child.pid()), "{way}");
        child.end().await.unwrap();
        assert!(!is_process_alive(pid) && !is_process_alive(child.pid()), "left behind by: {way}");
        assert_eq!(child.wait().await.unwrap(), Exit::Signal(15));
    }
}

#[tokio::test]
async fn every_kind_of_stray_process_can_be_ended_after_the_command() {
    let supervisor = new_supervisor();
    for way in STRAYS {
        let mut child = supervisor.spawn(script_command(way)).await.unwrap();
        let pid = read_pids(&mut child, 1).await[0];
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        let names: Vec<_> = child.leftovers().await.unwrap().into_iter().collect();
        assert!(names.iter().any(|leftover| leftover.pid == pid), "{way}: {names:?}");
        child.end().await.unwrap();
        assert!(!is_process_alive(pid), "left behind by: {way}");
        assert_eq!(child.leftovers().await.unwrap(), []);
    }
}

#[tokio::test]
async fn dropping_a_child_ends_all_its_processes_and_no_others() {
    let supervisor = new_supervisor();
    let bystander = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    let mut child = supervisor.spawn(script_command(&strays_and_wait())).await.unwrap();
    let mut pids = read_pids(&mut child, STRAYS.len()).await;
    pids.push(child.pid());
    drop(child);
    assert_all_end(&pids);
    assert!(is_process_alive(bystander.pid()));
}

#[tokio::test]
async fn dropping_the_supervisor_ends_everything() {
    let supervisor = new_supervisor();
    let mut child = supervisor.spawn(script_command(&strays_and_wait())).await.unwrap();
    let mut pids = read_pids(&mut child, STRAYS.len()).await;
    pids.extend([child.pid(), supervisor.guardian_pid().unwrap()]);
    drop(supervisor);
    assert_all_end(&pids);
    assert!(matches!(child.wait().await, Err(ProcessError::GuardianLost)));
}

#[tokio::test]
async fn end_all_ends_every_process_and_a_later_child_can_start() {
    let supervisor = new_supervisor();
    let mut child = supervisor.spawn(script_command(&strays_and_wait())).await.unwrap();
    let mut pids = read_pids(&mut child, STRAYS.len()).await;
    let mut released = supervisor.spawn(script_command("sleep 300 & echo $!")).await.unwrap();
    pids.extend(read_pids(&mut released, 1).await);
    assert_eq!(released.wait().await.unwrap(), Exit::Code(0));
    released.release().await.unwrap();
    let guardian = supervisor.guardian_pid().unwrap();
    supervisor.end_all().await.unwrap();
    pids.push(child.pid());
    assert_eq!(pids.iter().filter(|pid| is_process_alive(**pid)).count(), 0, "{pids:?}");
    assert_all_end(&[guardian]);
    supervisor.end_all().await.unwrap();
    let mut next = supervisor.spawn(script_command("echo again")).await.unwrap();
    assert_eq!(read_all(&mut next).await, "again\n");
}

#[tokio::test]
async fn released_processes_run_until_the_supervisor_is_dropped() {
    let supervisor = new_supervisor();
    let mut child = supervisor
        .spawn(script_command("setsid -f sh -c 'echo $$; exec sleep 300'"))
        .await
        .unwrap();
    let pids = read_pids(&mut child, 1).await;
    child.release().await.unwrap();
    // Another child's whole life, which gives a wrong keeper enough time to end it.
    let other = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    other.end().await.unwrap();
    assert!(is_process_alive(pids[0]));
    drop(supervisor);
    assert_all_end(&pids);
}

#[tokio::test]
async fn command_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let supervisor = new_supervisor();
    let text = "trap '' TERM; echo $$; while :; do sleep 300; done";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    read_pids(&mut child, 1).await;
    let start = Instant::now();
    child.end().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(50), "killed after {:?}", start.elapsed());
    assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
}

#[tokio::test]
async fn command_that_cleans_up_within_the_grace_period_is_not_killed() {
    let supervisor = new_supervisor();
    let text = "trap 'echo bye; exit 4' TERM; echo $$; while :; do read line <&3; done";
    let (_near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = script_command(text);
    command.descriptor3 = Some(far.into());
    let mut child = supervisor.spawn(command).await.unwrap();
    read_pids(&mut child, 1).await;
    child.end().await.unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Code(4));
    assert_eq!(read_all(&mut child).await, "bye\n");
}

#[tokio::test]
async fn each_process_receives_sigterm_only_once() {
    let supervisor = new_supervisor();
    let text = "trap 'echo asked' TERM; echo $$; while :; do read line <&3; done";
    let (_near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = script_command(text);
    command.descriptor3 = Some(far.into());
    let mut child = supervisor.spawn(command).await.unwrap();
    read_pids(&mut child, 1).await;
    child.end().await.unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
    assert_eq!(read_all(&mut child).await, "asked\n");
}

#[tokio::test]
async fn a_stopped_tree_ends_too() {
    let supervisor = new_supervisor();
    let text = "sleep 300 & echo $!; kill -STOP $!; kill -STOP $$";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    let pid = read_pids(&mut child, 1).await[0];
    child.end().await.unwrap();
    assert!(!is_process_alive(pid) && !is_process_alive(child.pid()));
}

#[tokio::test]
async fn a_tree_that_keeps_forking_ends() {
    let supervisor = new_supervisor();
    let text = "echo $$; f() { setsid sh -c 'sleep 0.01' & }; while :; do f; f; done";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    read_pids(&mut child, 1).await;
    child.end().await.unwrap();
    assert_eq!(child.leftovers().await.unwrap(), []);
}

#[tokio::test]
async fn signal_reaches_the_whole_group_while_a_wait_is_pending() {
    let supervisor = new_supervisor();
    let text = "trap 'echo caught; exit 5' INT; sleep 300 & echo $!; wait";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    let pid = read_pids(&mut child, 1).await[0];
    let (exit, sent) = tokio::join!(child.wait(), child.signal(GroupSignal::Interrupt));
    sent.unwrap();
    assert_eq!(exit.unwrap(), Exit::Code(5));
    child.signal(GroupSignal::Kill).await.unwrap();
    assert_all_end(&[pid]);
    child.signal(GroupSignal::Kill).await.unwrap();
}

#[tokio::test]
async fn waits_and_leftover_queries_may_run_concurrently_and_be_dropped() {
    let supervisor = new_supervisor();
    let mut child =
        supervisor.spawn(script_command("sleep 300 & echo $!; read line")).await.unwrap();
    let pid = read_pids(&mut child, 1).await[0];
    let mut child =
        supervisor.spawn(script_command("sleep 300 & echo $!; exec sleep 300")).await.unwrap();
    let other = read_pids(&mut child, 1).await[0];
    assert_ne!(pid, other);
    {
        let waiting = child.wait();
        tokio::pin!(waiting);
        // This one reads for all, and is then dropped while another's answer is pending.
        tokio::select! {
            biased;
            exit = &mut waiting => panic!("ended: {exit:?}"),
            found = child.leftovers() => assert_eq!(found.unwrap()[0].pid, other),
        }
    }
    let (first, second, ended) = tokio::join!(child.wait(), child.wait(), child.end());
    ended.unwrap();
    assert_eq!((first.unwrap(), second.unwrap()), (Exit::Signal(15), Exit::Signal(15)));
}

#[tokio::test]
async fn unpolled_wait_does_not_block_the_end_of_a_child() {
    let supervisor = new_supervisor();
    let child = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    let mut wait = Box::pin(child.wait());
    assert!(poll_once(&mut wait).await.is_none());
    let ended = tokio::time::timeout(Duration::from_secs(10), child.end()).await;
    ended.expect("it waits for who is not polled").unwrap();
    assert_eq!(wait.await.unwrap(), Exit::Signal(15));
}

/// Polls once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}
