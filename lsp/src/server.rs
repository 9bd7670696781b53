//! The protocol. Each handler posts one event to the owner and waits for its answer. Handlers compute nothing
//! themselves.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::document::Encoding;
use crate::handlers::diagnostic::LastAnswer;
use crate::handlers::pictures::PicturesParams;
use crate::handlers::reference::ComparisonParams;
use crate::handlers::sass_difference::SassDifferenceParams;
use crate::handlers::sass_view::{Place, SassViewParams, SassViewResult};
use crate::handlers::{self, explain};
use crate::lanes::Lanes;
use crate::outbox::Outbox;
use crate::owner::{ClientAbilities, Event, Owner, Snapshot};
use crate::parent::parent;
use crate::settings::Settings;
use crate::transport::{Ending, Transport};
use crate::workspace;
use crate::written::{self, Written};
use ptx_analysis::{CancellationToken, catch_cancelled};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::lsp_types::*;
use tower_lsp::{Client, LanguageServer, LspService};

/// How long the server waits at its end for the client to read the remaining messages.
const DRAIN: Duration = Duration::from_secs(1);

pub struct Backend {
    client: Client,
    events: Sender<Event>,
    /// The queue of events. The owner takes it when it starts, at `initialize`.
    queue: Mutex<Option<Receiver<Event>>>,
    outbox: Outbox,
    lanes: Arc<Lanes>,
    settings: Arc<Settings>,
    /// The client can be asked to report changed files.
    tells_about_files: AtomicBool,
    /// The client answers requests for its settings.
    gives_settings: AtomicBool,
    /// The client can be asked to report changes of its settings.
    tells_about_settings: AtomicBool,
    creates_files: AtomicBool,
    takes_snippets: AtomicBool,
    last_answer: LastAnswer,
    /// The encoding agreed with the client at `initialize`.
    encoding: OnceLock<Encoding>,
}

/// Serves one client over the given streams until the client exits, disconnects or dies.
pub async fn serve(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Ending {
    let (events, queue) = channel();
    let outbox = Outbox::new(output);
    let lanes = Arc::new(Lanes::default());
    let (parent, watch) = parent();
    let (service, socket) = LspService::build(|client| Backend {
        settings: Arc::new(Settings::new(client.clone(), events.clone())),
        tells_about_files: AtomicBool::new(false),
        gives_settings: AtomicBool::new(false),
        tells_about_settings: AtomicBool::new(false),
        creates_files: AtomicBool::new(false),
        takes_snippets: AtomicBool::new(false),
        last_answer: LastAnswer::default(),
        encoding: OnceLock::new(),
        client,
        events: events.clone(),
        queue: Mutex::new(Some(queue)),
        outbox: outbox.clone(),
        lanes: lanes.clone(),
    })
    .custom_method("ptx/sassView", Backend::sass_view)
    .custom_method("ptx/stages", Backend::stages)
    .custom_method("ptx/sassDifference", Backend::sass_difference)
    .custom_method("ptx/compareTargets", Backend::compare_targets)
    .custom_method("ptx/pictures", Backend::pictures)
    .custom_method("ptx/reasons", Backend::reasons)
    .custom_method("ptx/reference", Backend::reference)
    .finish();
    let transport = Transport::new(service, outbox.clone(), events.clone(), lanes, parent);
    let ending = tokio::select! {
        ending = transport.run(input, socket) => ending,
        () = watch.gone() => Ending::Abrupt,
    };
    let _ = events.send(Event::Shutdown);
    // Do not wait for a client that has stopped reading.
    let _ = tokio::time::timeout(DRAIN, outbox.drained()).await;
    ending
}

/// Cancels the work of a request when its handler is dropped. The transport drops it on `$/cancelRequest`.
struct CancelOnDrop(Arc<OnceLock<CancellationToken>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = self.0.get() {
            token.cancel();
        }
    }
}

