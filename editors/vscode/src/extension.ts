// Starts the server and adds what the protocol does not have: the machine code of a function as a document, and the
// pages of diagnostics.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { LanguageClient, ServerOptions } from 'vscode-languageclient/node';
import { Pages } from './explain';
import { SassView } from './sass';

let client: LanguageClient | undefined;

function settings(): object {
    const ptx = vscode.workspace.getConfiguration('ptx');
    return {
        target: ptx.get<string>('target') || undefined,
        inlayHints: ptx.get('inlayHints'),
        codeLens: ptx.get('codeLens'),
        compile: ptx.get('compile'),
        lints: ptx.get('lints'),
    };
}

function serverPath(): string {
    return vscode.workspace.getConfiguration('ptx').get<string>('server.path') || 'ptx-lsp';
}

async function start(context: vscode.ExtensionContext, pages: Pages): Promise<void> {
    const command = serverPath();
    try {
        await promisify(execFile)(command, ['--version'], { timeout: 10_000 });
    } catch (error) {
        void offerHelp(context, command, error);
        return;
    }
    const server: ServerOptions = { command, args: ['--stdio'] };
    client = new LanguageClient('ptx', 'PTX', server, {
        documentSelector: [{ language: 'ptx' }],
        initializationOptions: settings(),
        middleware: {
            executeCommand: async (name, parameters, next) => {
                if (name !== 'ptx.explain') {
                    return next(name, parameters);
                }
                // With `true` the server leaves showing the page to us.
                const page: string | null = await next(name, [parameters[0], true]);
                if (page) {
                    await pages.show(String(parameters[0]), page);
                }
                return page;
            },
        },
    });
    await client.start();
}

/** Says that the server can't be started, and what to do. */
async function offerHelp(context: vscode.ExtensionContext, command: string, error: unknown): Promise<void> {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = isMissing ? 'the program does not exist' : String((error as Error).message ?? error);
    const setPath = 'Set the Path';
    const install = 'How to Install';
    const answer = await vscode.window.showErrorMessage(
        `PTX: the language server "${command}" cannot be started: ${reason}.`, setPath, install);
    if (answer === setPath) {
        await vscode.commands.executeCommand('workbench.action.openSettings', 'ptx.server.path');
    } else if (answer === install) {
        await vscode.commands.executeCommand('markdown.showPreview', vscode.Uri.joinPath(context.extensionUri, 'README.md'));
    }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    const pages = new Pages();
    const view = new SassView(() => client);
    const restart = async (): Promise<void> => {
        const old = client;
        client = undefined;
        // One that ended by itself can't be stopped.
        await old?.stop().catch(() => undefined);
        await start(context, pages);
    };
    // Commands and settings work without a server too: they are how the user gets one.
    context.subscriptions.push(
        view,
        pages.register(),
        vscode.commands.registerCommand('ptx.showSass', (uri: string, name: string) => view.show(vscode.Uri.parse(uri), { function: name })),
        vscode.commands.registerTextEditorCommand('ptx.showSassHere', editor => view.show(editor.document.uri, { position: editor.selection.active })),
        vscode.commands.registerCommand('ptx.restart', restart),
        vscode.workspace.onDidChangeConfiguration(async change => {
            if (change.affectsConfiguration('ptx.server.path')) {
                await restart();
            } else if (change.affectsConfiguration('ptx')) {
                await client?.sendNotification('workspace/didChangeConfiguration', { settings: settings() });
            }
        }),
    );
    await start(context, pages);
}

export async function deactivate(): Promise<void> {
    await client?.stop();
}
