// Tests what a user of VS Code sees, in the workbench of code-server with the packaged extension.
//
//   node tests/editors/vscode/run.mjs EXTENSION.vsix WITH-SERVER.vsix SERVER [PART…]

import assert from 'node:assert';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Workbench, until } from './workbench.mjs';

const [extension, bundled, given, ...chosen] = process.argv.slice(2);
const root = path.resolve(import.meta.dirname, '../../..');
const work = mkdtempSync(path.join(tmpdir(), 'ptx-vscode-'));
// A separate path distinguishes our server processes from others.
const server = `${work}/bin/ptx-lsp`;
mkdirSync(`${work}/bin`);
copyFileSync(given, server);
chmodSync(server, 0o755);

/** Creates a folder with the example, and with settings that name a program to start. */
function project(name) {
    const folder = `${work}/${name}`;
    mkdirSync(`${folder}/.vscode`, { recursive: true });
    const example = readFileSync(`${root}/examples/saxpy.ptx`, 'utf8');
    writeFileSync(`${folder}/saxpy.ptx`, example);
    writeFileSync(`${folder}/two.ptx`, `${example}
.visible .entry halve(.param .u64 a)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [a];
    ld.global.f32 %f1, [%rd1];
    mul.rn.f32 %f2, %f1, 0f3F000000;
    st.global.f32 [%rd1], %f2;
    ret;
}
`);
    const trap = `${folder}/trap.sh`;
    writeFileSync(trap, `#!/bin/sh\ntouch "${folder}/sprung"\nexec "${server}" "$@"\n`);
    chmodSync(trap, 0o755);
    writeFileSync(`${folder}/.vscode/settings.json`, JSON.stringify({ 'ptx.server.path': trap }));
    return folder;
}

const sprung = folder => existsSync(`${folder}/sprung`);
const saw = text => console.log(`  ${text}`);

