//! The pool of worker threads.

use std::sync::OnceLock;
use std::thread;

/// Makes the pool, once: a thread per core, or fewer if `RAYON_NUM_THREADS` says so. Left to itself the library starts
/// as many as that says, which can take for ever.
///
/// False if the system gives no threads: work then has to stay on the calling one.
pub fn prepare() -> bool {
    prepare_for(None)
}

/// The same for a server, whose pool compiles in the background: one core is left to the threads that answer.
pub fn prepare_for_server() -> bool {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    prepare_for(Some(cores.saturating_sub(1).max(1)))
}

/// The same with at most so many threads.
pub fn prepare_for(most: Option<usize>) -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = count(std::env::var("RAYON_NUM_THREADS").ok().as_deref(), cores);
        rayon::ThreadPoolBuilder::new()
            .num_threads(most.map_or(threads, |most| threads.min(most)))
            .build_global()
            .is_ok()
    })
}

/// How many threads, of what the user asks for.
fn count(asked: Option<&str>, cores: usize) -> usize {
    let asked = asked.and_then(|text| text.trim().parse().ok()).filter(|&count: &usize| count > 0);
    asked.map_or(cores, |asked| asked.min(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_cores() {
        let counts = [None, Some("2"), Some("100000"), Some("0"), Some("-1"), Some("x"), Some("")];
        assert_eq!(counts.map(|asked| count(asked, 8)), [8, 2, 8, 8, 8, 8, 8]);
    }
}