impl Backend {
    /// Runs `query` on a snapshot of the document. Returns the default answer if the document is not open. If the
    /// document changes in between, returns the error "content modified", after which clients ask again.
    async fn read<T: Default + Send + 'static>(
        &self,
        uri: Url,
        query: impl FnOnce(&Snapshot) -> T + Clone + Send + 'static,
    ) -> Result<T> {
        let ask = || self.ask(uri.clone(), query.clone());
        self.lanes.run(&uri, ask).await.unwrap_or_else(|| Err(Error::content_modified()))
    }

    /// As [`Self::read`], for an answer that may be long: the worker that computes the answer also serializes it.
    async fn write<R>(
        &self,
        uri: Url,
        query: impl FnOnce(&Snapshot) -> Option<Written> + Clone + Send + 'static,
    ) -> Result<Option<R>> {
        if let Some(answer) = self.read(uri, query).await? {
            written::leave(answer);
        }
        Ok(None)
    }

    /// Runs `query` once. Returns `None` if a write to any document cancelled it.
    async fn ask<T: Default + Send + 'static>(
        &self,
        uri: Url,
        query: impl FnOnce(&Snapshot) -> T + Send + 'static,
    ) -> Option<Result<T>> {
        // If the client is gone, the request runs anyway.
        self.outbox.room().await;
        let (sender, receiver) = oneshot::channel();
        let token = Arc::new(OnceLock::new());
        let job = Box::new(move |snapshot: Option<Snapshot>| {
            if sender.is_closed() {
                return;
            }
            let answer = match snapshot {
                None => Ok(T::default()),
                Some(snapshot) => {
                    let answer = catch_cancelled(AssertUnwindSafe(|| query(&snapshot)));
                    // A held snapshot blocks every write.
                    drop(snapshot);
                    answer
                }
            };
            let _ = sender.send(answer);
        });
        let event = Event::Read { uri, job, token: token.clone() };
        if self.events.send(event).is_err() {
            return Some(Err(Error::internal_error()));
        }
        let _guard = CancelOnDrop(token);
        match receiver.await {
            Ok(Ok(value)) => Some(Ok(value)),
            Ok(Err(_cancelled)) => None,
            Err(_panicked) => Some(Err(Error::internal_error())),
        }
    }

    async fn reference(&self, params: ComparisonParams) -> Result<Option<serde_json::Value>> {
        let uri = params.text_document.uri.clone();
        self.read(uri, move |s| handlers::reference::handle(s, &params)).await
    }

    async fn sass_view(&self, params: SassViewParams) -> Result<Option<SassViewResult>> {
        let uri = params.place.text_document.uri.clone();
        let answer = self.read(uri, move |s| Some(handlers::sass_view::handle(s, &params))).await?;
        answer.unwrap_or(Ok(None)).map_err(Error::invalid_params)
    }

    async fn stages(&self, _: serde_json::Value) -> Result<serde_json::Value> {
        Ok(handlers::sass_view::stages())
    }

    async fn sass_difference(&self, params: SassDifferenceParams) -> Result<Option<serde_json::Value>> {
        let uri = params.place.text_document.uri.clone();
        let answer = self.read(uri, move |s| Some(handlers::sass_difference::handle(s, &params))).await?;
        answer.unwrap_or(Ok(None)).map_err(Error::invalid_params)
    }

    async fn compare_targets(&self, place: Place) -> Result<Option<serde_json::Value>> {
        let uri = place.text_document.uri.clone();
        self.read(uri, move |s| handlers::compare_targets::handle(s, &place)).await
    }

    async fn reasons(&self, place: Place) -> Result<Option<serde_json::Value>> {
        let uri = place.text_document.uri.clone();
        self.read(uri, move |s| handlers::reasons::handle(s, &place)).await
    }

    async fn pictures(&self, params: PicturesParams) -> Result<Option<serde_json::Value>> {
        let uri = params.place.text_document.uri.clone();
        self.read(uri, move |s| handlers::pictures::handle(s, &params)).await
    }
}

fn abilities(capabilities: &ClientCapabilities) -> ClientAbilities {
    let encodings =
        capabilities.general.as_ref().and_then(|g| g.position_encodings.as_deref()).unwrap_or(&[]);
    let workspace = capabilities.workspace.as_ref();
    let text = capabilities.text_document.as_ref();
    let window = capabilities.window.as_ref();
    ClientAbilities {
        encoding: if encodings.contains(&PositionEncodingKind::UTF8) {
            Encoding::Utf8
        } else {
            Encoding::Utf16
        },
        pulls_diagnostics: text.is_some_and(|t| t.diagnostic.is_some()),
        refreshes_diagnostics: workspace
            .and_then(|w| w.diagnostic.as_ref())
            .is_some_and(|d| d.refresh_support == Some(true)),
        refreshes_inlay_hints: workspace
            .and_then(|w| w.inlay_hint.as_ref())
            .is_some_and(|h| h.refresh_support == Some(true)),
        refreshes_code_lenses: workspace
            .and_then(|w| w.code_lens.as_ref())
            .is_some_and(|l| l.refresh_support == Some(true)),
        shows_progress: window.is_some_and(|w| w.work_done_progress == Some(true)),
    }
}

