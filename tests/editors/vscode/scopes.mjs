// Compares the TextMate grammar with the server's semantic tokens on all PTX files of the repository. The grammar must
// color each mnemonic, register or label as the server does. Also tokenizes a listing of machine code and reports text
// without a color.
//
//   SERVER=target/release/ptx-lsp node tests/editors/vscode/scopes.mjs

import { spawn, execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const require = createRequire(process.env.DRIVER + '/');
const { Registry, INITIAL, parseRawGrammar } = require('vscode-textmate');
const oniguruma = require('vscode-oniguruma');
const root = path.resolve(import.meta.dirname, '../../..');
const server = path.resolve(process.env.SERVER ?? `${root}/target/release/ptx-lsp`);
const syntaxes = `${root}/editors/vscode/syntaxes`;

/** The TextMate scopes that are allowed for each token type of the server. */
const MAY_BE = {
    comment: ['comment.'],
    keyword: ['keyword.other.directive'],
    function: ['support.function.mnemonic'],
    modifier: ['storage.modifier'],
    // The server classifies the byte selector `.b1` of a register as a type.
    type: ['support.type', 'variable.language.component'],
    // Names without `%` have no scope, because their spelling does not tell their kind.
    variable: ['variable.other', 'keyword.control.predicate', 'NAME', 'variable.parameter'],
    predicate: ['keyword.control.predicate', 'variable.other.register', 'variable.parameter', 'NAME'],
    enumMember: ['variable.language'],
    parameter: ['NAME', 'variable.parameter', 'variable.other.register'],
    method: ['entity.name.function', 'NAME', 'variable.other.constant.label'],
    label: ['variable.other.constant.label', 'NAME'],
    number: ['constant.numeric'],
    string: ['string.'],
};

function client() {
    const child = spawn(server, [], { stdio: ['pipe', 'pipe', 'inherit'] });
    const waiting = new Map();
    let buffer = Buffer.alloc(0);
    let last = 0;
    const send = message => {
        const body = JSON.stringify({ jsonrpc: '2.0', ...message });
        child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    };
    child.stdout.on('data', data => {
        buffer = Buffer.concat([buffer, data]);
        for (;;) {
            const end = buffer.indexOf('\r\n\r\n');
            const length = Number(/Content-Length: (\d+)/.exec(buffer.subarray(0, Math.max(end, 0)).toString())?.[1]);
            if (end < 0 || buffer.length < end + 4 + length) return;
            const message = JSON.parse(buffer.subarray(end + 4, end + 4 + length).toString());
            buffer = buffer.subarray(end + 4 + length);
            if (message.method && message.id !== undefined) send({ id: message.id, result: null });
            else if (message.id !== undefined) waiting.get(message.id)?.(message);
        }
    });
    return {
        notify: (method, params) => send({ method, params }),
        request: (method, params) => new Promise((done, failed) => {
            const id = ++last;
            waiting.set(id, m => (m.error ? failed(new Error(`${method}: ${m.error.message}`)) : done(m.result)));
            send({ id, method, params });
        }),
    };
}

async function grammar(scope) {
    const wasm = readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
    await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength)).catch(() => undefined);
    const registry = new Registry({
        onigLib: Promise.resolve({
            createOnigScanner: sources => new oniguruma.OnigScanner(sources),
            createOnigString: text => new oniguruma.OnigString(text),
        }),
        loadGrammar: async name => {
            const file = `${syntaxes}/${name.replace('source.', '')}.tmLanguage.json`;
            return parseRawGrammar(readFileSync(file, 'utf8'), file);
        },
    });
    return registry.loadGrammar(scope);
}

/** The innermost scope of every column of every line. */
function scopes(grammar, text) {
    let stack = INITIAL;
    return text.split(/\r?\n/).map(line => {
        const answer = grammar.tokenizeLine(line, stack);
        stack = answer.ruleStack;
        const columns = new Array(line.length).fill('');
        for (const token of answer.tokens) {
            columns.fill(token.scopes.at(-1), token.startIndex, Math.min(token.endIndex, line.length));
        }
        return columns;
    });
}

function files(folder) {
    return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
        const found = path.join(folder, entry.name);
        return entry.isDirectory() ? files(found) : found.endsWith('.ptx') ? [found] : [];
    });
}

