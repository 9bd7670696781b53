//! The pool of worker threads.

use std::sync::OnceLock;
use std::thread;

/// Creates the thread pool, once: one thread per core, or fewer if `RAYON_NUM_THREADS` says so. The library itself
/// would start as many threads as the variable asks for, which can take very long.
///
/// Returns false if the system provides no threads. The calling thread then has to do the work itself.
pub fn prepare() -> bool {
    prepare_for(None)
}

/// The same for a server, whose pool compiles in the background. One core is left to the threads that answer requests.
pub fn prepare_for_server() -> bool {
    prepare_for(Some(cores().saturating_sub(1).max(1)))
}

pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// The same with at most `most` threads.
pub fn prepare_for(most: Option<usize>) -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        let threads = count(std::env::var("RAYON_NUM_THREADS").ok().as_deref(), cores());
        rayon::ThreadPoolBuilder::new()
            .num_threads(most.map_or(threads, |most| threads.min(most)))
            .build_global()
            .is_ok()
    })
}

/// The number of threads for the number that the user asked for.
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
