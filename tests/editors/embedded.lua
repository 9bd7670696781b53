-- Opens CUDA with inline assembly and a cubin in a real Neovim.
local function wait(what, condition)
  assert(vim.wait(20000, condition, 20), 'no ' .. what)
end

local ok, failure = pcall(function()
  vim.cmd.edit('kernel.cu')
  local buffer = vim.api.nvim_get_current_buf()
  assert(vim.bo[buffer].filetype == 'cuda', vim.bo[buffer].filetype)
  local function client()
    local found = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx_embedded' })[1]
    return found and found.initialized and found
  end
  wait('client', client)
  assert(#vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' }) == 0, 'one client is enough')
  for _, method in ipairs({ 'textDocument/formatting', 'textDocument/rename', 'textDocument/documentSymbol' }) do
    assert(not client():supports_method(method), method .. ' belongs to the language')
  end
  wait('diagnostic', function() return #vim.diagnostic.get(buffer) == 1 end)
  local found = vim.diagnostic.get(buffer)[1]
  local line = vim.api.nvim_buf_get_lines(buffer, found.lnum, found.lnum + 1, false)[1]
  assert(found.code == 'E0303' and line:sub(found.col + 1, found.end_col) == '%0', vim.inspect(found))
  local function ask(row, column)
    local position = { textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = row, character = column } }
    return client():request_sync('textDocument/hover', position, 20000, buffer).result
  end
  local column = line:find('add.u64', 1, true) - 1
  assert(ask(found.lnum, column).contents.value:find('add'), 'a hover in the string')
  assert(not ask(0, 0), 'none outside of it')
  wait('color', function()
    return (vim.lsp.semantic_tokens.get_at_pos(buffer, found.lnum, column) or {})[1]
  end)
  vim.api.nvim_buf_set_text(buffer, found.lnum, column, found.lnum, column + 17, { 'cvt.u32.u64 %0, %1' })
  wait('end of the diagnostic', function() return #vim.diagnostic.get(buffer) == 0 end)

  -- Commands that need the machine code of a function say that they cannot work here.
  local notify, told = vim.notify, nil
  vim.notify = function(text) told = text end
  for _, command in ipairs({ 'PtxSass', 'PtxTargets', 'PtxReasons', 'PtxPictures', 'PtxSassDiff', 'PtxBlocks' }) do
    told = nil
    vim.cmd[command]()
    assert(told and told:find('only in PTX files', 1, true), command .. ' says ' .. tostring(told))
  end
  vim.notify = notify

  vim.cmd.edit('kernel.cubin')
  assert(vim.bo.filetype == 'ptx-sass' and vim.bo.readonly, vim.bo.filetype)
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  assert(text:find('saxpy') and text:find('FFMA'), text:sub(1, 500))
end)
if not ok then
  io.stdout:write('FAIL ', tostring(failure), '\n')
  vim.cmd('cquit 1')
end
vim.cmd('qa!')
