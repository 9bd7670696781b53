// PTX inside other languages: a client of its own, whose server announces nothing that would compete with those of the
// languages. It is started by the first document that may hold PTX.

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

    /** The server is there: from now on documents get it. */
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
                // An editor takes the tokens of one provider: they are left to the language's, and the grammar colours.
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