const parts = {
    async 'diagnostics, hover, hints and machine code'() {
        const folder = project('whole');
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': server } });
        try {
            await w.press('Control+B');
            await w.open('two.ptx', 'fma.rn.f32');
            await until('lens and hint with registers', async () => (await w.page.locator('.codelens-decoration', { hasText: 'registers' }).count()) > 0
                && /occupancy/.test(await w.text()));
            assert(!sprung(folder), 'a setting of the workspace chose the server');
            const [mnemonic, modifier, type, register, label] = await until('colors', async () => {
                const colors = [
                    await w.color('mad.lo.s32', 'mad'), await w.color('mad.lo.s32', '.lo'), await w.color('mad.lo.s32', '.s32'),
                    await w.color('mad.lo.s32', '%r5'), await w.color('@%p1 bra', 'done'),
                ];
                return colors.every(Boolean) && colors;
            });
            assert.strictEqual(new Set([mnemonic, modifier, type, register, label]).size, 5, 'kinds of words have colors of their own');
            saw('lens, hint, five colors');

            const at = (await readFile(`${folder}/two.ptx`)).findIndex(line => line.includes('fma.rn.f32')) + 1;
            await w.go(at, 6);
            await w.press('Control+K', 'Control+I');
            await w.page.waitForSelector('.monaco-hover:visible:has-text("FFMA")', { timeout: 20000 });
            saw('hover with machine code');
            await w.press('Escape');

            await w.quick('>PTX: Show SASS for This Function', 'Show SASS for This Function');
            await w.line('FFMA', 1).first().waitFor({ timeout: 20000 });
            await until('mark in the machine code', async () => (await w.marked(1)).some(line => line.includes('FFMA')));
            await until('colors of the machine code', async () => w.color('FFMA', 'FFMA', 1));
            const language = await w.page.locator('.statusbar-item#status\\.editor\\.mode').innerText();
            saw(`machine code, marked on opening (${language.trim()})`);
            await w.picture('vscode-sass');

            const cells = await w.beside('FFMA', 1);
            assert(cells.length === 2 && cells.every(cell => /^ +\d+$/.test(cell)), `live registers and stall cycles: ${JSON.stringify(cells)}`);
            saw(`heat:${cells.join(',')}`);
            const controls = () => w.quick('>PTX: Switch Control Codes, Words, None', 'Switch Control Codes');
            await controls();
            await until('control words in words', async () => /\/\/ .*\d cycles?/.test(await w.text(1)));
            await w.picture('vscode-words');
            await controls();
            await until('code without control words', async () => !/cycles?|:S\d\d/.test(await w.text(1)));
            await controls();
            await until('control codes', async () => /:S\d\d/.test(await w.text(1)));
            saw('control words as codes, in words, hidden');

            // Hovers explain words of machine code.
            const explained = (word, text) => until(`explanation of ${word}`, async () => {
                // On a slow machine, the keys may come before the click has moved the cursor.
                await w.line('FFMA', 1).first().locator('span span', { hasText: word }).first().click();
                await w.press('Control+K', 'Control+I');
                const found = await w.page.waitForSelector(`.monaco-hover:visible:has-text("${text}")`, { timeout: 5000 }).catch(() => undefined);
                await w.press('Escape');
                return found;
            }, 60);
            await explained('FFMA', 'rounded once');
            saw('hover in the machine code');

            // The function after a stage of the compiler, beside the machine code.
            await w.line('fma.rn.f32', 0).first().click();
            await w.prompt('F1', 'PTX: Show Compiler Stage');
            await w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Show Compiler Stage' }).first().click({ timeout: 60000 });
            await w.page.locator('.quick-input-list .monaco-list-row', { hasText: 'the IR as built' }).first().waitFor({ timeout: 20000 });
            await w.page.keyboard.type('GvnCse', { delay: 5 });
            await w.page.locator('.quick-input-list .monaco-list-row .label-name', { hasText: 'GvnCse' }).first().click({ timeout: 20000 });
            await until('stage', async () => /saxpy for sm_80: GvnCse/.test(await w.text(1)) && /%v\d/.test(await w.text(1)));
            await until('mark in the stage', async () => (await w.marked(1)).some(line => line.includes('FFMA')));
            await w.picture('vscode-stage');
            await w.page.locator('.editor-group-container .tab', { hasText: 'Stage' }).click({ button: 'middle' });
            await until('machine code again', async () => /FFMA/.test(await w.text(1)) && !/%v\d/.test(await w.text(1)));
            saw('a stage of the compiler');

            // In the other direction, the cursor in the machine code marks the PTX.
            await w.line('FFMA', 1).first().click();
            await until('mark in the PTX', async () => (await w.marked(0)).some(line => line.includes('fma.rn.f32')));
            await w.line('STG.E', 1).first().click();
            await until('moved mark in the PTX', async () => (await w.marked(0)).some(line => line.includes('st.global')));
            saw('marks in both directions');

            // After an edit, the code turns grey; then new code appears, with the marks at their new places.
            await w.line('fma.rn.f32', 0).first().click();
            await w.go(at, 1);
            await w.press('Home', 'Control+Enter');
            await w.go(at, 1);
            await w.page.keyboard.type('    add.rn.f32 %f1, %f1, 0f40490FDB;');
            await until('new machine code', async () => /FADD/.test(await w.text(1)));
            await until('black text', async () => (await w.opacity(1)) === 1);
            await until('mark after the edit', async () => (await w.marked(1)).some(line => line.includes('FADD')));
            saw('refreshed after an edit');
            await until('difference from the last save', async () => (await w.beside('saxpy for', 1)).some(text => /\+2 instructions since the last save/.test(text)));
            await w.quick('>PTX: Compare SASS with the Last Save', 'Compare SASS with the Last Save');
            await w.page.waitForSelector('.monaco-diff-editor .editor.modified .view-line:has-text("FADD")', { timeout: 20000 });
            assert.strictEqual(await w.page.locator('.monaco-diff-editor .editor.original .view-line', { hasText: 'FADD' }).count(), 0, 'the saved code has no FADD');
            await w.notification('+2 instructions').waitFor({ timeout: 20000 });
            await w.picture('vscode-difference');
            saw('difference from the last save');
            await w.page.locator('.editor-group-container .tab', { hasText: '↔' }).click({ button: 'middle' });
            await w.page.waitForSelector('.monaco-diff-editor', { state: 'detached' });
            await w.line('add.rn.f32', 0).first().click();
            await w.go(at, 1);
            await w.press('End');
            await w.page.keyboard.type(' junk');
            await until('squiggle', () => w.editor(0).locator('.squiggly-error').count());
            await until('grey text', async () => (await w.opacity(1)) < 0.6);
            assert.deepStrictEqual(await w.marked(1), [], 'grey text has no marks');
            await until('reason', async () => (await w.beside('saxpy for', 1)).some(text => /not compiled: /.test(text)));
            await w.go(8);
            await until('hint with the last good values', async () => /was: \d+ registers/.test(await w.text(0)));
            await w.picture('vscode-stale');
            saw('grey while the text has errors');
            await w.press('Control+Z');
            await until('black text again', async () => (await w.opacity(1)) === 1);

            // The view follows the cursor into another function.
            const other = (await readFile(`${folder}/two.ptx`)).findIndex(line => line.includes('mul.rn.f32')) + 2;
            await w.go(other, 6);
            await until('machine code of the other function', async () => /halve for/.test(await w.text(1)));
            await until('its mark', async () => (await w.marked(1)).some(line => line.includes('FMUL')));
            saw('follows the active function');

            // A quick fix.
            await w.page.keyboard.type('x');
            await until('error', () => w.editor(0).locator('.squiggly-error').count());
            await w.press('Control+Z');
            await w.go(other, 1);
            await w.press('End', 'Backspace');
            await until('error', () => w.editor(0).locator('.squiggly-error').count());
            await w.press('F8', 'Escape');
            await w.press('Control+.');
            await w.page.waitForSelector('.action-widget:visible', { timeout: 20000 });
            const fixes = await w.page.locator('.action-widget:visible').first().innerText();
            assert(/;/.test(fixes), fixes);
            await w.press('Enter');
            await until('end of the error', async () => (await w.editor(0).locator('.squiggly-error').count()) === 0);
            saw(`quick fix (${fixes.trim().split('\n').filter(Boolean)[1] ?? fixes.trim()})`);

            // A server that dies is restarted. If it keeps dying, it is not restarted, and the user is asked.
            const kill = async () => {
                const [pid] = await until('server', () => { const found = Workbench.processes(server); return found.length && found; });
                process.kill(pid, 'SIGKILL');
                await until('its end', () => !Workbench.processes(server).includes(pid));
            };
            await kill();
            await until('new server', () => Workbench.processes(server).length);
            await w.go(at, 6);
            await w.press('Control+K', 'Control+I');
            await w.page.waitForSelector('.monaco-hover:visible:has-text("add")', { timeout: 30000 });
            await w.press('Escape');
            saw('restarted after a crash');
            const asked = w.notification('has ended');
            for (let i = 0; i < 3; i++) {
                // The delay is long enough for the client to start the server.
                await w.page.waitForTimeout(3000);
                await kill();
            }
            await asked.waitFor({ timeout: 30000 });
            await asked.getByRole('button', { name: 'Start' }).click();
            await until('server after the button', () => Workbench.processes(server).length);
            saw('asked after the fourth crash, and started by the button');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'completion, rename, formatting and fragments'() {
        const folder = project('editing');
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': server } });
        try {
            await w.press('Control+B');
            await w.open('two.ptx', 'fma.rn.f32');
            await until('lens', () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count());
            const lines = await readFile(`${folder}/two.ptx`);
            const at = lines.findIndex(line => line.includes('fma.rn.f32')) + 1;
            // On a slow machine, the list may close or show only words of the text before the server answers.
            const suggested = (what, fits) => until(what, async () => {
                const row = w.page.locator('.suggest-widget.visible .monaco-list-row .label-name');
                await row.first().waitFor({ timeout: 5000 }).catch(() => undefined);
                const all = await row.allInnerTexts();
                if (all.length && fits(all[0])) return all;
                await w.press('Escape', 'Control+Space');
                return false;
            });
            await w.go(at, 1);
            await w.press('End', 'Enter');
            await w.page.keyboard.type('ld.global.', { delay: 20 });
            const modifiers = await suggested('types first', first => first === 'b32');
            assert.deepStrictEqual(modifiers.slice(0, 4), ['b32', 'u32', 's32', 'f32'], modifiers.join());
            saw(`after "ld.global.": ${modifiers.slice(0, 6).join(' ')}`);
            await w.page.keyboard.type('f32 ', { delay: 20 });
            await w.press('Control+Space');
            const operands = await suggested('registers', first => first.startsWith('%f'));
            saw(`then: ${operands.slice(0, 4).join(' ')}`);
            await w.picture('vscode-completion');
            await w.press('Escape', 'Shift+Home', 'Delete', 'Backspace');
            await until('no errors', async () => (await w.editor().locator('.squiggly-error').count()) === 0);

            // Renaming one register of a range declares it separately.
            const use = lines.findIndex(line => line.includes('%rd6, %rd3'));
            await w.go(use + 1, lines[use].indexOf('%rd6') + 2);
            await w.press('F2');
            const name = w.page.locator('.rename-box input').first();
            await name.waitFor({ timeout: 20000 });
            await name.fill('%address');
            await name.press('Enter');
            await until('renamed register', async () => { const text = await w.text(); return text.includes('[%address]') && text.includes('%rd<8>, %address;'); });
            saw('renamed %rd6 of %rd<8>');

            await w.quick('>Format Document', 'Format Document');
            await until('formatted text', async () => (await w.text()).includes('    fma.rn.f32 %f4, %f1, %f2, %f3;'));
            saw('formatted');

            // The hover of a matrix product shows its fragments as a table.
            await w.go(at, 1);
            await w.press('End', 'Enter');
            await w.page.keyboard.type('mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ');
            await w.press('Escape');
            await w.go(at + 1, 6);
            await w.press('Control+K', 'Control+I');
            await w.page.waitForSelector('.monaco-hover:visible table:has-text("g+8")', { timeout: 20000 });
            await w.page.locator('.monaco-hover:visible table').first().scrollIntoViewIfNeeded();
            await w.picture('vscode-fragments');
            saw('hover with fragments');
            await w.press('Escape');

            // Errors in the project's file are reported without a restart. An editor on a busy machine misses some changes
            // of files.
            await until('message', async () => {
                writeFileSync(`${folder}/ptx-check.toml`, `target = "sm_999" # ${Date.now()}\n`);
                await w.notification('unknown target').first().waitFor({ timeout: 10000 });
                return true;
            }, 60);
            saw('reads ptx-check.toml again');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'navigation, targets and pictures'() {
        const folder = project('navigation');
        copyFileSync(`${root}/tests/editors/calls.ptx`, `${folder}/calls.ptx`);
        copyFileSync(`${root}/tests/editors/calls.cu`, `${folder}/calls.cu`);
        copyFileSync(`${root}/tests/kernels/attention.ptx`, `${folder}/attention.ptx`);
        const broken = readFileSync(`${root}/examples/saxpy.ptx`, 'utf8').replace('fma.rn', 'fna.rn');
        writeFileSync(`${folder}/broken.ptx`, broken);
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': server, 'editor.linkedEditing': true } });
        try {
            await w.press('Control+B');
            await w.open('calls.ptx', 'call (y)');
            await until('lens', () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count());
            const lines = await readFile(`${folder}/calls.ptx`);
            const go = async (text, shift = 0) => {
                const at = lines.findIndex(line => line.includes(text));
                await w.go(at + 1, lines[at].indexOf(text) + 1 + shift);
            };
            // The callers of a function are listed.
            await go('twice(', 2);
            await w.quick('>Calls: Show Call Hierarchy', 'Calls: Show Call Hierarchy');
            await w.page.waitForSelector('.part.sidebar .monaco-list-row:has-text("caller")', { timeout: 20000 });
            await w.press('Control+B');
            await w.line('call (y)').first().click();
            saw('callers');
            // Definitions: an instruction leads to its PTX statement, and a name to its declaration.
            await go('call (', 2);
            await w.press('F12');
            await w.line('do *a').first().waitFor({ timeout: 20000 });
            await until('line of the source', async () => /Ln 3\b/.test(await w.page.locator('.statusbar').innerText()));
            await w.page.locator('.editor-group-container .tab', { hasText: 'calls.ptx' }).click();
            await w.line('call (y)').first().waitFor({ timeout: 20000 });
            await go('twice, (', 2);
            await w.press('F12');
            await until('declaration', async () => /Ln 6\b/.test(await w.page.locator('.statusbar').innerText()));
            saw('source of an instruction, declaration of a name');
            // A selection grows from a register to the function.
            await go('%r2, %r1', 1);
            const selected = [];
            for (let i = 0; i < 4; i++) {
                await w.press('Shift+Alt+ArrowRight');
                selected.push(await until('larger selection', async () => {
                    const text = await w.page.locator('.statusbar').innerText();
                    const count = Number(/\((\d+) selected\)/.exec(text)?.[1] ?? 0);
                    return count > (selected.at(-1) ?? 0) && count;
                }));
            }
            assert.strictEqual(selected[0], 3, `selections: ${selected}`);
            saw(`selections of ${selected.join(', ')} characters`);
            // Both places of a label change together.
            await go('again:', 2);
            await w.page.waitForTimeout(700);
            await w.page.keyboard.type('x');
            await until('both places of the label', async () => /bra agxain;/.test(await w.text()) && /agxain:/.test(await w.text()));
            await w.press('Control+Z');
            saw('linked editing of a label');

            // A page shows the resources that the kernel uses on each target.
            await w.open('attention.ptx', '.visible .entry');
            await until('lens', () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count());
            const body = (await readFile(`${folder}/attention.ptx`)).findIndex(line => line.includes('ld.param')) + 1;
            await w.go(body, 6);
            await w.quick('>PTX: Compare Targets', 'Compare Targets');
            await w.inside('sm_120');
            await w.picture('vscode-targets');
            saw('targets in a table');
            await w.quick('>View: Close All Editors', 'View: Close All Editors');

            // Another page says what limits its loops.
            await w.open('attention.ptx', 'ld.param');
            await w.go(body, 6);
            const explain = 'Explain Registers and Loops of This Function';
            await w.quick(`>PTX: ${explain}`, explain);
            await w.inside('In a warp alone');
            await w.picture('vscode-reasons');
            saw('reasons for registers and the time of loops');
            await w.quick('>View: Close All Editors', 'View: Close All Editors');

            // The panel shows pictures of the kernel.
            await w.open('attention.ptx', 'ld.param');
            await w.go(body, 6);
            await w.quick('>PTX: Show Pictures of This Function', 'Show Pictures of This Function');
            await w.inside('registers allocated');
            await w.picture('vscode-pictures');
            saw('pictures');

            // A block in the picture of the control flow names its lines and links to the first.
            const block = await w.inside('Control flow');
            const title = await block.locator('svg a title').nth(1).textContent();
            const [, first] = /^B1: lines? (\d+)/.exec(title);
            await block.locator('svg a').nth(1).click();
            await until('line of the block', async () => new RegExp(`Ln ${first}\\b`).test(await w.page.locator('.statusbar').innerText()));
            saw('a click on a block goes to its line');

            // While a statement is unfinished, the last pictures remain, drawn pale and with the reason.
            await w.go(body, 1);
            await w.press('Home');
            await w.page.keyboard.type('fna');
            await w.press('Escape');
            const pale = await w.inside('not compiled');
            assert(await pale.evaluate(() => document.body.textContent.includes('registers allocated')), 'the pictures are gone');
            await w.press('Control+Z');
            await until('pictures of the code as it is', async () => !(await w.inside('registers allocated')
                .then(frame => frame.evaluate(() => document.body.textContent))).includes('not compiled'));
            saw('pictures stay while the text has errors');

            // Lines that scroll into view get cells.
            await w.quick('>PTX: Show SASS for This Function', 'Show SASS for This Function');
            await w.line('/*0000*/', 1).first().waitFor({ timeout: 20000 });
            await w.line('/*0000*/', 1).first().click();
            await w.press('Control+End');
            // Functions that the compiler adds follow the kernel, whose last instruction is EXIT.
            await until('end of the kernel', async () => (await w.line('EXIT', 1).count()) > 0 || w.press('PageUp'));
            await until('cells at the end', async () => (await w.beside('EXIT', 1)).length === 2);
            saw('cells of lines that come into sight');
            await w.quick('>View: Close All Editors', 'View: Close All Editors');

            // A function that cannot be compiled shows the reason and a link to the statement.
            await w.open('broken.ptx', 'fna.rn');
            await w.go(broken.split('\n').findIndex(line => line.includes('mad.lo')) + 1, 6);
            await w.quick('>PTX: Show SASS for This Function', 'Show SASS for This Function');
            await w.line('not compiled', 1).first().waitFor({ timeout: 20000 });
            const link = w.editor(1).locator('.detected-link').first();
            await link.waitFor({ timeout: 20000 });
            await link.click({ modifiers: ['Control'] });
            const wanted = broken.split('\n').findIndex(line => line.includes('fna.rn')) + 1;
            await until('statement', async () => new RegExp(`Ln ${wanted}\\b`).test(await w.page.locator('.statusbar').innerText()));
            saw('a link to the statement that is the reason');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'symbols, folding, fixes and settings'() {
        const folder = project('features');
        copyFileSync(`${root}/tests/editors/calls.ptx`, `${folder}/calls.ptx`);
        copyFileSync(`${root}/tests/editors/calls.cu`, `${folder}/calls.cu`);
        const example = readFileSync(`${root}/examples/saxpy.ptx`, 'utf8');
        // An error with a safe fix, and a read of a register that has no value yet.
        writeFileSync(`${folder}/wrong.ptx`, example.replace('fma.rn', 'fna.rn').replace('%rd6, %rd3, %rd5', '%rd6, %rd3, %rd6'));
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': server } });
        const status = async () => (await w.page.locator('.statusbar').innerText()).replace(/\s+/g, ' ');
        try {
            await w.press('Control+B');
            await w.open('calls.ptx', 'call (y)');
            const lens = () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count();
            await until('lens', lens);
            const lines = await readFile(`${folder}/calls.ptx`);
            const go = async (text, shift = 0) => {
                const at = lines.findIndex(line => line.includes(text));
                await w.go(at + 1, lines[at].indexOf(text) + 1 + shift);
            };
            await go('%r2, %r1', 6);
            await w.press('Control+Shift+Space');
            await w.page.waitForSelector('.parameter-hints-widget.visible:has-text("add.s32 d, a, b")', { timeout: 20000 });
            await w.press('Escape');
            saw('signature of an instruction');

            await w.press('Control+Shift+O');
            for (const name of ['twice', 'caller', 'again']) {
                await w.page.locator('.quick-input-list .monaco-list-row', { hasText: name }).first().waitFor({ timeout: 20000 });
            }
            await w.press('Escape');
            await w.closed();
            saw('symbols of the document');

            await go('%r2, %r1', 1);
            await w.quick('>Go to Type Definition', 'Go to Type Definition');
            await until('declaration of the type', async () => / Ln 8, Col 10 /.test(` ${await status()} `));
            saw('type of a register');

            // The fold contains the body of the function.
            await go('ld.param.u64', 2);
            await w.press('Control+Shift+[');
            await until('fold', async () => { const text = await w.text(); return !text.includes('ld.param.u64') && text.includes('twice('); });
            await w.press('Control+Shift+]');
            await until('unfolded text', async () => (await w.text()).includes('ld.param.u64'));
            saw('folding');

            // A new line continues a comment that it breaks, and is indented after a label.
            await until('continued comment', async () => {
                await go('again:');
                await w.press('End', 'Enter');
                await w.page.keyboard.type('// one two');
                await w.press('Control+ArrowLeft', 'Enter');
                try {
                    return await until('lines of it', async () => /^ {4}\/\/ one ?\n {4}\/\/ two$/m.test(await w.text()), 5);
                } finally {
                    await w.quick('>File: Revert File', 'File: Revert File');
                }
            });
            saw('a comment continued, and a line indented after a label');

            // Formatting a selection leaves the next line as it is.
            await go('add.s32 %r2');
            await w.press('Home', 'Shift+End');
            await w.page.keyboard.type('  add.s32   %r2,%r1,%r1;');
            await w.press('Escape', 'ArrowDown', 'Home', 'Home', 'Shift+End');
            await w.page.keyboard.type('  st.param.b32   [result],%r2;');
            await w.press('Escape', 'ArrowUp', 'Home', 'Shift+End');
            await w.press('Control+K', 'Control+F');
            await until('formatted line', async () => (await w.text()).includes('    add.s32 %r2, %r1, %r1;'));
            assert((await w.text()).includes('  st.param.b32   [result],%r2;'), 'the next line is formatted too');
            saw('formatted a selection');
            await w.quick('>File: Revert File', 'File: Revert File');

            // The name in `.file` is a link.
            const link = w.line('.file 1').locator('.detected-link').first();
            await link.waitFor({ timeout: 20000 });
            await link.click({ modifiers: ['Control'] });
            await w.line('do *a').first().waitFor({ timeout: 20000 });
            saw('link to the source');

            // One line of the menu explains a diagnostic, and one switches its lint off.
            await w.open('wrong.ptx', 'fna.rn');
            await until('error', () => w.editor().locator('.squiggly-error').count());
            const wrong = await readFile(`${folder}/wrong.ptx`);
            const choose = async (text, action) => {
                const at = wrong.findIndex(line => line.includes(text));
                await w.go(at + 1, wrong[at].lastIndexOf(text) + 2);
                const row = w.page.locator('.action-widget:visible .monaco-list-row', { hasText: action }).first();
                // On a slow machine, the menu may open before the server knows the action.
                await until(action, async () => {
                    await w.press('Control+.');
                    if (await row.waitFor({ timeout: 5000 }).then(() => true, () => false)) return true;
                    await w.press('Escape');
                    return false;
                }, 60);
                await row.click();
            };
            await choose('fna.rn', 'Explain E0210');
            await w.inside('E0210');
            saw('explanation of a diagnostic');
            await w.page.locator('.editor-group-container .tab', { hasText: 'E0210' }).click({ button: 'middle' });
            await w.line('fna.rn').first().click();

            await w.quick('>Fix All', 'Fix All');
            await until('fixed text', async () => (await w.text()).includes('fma.rn'));
            saw('all safe fixes');
            const warning = () => w.editor().locator('.squiggly-warning').count();
            await until('warning', warning);
            await choose('%rd6;', 'Ignore W0507 in this project');
            await w.quick('>File: Save All', 'File: Save All Files');
            await until('project file', () => existsSync(`${folder}/ptx-check.toml`) && /W0507|unassigned-read/.test(readFileSync(`${folder}/ptx-check.toml`, 'utf8')));
            // The client asks for diagnostics again after an edit.
            await w.go(1);
            await w.press('End');
            await w.page.keyboard.type(' ');
            await until('end of the warning', async () => (await warning()) === 0);
            saw('a lint switched off in the project');

            // Settings take effect without a restart.
            await w.open('calls.ptx', 'call (y)');
            await until('lens', lens);
            w.configure({ 'ptx.codeLens': false, 'ptx.liveRegisters': true });
            await until('end of the lenses', async () => (await lens()) === 0);
            await until('live registers', async () => /3 live/.test(await w.text()));
            saw('settings changed while the server runs');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'other languages and machine code in files'() {
        const folder = project('others');
        writeFileSync(`${folder}/kernel.cu`, `__device__ unsigned f(unsigned long long x)
{
    unsigned r;
    asm("add.u64 %0, %1, 1;" : "=r"(r) : "l"(x));
    return r;
}
`);
        writeFileSync(`${folder}/kernel.py`, `PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    add.u32 %rd2, %rd1, 1;
    ret;
}
"""
`);
        writeFileSync(`${folder}/kernel.rs`, `use core::arch::asm;

pub fn f(x: u64) -> u32 {
    let r: u32;
    unsafe { asm!("add.u64 {0}, {1}, 1;", out(reg32) r, in(reg64) x) };
    r
}
`);
        execFileSync(path.join(path.dirname(path.resolve(given)), 'ptxc'), ['-arch=sm_80', '-o', `${folder}/kernel.cubin`, `${folder}/saxpy.ptx`]);
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': server } });
        try {
            await w.press('Control+B');
            await w.open('kernel.cu', 'add.u64');
            await until('squiggle', () => w.page.locator('.monaco-editor .squiggly-error').count());
            const [mnemonic, type, string] = await until('colors', async () => {
                const colors = [await w.color('add.u64', 'add'), await w.color('add.u64', '.u64'), await w.color('add.u64', '=r')];
                return colors.every(Boolean) && colors;
            });
            assert.strictEqual(new Set([mnemonic, type, string]).size, 3, `colors in the string: ${[mnemonic, type, string]}`);
            await w.go(4, 11);
            await w.press('Control+K', 'Control+I');
            await w.page.waitForSelector('.monaco-hover:visible:has-text("add.u64 d, a, b")', { timeout: 20000 });
            await w.press('Escape');
            saw('squiggle, colors and hover in inline assembly');
            await w.picture('vscode-cuda');
            for (const [file, text, column] of [['kernel.py', 'add.u32', 6], ['kernel.rs', 'add.u64', 20]]) {
                await w.open(file, text);
                await until(`squiggle in ${file}`, () => w.page.locator('.monaco-editor .squiggly-error').count());
                await w.go((await readFile(`${folder}/${file}`)).findIndex(line => line.includes(text)) + 1, column);
                await w.press('Control+K', 'Control+I');
                await w.page.waitForSelector(`.monaco-hover:visible:has-text("${text} d, a, b")`, { timeout: 20000 });
                await w.press('Escape');
            }
            await w.open('kernel.py', 'add.u32');
            await until('colors in Python', async () => {
                const colors = [await w.color('add.u32', 'add'), await w.color('add.u32', '.u32'), await w.color('PTX = ', '"""')];
                return colors.every(Boolean) && new Set(colors).size === 3;
            });
            saw('colors of a module in a string of Python');
            await w.open('kernel.rs', 'add.u64');
            const [word, kind] = await until('colors', async () => {
                const colors = [await w.color('add.u64', 'add'), await w.color('add.u64', '.u64')];
                return colors.every(Boolean) && colors;
            });
            assert.notStrictEqual(word, kind, 'colors in Rust');
            saw('squiggles and hovers in Python and Rust, colors in Rust');
            await w.quick('kernel.cubin', 'kernel.cubin');
            await w.page.waitForSelector('.monaco-editor .view-line:has-text("FFMA")', { timeout: 20000 });
            saw('a cubin as machine code');
            assert(!sprung(folder), 'a setting of the workspace chose the server');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'a workspace that is not trusted'() {
        const folder = project('restricted');
        const w = await Workbench.start({ extension, folder, trusted: false, settings: { 'ptx.server.path': server } });
        try {
            await w.page.waitForSelector('.statusbar-item:has-text("Restricted Mode")', { timeout: 30000 });
            await w.open('saxpy.ptx', 'fma.rn.f32');
            await until('lens', () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count());
            assert(!sprung(folder), 'a setting of the workspace chose the server');
            saw('the server is the user\'s, and what the workspace names is not started');
            await w.picture('vscode-restricted');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    // The package for this platform needs no separate server.
    async 'with the server inside'() {
        if (!bundled) throw new Error('no package with a server was given');
        const folder = project('bundled');
        const w = await Workbench.start({ extension: bundled, folder });
        try {
            await w.open('saxpy.ptx', 'fma.rn.f32');
            await until('lens', () => w.page.locator('.codelens-decoration', { hasText: 'registers' }).count());
            assert(Workbench.processes(server).length === 0 && !sprung(folder), 'it is the server of the package');
            saw('registers without any setting');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },

    async 'without a server'() {
        const folder = project('missing');
        const w = await Workbench.start({ extension, folder, settings: { 'ptx.server.path': '/none/ptx-lsp' } });
        try {
            await w.open('saxpy.ptx', 'fma.rn.f32');
            const message = w.notification('cannot be started');
            await message.waitFor({ timeout: 30000 });
            for (const name of ['Set Path', 'Download', 'Show Log']) {
                assert.strictEqual(await message.getByRole('button', { name }).count(), 1, name);
            }
            const colors = [await w.color('mad.lo.s32', 'mad'), await w.color('mad.lo.s32', '%r5'), await w.color('mad.lo.s32', '.lo')];
            assert(colors.every(Boolean) && new Set(colors).size === 3, `colored by the grammar: ${colors}`);
            await w.picture('vscode-missing');
            saw('a message with three buttons, and colors');
            await message.getByRole('button', { name: 'Show Log' }).click();
// Without its native modules, code-server shows no text there.
            await until('log', async () => /PTX/.test(await w.page.locator('.part.panel .monaco-select-box, .part.panel select').first().inputValue().catch(() => '')
                || await w.page.locator('.part.panel').innerText()));
            await w.line('.maxntid').first().click();
            await w.quick('>PTX: Show SASS for This Function', 'Show SASS for This Function');
            await w.notification('is not running').waitFor({ timeout: 20000 });
            saw('the log, and commands that say why they can do nothing');
            assert(!sprung(folder), 'a setting of the workspace chose the server');
        } finally {
            await w.picture(`vscode-${path.basename(folder)}-end`);
            await w.stop();
        }
    },
};

async function readFile(file) {
    return readFileSync(file, 'utf8').split('\n');
}

let failed = 0;
let passed = 0;
for (const [name, part] of Object.entries(parts)) {
    if (chosen.length && !chosen.some(word => name.includes(word))) continue;
    const start = Date.now();
    console.log(`VS Code: ${name}`);
    try {
        await part();
        passed += 1;
        console.log(`  ok (${((Date.now() - start) / 1000).toFixed(0)} s)`);
    } catch (error) {
        failed += 1;
        console.log(`  FAILED: ${error.stack ?? error}`);
    }
}
rmSync(work, { recursive: true, force: true });
process.exit(failed || !passed ? 1 : 0);
