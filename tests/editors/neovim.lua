-- Opens the example in a real Neovim and checks diagnostics, hover, inlay hints, tokens and the machine-code view.
local HALVE = [[

.visible .entry halve(.param .u64 a)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [a];
    ld.global.f32 %f1, [%rd1];
    mul.rn.f32 %f2, %f1, 0f3F000000;
    st.global.f32 [%rd1], %f2;
    ret;
}]]

local function wait(what, condition)
  assert(vim.wait(20000, condition, 20), 'no ' .. what)
end

local function line_of(buffer, text)
  for i, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column then
      return i - 1, column - 1
    end
  end
  error('no line with ' .. text)
end

local ok, failure = pcall(function()
  vim.cmd.edit('saxpy.ptx')
  local buffer = vim.api.nvim_get_current_buf()
  assert(vim.bo[buffer].filetype == 'ptx', 'the file type is ' .. vim.bo[buffer].filetype)
  wait('client', function()
    local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
    return client and client.initialized
  end)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]

  -- The first one may say that the function is being compiled.
  wait('inlay hint', function()
    local first = vim.lsp.inlay_hint.get({ bufnr = buffer })[1]
    local label = first and first.inlay_hint.label or ''
    label = type(label) == 'string' and label or label[1].value
    return label:find('registers') and label:find('occupancy')
  end)

  local line, column = line_of(buffer, 'fma.rn.f32')
  local position = { textDocument = vim.lsp.util.make_text_document_params(buffer),
    position = { line = line, character = column } }
  local hover = client:request_sync('textDocument/hover', position, 20000, buffer)
  assert(hover and hover.result and hover.result.contents.value:find('FFMA'), vim.inspect(hover))
  wait('semantic token', function()
    return (vim.lsp.semantic_tokens.get_at_pos(buffer, line, column) or {})[1]
  end)

  vim.api.nvim_buf_set_text(buffer, line, column, line, column + 3, { 'fna' })
  wait('diagnostic', function() return #vim.diagnostic.get(buffer) > 0 end)
  local found = vim.diagnostic.get(buffer)[1]
  assert(found.lnum == line and found.col == column and found.code, vim.inspect(found))
  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find('Explain') ~= nil end })
  local function page()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
      if vim.api.nvim_win_get_config(window).relative ~= '' and table.concat(lines, '\n'):find(found.code, 1, true) then
        return window
      end
    end
  end
  wait('page of ' .. found.code, page)
  vim.api.nvim_win_close(page(), true)
  vim.cmd('silent undo')
  wait('end of the diagnostic', function() return #vim.diagnostic.get(buffer) == 0 end)

  -- A quick fix mends the line.
  local whole = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
  vim.api.nvim_buf_set_text(buffer, line, #whole - 1, line, #whole, { '' })
  wait('diagnostic of a missing semicolon', function() return #vim.diagnostic.get(buffer) > 0 end)
  local at = vim.diagnostic.get(buffer)[1]
  vim.lsp.buf.code_action({ apply = true, range = { start = { at.lnum + 1, at.col }, ['end'] = { at.end_lnum + 1, at.end_col } },
    filter = function(action) return action.kind == 'quickfix' and action.title:find(';', 1, true) end })
  wait('mended line', function()
    return vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] == whole and #vim.diagnostic.get(buffer) == 0
  end)

  -- Completion knows where it is.
  vim.fn.append(line + 1, '    ld.global.')
  local after = client:request_sync('textDocument/completion', {
    textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = line + 1, character = 14 },
  }, 20000, buffer)
  local items = after and after.result and (after.result.items or after.result) or {}
  table.sort(items, function(a, b) return a.sortText < b.sortText end)
  assert(items[1].label == 'b32' and items[2].label == 'u32', vim.inspect(items[1]))
  assert(items[#items].detail:find('^requires '), vim.inspect(items[#items]))
  vim.cmd('silent undo')

  -- One register of a range is renamed, and one that exists is refused.
  local text_before = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local rename_line, rename_column = line_of(buffer, '%rd6, %rd3')
  vim.api.nvim_win_set_cursor(0, { rename_line + 1, rename_column })
  vim.lsp.buf.rename('%address')
  wait('renamed register', function() return pcall(line_of, buffer, '[%address]') end)
  assert(pcall(line_of, buffer, '%rd<8>, %address;'), 'the register is not declared')
  wait('no diagnostics after the rename', function() return #vim.diagnostic.get(buffer) == 0 end)
  vim.cmd('silent undo')
  local refused = client:request_sync('textDocument/rename', { textDocument = vim.lsp.util.make_text_document_params(buffer),
    position = { line = rename_line, character = rename_column }, newName = '%rd2' }, 20000, buffer)
  assert(refused and refused.err and refused.err.message:find('already declared', 1, true), vim.inspect(refused))

  -- Formatting changes blanks, and the second time nothing.
  vim.lsp.buf.format({ timeout_ms = 20000 })
  assert(pcall(line_of, buffer, '    fma.rn.f32 %f4, %f1, %f2, %f3;'), 'the text is not formatted')
  local once = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  vim.lsp.buf.format({ timeout_ms = 20000 })
  assert(vim.deep_equal(once, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)), 'formatted text was changed')
  vim.cmd('silent undo')
  wait('text before formatting', function()
    return vim.deep_equal(text_before, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
  end)

  -- The hover of a product shows its fragments.
  local product = '    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {%r1, %r2, %r3, %r4}, {%r5, %r1}, {%f1, %f1, %f1, %f1};'
  vim.fn.append(line + 1, product)
  local table_of = client:request_sync('textDocument/hover', { textDocument = vim.lsp.util.make_text_document_params(buffer),
    position = { line = line + 1, character = 5 } }, 20000, buffer)
  assert(table_of.result.contents.value:find('| `%r4` | g+8 | 2t+8, 2t+9 |', 1, true), vim.inspect(table_of.result))
  vim.cmd('silent undo')
  wait('end of the diagnostics', function() return #vim.diagnostic.get(buffer) == 0 end)

  -- A line above the function shows its resources, also on the screen, and running it opens the machine code. After a
  -- save with a reference compiler, here our own, a second one leads to both listings.
  local function lenses()
    return table.concat(vim.tbl_map(function(entry) return entry.lens.command.title end,
      vim.lsp.codelens.get({ bufnr = buffer })), '\n')
  end
  wait('lens', function() return lenses():find('10 registers.*occupancy') end)
  wait('lens on the screen', function()
    vim.cmd.redraw()
    return vim.inspect(vim.api.nvim_buf_get_extmarks(buffer, -1, 0, -1, { details = true })):find('LspCodeLens')
  end)
  local function run_lens(wanted, place)
    local choose = vim.ui.select
    vim.ui.select = function(candidates, _, take)
      take(vim.iter(candidates):find(function(candidate) return candidate.lens.command.command == wanted end))
    end
    vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
    vim.api.nvim_win_set_cursor(0, { line_of(buffer, place or '.entry saxpy') + 1, 0 })
    vim.lsp.codelens.run()
    return function() vim.ui.select = choose end
  end
  local done = run_lens('ptx.showSass')
  wait('machine code from a lens', function() return vim.fn.bufnr('ptx-sass://') >= 0 end)
  done()
  vim.cmd.bwipeout('ptx-sass://sass')
  local program = vim.fs.dirname(vim.env.SERVER) .. '/ptxc'
  client:notify('workspace/didChangeConfiguration', { settings = { reference = { path = program } } })
  vim.cmd('silent write')
  wait('lens of the reference', function() return lenses():find('reference: 10 registers, no spills', 1, true) end)
  done = run_lens('ptx.showReference')
  wait('both listings', function()
    local windows = vim.api.nvim_tabpage_list_wins(0)
    return #windows == 2 and vim.iter(windows):all(function(window)
      return vim.wo[window].diff and pcall(line_of, vim.api.nvim_win_get_buf(window), 'FFMA')
    end)
  end)
  done()
  vim.cmd.tabclose()

  -- References of labels are counted on request, and a click lists them.
  client:notify('workspace/didChangeConfiguration', { settings = { referenceLens = true } })
  wait('lens with references', function() return lenses():find('1 reference', 1, true) end)
  done = run_lens('ptx.showReferences', 'done:')
  wait('list of references', function()
    return vim.iter(vim.fn.getqflist()):any(function(entry) return entry.text:find('bra +done') end)
  end)
  done()
  vim.cmd.cclose()

  -- A change of a setting takes effect at once: no lenses.
  client:notify('workspace/didChangeConfiguration', { settings = { codeLens = false } })
  wait('end of the lenses', function() return lenses() == '' end)
  client:notify('workspace/didChangeConfiguration', { settings = vim.lsp.config.ptx.init_options })
  wait('lenses again', function() return lenses():find('occupancy') end)

  -- Opening marks the machine code of the statement under the cursor.
  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  vim.cmd.PtxSass()
  wait('machine code', function() return vim.fn.bufnr('ptx-sass://') >= 0 end)
  local view = vim.fn.bufnr('ptx-sass://')
  assert(vim.bo[view].filetype == 'ptx-sass', vim.bo[view].filetype)
  local function marked(target)
    local found = vim.api.nvim_buf_get_extmarks(target, vim.api.nvim_create_namespace('ptx.sass'), 0, -1, {})
    return table.concat(vim.tbl_map(function(mark)
      return vim.api.nvim_buf_get_lines(target, mark[2], mark[2] + 1, false)[1]
    end, found), '\n')
  end
  local function stale()
    return #vim.api.nvim_buf_get_extmarks(view, vim.api.nvim_create_namespace('ptx.sass.stale'), 0, -1, {}) > 0
  end
  wait('mark on opening', function() return marked(view):find('FFMA') end)
  assert(marked(buffer):find('fma.rn.f32', 1, true), marked(buffer))
  local row, at = line_of(view, 'FFMA')
  local group = vim.fn.synIDattr(vim.fn.synID(row + 1, at + 1, 1), 'name')
  assert(vim.api.nvim_buf_call(view, function()
    return vim.fn.synIDattr(vim.fn.synID(row + 1, at + 1, 1), 'name')
  end) == 'ptxSassMnemonic', group)

  -- Live registers and stall cycles stand beside the instructions, outside the text.
  local heat = vim.api.nvim_buf_get_extmarks(view, vim.api.nvim_create_namespace('ptx.sass.heat'), { row, 0 }, { row, -1 }, { details = true })
  local cells = heat[1] and heat[1][4].virt_text or {}
  assert(cells[1] and cells[1][1]:find('%d') and cells[1][2]:find('PtxHeat'), vim.inspect(heat))
  assert(not vim.api.nvim_buf_get_lines(view, row, row + 1, false)[1]:find('live'), 'live registers are in the text')

  -- `K` explains the word of machine code under the cursor: an instruction, an operand, a control word.
  local source = vim.api.nvim_get_current_win()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(view))
  local function floating(text)
    return vim.iter(vim.api.nvim_list_wins()):find(function(window)
      local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
      return vim.api.nvim_win_get_config(window).relative ~= '' and table.concat(lines, '\n'):find(text, 1, true)
    end)
  end
  for _, case in ipairs({ { 'FFMA', 'rounded once' }, { 'R', '32-bit register' }, { ':S0', 'cycle' } }) do
    local start = vim.fn.getline(row + 1):find('FFMA', 1, true)
    local column = vim.fn.getline(row + 1):find(case[1], case[1] == 'R' and start or 1, true)
    vim.api.nvim_win_set_cursor(0, { row + 1, column - 1 })
    vim.api.nvim_feedkeys('K', 'xm', false)
    wait('explanation of ' .. case[1], function() return floating(case[2]) end)
    vim.api.nvim_win_close(floating(case[2]), true)
  end
  vim.api.nvim_set_current_win(source)

  -- Control words in words, and not at all.
  vim.cmd.PtxSassControls('words')
  wait('control words in words', function() return pcall(line_of, view, '; ') and pcall(line_of, view, '// waits for') end)
  vim.cmd.PtxSassControls('hidden')
  wait('code without control words', function() return not pcall(line_of, view, 'cycles') and not pcall(line_of, view, ':S0') end)
  vim.cmd.PtxSassControls()
  wait('control codes', function() return pcall(line_of, view, ':S0') end)

  -- Moving in either window marks the other's lines.
  local function move(target, text)
    vim.api.nvim_set_current_win(vim.fn.bufwinid(target))
    vim.api.nvim_win_set_cursor(0, { line_of(target, text) + 1, 0 })
    vim.api.nvim_exec_autocmds('CursorMoved', { buffer = target })
  end
  move(view, 'STG.E')
  wait('mark in the PTX', function() return marked(buffer):find('st.global', 1, true) end)
  move(buffer, 'mad.lo.s32')
  wait('mark in the machine code', function() return marked(view):find('IMAD') end)
  move(view, 'STG.E')
  vim.api.nvim_feedkeys('gd', 'xm', false)
  assert(vim.api.nvim_get_current_buf() == buffer and vim.api.nvim_get_current_line():find('st.global', 1, true),
    'gd in the machine code does not go to the PTX')

  -- The function after stages of the compiler, with the same marks, and the machine code again.
  local names = vim.fn.getcompletion('PtxStage Gvn', 'cmdline')
  assert(vim.deep_equal(names, { 'GvnCse' }), vim.inspect(names))
  vim.cmd.PtxStage('GvnCse')
  wait('stage', function() return pcall(line_of, view, 'saxpy for sm_80: GvnCse') and pcall(line_of, view, '%v') end)
  move(buffer, 'fma.rn.f32')
  wait('mark in the stage', function() return marked(view):find('FFMA') end)
  move(view, 'STG.E')
  wait('mark in the PTX', function() return marked(buffer):find('st.global', 1, true) end)
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  local choose = vim.ui.select
  vim.ui.select = function(all, options, take)
    assert(options.format_item(all[1]):find('^ori: '), options.format_item(all[1]))
    take(vim.iter(all):find(function(one) return one.name == 'alloc' end))
  end
  vim.cmd.PtxStage()
  wait('chosen stage', function() return pcall(line_of, view, 'saxpy for sm_80: alloc') and pcall(line_of, view, 'R0 = ') end)
  vim.ui.select = choose
  vim.cmd.PtxSass()
  wait('machine code again', function() return pcall(line_of, view, '/*0000*/') end)

  -- An edit makes it gray until there is new code, and marks are at their new places.
  local function edit(act)
    vim.api.nvim_buf_call(buffer, act)
    vim.api.nvim_exec_autocmds('TextChanged', { buffer = buffer })
  end
  edit(function() vim.fn.append(line + 1, '    add.rn.f32 %f4, %f4, 0f40490FDB;') end)
  assert(stale(), 'machine code older than the text is not grey')
  wait('new machine code', function() return not stale() and pcall(line_of, view, 'FADD') end)
  move(buffer, 'add.rn.f32')
  wait('mark after an edit', function() return marked(view):find('FADD') end)

  -- What is different since the last save: in the first line, and side by side.
  local function noted()
    local notes = vim.api.nvim_buf_get_extmarks(view, vim.api.nvim_create_namespace('ptx.sass.notes'), 0, -1, { details = true })
    return notes[1] and notes[1][4].virt_text[1][1] or ''
  end
  wait('difference from the last save', function() return noted():find('%+1 instruction since the last save') end)
  local function sides(with, title)
    vim.cmd.PtxSassDiff(with)
    wait('difference from ' .. with, function()
      local windows = vim.api.nvim_tabpage_list_wins(0)
      return #windows == 2 and vim.wo[windows[1]].diff and vim.wo[windows[2]].diff and vim.startswith(vim.wo[windows[2]].winbar, title .. ': ')
    end)
    return vim.tbl_map(function(window)
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
    end, vim.api.nvim_tabpage_list_wins(0))
  end
  local function difference(with, title)
    local texts = sides(with, title)
    vim.cmd.tabclose()
    return texts
  end
  local saved = sides('saved', 'saxpy as it is')
  local side = vim.api.nvim_get_current_win()
  assert(vim.wo[side].winbar:find('+1 instruction', 1, true), vim.wo[side].winbar)
  assert(not saved[1]:find('FADD') and saved[2]:find('FADD'), vim.inspect(saved))
  -- It follows an edit, and so do pictures in the browser.
  local opened
  local open = vim.ui.open
  vim.ui.open = function(path) opened = path end
  vim.cmd.tabprevious()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  vim.cmd.PtxPictures()
  wait('pictures', function() return opened and vim.fn.filereadable(opened) == 1 end)
  local function pictures()
    return table.concat(vim.fn.readfile(opened), '\n')
  end
  local first = pictures()
  edit(function() vim.fn.append(line + 2, { '    ex2.approx.f32 %f4, %f4;', '    sin.approx.f32 %f4, %f4;' }) end)
  wait('difference after an edit', function() return pcall(line_of, vim.api.nvim_win_get_buf(side), 'MUFU.EX2') end)
  wait('summary of it', function() return not vim.wo[side].winbar:find('+1 instruction', 1, true) end)
  wait('pictures after an edit', function() return pictures() ~= first and pictures():find('Live registers') end)
  edit(function() vim.fn.append(line + 2, '    junk;') end)
  wait('pale pictures', function() return pictures():find('not compiled') and pictures():find('Live registers') end)
  edit(function() vim.cmd('silent undo') end)
  edit(function() vim.cmd('silent undo') end)
  wait('difference after undoing', function() return not pcall(line_of, vim.api.nvim_win_get_buf(side), 'MUFU.EX2') end)
  vim.ui.open = open
  vim.api.nvim_set_current_win(side)
  vim.cmd.tabclose()
  assert(difference('sm_100', 'saxpy for sm_100')[2]:find('saxpy for sm_100', 1, true))
  assert(#difference('O0', 'saxpy with -O0')[2] > #saved[2], 'level 0 has no more code')

  vim.api.nvim_buf_call(buffer, function() vim.cmd('silent write') end)
  wait('no difference after a save', function() return noted() == '' end)

  -- What it takes on each target, and pictures of it.
  vim.cmd.PtxTargets()
  wait('table of targets', function()
    return vim.bo.filetype == 'markdown' and pcall(line_of, 0, '| **sm_80** |') and pcall(line_of, 0, '| sm_120 |')
  end)
  vim.cmd.close()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  vim.cmd.PtxReasons()
  wait('reasons', function()
    return vim.bo.filetype == 'markdown' and pcall(line_of, 0, '# `saxpy`') and pcall(line_of, 0, 'are live, before')
  end)
  vim.cmd.close()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
  for _, name in ipairs({ 'saxpy.svg', 'saxpy.html' }) do
    vim.cmd.PtxPictures(name)
    wait(name, function() return vim.fn.filereadable(name) == 1 end)
    assert(table.concat(vim.fn.readfile(name), '\n'):find('Live registers'), name)
  end

  -- Its blocks lead to their lines.
  vim.cmd.PtxBlocks()
  wait('blocks', function() return vim.api.nvim_buf_get_name(0):find('ptx%-blocks://saxpy') ~= nil end)
  local blocks = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_cursor(0, { (line_of(0, 'B0 ')) + 1, 0 })
  local first = tonumber(vim.api.nvim_get_current_line():match('lines? (%d+)'))
  vim.cmd.execute([["normal \<CR>"]])
  assert(vim.api.nvim_get_current_buf() == buffer and vim.fn.line('.') == first, 'a block does not lead to its line')
  vim.api.nvim_win_close(blocks, true)
  edit(function() vim.fn.append(line + 1, '    junk;') end)
  wait('reason', function() return noted():find('not compiled: ', 1, true) end)
  assert(stale() and marked(view) == '', 'machine code of a function with errors is not grey')
  wait('hint with the last good values', function()
    local all = vim.lsp.inlay_hint.get({ bufnr = buffer })
    local text = all[1] and all[1].inlay_hint.label
    return type(text) == 'string' and text:find('^was: %d+ registers')
  end)
  edit(function() vim.cmd('silent undo') end)
  wait('end of the grey', function() return not stale() end)

  -- It follows the cursor into another function.
  local halve = vim.split(HALVE, '\n')
  edit(function() vim.fn.append(vim.fn.line('$'), halve) end)
  wait('diagnostics of the longer text', function() return not stale() end)
  move(buffer, 'mul.rn.f32')
  wait('machine code of the other function', function() return vim.b[view].ptx_function == 'halve' end)
  wait('its mark', function() return marked(view):find('FMUL') end)

  -- Navigation: callers, callees, the source of an instruction, selections that grow, both places of a label.
  vim.cmd.only()
  vim.cmd.edit('calls.ptx')
  local calls = vim.api.nvim_get_current_buf()
  wait('client of the other file', function() return vim.lsp.get_clients({ bufnr = calls, name = 'ptx' })[1] end)
  local function go(text, shift)
    local to, from = line_of(calls, text)
    vim.api.nvim_win_set_cursor(0, { to + 1, from + (shift or 0) })
  end
  local function quickfix()
    return table.concat(vim.tbl_map(function(entry) return entry.text end, vim.fn.getqflist()), ' ')
  end
  go('twice(', 0)
  vim.lsp.buf.incoming_calls()
  wait('callers', function() return quickfix():find('caller') end)
  vim.cmd.cclose()
  go('.entry caller', 8)
  vim.lsp.buf.outgoing_calls()
  wait('callees', function() return quickfix():find('twice') end)
  vim.cmd.cclose()
  vim.api.nvim_set_current_win(vim.fn.bufwinid(calls))
  go('call (', 2)
  vim.lsp.buf.definition()
  wait('source of the call', function() return vim.fn.expand('%:t') == 'calls.cu' and vim.fn.line('.') == 3 end)
  vim.cmd.buffer(calls)
  go('twice, (', 1)
  vim.lsp.buf.definition()
  wait('definition of the function', function() return vim.api.nvim_get_current_line():find('.func', 1, true) end)
  go('%r2, %r1', 1)
  local selection = vim.lsp.get_clients({ bufnr = calls, name = 'ptx' })[1]:request_sync('textDocument/selectionRange', {
    textDocument = vim.lsp.util.make_text_document_params(calls), positions = { { line = vim.fn.line('.') - 1, character = vim.fn.col('.') - 1 } },
  }, 20000, calls)
  local range, steps = selection.result[1], 0
  while range do
    range, steps = range.parent, steps + 1
  end
  assert(steps >= 4, vim.inspect(selection))
  -- Typing changes both places of a label.
  go('again:', 2)
  wait('ranges of linked editing', function()
    vim.api.nvim_exec_autocmds('CursorMoved', { buffer = calls })
    return vim.inspect(vim.api.nvim_buf_get_extmarks(calls, -1, 0, -1, { details = true })):find('LspReferenceTarget')
  end)
  vim.api.nvim_feedkeys('ix', 'xt', false)
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = calls })
  wait('both places of the label', function() return pcall(line_of, calls, 'agxain:') and pcall(line_of, calls, 'bra agxain;') end)
  vim.cmd('silent edit!')
  wait('client after reading again', function() return vim.lsp.get_clients({ bufnr = calls, name = 'ptx' })[1] end)

  -- Functions fold, and a semicolon formats its statement.
  local brace = line_of(calls, '.entry caller') + 2
  go('ld.param.u64')
  wait('fold', function() return vim.fn.foldlevel(brace) == 1 and vim.fn.foldlevel('$') == 1 end)
  assert(vim.fn.foldclosed('.') == -1, 'folds are closed at first')
  vim.cmd('normal! zc')
  assert(vim.fn.foldclosed('.') == brace and vim.fn.foldclosedend('.') == vim.fn.line('$'), 'the fold is not the function')
  vim.cmd('normal! zo')
  vim.api.nvim_feedkeys('oadd.u32   %r1,%r1,  1;', 'xt', false)
  wait('formatted statement', function() return pcall(line_of, calls, '    add.u32 %r1, %r1, 1;') end)
  vim.cmd('silent edit!')
  vim.cmd('silent edit!')
  vim.cmd.buffer({ buffer, bang = true })

  -- A server that ends says so, and a command starts it again.
  local told = {}
  local notify = vim.notify
  vim.notify = function(text) told[#told + 1] = text end
  -- The oldest: another one serves the source in C++.
  local function pid()
    return vim.fn.trim(vim.fn.system({ 'pgrep', '-o', '-P', tostring(vim.fn.getpid()), '-x', 'ptx-lsp' }))
  end
  vim.uv.kill(tonumber(pid()), 'sigkill')
  wait('message', function() return table.concat(told):find('has ended') end)
  vim.notify = notify
  vim.cmd.PtxRestart()
  wait('new client', function()
    local again = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
    return again and again.initialized and again.id ~= client.id
  end)

  vim.cmd('checkhealth ptx')
  local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  assert(report:find('ptx%-lsp` is ptx%-lsp %d') and report:find("running for %d buffer"), report)
end)
if not ok then
  io.stdout:write('FAIL ', tostring(failure), '\n')
  vim.cmd('cquit 1')
end
io.stdout:write('ok\n')
vim.cmd('qa!')