fn server_capabilities(client: ClientAbilities) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match client.encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::Supported(true)),
            ..Default::default()
        })),
        diagnostic_provider: client.pulls_diagnostics.then(|| {
            DiagnosticServerCapabilities::Options(DiagnosticOptions {
                identifier: Some("ptx".into()),
                inter_file_dependencies: false,
                workspace_diagnostics: false,
                ..Default::default()
            })
        }),
        hover_provider: Some(true.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", "%", "@", "["].map(String::from).into()),
            resolve_provider: Some(true),
            ..Default::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some([" ", ","].map(String::from).into()),
            ..Default::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        declaration_provider: Some(DeclarationCapability::Simple(true)),
        type_definition_provider: Some(TypeDefinitionProviderCapability::Simple(true)),
        call_hierarchy_provider: Some(CallHierarchyServerCapability::Simple(true)),
        document_link_provider: Some(DocumentLinkOptions {
            resolve_provider: Some(false),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        linked_editing_range_provider: Some(LinkedEditingRangeServerCapabilities::Simple(true)),
        selection_range_provider: Some(SelectionRangeProviderCapability::Simple(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::REFACTOR_REWRITE,
                CodeActionKind::REFACTOR_INLINE,
                handlers::code_action::FIX_ALL,
            ]),
            ..Default::default()
        })),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: vec![explain::COMMAND.to_owned()],
            ..Default::default()
        }),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_range_formatting_provider: Some(OneOf::Left(true)),
        document_on_type_formatting_provider: Some(DocumentOnTypeFormattingOptions {
            first_trigger_character: handlers::formatting::TRIGGERS[0].to_owned(),
            more_trigger_character: Some(
                handlers::formatting::TRIGGERS[1..].iter().map(|&c| c.to_owned()).collect(),
            ),
        }),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        inlay_hint_provider: Some(OneOf::Left(true)),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: handlers::semantic_tokens::legend(),
                full: Some(SemanticTokensFullOptions::Delta { delta: Some(true) }),
                range: Some(true),
                ..Default::default()
            }
            .into(),
        ),
        ..Default::default()
    }
}

/// The capabilities for a client with documents of other languages only, which other servers serve too. They contain no
/// command, because an editor registers each command once, and nothing that would compete with those servers outside of
/// snippets.
fn embedded_capabilities(client: ClientAbilities) -> ServerCapabilities {
    let all = server_capabilities(client);
    ServerCapabilities {
        position_encoding: all.position_encoding,
        text_document_sync: all.text_document_sync,
        diagnostic_provider: all.diagnostic_provider,
        hover_provider: all.hover_provider,
        completion_provider: all.completion_provider,
        signature_help_provider: all.signature_help_provider,
        definition_provider: all.definition_provider,
        document_highlight_provider: all.document_highlight_provider,
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..Default::default()
        })),
        semantic_tokens_provider: all.semantic_tokens_provider,
        ..Default::default()
    }
}

/// Whether the client has documents of other languages only.
fn is_embedded_only(options: Option<&serde_json::Value>) -> bool {
    let options = options.map(|options| options.get("ptx").unwrap_or(options));
    options.and_then(|options| options.get("embeddedOnly")?.as_bool()) == Some(true)
}

fn tells_about_files(capabilities: &ClientCapabilities) -> bool {
    let files = capabilities.workspace.as_ref().and_then(|w| w.did_change_watched_files);
    files.is_some_and(|files| files.dynamic_registration == Some(true))
}

fn gives_settings(capabilities: &ClientCapabilities) -> bool {
    capabilities.workspace.as_ref().is_some_and(|workspace| workspace.configuration == Some(true))
}

fn tells_about_settings(capabilities: &ClientCapabilities) -> bool {
    let settings = capabilities.workspace.as_ref().and_then(|w| w.did_change_configuration);
    settings.is_some_and(|settings| settings.dynamic_registration == Some(true))
}

/// Whether the server's edits may create files.
fn creates_files(capabilities: &ClientCapabilities) -> bool {
    let edits = capabilities.workspace.as_ref().and_then(|w| w.workspace_edit.as_ref());
    edits.is_some_and(|edits| {
        let operations = edits.resource_operations.as_deref().unwrap_or_default();
        edits.document_changes == Some(true) && operations.contains(&ResourceOperationKind::Create)
    })
}

fn takes_snippets(capabilities: &ClientCapabilities) -> bool {
    let completion = capabilities.text_document.as_ref().and_then(|text| text.completion.as_ref());
    let item = completion.and_then(|completion| completion.completion_item.as_ref());
    item.is_some_and(|item| item.snippet_support == Some(true))
}