async function ptx() {
    const lsp = client();
    const answer = await lsp.request('initialize', {
        processId: process.pid, rootUri: null, initializationOptions: { compile: false },
        capabilities: { general: { positionEncodings: ['utf-16'] } },
    });
    lsp.notify('initialized', {});
    const { tokenTypes } = answer.capabilities.semanticTokensProvider.legend;
    const ptx = await grammar('source.ptx');
    const folders = process.argv.length > 2 ? process.argv.slice(2) : [`${root}/tests/kernels`, `${root}/examples`];
    const seen = {};
    const wrong = [];
    for (const file of folders.flatMap(files)) {
        const text = readFileSync(file, 'utf8');
        const lines = text.split(/\r?\n/);
        const uri = `file://${file}`;
        lsp.notify('textDocument/didOpen', { textDocument: { uri, languageId: 'ptx', version: 1, text } });
        const { data } = await lsp.request('textDocument/semanticTokens/full', { textDocument: { uri } });
        lsp.notify('textDocument/didClose', { textDocument: { uri } });
        const found = scopes(ptx, text);
        for (let i = 0, line = 0, column = 0; i < data.length; i += 5) {
            column = data[i] ? data[i + 1] : column + data[i + 1];
            line += data[i];
            const [length, kind] = [data[i + 2], tokenTypes[data[i + 3]]];
            const word = lines[line].slice(column, column + length);
            const isName = name => /^(source|meta)\./.test(name);
            const scope = found[line].slice(column, column + length);
            seen[kind] = (seen[kind] ?? 0) + 1;
            const fits = name => MAY_BE[kind].some(may => (may === 'NAME' ? isName(name) && !/^[%.]/.test(word) : name.startsWith(may)));
            if (!scope.every(fits)) {
                wrong.push(`${path.relative(root, file)}:${line + 1}:${column + 1}: ${kind} '${word}' has ${[...new Set(scope)]}`);
            }
        }
    }
    await lsp.request('shutdown');
    lsp.notify('exit');
    const count = Object.values(seen).reduce((sum, n) => sum + n, 0);
    console.log(`PTX: ${count} tokens of ${folders.flatMap(files).length} files, ${wrong.length} of them colored otherwise than the server says`);
    for (const kind of Object.keys(MAY_BE)) {
        if (!seen[kind] && process.argv.length <= 2) wrong.push(`no file has a ${kind}`);
    }
    return wrong;
}

