// PTX inside other languages. A separate client starts a server that announces no feature which would compete with the
// servers of these languages. The first document that may contain PTX starts it.

import * as vscode from 'vscode';
import { LanguageClient, LanguageClientOptions, ServerOptions } from 'vscode-languageclient/node';

const LANGUAGES = ['cuda-cpp', 'cuda', 'cpp', 'c', 'rust', 'python'];

export class EmbeddedClient implements vscode.Disposable {
    private running: LanguageClient | undefined;
    private server: ServerOptions | undefined;
    private readonly subscription: vscode.Disposable;

    constructor(private readonly options: () => LanguageClientOptions) {
        this.subscription = vscode.workspace.onDidOpenTextDocument(document => this.opened(document));
    }

    /** Called when the server program is known: from now on, documents may start the client. */
    async start(server: ServerOptions): Promise<void> {
        this.server = server;
        await Promise.all(vscode.workspace.textDocuments.map(document => this.opened(document)));
    }

    async stop(): Promise<void> {
        this.server = undefined;
        const old = this.running;
        this.running = undefined;
        await old?.stop().catch(() => undefined);
    }

    async configure(settings: object): Promise<void> {
        if (this.running?.isRunning()) {
            await this.running.sendNotification('workspace/didChangeConfiguration', { settings });
        } else if (this.server) {
            await this.start(this.server);
        }
    }

    private async opened(document: vscode.TextDocument): Promise<void> {
        const isOn = vscode.workspace.getConfiguration('ptx').get('embedded');
        if (this.running || !this.server || !isOn || !LANGUAGES.includes(document.languageId)) {
            return;
        }
        const options = this.options();
        this.running = new LanguageClient('ptx-embedded', 'PTX in other languages', this.server, {
            ...options,
            documentSelector: LANGUAGES.map(language => ({ language, scheme: 'file' })),
            initializationOptions: { ...options.initializationOptions, embeddedOnly: true },
            middleware: {
                ...options.middleware,
                // VS Code takes semantic tokens from one provider only. The language's own provider keeps this
                // role; the grammar colors the PTX.
                provideDocumentSemanticTokens: () => null,
                provideDocumentSemanticTokensEdits: () => null,
                provideDocumentRangeSemanticTokens: () => null,
            },
        });
        await this.running.start().catch(() => undefined);
    }

    dispose(): void {
        this.subscription.dispose();
    }
}
