// Chooses and starts the server, and tells the user when it cannot be started or has ended.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import {
    CloseAction, CloseHandlerResult, ErrorAction, ErrorHandler, ErrorHandlerResult, LanguageClient, LanguageClientOptions,
    ServerOptions,
} from 'vscode-languageclient/node';
import { EmbeddedClient } from './embedded';
import { Pages } from './explain';

/** If the server ends more often than this within `WITHIN` milliseconds, the user is asked before another restart. */
const MOST_RESTARTS = 3;
const WITHIN = 3 * 60 * 1000;

export function settings(): object {
    const ptx = vscode.workspace.getConfiguration('ptx');
    return {
        target: ptx.get<string>('target') || undefined,
        inlayHints: ptx.get('inlayHints'),
        liveRegisters: ptx.get('liveRegisters'),
        codeLens: ptx.get('codeLens'),
        referenceLens: ptx.get('referenceLens'),
        compile: ptx.get('compile'),
        lints: ptx.get('lints'),
        embedded: ptx.get('embedded'),
        reference: { path: ptx.get<string>('reference.path') ?? '' },
    };
}

export class Server implements vscode.Disposable {
    private running: LanguageClient | undefined;
    private ends: number[] = [];
    private readonly embedded = new EmbeddedClient(() => this.options());
    private readonly log = vscode.window.createOutputChannel('PTX');

    constructor(private readonly context: vscode.ExtensionContext, private readonly pages: Pages) {}

    get client(): LanguageClient | undefined {
        return this.running?.isRunning() ? this.running : undefined;
    }

    async start(): Promise<void> {
        const command = this.path();
        // Do not run in the workspace's folder: some systems search the current folder for programs first.
        const cwd = this.context.extensionPath;
        try {
            const { stdout } = await promisify(execFile)(command, ['--version'], { timeout: 10_000, cwd });
            this.log.appendLine(`${new Date().toISOString()} ${command}: ${stdout.trim()}`);
        } catch (error) {
            this.log.appendLine(`${new Date().toISOString()} ${command}: ${String(error)}`);
            void this.offerHelp(command, error);
            return;
        }
        const server: ServerOptions = { command, args: ['--stdio'], options: { cwd } };
        const client = new LanguageClient('ptx', 'PTX', server, this.options());
        this.running = client;
        await client.start().catch(error => {
            this.log.appendLine(String(error));
            void this.offerHelp(command, error);
        });
        await this.embedded.start(server);
    }

    private options(): LanguageClientOptions {
        return {
            documentSelector: [{ language: 'ptx' }],
            initializationOptions: settings(),
            outputChannel: this.log,
            errorHandler: this.handler(),
            middleware: {
                executeCommand: async (name, parameters, next) => {
                    if (name !== 'ptx.explain') {
                        return next(name, parameters);
                    }
                    // With `true`, the server returns the page and leaves its display to the client.
                    const page: string | null = await next(name, [parameters[0], true]);
                    if (page) {
                        await this.pages.show(String(parameters[0]), page);
                    }
                    return page;
                },
            },
        };
    }

    async restart(): Promise<void> {
        const old = this.running;
        this.running = undefined;
        this.ends = [];
        // A server that has already ended cannot be stopped; ignore the error.
        await old?.stop().catch(() => undefined);
        await this.embedded.stop();
        await this.start();
    }

    async stop(): Promise<void> {
        await this.running?.stop().catch(() => undefined);
        await this.embedded.stop();
    }

    async configure(): Promise<void> {
        await this.embedded.configure(settings());
        await this.client?.sendNotification('workspace/didChangeConfiguration', { settings: settings() });
    }

    /** Tells the user that a command needs the server, which is not running. */
    missing(): void {
        const command = this.path();
        void this.choose('warning', `PTX: the language server "${command}" is not running.`, ['Start', 'Set Path', 'Show Log']);
    }

    showLog(): void {
        this.log.show(true);
    }

    /** The path of the server: the user's setting, the server in the extension, or the program on the PATH. */
    path(): string {
        const chosen = vscode.workspace.getConfiguration('ptx').get<string>('server.path');
        if (chosen) {
            return chosen;
        }
        const name = process.platform === 'win32' ? 'ptx-lsp.exe' : 'ptx-lsp';
        const bundled = this.context.asAbsolutePath(`server/${name}`);
        return existsSync(bundled) ? bundled : 'ptx-lsp';
    }

    private handler(): ErrorHandler {
        return {
            error: (): ErrorHandlerResult => ({ action: ErrorAction.Continue, handled: true }),
            closed: (): CloseHandlerResult => {
                const now = Date.now();
                this.ends = [...this.ends.filter(end => now - end < WITHIN), now];
                this.log.appendLine(`${new Date(now).toISOString()} the server has ended`);
                if (this.ends.length <= MOST_RESTARTS) {
                    return { action: CloseAction.Restart, handled: true };
                }
                void this.choose('error', `PTX: the language server has ended ${this.ends.length} times in three minutes.`, ['Start', 'Show Log', 'Set Path']);
                return { action: CloseAction.DoNotRestart, handled: true };
            },
        };
    }

    private async offerHelp(command: string, error: unknown): Promise<void> {
        const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
        const reason = isMissing ? 'the program does not exist' : String((error as Error).message ?? error).split('\n')[0];
        const message = `PTX: the language server "${command}" cannot be started: ${reason}. Files are highlighted, but not checked.`;
        await this.choose('error', message, ['Set Path', 'Download', 'Show Log']);
    }

    private async choose(kind: 'error' | 'warning', message: string, choices: string[]): Promise<void> {
        const show = kind === 'error' ? vscode.window.showErrorMessage : vscode.window.showWarningMessage;
        switch (await show(message, ...choices)) {
            case 'Set Path':
                await vscode.commands.executeCommand('workbench.action.openSettings', 'ptx.server.path');
                break;
            case 'Download': {
                const { url } = this.context.extension.packageJSON.repository;
                await vscode.env.openExternal(vscode.Uri.parse(`${url}/releases`));
                break;
            }
            case 'Show Log':
                this.showLog();
                break;
            case 'Start':
                await this.restart();
        }
    }

    dispose(): void {
        this.embedded.dispose();
        this.log.dispose();
    }
}