/** Checks that every letter of an instruction has a color, and that the first word is a mnemonic. */
async function machineCode() {
    const checker = path.join(path.dirname(server), 'ptx-check');
    const sass = await grammar('source.ptx-sass');
    const wrong = [];
    let count = 0;
    const kernels = ['saxpy', 'gemm', 'wmma', 'textures', 'atomics', 'cluster', 'warpgroup'];
    const found = files(`${root}/tests/kernels`).concat(files(`${root}/examples`));
    for (const file of found.filter(file => kernels.includes(path.basename(file, '.ptx')))) {
        for (const target of ['sm_75', 'sm_90a', 'sm_120']) {
            let text;
            try {
                text = execFileSync(checker, ['--emit', 'sass', '--target', target, file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
            } catch (error) {
                text = String(error.stdout);
            }
            const code = text.split('\n').filter(line => line.startsWith('/*'));
            const columns = scopes(sass, code.join('\n'));
            code.forEach((line, i) => {
                count += 1;
                for (const word of line.matchAll(/[\w.]+/g)) {
                    const scope = new Set(columns[i].slice(word.index, word.index + word[0].length));
                    if (scope.has('source.ptx-sass')) wrong.push(`${path.basename(file)} for ${target}: '${word[0]}' has no color in\n    ${line}`);
                }
                const mnemonic = /live +\d+ +(?:@!?\w+ +)?(\w+)/.exec(line);
                if (mnemonic && !columns[i][line.indexOf(mnemonic[1], mnemonic.index + mnemonic[0].length - mnemonic[1].length)].startsWith('support.function')) {
                    wrong.push(`${path.basename(file)} for ${target}: '${mnemonic[1]}' is no mnemonic in\n    ${line}`);
                }
            });
        }
    }
    console.log(`machine code: ${count} lines, ${wrong.length} words without a color`);
    if (count < 1000) wrong.push('too few lines of machine code');
    return wrong;
}

/** Checks strings of inline assembly in other languages with VS Code's grammars. The code around them has no PTX scope. */
async function others() {
    const extensions = `${process.env.CODE_SERVER}/lib/vscode/extensions`;
    const known = {
        'source.ptx': `${syntaxes}/ptx.tmLanguage.json`,
        'source.ptx.embedded': `${syntaxes}/ptx-embedded.tmLanguage.json`,
        'source.ptx.calls': `${syntaxes}/ptx-calls.tmLanguage.json`,
        'source.ptx.modules': `${syntaxes}/ptx-modules.tmLanguage.json`,
    };
    for (const language of ['cpp', 'rust', 'python']) {
        for (const name of readdirSync(`${extensions}/${language}/syntaxes`).filter(name => name.endsWith('.json'))) {
            const file = `${extensions}/${language}/syntaxes/${name}`;
            known[JSON.parse(readFileSync(file, 'utf8')).scopeName] = file;
        }
    }
    const registry = new Registry({
        onigLib: Promise.resolve({
            createOnigScanner: sources => new oniguruma.OnigScanner(sources),
            createOnigString: text => new oniguruma.OnigString(text),
        }),
        loadGrammar: async name => (known[name] ? parseRawGrammar(readFileSync(known[name], 'utf8'), known[name]) : null),
        getInjections: name => {
            const into = require(`${root}/editors/vscode/package.json`).contributes.grammars;
            return into.filter(grammar => grammar.injectTo?.includes(name)).map(grammar => grammar.scopeName);
        },
    });
    const samples = {
        'source.cuda-cpp': 'asm volatile("add.u32 %0, %%tid.x;\\n" : "=r"(x)); const char *s = "mov.u32 %r1";',
        'source.cpp': 'asm("add.u32 %0, %%tid.x;\\n" : "=r"(x)); f("mov.u32 %r1");',
        'source.rust': 'asm!("add.u32 {0}, %tid.x;", out(reg32) x); f("mov.u32 %r1");',
        'source.python': 'tl.inline_asm_elementwise("add.u32 $0, 1;", "=r", [x]); f("mov.u32 %r1")',
    };
    const wrong = [];
    for (const [name, line] of Object.entries(samples)) {
        const columns = scopes(await registry.loadGrammar(name), line)[0];
        const at = word => columns[line.indexOf(word)];
        for (const [word, scope] of [['add', 'support.function.mnemonic.ptx'], ['.u32', 'support.type.ptx']]) {
            if (at(word) !== scope) wrong.push(`${name}: '${word}' has ${at(word)}`);
        }
        if (/ptx/.test(at('mov.u32')) || /ptx/.test(columns.at(-1))) wrong.push(`${name}: outside of assembly there is ${at('mov.u32')}`);
    }
    // A string with a whole module is PTX from its first directive to its end.
    const module = 'S = """text\n.version 8.0\n.entry k()\n{\n    add.u32 %r1, %r2, 1; // sum\n}\n"""\nT = """add.u32"""\n';
    const python = await registry.loadGrammar('source.python');
    const lines = module.split('\n');
    const found = scopes(python, module);
    const at = (line, word) => found[line][lines[line].indexOf(word)];
    const expected = [
        [0, 'text', /^string.*python$/], [1, '.version', /^keyword.other.directive.ptx$/], [4, 'add', /^support.function.mnemonic.ptx$/],
        [4, '.u32', /^support.type.ptx$/], [4, '%r2', /^variable.other.register.ptx$/], [4, '//', /^comment.*ptx$/],
        [6, '"""', /python$/], [7, 'T', /^source.python$/], [7, 'add', /^string.*python$/],
    ];
    for (const [line, word, scope] of expected) {
        if (!scope.test(at(line, word))) wrong.push(`source.python: line ${line} of the module: '${word}' has ${at(line, word)}`);
    }
    // So is a string on one line that starts with the first directive.
    const line = String.raw`S = ".version 8.0\n// a\n.entry k() { add.u32 %r1, %r2, 1; }"; T = "add.u64"`;
    const columns = scopes(python, line)[0];
    const inOneLine = [
        ['.version', /^keyword.other.directive.ptx$/], ['\\n', /^constant.character.escape.python$/], ['// a', /^comment.*ptx$/],
        ['.entry', /^keyword.other.directive.ptx$/], ['add.u32', /^support.function.mnemonic.ptx$/], ['"; T', /python$/],
        ['T', /^source.python$/], ['add.u64', /^string.*python$/],
    ];
    for (const [word, scope] of inOneLine) {
        const found = columns[line.indexOf(word)];
        if (!scope.test(found)) wrong.push(`source.python: '${word}' of a module on one line has ${found}`);
    }
    console.log(`other languages: ${Object.keys(samples).length} lines, ${wrong.length} wrong scopes`);
    return wrong;
}

const wrong = [...await ptx(), ...await machineCode(), ...await others()];
for (const line of wrong.slice(0, Number(process.env.MOST ?? 40))) console.log(line);
process.exit(wrong.length ? 1 : 0);
