//! The language server, the checker and the compiler driver. Only this package deals with the protocol, JSON,
//! terminals, files and time.

pub mod by_item;
pub mod check;
pub mod command;
pub mod compile;
pub mod config;
pub mod convert;
pub mod document;
pub mod dump;
pub mod embedded;
pub mod frame;
pub mod gap;
pub mod handlers;
pub mod host;
pub mod images;
pub mod input;
pub mod lanes;
pub mod last_good;
pub mod machine;
pub mod manual;
pub mod message;
pub mod notification;
pub mod outbox;
pub mod output;
pub mod owner;
pub mod parent;
pub mod patience;
pub mod pictures;
pub mod progress;
pub mod project;
pub mod reference;
pub mod report;
pub mod server;
pub mod settings;
pub(crate) mod switches;
pub mod terminal;
pub mod threads;
pub mod transport;
pub mod variant;
pub mod workspace;
pub mod written;

use std::process::ExitCode;

/// Serves one client over standard input and output until it exits.
pub fn serve_stdio() -> ExitCode {
    threads::prepare_for_server();
    // The number of threads is set here, so that the runtime does not read it from the environment. Other threads do
    // the real work.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::say(format_args!("ptx-lsp: {error}"));
            return ExitCode::from(2);
        }
    };
    let ending = runtime.block_on(server::serve(tokio::io::stdin(), tokio::io::stdout()));
    // A plain return would wait for the blocking thread in which tokio reads standard input.
    std::process::exit(match ending {
        transport::Ending::Orderly => 0,
        transport::Ending::Abrupt => 1,
    })
}