/// The client's workspace folder.
#[allow(deprecated, reason = "clients that know no workspace folders give the root instead")]
fn root(params: &InitializeParams) -> Option<PathBuf> {
    let folder = params.workspace_folders.as_ref().and_then(|folders| folders.first());
    let uri = folder.map(|folder| &folder.uri).or(params.root_uri.as_ref())?;
    uri.to_file_path().ok()
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let client = abilities(&params.capabilities);
        self.tells_about_files.store(tells_about_files(&params.capabilities), Ordering::Relaxed);
        self.gives_settings.store(gives_settings(&params.capabilities), Ordering::Relaxed);
        self.tells_about_settings.store(tells_about_settings(&params.capabilities), Ordering::Relaxed);
        self.creates_files.store(creates_files(&params.capabilities), Ordering::Relaxed);
        let _ = self.encoding.set(client.encoding);
        self.takes_snippets.store(takes_snippets(&params.capabilities), Ordering::Relaxed);
        let is_embedded_only = is_embedded_only(params.initialization_options.as_ref());
        let config = self.settings.begin(root(&params), params.initialization_options).await;
        let queue = self.queue.lock().ok().and_then(|mut q| q.take());
        if let Some(queue) = queue {
            let runtime = tokio::runtime::Handle::current();
            let owner = Owner::new(self.client.clone(), runtime, self.events.clone());
            std::thread::Builder::new()
                .name("owner".into())
                .spawn(move || owner.run(queue))
                .map_err(|_| Error::internal_error())?;
        }
        self.events.send(Event::Initialize { config, client }).map_err(|_| Error::internal_error())?;
        Ok(InitializeResult {
            capabilities: match is_embedded_only {
                true => embedded_capabilities(client),
                false => server_capabilities(client),
            },
            server_info: Some(ServerInfo {
                name: "ptx-lsp".into(),
                version: Some(env!("CARGO_PKG_VERSION").into()),
            }),
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        let tells = self.tells_about_files.load(Ordering::Relaxed);
        tokio::spawn(self.settings.clone().follow(tells));
        if self.gives_settings.load(Ordering::Relaxed) {
            let tells = self.tells_about_settings.load(Ordering::Relaxed);
            tokio::spawn(self.settings.clone().ask_at_start(tells));
        }
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        if params.settings.is_null() && self.gives_settings.load(Ordering::Relaxed) {
            tokio::spawn(self.settings.clone().ask());
        } else {
            self.settings.change(params.settings).await;
        }
    }

    async fn did_change_watched_files(&self, _: DidChangeWatchedFilesParams) {
        self.settings.renew().await;
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<serde_json::Value>> {
        if params.command != explain::COMMAND {
            return Err(Error::invalid_params(format!("unknown command `{}`", params.command)));
        }
        let (page, is_shown) = explain::handle(&params.arguments)?;
        if is_shown {
            self.client.show_message(MessageType::INFO, &page).await;
        }
        Ok(Some(page.into()))
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReportResult> {
        let uri = params.text_document.uri;
        let report =
            self.read(uri.clone(), |s| Some(handlers::diagnostic::handle(s))).await?.unwrap_or_default();
        let answer = self.last_answer.answer(uri, report, params.previous_result_id);
        Ok(DocumentDiagnosticReportResult::Report(answer))
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::hover::handle(s, p.position)).await
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let p = params.text_document_position;
        let snippets = self.takes_snippets.load(Ordering::Relaxed);
        self.read(p.text_document.uri, move |s| handlers::completion::handle(s, p.position, snippets)).await
    }

    async fn completion_resolve(&self, item: CompletionItem) -> Result<CompletionItem> {
        Ok(handlers::completion::resolve(item))
    }

    async fn signature_help(&self, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::signature_help::handle(s, p.position)).await
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::definition::handle(s, p.position)).await
    }

    async fn goto_declaration(
        &self,
        params: request::GotoDeclarationParams,
    ) -> Result<Option<GotoDefinitionResponse>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::definition::declaration(s, p.position)).await
    }

    async fn goto_type_definition(
        &self,
        params: request::GotoTypeDefinitionParams,
    ) -> Result<Option<GotoDefinitionResponse>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::definition::of_type(s, p.position)).await
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::call_hierarchy::prepare(s, p.position)).await
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        let CallHierarchyItem { uri, name, .. } = params.item;
        self.read(uri, move |s| handlers::call_hierarchy::incoming(s, &name)).await
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        let CallHierarchyItem { uri, name, .. } = params.item;
        self.read(uri, move |s| handlers::call_hierarchy::outgoing(s, &name)).await
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        self.read(params.text_document.uri, handlers::source::links).await
    }

    async fn linked_editing_range(
        &self,
        params: LinkedEditingRangeParams,
    ) -> Result<Option<LinkedEditingRanges>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::linked_editing_range::handle(s, p.position)).await
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        let positions = params.positions;
        self.read(params.text_document.uri, move |s| handlers::selection_range::handle(s, &positions)).await
    }

    async fn symbol(&self, params: WorkspaceSymbolParams) -> Result<Option<Vec<SymbolInformation>>> {
        let (reply, documents) = oneshot::channel();
        self.events.send(Event::List { reply }).map_err(|_| Error::internal_error())?;
        let open = documents.await.map_err(|_| Error::internal_error())?;
        let mut all = Vec::new();
        for uri in open.clone() {
            let query = params.query.clone();
            all.extend(self.read(uri, move |s| handlers::workspace_symbol::handle(s, &query)).await?);
        }
        if let Some(root) = self.settings.root() {
            let encoding = self.encoding.get().copied().unwrap_or_default();
            let is_wanted = move |name: &str| handlers::workspace_symbol::matches(name, &params.query);
            let others =
                tokio::task::spawn_blocking(move || workspace::symbols(&root, &open, encoding, is_wanted));
            all.extend(others.await.map_err(|_| Error::internal_error())?);
        }
        Ok(Some(all))
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let p = params.text_document_position;
        let declaration = params.context.include_declaration;
        self.read(p.text_document.uri, move |s| handlers::references::handle(s, p.position, declaration))
            .await
    }

    async fn document_highlight(
        &self,
        params: DocumentHighlightParams,
    ) -> Result<Option<Vec<DocumentHighlight>>> {
        let p = params.text_document_position_params;
        self.read(p.text_document.uri, move |s| handlers::highlight::handle(s, p.position)).await
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        self.write(params.text_document.uri, handlers::document_symbol::handle).await
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let uri = params.text_document.uri.clone();
        let only = params.context.only;
        let settings = self.settings.clone();
        let creates = self.creates_files.load(Ordering::Relaxed);
        let handle = move |s: &Snapshot| {
            let project = settings.project_file(creates);
            handlers::code_action::handle(s, params.range, only.as_deref(), project.as_ref())
        };
        self.read(uri, handle).await
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.read(params.text_document.uri, handlers::code_lens::handle).await
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        self.write(params.text_document.uri, handlers::folding_range::handle).await
    }

    async fn formatting(&self, params: DocumentFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        self.read(params.text_document.uri, |s| handlers::formatting::handle(s, None)).await
    }

    async fn range_formatting(&self, params: DocumentRangeFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        let range = params.range;
        self.read(params.text_document.uri, move |s| handlers::formatting::handle(s, Some(range))).await
    }

    async fn on_type_formatting(
        &self,
        params: DocumentOnTypeFormattingParams,
    ) -> Result<Option<Vec<TextEdit>>> {
        let p = params.text_document_position;
        let typed = params.ch;
        self.read(p.text_document.uri, move |s| handlers::formatting::on_type(s, p.position, &typed)).await
    }

    async fn prepare_rename(
        &self,
        params: TextDocumentPositionParams,
    ) -> Result<Option<PrepareRenameResponse>> {
        self.read(params.text_document.uri, move |s| handlers::rename::prepare(s, params.position)).await
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let p = params.text_document_position;
        let answer = self
            .read(p.text_document.uri, move |s| {
                Some(handlers::rename::handle(s, p.position, &params.new_name))
            })
            .await?;
        match answer {
            None => Ok(None),
            Some(Ok(edit)) => Ok(Some(edit)),
            Some(Err(reason)) => Err(Error::invalid_params(reason)),
        }
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        let uri = params.text_document.uri;
        self.read(uri, move |s| handlers::inlay_hint::handle(s, params.range)).await
    }

    async fn semantic_tokens_full(
        &self,
        params: SemanticTokensParams,
    ) -> Result<Option<SemanticTokensResult>> {
        self.write(params.text_document.uri, handlers::semantic_tokens::full).await
    }

    async fn semantic_tokens_full_delta(
        &self,
        params: SemanticTokensDeltaParams,
    ) -> Result<Option<SemanticTokensFullDeltaResult>> {
        let previous = params.previous_result_id;
        self.write(params.text_document.uri, move |s| handlers::semantic_tokens::delta(s, &previous)).await
    }

    async fn semantic_tokens_range(
        &self,
        params: SemanticTokensRangeParams,
    ) -> Result<Option<SemanticTokensRangeResult>> {
        let range = params.range;
        self.write(params.text_document.uri, move |s| handlers::semantic_tokens::range(s, range)).await
    }
}
