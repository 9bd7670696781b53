-- Opens the example in a real Neovim and checks diagnostics, hover, inlay hints, tokens and the machine-code view.
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

  wait('inlay hint', function() return #vim.lsp.inlay_hint.get({ bufnr = buffer }) > 0 end)
  local hint = vim.lsp.inlay_hint.get({ bufnr = buffer })[1].inlay_hint
  local label = type(hint.label) == 'string' and hint.label or hint.label[1].value
  assert(label:find('registers') and label:find('occupancy'), label)

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

  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  vim.cmd.PtxSass()
  wait('machine code', function() return vim.fn.bufnr('ptx-sass://saxpy') >= 0 end)
  local view = vim.fn.bufnr('ptx-sass://saxpy')
  line_of(view, 'FFMA')
  -- The cursor is on the multiplication, so its machine code is marked.
  local marks = vim.api.nvim_create_namespace('ptx.sass')
  wait('mark', function()
    vim.api.nvim_exec_autocmds('CursorMoved', { buffer = buffer })
    return #vim.api.nvim_buf_get_extmarks(view, marks, 0, -1, {}) > 0
  end)
  local marked = vim.tbl_map(function(mark)
    return vim.api.nvim_buf_get_lines(view, mark[2], mark[2] + 1, false)[1]
  end, vim.api.nvim_buf_get_extmarks(view, marks, 0, -1, {}))
  assert(table.concat(marked, '\n'):find('FFMA'), vim.inspect(marked))
end)
if not ok then
  io.stdout:write('FAIL ', tostring(failure), '\n')
  vim.cmd('cquit 1')
end
io.stdout:write('ok\n')
vim.cmd('qa!')
