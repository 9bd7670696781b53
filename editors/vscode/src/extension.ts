// Starts the server and adds features that the protocol lacks: the machine code of a function as a document, its text
// after a stage of the compiler, differences between two versions of it, pictures of it, and the pages of diagnostics.

import * as vscode from 'vscode';
import { Differences } from './difference';
import { Pages } from './explain';
import { Images } from './images';
import { MachineCode } from './machine';
import { showPage } from './page';
import { Pictures } from './pictures';
import { Reference } from './reference';
import { SassView, SCHEME } from './sass';
import { Server } from './server';

/** A position of the protocol. */
interface Position {
    line: number;
    character: number;
}

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    const pages = new Pages();
    const running = new Server(context, pages);
    const view = new SassView(running, context.workspaceState);
    const stage = new SassView(running, context.workspaceState, 'ptx-stage', 'Stage');
    const differences = new Differences(running, view);
    const pictures = new Pictures(running, view);
    server = running;
    // Commands and settings also work without a server, because the user needs them to start one.
    context.subscriptions.push(
        running,
        view,
        stage,
        differences,
        pictures,
        pages.register(),
        new MachineCode(running).register(),
        new Reference(running).register(),
        new Images(() => running.path(), context.extensionPath).register(),
        vscode.commands.registerCommand('ptx.showSass', (uri: string, name: string) => view.show(vscode.Uri.parse(uri), { function: name })),
        vscode.commands.registerTextEditorCommand('ptx.showSassHere', editor => view.show(editor.document.uri, { position: editor.selection.active })),
        vscode.commands.registerCommand('ptx.switchControls', () => view.switchControls()),
        vscode.commands.registerCommand('ptx.showStage', () => {
            const isInView = vscode.window.activeTextEditor?.document.uri.scheme === SCHEME;
            return stage.chooseStage((isInView ? undefined : stage.place()) ?? view.place());
        }),
        vscode.commands.registerCommand('ptx.showReferences', showReferences),
        vscode.commands.registerCommand('ptx.compareSaved', () => differences.withSaved()),
        vscode.commands.registerCommand('ptx.compareSass', () => differences.choose()),
        vscode.commands.registerCommand('ptx.compareTargets', () => showPage(running, view, pages, 'ptx/compareTargets', 'targets')),
        vscode.commands.registerCommand('ptx.reasons', () => showPage(running, view, pages, 'ptx/reasons', 'reasons')),
        vscode.commands.registerCommand('ptx.pictures', () => pictures.show()),
        vscode.commands.registerCommand('ptx.savePictures', () => pictures.save()),
        vscode.commands.registerCommand('ptx.restart', () => running.restart()),
        vscode.commands.registerCommand('ptx.showLog', () => running.showLog()),
        vscode.workspace.onDidChangeConfiguration(async change => {
            if (change.affectsConfiguration('ptx.server.path')) {
                await running.restart();
            } else if (change.affectsConfiguration('ptx')) {
                await running.configure();
            }
        }),
    );
    await running.start();
}

/** Shows a list of references that the server sends with a lens. */
async function showReferences(uri: string, at: Position, found: { range: { start: Position; end: Position } }[]): Promise<void> {
    const position = ({ line, character }: Position) => new vscode.Position(line, character);
    const source = vscode.Uri.parse(uri);
    const locations = found.map(({ range }) => new vscode.Location(source, new vscode.Range(position(range.start), position(range.end))));
    await vscode.commands.executeCommand('editor.action.showReferences', source, position(at), locations);
}

export async function deactivate(): Promise<void> {
    await server?.stop();
}
