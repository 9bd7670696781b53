-- Opens a project in a real Neovim and uses features that other tests do not: signature help, symbols, links, formatting
-- of a range, live registers, and the project's file.
local function wait(what, condition)
  assert(vim.wait(20000, condition, 20), 'no ' .. what)
end

local ok, failure = pcall(function()
  vim.cmd.edit('calls.ptx')
  local buffer = vim.api.nvim_get_current_buf()
  wait('client', function()
    local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
    return client and client.initialized
  end)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
  -- Moves the cursor to the first place of a text.
  local function go(text, shift)
    vim.api.nvim_set_current_win(vim.fn.bufwinid(buffer))
    for i, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
      local column = line:find(text, 1, true)
      if column then
        vim.api.nvim_win_set_cursor(0, { i, column - 1 + (shift or 0) })
        return i
      end
    end
    error('no line with ' .. text)
  end

  go('%r2, %r1', 5)
  vim.lsp.buf.signature_help()
  local function floating()
    return vim.iter(vim.api.nvim_list_wins()):find(function(window)
      return vim.api.nvim_win_get_config(window).relative ~= ''
    end)
  end
  wait('signature', function()
    local window = floating()
    return window and table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
      :find('add.s32 d, a, b', 1, true)
  end)
  vim.api.nvim_win_close(floating(), true)

  local function texts(list)
    return table.concat(vim.tbl_map(function(entry) return entry.text end, list), ' ')
  end
  vim.lsp.buf.document_symbol()
  wait('symbols of the document', function()
    local found = texts(vim.fn.getloclist(0))
    return found:find('twice') and found:find('caller') and found:find('again')
  end)
  vim.cmd.lclose()
  vim.lsp.buf.workspace_symbol('twi')
  wait('symbols of the workspace', function() return texts(vim.fn.getqflist()):find('twice') end)
  vim.cmd.cclose()

  go('%r2, %r1', 1)
  vim.lsp.buf.type_definition()
  wait('type', function() return vim.fn.expand('<cWORD>') == '.b32' and vim.api.nvim_get_current_line():find('.reg', 1, true) end)

  -- `gx` on the name in `.file` opens the file.
  local open, opened = vim.ui.open, nil
  vim.ui.open = function(path) opened = path end
  go('calls.cu')
  vim.api.nvim_feedkeys('gx', 'xm', false)
  wait('link', function() return opened end)
  vim.ui.open = open
  assert(vim.fs.basename(opened) == 'calls.cu' and vim.fn.filereadable(opened) == 1, opened)

  -- Formatting a range leaves the other lines as they are.
  local at = go('add.s32 %r2')
  vim.api.nvim_buf_set_lines(buffer, at - 1, at + 1, false, { '  add.s32   %r2,%r1,%r1;', '  st.param.b32   [result],%r2;' })
  local width = #vim.fn.getline(at)
  vim.lsp.buf.format({ timeout_ms = 20000, range = { start = { at, 0 }, ['end'] = { at, width } } })
  assert(vim.fn.getline(at) == '    add.s32 %r2, %r1, %r1;', vim.fn.getline(at))
  assert(vim.fn.getline(at + 1) == '  st.param.b32   [result],%r2;', vim.fn.getline(at + 1))
  vim.cmd('silent edit!')

  -- The line after a comment continues it.
  go('again:')
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes('o// one<CR>two<Esc>', true, true, true), 'xt', false)
  assert(vim.trim(vim.api.nvim_get_current_line()) == '// two', vim.api.nvim_get_current_line())
  vim.cmd('silent edit!')

  -- Live registers are hints that a setting switches on and off.
  local function hints()
    return vim.inspect(vim.lsp.inlay_hint.get({ bufnr = buffer }))
  end
  wait('hints', function() return hints():find('occupancy') end)
  assert(not hints():find('%d live'), hints())
  client:notify('workspace/didChangeConfiguration', { settings = { liveRegisters = true } })
  wait('live registers', function() return hints():find('3 live (peak)', 1, true) end)
  client:notify('workspace/didChangeConfiguration', { settings = { liveRegisters = false } })
  wait('end of the live registers', function() return hints():find('occupancy') and not hints():find('%d live') end)

  -- The project's file is read again after a change.
  local function target()
    local answer = client:request_sync('ptx/sassView', { textDocument = vim.lsp.util.make_text_document_params(buffer),
      ['function'] = 'caller' }, 20000, buffer)
    return answer and answer.result and answer.result.text:match('for (sm_%d+)')
  end
  assert(target() == 'sm_90', target())
  vim.fn.writefile({ 'target = "sm_100"' }, 'ptx-check.toml')
  wait('new target', function() return target() == 'sm_100' end)
end)
if not ok then
  io.stdout:write('FAIL ', tostring(failure), '\n')
  vim.cmd('cquit 1')
end
vim.cmd('qa!')
